"""Masks of a secure sum in one process: its agents sign fresh keys, and each checks the keys of all others.

If agents keep ledgers, their keys are beside them while the run lasts: a resumed run needs the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tacit.agent.masks import files
from tacit.agent.masks.keys import RunKey, SigningKey, roster
from tacit.agent.masks.masker import Masker, Terms

WIDEST = 64  # bits of a word; an attempt takes as many of them as its sum needs


def maskers(run: str, budgets: Mapping[str, str], colluding: int, keys: Path | None) -> dict[str, Masker]:
    """Return the masks of each agent, by name; run keys are in the folder `keys`, one for each budget, or in memory."""
    own = {
        name: RunKey.new() if keys is None else files.run_key(keys, run, name, budget)
        for name, budget in budgets.items()
    }
    signing = {name: SigningKey.new() for name in own}  # of this process: no other process pins them
    pinned = {name: key.public for name, key in signing.items()}
    statements = [signing[name].state(run, name, key.public) for name, key in own.items()]
    agreed, keys_of_all = Terms(run, WIDEST, colluding + 2, colluding), roster(run, pinned, statements)
    return {name: Masker.among(agreed, name, own[name], keys_of_all) for name in own}
