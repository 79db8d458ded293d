"""The guarantee of a run as a value: what is stored is read again as it was, or refused, and never read as more."""

import json
import math
from dataclasses import fields, replace

import pytest

from tacit import jsontext
from tacit.errors import RecordError
from tacit.privacy.exclusions import Exclusion
from tacit.privacy.guarantee import FIELDS, WHO, Guarantee, Ledgers, NoiseSource, Trusted, Unit, described, stated_in
from tacit.privacy.release import BinomialRelease, GaussianRelease, GeneralRelease, LaplaceRelease
from tests.privacy.guarantees import guarantee, result

ALL = {
    "nobody": guarantee(),
    "simulated": guarantee(noise=NoiseSource.SIMULATED, ledgers=Ledgers.NONE, trusted=Trusted.CURATOR),
    "sum": guarantee(trusted=Trusted.SUM, coalition=(1, 4), once=((GaussianRelease(15.0), 2),)),
    "client": guarantee(trusted=Trusted.SERVER, unit=Unit.CLIENT, noise=NoiseSource.SIMULATED),
    "laws": guarantee(
        each_round=((LaplaceRelease(math.inf, 0.4), 1), (GeneralRelease(0.1, 1e-9), 3)),
        once=((BinomialRelease(7110, 16.0, 12, 1e-7), 1),),
    ),
    "own map": guarantee(own_map="own.py:f", not_covered=(Exclusion.OWN_MAP, Exclusion.TEST_RESULTS)),
    "none": guarantee(reasons=("no noise is added.",), noise=NoiseSource.NONE),
    "claimed": guarantee(reasons=("its bound was read.",), claim="The paper states epsilon 1 a round."),
}
NONSENSE = (
    None, True, False, "", " ", "x", "nobody", "exact", "\ud800", "<b>", 0, -1, 1.5, 10**400, math.nan, math.inf,
    -math.inf, [], [[]], {}, [None], ["x"], [True], [1, 1], [0, 4], [4, 1], [[{"mechanism": "gaussian"}, 1]],
    [[{"mechanism": "gaussian", "multiplier": 10**400, "rate": 1.0}, 1]],
    [[{"mechanism": "laplace", "l1": 0.0, "l2": None, "peak": None}, 1]],
    [[{"mechanism": "gaussian", "multiplier": 15.0, "rate": 1.0, "more": 1.0}, 1]],
    [[{"mechanism": "gaussian", "multiplier": "15", "rate": 1.0}, 1]],
    [[{"mechanism": "gaussian", "multiplier": 15.0, "rate": True}, 1]],
    [[{"mechanism": [], "multiplier": 15.0, "rate": 1.0}, 1]],
)  # fmt: skip


def stored(found, **changes):
    """The result that states a guarantee as its file has it, with changes to the fields."""
    told = json.loads(jsontext.dumps(result(found)))
    return told | {FIELDS: told[FIELDS] | changes}


@pytest.mark.parametrize("name", ALL)
def test_a_guarantee_is_read_as_it_was_stored(name):
    assert stated_in(stored(ALL[name])) == ALL[name]
    assert stated_in(result(ALL[name])) == ALL[name]  # of a run without a directory


@pytest.mark.parametrize("name", ALL)
def test_a_result_that_lacks_a_field_states_nothing_and_one_with_an_unknown_field_is_refused(name):
    told = stored(ALL[name])
    for field in told[FIELDS]:
        left = {key: value for key, value in told[FIELDS].items() if key != field}
        assert stated_in(told | {FIELDS: left}) is None
    del told[FIELDS]
    assert stated_in(told) is None
    assert stated_in(told | {FIELDS: {}}) is None
    with pytest.raises(RecordError, match="unknown field, 'secret'"):
        stated_in(stored(ALL[name], secret=1))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("field", ["private", *(one.name for one in fields(Guarantee))])
def test_nonsense_in_a_field_is_refused_or_read_for_what_it_says(name, field):
    """What is accepted is described by the very values that were read: nothing is converted, and nothing left out."""
    for wrong in NONSENSE:
        told = stored(ALL[name], **{field: wrong})
        try:
            found = stated_in(told)
        except RecordError:
            continue
        assert jsontext.dumps(described(found)) == jsontext.dumps(told[FIELDS])
        assert (found.private, found.epsilon) == (ALL[name].private, ALL[name].epsilon)


@pytest.mark.parametrize("wrong", [None, True, 1, "nobody", [], [["private", True]]])
def test_fields_that_are_no_object_are_refused(wrong):
    with pytest.raises(RecordError, match="makes no sense"):
        stated_in(stored(ALL["nobody"]) | {FIELDS: wrong})


@pytest.mark.parametrize(("name", "changes"), [
    ("nobody", {"private": False}),
    ("nobody", {"reasons": ["no noise is added."]}),
    ("nobody", {"epsilon": None}),
    ("nobody", {"each_round": []}),
    ("nobody", {"not_covered": []}),
    ("nobody", {"noise": "simulated"}),  # and nobody who knows the seed
    ("nobody", {"noise": "none"}),
    ("nobody", {"accountant": "trust me"}),
    ("nobody", {"own_map": "own.py:f"}),
    ("nobody", {"coalition": [1, 4]}),
    ("nobody", {"dp_delta": 1e-5}),  # above the one that it allows
    ("nobody", {"dp_delta": 0.0}),  # below, by an argument that gives no smaller one
    ("own map", {"own_map": "\x1b[2Jm:f"}),
    ("own map", {"own_map": "m" * 5000}),
    ("nobody", {"trusted": "NOBODY"}),
    ("simulated", {"noise": "exact"}),
    ("sum", {"trusted": "nobody"}),
    ("sum", {"coalition": [4, 4]}),
    ("sum", {"coalition": None}),
    ("none", {"private": True}),
    ("none", {"reasons": []}),
    ("none", {"epsilon": 1.0, "dp_delta": 1e-6, "allowed_delta": 1e-6, "accountant": "gdp"}),
    ("none", {"not_covered": ["test_results"]}),
])  # fmt: skip
def test_fields_that_contradict_each_other_are_refused(name, changes):
    told = stored(ALL[name], **changes)
    told |= {key: value for key, value in changes.items() if key in ("epsilon", "dp_delta", "accountant")}
    told["simulated_noise"] = told[FIELDS]["noise"] == "simulated"
    with pytest.raises(RecordError, match=r"makes no sense: (?!.*of the result is another one)"):
        stated_in(told)


@pytest.mark.parametrize(("key", "value"), [
    ("epsilon", 0.1), ("epsilon", None), ("epsilon", True), ("epsilon", 10**400), ("dp_delta", 0.0),
    ("accountant", None), ("adjacency", "client"), ("simulated_noise", True), ("simulated_noise", None),
    ("simulated_noise", 0), ("releases", []), ("releases", None),
])  # fmt: skip
def test_fields_that_the_rest_of_the_result_contradicts_are_refused(key, value):
    with pytest.raises(RecordError, match=f"{key} of the result is another one"):
        stated_in(stored(ALL["nobody"]) | {key: value})
    told = stored(ALL["nobody"])
    del told[key]
    with pytest.raises(RecordError, match=f"{key} of the result is another one"):
        stated_in(told)


@pytest.mark.parametrize(("key", "value"), [("rounds", 1000), ("noise", "simulated noise, from the seed")])
def test_rounds_and_noise_of_the_result_are_those_of_its_fields(key, value):
    with pytest.raises(RecordError, match=f"{key} of the result is another one"):
        stated_in(stored(ALL["nobody"]) | {key: value})


def test_who_is_trusted_follows_from_the_fields():
    def who(**changes):
        return guarantee(**changes).who

    assert who()[0] == "Nobody"
    assert who()[1].endswith("In this run, one process read all records.")
    assert who(ledgers=Ledgers.ELSEWHERE) == WHO[Trusted.NOBODY]
    assert who(ledgers=Ledgers.NONE)[0] == "Whoever ran this"
    for whom, words in {Trusted.SERVER: "The server", Trusted.CURATOR: "A curator"}.items():
        assert who(trusted=whom, noise=NoiseSource.SIMULATED)[0] == words
    whom, means = who(trusted=Trusted.SUM, coalition=(2, 5))
    assert whom == "A secure sum"
    assert "any 2 of the 5 agents together, if the other 3 follow the protocol" in means
    assert WHO.keys() == {*Trusted}


def test_the_sentence_and_the_facts_name_what_the_fields_hold():
    assert ALL["sum"].sentence == (
        "(1, 1e-06)-DP for the whole run of 10 rounds and up to 2 repetitions (gdp), one record present or absent; "
        "Gaussian noise of 15 sensitivities a round, in the sum over agents; exact noise from the operating system; "
        "trusts a secure sum: it holds against the server and any 1 of the 4 agents together, if the other 3 follow "
        "the protocol, and X25519 and ChaCha20 hold"
    )
    assert ALL["claimed"].sentence == (
        "not private: its bound was read. The paper states epsilon 1 a round. For reproduction only."
    )
    assert ALL["own map"].sentence.endswith("; features by own.py:f, probed, not proved")
    assert ALL["own map"].exclusions[0].startswith("what own.py:f does beyond one record at a time: ")
    assert dict(ALL["nobody"].facts)["trust"].startswith("noise is added at each agent; no server, agent or channel")
    for one, means in ((Ledgers.ELSEWHERE, "keeps its own ledger"), (Ledgers.OF_THE_RUN, "of this run alone")):
        assert means in replace(ALL["sum"], ledgers=one).trust
