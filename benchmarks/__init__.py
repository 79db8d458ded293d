"""What tacit costs, measured side by side in one run; docs/performance.md says how to read it.

    python -m benchmarks                   everything, into benchmarks/results.json
    python -m benchmarks --quick --json    the ratios alone, in under a minute
    python -m benchmarks --before DIR      the engine of another checkout takes turns with this one's
    python -m benchmarks --write           the stored results into docs/performance.md
    python -m benchmarks.tables            reading tables, beside pyarrow
    python -m benchmarks.deployed          exact noise and ledgers over the same run, simulated
    python -m benchmarks.peers             what a user would pick instead (docs/peers.md)
"""
