"""Faults put into agents, audits, runs and pages on purpose, one at a time: the test beside each must find it.

`make mutants` runs all of them (tests/mutants/__main__.py). A module holds the faults of one subject.
"""

from __future__ import annotations

from tests.mutants import agents, answers, asking, ledgers, methods, pages, queries, sites, sums, training
from tests.mutants.fault import ROOT, Mutant

__all__ = ["MUTANTS", "ROOT", "Mutant"]

MUTANTS: tuple[Mutant, ...] = sum(
    (of.MUTANTS for of in (queries, agents, answers, asking, sums, ledgers, sites, methods, training, pages)), ()
)
