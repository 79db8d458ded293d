"""Who computes the rounds of a batch of runs over the same shards, on this machine or on the ranks of MPI.

registry     what an engine is, and the engines by name: the loop of tacit.run builds one, and asks it once a round
plain        the engine that is the oracle: agents in turn, by their own code (tacit.admm.agent), in float64
fast         all agents and runs at once in float32: `passes` asks the records, compiled loops make the step
blocks       sums over agents that do not depend on which process holds which; what a round tells beside models
spread       `fast` over processes: rank 0 asks once a round, each rank moves its own agents
mpi          the ranks of MPI, and what they say to one another
torch        the same on a torch device; `stacking` sorts runs and records into what can be stacked
passes       sum_i x_i a_i^T for all runs in one pass over the records; and in float64, for deployed agents
sums         where runs of tacit.methods share a pass
evaluate     how good a model is
kernels      the compiled loops (_kernels.c), if this installation has them, arrays in the form they read, and the
             choices that they know: an agent with another choice moves by its own code
"""
