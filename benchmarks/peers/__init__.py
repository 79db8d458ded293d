"""What a user would pick instead: time and test error to a (1, 1e-6)-private linear model, tool by tool.

    pip install --editable '.[peers]'             see CONTRIBUTING.md for torch without CUDA
    python -m benchmarks.peers --adult DIR        every tool on MNIST and Adult, three seeds; appends to peers.jsonl
    python -m benchmarks.peers --only opacus --data mnist --json
    python -m benchmarks.peers --tune opacus --data mnist       its grid, on a part of the training records
    python -m benchmarks.peers --table            measure nothing: the table of what peers.jsonl holds
    python -m benchmarks.peers --write            the same table into docs/peers.md, which says how to read it
    python -m benchmarks.peers --tables --adult DIR     error and AUC on tables at four budgets, into peer-tables.jsonl

Every tool gets the same records, scaled in the same public way, and the same test set. Each of the others was tuned on
each data set, and --tables tunes as it goes; tacit has one set of constants for all data. A tool runs in a process of
its own. DIR holds train.csv(.gz) and test.csv(.gz) of UCI Adult, with the names of the columns in the first line.
"""
