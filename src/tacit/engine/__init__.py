"""Who computes the rounds of a batch of runs over the same shards, on this machine.

    registry     what an engine is, and the engines by name: the loop of tacit.run builds one, and asks it once a round
    plain        the engine that is the oracle: agents in turn, by their own code (tacit.admm.agent), in float64
    fast         all agents and runs at once in float32: `gradients` asks the records, compiled loops make the step
    torch        the same on a torch device; `stacking` sorts runs and records into what can be stacked
    forms        which choices `fast` has compiled and `torch` has stacked; an agent with another moves by its own code
    gradients    sum_i x_i a_i^T for all runs of a batch in one pass: compiled over non-zeros, or dense through BLAS
    sums         the same sums for tacit.methods, whose runs ask from threads of their own; `rendezvous` gathers them
    layout       the models of all runs in one array, as `fast`, `gradients`, `sums` and the compiled loops have them
    nonzeros     the records of an agent as lists of non-zeros, as the compiled loops read them
    kernels      the compiled loops (_kernels.c), if this installation has them
"""
