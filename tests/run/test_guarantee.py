"""What a run states about privacy: the fields of result.json, and every other key of it rendered from them."""

import json

import pytest

from tacit import jsontext
from tacit.methods.promise import Promise
from tacit.methods.registry import METHODS
from tacit.privacy.budget import Total
from tacit.privacy.guarantee import FIELDS, Ledgers, described, stated_in
from tacit.run import build, guarantee
from tacit.run.presets import preset
from tests.conftest import federation

OVER = federation()


def told(preset_name, method, ledgers=Ledgers.NONE, **values):
    """The guarantee of a run, and what its result says about privacy."""
    spec = preset(preset_name, method)
    short = {} if spec.run.rounds == 1 else {"run.rounds": 3}
    spec = spec.with_values(short | {f"privacy.{key}": value for key, value in values.items()})
    setup = build.setup(spec, OVER)
    return guarantee.of(spec, setup, ledgers), json.loads(jsontext.dumps(guarantee.stated(spec, setup, ledgers)))


def check(found, summary):
    assert stated_in(summary) == found
    assert summary[FIELDS] == described(found)
    assert summary["guarantee"] == found.sentence
    assert (summary["epsilon"] is None) == (not found.private) == found.sentence.startswith("not private")
    given = (found.trust, found.covers, found.exclusions) if found.private else (None, None, None)
    assert (summary["trust"], summary["covers"], summary["not_covered"]) == given
    assert summary["noise"] in (found.noise.value, None)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_states_its_guarantee_in_fields_that_are_read_again(name):
    check(*told("sound", name))


@pytest.mark.parametrize("ledgers", Ledgers)
@pytest.mark.parametrize("trust", ["nobody", "sum"])
def test_deployed_agents_state_their_ledgers_and_whom_they_trust(ledgers, trust):
    found, summary = told("sound", "objt", ledgers, noise="exact", trust=trust)
    check(found, summary)
    assert found.ledgers is ledgers
    assert (found.coalition is None) == (trust == "nobody")
    assert not found.simulated


@pytest.mark.parametrize("name", ["objp", "objt", "outp", "iadmm-trust"])
@pytest.mark.parametrize("preset_name", ["paper", "released"])
def test_a_reproduction_states_why_it_is_not_private(preset_name, name):
    found, summary = told(preset_name, name)
    check(found, summary)
    assert found.reasons or (preset_name, name) == ("paper", "outp")


def test_a_total_that_no_bound_gives_is_no_guarantee(monkeypatch):
    monkeypatch.setattr(Promise, "total", lambda *_: Total(1e-6, ()))
    found, summary = told("sound", "objt")
    check(found, summary)
    assert found.sentence == "not private: no bound on its releases holds. For reproduction only."
