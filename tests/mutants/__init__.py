"""Faults put into agents, audits, runs and pages on purpose, one at a time: the test beside each must find it.

`make mutants` runs all of them (tests/mutants/__main__.py). A module holds the faults of one subject.
"""

from __future__ import annotations

from tests.mutants import agents, answers, asking, ledgers, methods, pages, queries, receipts, sites, sums, training
from tests.mutants.fault import ROOT, Mutant

__all__ = ["MUTANTS", "ROOT", "Mutant"]

_SUBJECTS = (queries, agents, answers, asking, sums, ledgers, receipts, sites, methods, training, pages)
MUTANTS: tuple[Mutant, ...] = sum((subject.MUTANTS for subject in _SUBJECTS), ())
