"""Deployed agents of one process agree on the masks of a secure sum: each signs a key, and checks those of all others.

Where agents keep ledgers, their keys are beside them while the run lasts: a run that is resumed needs the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.guarded.agent import Store
from tacit.guarded.half import AdmmHalf
from tacit.guarded.masks import files
from tacit.guarded.masks.keys import RunKey, SigningKey, roster
from tacit.guarded.masks.masker import Masker
from tacit.guarded.masks.masker import Terms as MaskTerms
from tacit.guarded.summand import Summand
from tacit.privacy.ledger import Ledger
from tacit.privacy.summed import Summed
from tacit.privacy.terms import Terms

Row = tuple[str, AdmmHalf, Terms, str, Store]  # name, half, terms, data_id and store of an agent
WIDEST = 64  # bits of a word; an attempt takes as many of them as its sum needs


def summands(rows: Sequence[Row], numbers: Summed, colluding: int, keys: Path | None) -> list[Summand]:
    """Return the agents, with the masks that they share; run keys are in the folder `keys`, or in memory alone."""
    run = rows[0][2].run
    own = {
        name: RunKey.new() if keys is None else files.run_key(keys, run, name, _budget(store, data_id))
        for name, _, _, data_id, store in rows
    }
    signing = {name: SigningKey.new() for name in own}  # of this process: nobody pins them elsewhere
    pinned = {name: key.public for name, key in signing.items()}
    statements = [signing[name].state(run, name, key.public) for name, key in own.items()]
    agreed, keys_of_all = MaskTerms(run, WIDEST, colluding + 2, colluding), roster(run, pinned, statements)
    return [
        Summand(name, half, terms, data_id, store, numbers, Masker.among(agreed, name, own[name], keys_of_all))
        for name, half, terms, data_id, store in rows
    ]


def _budget(store: Store, data_id: str) -> str:
    assert isinstance(store, Ledger), "keys are on disk where ledgers are"
    return store.budget(data_id)
