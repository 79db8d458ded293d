"""A hostile coordinator asks for other things than were agreed, key by key, and none of them is joined."""

import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from tacit.data.spec import GIVEN
from tacit.errors import InputError, SpecError, Unfit
from tacit.federation import site_policy
from tacit.federation.messages import Join, Refusal, written
from tacit.federation.site_policy import AT_MOST, DEFAULTS, LONGEST_SPEC, OURS, UNREAD, spec_of
from tacit.privacy.history import Limit
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.spec import keys
from tests.federation import sum_sites
from tests.federation.sites import SIZES, begun, join, service, spec, told

ALL = tuple(SIZES.items())
HASH = "0" * 64


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with service(tmp_path_factory.mktemp("site")) as one:
        yield one


def checked(one, chosen):
    one.site.agree.check_spec(chosen, "r1", one.own)


def unfit(one, text, says=None):
    """The site refuses the spec by the agreement, whatever else would be wrong with the run."""
    with pytest.raises((Unfit, SpecError), match=says):
        checked(one, spec_of(text))
    refused(one, Join("r1", text, HASH, ALL))


def refused(one, message):
    """The site refuses: nothing is joined, and no ledger has an entry of the run."""
    reply = told(one, message)
    assert reply == Refusal(message.run)
    assert message.run not in one._runs
    assert all(message.run not in {run for _, run in ledger.history().places} for ledger in one._ledgers.values())


def test_the_run_that_was_agreed_is_joined(tmp_path):
    with begun(tmp_path)[0] as one:
        assert list(one._runs) == ["r1"]


OTHER = {
    "run.rounds": 1000, "problem.loss": "squared", "privacy.clip": 1e9, "data.row_norm": "none", "data.row_bound": 1e6,
    "data.row_mode": "unit", "data.intercept": True, "data.test": "/etc/passwd", "data.schema": "/etc/passwd",
    "data.source": "/etc/passwd", "privacy.sensitivity": "observed", "problem.regularizer": "none", "problem.beta": 1e6,
    "problem.threshold": 0.1, "problem.domain": "ball", "problem.domain_radius": 1e9,
    "problem.domain_low": 0.0, "problem.domain_high": 1e9, "problem.domain_center": 1e9,
    "problem.domain_file": "/etc/passwd",
    "privacy.adjacency": "replace_one", "features.map": "none", "features.seed": 7, "features.size": 3,
    "features.shape": "3x1", "features.scale": 2.0,
    "privacy.epsilon": 1.5, "privacy.dp_delta": 1e-3, "privacy.mechanism": "laplace", "privacy.covers": "round",
    "privacy.noise": "simulated", "privacy.ledger": "/tmp/other", "privacy.limit": 100.0, "privacy.data_id": "new data",
    "privacy.trust": "sum", "privacy.colluding": 2, "privacy.repetitions": 1,
    "privacy.squared_std": True, "run.preset": "released", "run.name": "r2", "run.engine": "torch",
    "run.device": "cuda",
    "algorithm.name": "outp", "algorithm.rule": "prox", "algorithm.order": "wzd", "algorithm.linearize_at": "z",
    "algorithm.perturbation": "output", "algorithm.trust_norm": "l2", "algorithm.momentum": 0.5,
    "algorithm.tolerance": 1e-3, "algorithm.gradient_weight": "local", "algorithm.regularize_at": "w",
    "schedule.rho": "static", "schedule.rho_c1": 1e-9, "schedule.rho_c2": 1e-9, "schedule.rho_period": 1.0,
    "schedule.rho_static": 1e-9, "schedule.step": 1e9, "schedule.score_noise": 1e9, "schedule.rho_factor": 1e-9,
    "schedule.eta": "power", "schedule.eta_a": 1e-9, "schedule.c_w": 1.0, "schedule.radius": "power",
    "schedule.radius_a": 1e-9,
}  # fmt: skip


def test_every_key_of_a_spec_is_held_to_the_agreement_or_is_not_read_at_a_site():
    """Whoever adds a key to the spec adds a line here: what would a hostile coordinator put there?"""
    assert set(OTHER) | UNREAD == set(keys())
    assert not set(OTHER) & UNREAD


@pytest.mark.parametrize("key", OTHER)
def test_another_value_than_was_agreed_is_refused(site, key):
    try:
        chosen = spec(**{key: OTHER[key]})
    except InputError:  # a regulariser of no such name, say
        chosen = spec(**{key: "l1"})
    checked(site, spec())
    unfit(site, chosen.toml(), r"run\.name|data\.source|agree\.|of a secure sum")


@pytest.mark.parametrize("key", sorted(UNREAD))
def test_a_key_that_is_not_read_changes_nothing_of_the_setup(site, key):
    """Were it read, the agreement would have to look at it."""
    usual = keys()[key].default
    other = {"data.partition": "dirichlet", "run.record_every": 7, "run.measure_training": True}.get(key)
    if other is None:
        kinds = {bool: lambda: not usual, int: lambda: usual + 1, float: lambda: usual * 0.5, str: lambda: "other"}
        other = kinds[type(usual)]() if usual is not None else {"data.class_names": "x,y"}.get(key, 3)
    chosen, plain = spec(**{key: other}), spec()
    checked(site, chosen)
    federations = [site.mapped.of(one, ALL) for one in (chosen, plain)]
    setups = [build.admm_setup(one, of) for one, of in zip((chosen, plain), federations, strict=True)]
    assert setups[0].deployment.digest == setups[1].deployment.digest
    assert setups[0].agents[0].variant == setups[1].agents[0].variant
    assert [setups[0].rho(t) for t in (1, 4)] == [setups[1].rho(t) for t in (1, 4)]
    np.testing.assert_array_equal(federations[0].shards[0].x, federations[1].shards[0].x)


def test_less_than_was_agreed_is_joined(site):
    for key, value in {"run.rounds": 1, "privacy.epsilon": 0.1, "privacy.dp_delta": 1e-9}.items():
        assert key in AT_MOST
        checked(site, spec(**{key: value}))


@pytest.mark.parametrize(("key", "value"), [
    ("privacy.epsilon", float("inf")), ("privacy.epsilon", -1.0), ("privacy.epsilon", 0.0), ("run.rounds", -1),
    ("privacy.dp_delta", 0.0), ("privacy.dp_delta", -1e-6), ("run.rounds", 10**9),
])  # fmt: skip
def test_no_budget_and_no_number_of_rounds_is_less_than_nothing(site, key, value):
    unfit(site, spec().with_values({key: value}).toml(), f"^{key}")


SUMS = '"privacy.trust" = "sum"\n'


@pytest.fixture(scope="module")
def adding(tmp_path_factory):
    with sum_sites.services(tmp_path_factory.mktemp("sums"), sites=sum_sites.ONE)["alone"] as one:
        yield one


def test_a_secure_sum_is_joined_where_the_site_agrees_to_it_and_pins_peers(adding, site, tmp_path):
    """[agree] alone does not do (tests/federation/test_site.py), nor does [sum] alone."""
    fine = sum_sites.spec()
    assert told(adding, join(adding, chosen=fine)).kind == "joined"
    unfit(site, fine.toml(), r"agree\.privacy\.trust")
    with pytest.raises(Unfit, match=r"needs? a section \[sum\]"):
        adding.site.agree.check_spec(fine, "r1", adding.own, None)
    with sum_sites.services(tmp_path, sites=sum_sites.ONE, agree="")["alone"] as one:
        refused(one, join(one, chosen=fine))
    checked_sum(adding, fine)


@pytest.mark.parametrize("name", ["secure-sum", "onemessage-sum"])
def test_a_method_whose_name_stands_for_a_sum_is_joined_only_as_a_sum_that_is_agreed(name, tmp_path):
    """A spec that leaves privacy.trust and colluding out is one of a sum with one colluding agent."""
    listed = f'"algorithm.name" = ["objt", "{name}"]\n"run.rounds" = 50\n'
    rounds = {} if name == "onemessage-sum" else {"run.rounds": 4}
    usual = {"privacy.noise": "exact", "run.name": "r1", "data.source": GIVEN + "trial"} | rounds
    chosen = preset("sound", name, GIVEN).with_values(usual | {"privacy.trust": None})
    assert "trust =" not in chosen.toml()
    with service(tmp_path / "alone", agree=listed) as one, pytest.raises(Unfit, match=r"agree\.privacy\.trust"):
        one.site.agree.check_spec(spec_of(chosen.toml()), "r1", one.own, None)
    agree = listed + '"privacy.trust" = ["nobody", "sum"]\n'
    with sum_sites.services(tmp_path, sites=sum_sites.ONE, agree=agree, threshold=4, colluding=2)["alone"] as one:
        for less in (chosen, chosen.with_values({"privacy.colluding": 1})):
            with pytest.raises(Unfit, match=r"privacy\.colluding = 1 is less than sum\.colluding = 2"):
                checked_sum(one, less)
        checked_sum(one, chosen.with_values({"privacy.colluding": 2, "privacy.repetitions": 1}))


def checked_sum(one, chosen):
    one.site.agree.check_spec(spec_of(chosen.toml()), "r1", one.own, one.site.sum.colluding)


def test_a_site_that_agrees_to_sums_takes_no_run_that_trusts_nobody_unless_it_says_so(adding, tmp_path):
    with pytest.raises(Unfit, match=r"agree\.privacy\.trust"):
        checked_sum(adding, spec())
    both = '"privacy.trust" = ["nobody", "sum"]\n'
    with sum_sites.services(tmp_path, sites=sum_sites.ONE, agree=both)["alone"] as one:
        for chosen in (spec(), spec(**{"privacy.trust": "nobody"}), sum_sites.spec()):
            checked_sum(one, chosen)


@pytest.mark.parametrize(("key", "value", "says"), [
    ("privacy.repetitions", 2, r"more than 1: agree\.privacy\.repetitions"),  # one in ten of 4 rounds, rounded up
    ("privacy.repetitions", 10**9, r"agree\.privacy\.repetitions"), ("privacy.trust", "nobody", r"agree\.privacy"),
    ("privacy.colluding", 0, "at least 1"), ("algorithm.linearize_at", "z", r"agree\.algorithm"),
    ("privacy.mechanism", "laplace", r"agree\.privacy"), ("privacy.covers", "round", r"agree\.privacy"),
])  # fmt: skip
def test_a_secure_sum_with_more_than_was_agreed_is_refused(adding, key, value, says):
    chosen = sum_sites.spec().with_values({key: value})
    with pytest.raises(InputError if value == 0 else Unfit, match=says):
        checked_sum(adding, chosen)
    reply = told(adding, Join("r2", chosen.with_values({"run.name": "r2"}).toml(), HASH, ALL))
    assert reply == Refusal("r2")


def test_a_run_expects_as_many_to_collude_as_the_site_does_or_more(adding, tmp_path):
    with sum_sites.services(tmp_path, sites=sum_sites.ONE, threshold=4, colluding=2)["alone"] as one:
        for fewer in (sum_sites.spec(), sum_sites.spec(**{"privacy.colluding": None})):
            with pytest.raises(Unfit, match=r"privacy.colluding = 1 is less than sum.colluding = 2"):
                checked_sum(one, fewer)
            refused(one, Join("r1", fewer.toml(), HASH, ALL))
        for fine in (2, 3, 100):
            checked_sum(one, sum_sites.spec(**{"privacy.colluding": fine}))
    for fine in (None, 1, 2):
        checked_sum(adding, sum_sites.spec(**{"privacy.colluding": fine}))


def test_how_often_rounds_may_be_repeated_is_the_sites_to_say(adding, tmp_path):
    for fine in (None, 0, 1):
        checked_sum(adding, sum_sites.spec(**{"privacy.repetitions": fine}))
    many = SUMS + '"privacy.repetitions" = 3\n'
    with sum_sites.services(tmp_path, sites=sum_sites.ONE, agree=many)["alone"] as one:
        checked_sum(one, sum_sites.spec(**{"privacy.repetitions": 3}))
        with pytest.raises(Unfit, match="more than 3"):
            checked_sum(one, sum_sites.spec(**{"privacy.repetitions": 4}))


def test_silence_is_no_mechanism(site):
    chosen = spec().with_values({"privacy.mechanism": "silence", "privacy.epsilon": float("inf")})
    unfit(site, chosen.toml(), r"agree\.")


@pytest.mark.parametrize("preset_name", ["released", "paper"])
def test_another_preset_is_refused_as_a_whole(site, preset_name):
    values = {"privacy.noise": "exact", "run.name": "r1", "data.source": GIVEN + "x"}
    unfit(site, preset(preset_name, "objt").with_values(values).toml(), r"agree\.run\.preset")


@pytest.mark.parametrize("method", ["dpsgd", "fedavg", "onemessage", "secure_sum", "admm", "outp"])
def test_another_method_is_refused(site, method):
    text = spec().toml().replace('name = "objt"', f'name = "{method}"')
    assert method in text
    unfit(site, text, r"agree\.algorithm\.name|algorithm\.name")


def test_a_function_that_a_coordinator_names_is_never_imported(site, tmp_path, monkeypatch):
    (tmp_path / "hostile_map.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for where in ("hostile_map:f", "os:system", "own", "tacit.features.own:OwnMap"):
        unfit(site, spec(**{"features.map": where}).toml(), r"agree\.features\.map")
    assert "hostile_map" not in sys.modules


def test_a_function_that_the_owner_names_is_taken(tmp_path):
    agree = '"features.map" = ["auto", "tests.features.mine:squares"]'
    with service(tmp_path, agree=agree) as one:
        checked(one, spec(**{"features.map": "tests.features.mine:squares"}))
        checked(one, spec())
        with pytest.raises(Unfit, match="not among"):
            checked(one, spec(**{"features.map": "tests.features.mine:others"}))


TEXTS = {
    "4 MB": "#" * (4 << 20), "a character too long": "#" * (LONGEST_SPEC + 1), "nested": "a = " + "[" * 8000,
    "tables": "[a" + ".a" * 8000 + "]", "dots": "a" + ".a" * 8000 + " = 1",
    "keys": "\n".join(f"k{n} = 1" for n in range(1500)), "digits": "[run]\nrounds = " + "9" * 15000,
    "exponent": "[run]\nrounds = 1e999999", "nan": "[privacy]\nepsilon = nan",
    "section": "run = 3", "list": "[[run]]\nrounds = 3", "unknown": "[run]\nroundz = 3", "no section": "[more]\nx = 1",
    "method": "[method]\nclip = 3.0", "text": "[run]\nrounds = 'three'", "dict": "[run]\nrounds = {a = 1}", "empty": "",
    "date": "[run]\nrounds = 2020-01-01", "bool": "[run]\nrounds = true", "not TOML": "\x00\x01",
    "dunder": "[__class__]\nx = 1", "private": "[run]\n__init__ = 1",
    "inline": "[run]\nrounds = {a" + ".a" * 7900 + " = 1}", "lines": '[run]\nname = """\n"""', "carriage": "[run]\r\n",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_no_spec_is_refused_at_once(site, text):
    start = time.process_time()
    unfit(site, text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("name", ["nested", "tables", "dots", "inline"])
def test_nested_keys_are_not_parsed(monkeypatch, name):
    """A parser takes seconds for them on some machines, and fails early on others."""
    monkeypatch.setattr(site_policy, "toml", None)
    with pytest.raises(Unfit, match="of the spec is neither"):
        spec_of(TEXTS[name])


def test_a_text_that_is_too_long_is_not_parsed(monkeypatch):
    monkeypatch.setattr(site_policy, "toml", None)
    with pytest.raises(Unfit, match="a spec has at most"):
        spec_of("#" * (LONGEST_SPEC + 1))


def _join(run, text):
    return written(Join(run, text, HASH, ALL))


def test_a_spec_is_read_as_it_was_written():
    assert spec_of(spec().toml()) == spec()
    assert len(spec().toml()) * 4 < LONGEST_SPEC


# --- who takes part ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agents", "says"), [
    ((), "0 agents"),
    (tuple((f"a{n}", 1) for n in range(1001)), "1001 agents"),
    ((("south", 17),), "none of the agents"),
    ((("north", 23), ("south", 17)), "has 24 records, and the run says 23"),
    ((("north", 2**53 - 1),), "has 24 records"),
])  # fmt: skip
def test_a_run_of_other_agents_is_refused(tmp_path, agents, says):
    lines = []
    with service(tmp_path, log=lambda text, **_: lines.append(text)) as one:
        refused(one, Join("r1", spec().toml(), HASH, agents))
        assert says in lines[-1]


def test_an_agent_that_stands_twice_in_a_run_is_refused(site):
    header, body = _join("r1", spec().toml())
    reply = site.answer(header | {"agents": [["north", 24], ["north", 24]]}, body)
    assert reply[0]["kind"] == "refusal"


def test_a_million_names_are_refused_without_a_look_at_the_spec(site):
    with pytest.raises(Unfit, match="the run has 1000000 agents"):
        site.site.agree.check_run("r1", ["north"], tuple((f"{n}", 1) for n in range(10**6)))
    refused(site, Join("r1", "", HASH, tuple((f"{n}", 1) for n in range(10**5))))  # the longest header holds no more


@pytest.mark.parametrize(("agree", "agents", "fits"), [
    ('agents = ["south"]', (("north", 24), ("south", 17)), True),
    ('agents = ["south"]', (("north", 24), ("east", 30)), False),
    ("fewest_agents = 2", (("north", 24),), False),
    ("fewest_agents = 2", (("north", 24), ("south", 17)), True),
    ("most_agents = 1", (("north", 24), ("south", 17)), False),
    ("fewest_records = 42", (("north", 24), ("south", 17)), False),
    ("fewest_records = 41", (("north", 24), ("south", 17)), True),
    ('runs = ["r1"]', ALL, True),
    ('runs = ["r7"]', ALL, False),
])  # fmt: skip
def test_a_site_says_who_may_take_part_and_in_which_runs(tmp_path, agree, agents, fits):
    with service(tmp_path, agree=agree) as one:
        made = join(one, agents=agents)
        if fits:
            assert told(one, made).kind == "joined"
        else:
            refused(one, made)


def test_the_hash_of_both_sides_is_one_or_the_run_is_refused(site):
    made = join(site)
    for other in (HASH, made.agreed[::-1]):
        refused(site, replace(made, agreed=other))
    refused(site, replace(made, agents=(*made.agents[:-1], ("east", 31))))


@pytest.mark.parametrize("others", [1, 10**6, 2**53 - 1])
def test_how_many_records_others_claim_scales_the_noise_with_the_gradient(tmp_path, others):
    """The weight 1/I of a record and its noise are proportional: no claim makes the noise small beside a record."""
    agents = (("north", 24), ("south", others))
    with service(tmp_path) as one:
        chosen = spec(**{"privacy.clip": None})
        made = one._made(join(one, chosen=chosen, agents=agents))
        agent = made.agents["north"]
        (one_query,) = agent.agreement.queries
        query, noise = one_query.query, one_query.noise
        assert query.weight == 1 / (24 + others)
        record = query.weight * query.record_bound.value  # how far one record moves the value
        assert agent.terms.scale >= noise.multiplier * record
        assert agent.terms.epsilon <= 1.0


def test_a_run_that_the_limit_does_not_pay_is_refused_and_leaves_nothing(tmp_path):
    with service(tmp_path, limit=0.5) as one:
        refused(one, join(one))
        made = join(one, chosen=spec(**{"privacy.epsilon": 0.4}))
        assert told(one, made).kind == "joined"


def test_no_agent_of_a_site_joins_a_run_that_another_one_cannot_pay(tmp_path):
    with service(tmp_path, ("north", "south"), limit=0.5) as one:
        one._ledgers["north"].set_limit(Limit(5.0, 1e-6))
        refused(one, join(one))


def test_terms_are_agreed_once(tmp_path):
    one, first = begun(tmp_path)
    with one:
        other = join(one, chosen=spec(**{"run.rounds": 3}))
        assert told(one, other) == Refusal("r1")
        assert told(one, first).kind == "joined"
        assert one._runs["r1"].join == first


def test_the_keys_of_the_agreement_are_keys_of_a_spec():
    assert {*AT_MOST, *DEFAULTS, *OURS, *UNREAD} <= set(keys())
