"""Compare what two versions of tacit compute and print, bit for bit, side by side on one machine.

    python -m tests.same_bits                    the last commit and the working tree; if clean, the one before
    python -m tests.same_bits --before REV       another commit
    python -m tests.same_bits ledger fedgd       cases whose name holds one of these words
    python -m tests.same_bits --without asked    leave a key of ledger entries out

Each version runs `cases.py` of the working tree in a process of its own. Models, rounds without clocks, ledger entries
without times and transcripts of commands are compared as they are. There are no stored hashes: bits differ between
machines. Exit code 1 if anything differs; the first difference of each case is printed.
"""
