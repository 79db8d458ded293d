"""What tacit costs, measured side by side in one process; docs/performance.md says how to read it.

    python -m benchmarks                   everything, into benchmarks/results.json
    python -m benchmarks --quick --json    the ratios alone, in under a minute
    python -m benchmarks --write           the stored results into docs/performance.md
    python -m benchmarks.deployed          exact noise and ledgers over the same run, simulated
"""
