"""Fixtures of agents with a list of queries (tests.agent.listed)."""

import pytest

from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Memory
from tacit.run.deployment import price
from tests.agent.listed import MORE, PEERS, RUN


@pytest.fixture(scope="module")
def masks():
    """The masks of ann in a run of four agents, one of which may collude."""
    pytest.importorskip("cryptography")
    from tacit.agent.masks.masker import maskers

    return maskers(RUN, dict.fromkeys((*PEERS, MORE), ""), 1, None)["ann"]


@pytest.fixture(params=["ledger", "memory"])
def store(request, tmp_path):
    if request.param == "memory":
        yield Memory()
    else:
        with Ledger.open(tmp_path / "ann.ledger", price=price) as opened:
            yield opened
