"""The server's check of an answer: honest agents pass it, and what passes is not much longer than they send."""

import dataclasses
import math

import numpy as np
import pytest

from tacit.agent.agreement import Agreement, Noise, NoisyQuery
from tacit.cli import main
from tacit.errors import Implausible, Refused
from tacit.privacy import lattice
from tacit.privacy.exact import Law, sample
from tacit.privacy.ledger import Ledger
from tacit.privacy.noise import stream
from tacit.run import asking, build, deploy, deployment, plausible
from tacit.run.deployment import Deployment
from tacit.run.presets import preset
from tacit.run.run import Run
from tacit.run.train import resume, together, train
from tacit.types import Norm
from tests.conformance.query_samples import ABSENT, REPLACED, SAMPLES, Worst
from tests.conftest import federation

NOISES = [(Law.GAUSSIAN, Norm.L2), (Law.LAPLACE, Norm.L1), (Law.LAPLACE, Norm.L2)]
LAWS = pytest.mark.parametrize("law", Law, ids=lambda law: law.value)
QUERIES = pytest.mark.parametrize("name", SAMPLES)


def run_of(query, records, law=Law.GAUSSIAN, norm=Norm.L2, multiplier=1.0, rounds=7, adjacency=ABSENT) -> Deployment:
    """Three agents that are asked the same in every round."""
    own = Agreement((NoisyQuery(query, Noise(law, norm, multiplier), rounds),), adjacency, records)
    return Deployment((own,) * 3, (records,) * 3, (1, 1), lambda _: pytest.fail("no program is needed"))


def most(of: Deployment) -> float:
    own = of.first_agreement
    return plausible.threshold(own.queries[0], own.adjacency, of.records[0], len(of.records) * own.rounds)


# --- the threshold ---------------------------------------------------------------------------------------------------


@QUERIES
def test_no_value_is_longer_than_so_many_records_can_make_it(name):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        case, n = SAMPLES[name].draw(rng, int(rng.integers(1, 30))), int(rng.integers(1, 150))
        for evaluator in case.evaluators:
            value = np.linalg.norm(case.value(case.table(rng, n), evaluator))
            allowance = case.query.evaluator.allowance(case.query, n)
            assert value <= n * case.query.bound(Norm.L2, ABSENT) * allowance * (1 + 1e-12)


def repeated(worst: Worst):
    """A query, and a table in which every record is the one that moves the value most."""
    table = worst.pair[0]
    return worst.case, table.rows(np.full(80, len(table.y) - 1))


@QUERIES
def test_records_that_are_all_as_long_as_they_may_be_reach_the_bound_of_the_value(name):
    reached = []
    for worst in SAMPLES[name].worst():
        if worst.norm is Norm.L2 and worst.adjacency is ABSENT:
            case, table = repeated(worst)
            reached.append(np.linalg.norm(case.value(table)) / (80 * case.query.bound(Norm.L2, ABSENT)))
    assert max(reached) > 0.999


@LAWS
@pytest.mark.parametrize("scale", [1, 3, 64, 2**36])
@pytest.mark.parametrize(("d", "draws"), [(1, 100_000), (3, 100_000), (26, 100_000), (1000, 10_000)])
def test_noise_exceeds_its_bound_as_rarely_as_stated_and_the_bound_is_near_it(law, scale, d, draws):
    norms = np.linalg.norm(sample(law, scale, (draws, d), stream((11, d), 1, 0)).astype(float), axis=1)
    for share in (0.1, 0.01, 0.001):
        bound = plausible.noise(law, scale, d, math.log(2 / share))
        assert np.mean(norms > bound) <= share
        if scale > 1:  # else the quantile is one of a few whole numbers
            assert bound < (2.8 if d < 26 else 1.6) * np.quantile(norms, 1 - share)


def test_one_number_of_noise_in_a_whole_run_exceeds_its_bound_with_probability_2_to_minus_60():
    for agents, rounds in ((1, 1), (10, 100), (3000, 20_000)):
        x = plausible.FAILURE * math.log(2) + math.log(2 * agents * rounds)
        gaussian = math.erfc(plausible.noise(Law.GAUSSIAN, 2**36, 1, x) / 2**36 / math.sqrt(2))
        laplace = math.exp(-plausible.noise(Law.LAPLACE, 2**36, 1, x) / 2**36)
        for tail in (gaussian, laplace):
            assert agents * rounds * tail <= 2.0**-60


@LAWS
def test_noise_in_many_dimensions_is_bounded_by_little_more_than_its_usual_length(law):
    x = plausible.FAILURE * math.log(2) + math.log(2 * 10 * 100)
    usual = math.sqrt(7840 * {Law.GAUSSIAN: 1, Law.LAPLACE: 2}[law])
    assert plausible.noise(law, 2**36, 7840, x) < {Law.GAUSSIAN: 1.1, Law.LAPLACE: 1.4}[law] * 2**36 * usual


def test_a_run_with_more_questions_or_agents_has_a_larger_threshold():
    query = SAMPLES["gradient"].different[0]
    short, long = run_of(query, 50, rounds=1), run_of(query, 50, rounds=1000)
    assert most(short) < most(long)
    more = Deployment(short.agreements * 100, short.records * 100, short.shape, short.program)
    answer = np.full(query.size, 1.001 * most(short) / math.sqrt(query.size))
    assert plausible.why_implausible(short, 0, 1, answer)
    assert plausible.why_implausible(more, 0, 1, answer) is None


@QUERIES
@pytest.mark.parametrize("adjacency", [ABSENT, REPLACED], ids=["absent", "replaced"])
def test_if_the_noise_is_small_the_threshold_is_the_bound_of_the_value_whatever_the_adjacency(name, adjacency):
    for query in SAMPLES[name].different[:3]:
        of = run_of(query, 50, multiplier=1e-7, adjacency=adjacency)
        assert 1 < most(of) / (50 * query.bound(Norm.L2, ABSENT)) < 1.0001


# --- the check -------------------------------------------------------------------------------------------------------


@QUERIES
@pytest.mark.parametrize("adjacency", [ABSENT, REPLACED], ids=["absent", "replaced"])
@pytest.mark.parametrize(("law", "norm"), NOISES, ids=["gaussian", "laplace", "laplace in l2"])
def test_honest_answers_pass_whatever_the_records_the_size_and_the_law(name, law, norm, adjacency):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        case, n = SAMPLES[name].draw(rng, int(rng.integers(1, 30))), int(rng.integers(1, 150))
        of = run_of(case.query, n, law, norm, float(10 ** rng.uniform(-2, 3)), adjacency=adjacency)
        scale, value = of.first_agreement.scale(0, n), case.value(case.table(rng, n))
        for t in range(1, 5):
            assert plausible.why_implausible(of, 1, t, lattice.release(value, scale, law)) is None
    for worst in SAMPLES[name].worst():
        case, table = repeated(worst)
        of = run_of(case.query, 80, law, norm, 0.01)
        answer = lattice.release(case.value(table), of.first_agreement.scale(0, 80), law)
        assert plausible.why_implausible(of, 1, 1, answer) is None


@QUERIES
@pytest.mark.parametrize(("law", "norm"), NOISES, ids=["gaussian", "laplace", "laplace in l2"])
def test_an_answer_beyond_the_threshold_is_refused_and_one_below_is_not(name, law, norm):
    query = SAMPLES[name].different[0]
    of = run_of(query, 40, law, norm)
    for shape in (np.ones(query.size), np.eye(query.size)[0], -np.eye(query.size)[-1]):
        answer = most(of) * shape / np.linalg.norm(shape)
        assert plausible.why_implausible(of, 2, 3, 0.999999 * answer) is None
        why = plausible.why_implausible(of, 2, 3, 1.01 * answer)
        assert why == "the norm of its answer is 1.01 times the largest that 40 records and their noise can give"


def test_more_records_may_send_a_longer_answer_so_that_a_claim_of_more_records_is_a_claim_of_weight():
    query = SAMPLES["moments"].different[0]
    few, many = run_of(query, 40, multiplier=0.01), run_of(query, 4000, multiplier=0.01)
    assert 99 < most(many) / most(few) < 101


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e308, -1e200])
def test_numbers_that_are_not_finite_or_far_too_large_are_refused(odd):
    query = SAMPLES["counts"].different[0]
    of, answer = run_of(query, 40), np.zeros(query.size)
    answer[-1] = odd
    assert "can give" in (why := plausible.why_implausible(of, 0, 1, answer)) or "not finite" in why


# --- a run in one process --------------------------------------------------------------------------------------------

SMALL = {"privacy.noise": "exact", "run.rounds": 6, "data.source": "synthetic", "data.agents": 3, "data.records": 60}


@dataclasses.dataclass(frozen=True, eq=False)
class Hostile:
    """The cover of an agent that sends something else from some round on."""

    honest: object
    since: int
    factor: float

    def check(self, *of):
        self.honest.check(*of)

    def over(self, asked):
        peers, cover = self.honest.over(asked)
        return peers, cover if asked.t < self.since else lambda value: self.factor * cover(value)


@pytest.fixture
def hostile(monkeypatch):
    def send(since=3, factor=1e6, p=1):
        honest = deploy._covers

        def covers(*arguments):
            found = honest(*arguments)
            return [*found[:p], Hostile(found[p], since, factor), *found[p + 1 :]]

        monkeypatch.setattr(deploy, "_covers", covers)

    return send


def spec(tmp_path, algorithm="objt", **values):
    return preset("sound", algorithm).with_values(SMALL | {"privacy.ledger": str(tmp_path / "ledgers")} | values)


PROX = {"algorithm.rule": "prox", "problem.domain": "everywhere"}
METHODS = [("objt", {}), ("objp", {}), ("objt-laplace", {}), ("fedgd", {}), ("onemessage", {"run.rounds": 1}),
           ("outp", PROX)]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "values"), METHODS, ids=[name for name, _ in METHODS])
def test_a_run_ends_with_the_name_of_an_agent_that_sends_what_no_honest_agent_sends(
    tmp_path, hostile, algorithm, values
):
    hostile(since=1)
    with pytest.raises(Implausible, match=r"^round 1: agent 1 sent what no honest agent sends: the norm of its answer"):
        train(spec(tmp_path, algorithm, **values), out=tmp_path / "run")


def test_no_model_moves_by_a_round_with_such_an_answer_and_its_answers_are_paid_for(tmp_path, hostile, monkeypatch):
    moved, calm = [], asking.apply_answers
    monkeypatch.setattr(asking, "apply_answers", lambda *given: moved.append(given[2].t) or calm(*given))
    hostile(since=3)
    with pytest.raises(Implausible, match="round 3: agent 1"):
        train(spec(tmp_path), out=tmp_path / "run")
    assert moved == [1, 2]
    for name in "012":
        with Ledger.open(tmp_path / "ledgers" / f"{name}.ledger", deployment.price) as ledger:
            (account,) = ledger.show()
            assert account.releases == 3
            assert not ledger.reserved(account.data_id)  # the run has ended, and holds nothing


def test_a_run_that_ended_so_is_not_resumed(tmp_path, hostile):
    hostile()
    with pytest.raises(Implausible):
        train(spec(tmp_path), out=tmp_path / "run")
    with pytest.raises(Refused, match="has ended here"):
        resume(tmp_path / "run")


def test_the_command_line_names_the_agent_in_one_line(tmp_path, monkeypatch, capsys, hostile):
    monkeypatch.chdir(tmp_path)
    hostile(factor=math.nan)
    arguments = ["train", "--data", "synthetic", "--rounds", "6", "--noise", "exact", "--ledger", "l", "-qq"]
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tacit: round 3: agent 1 sent what no honest agent sends: its answer is not finite")


def test_an_audit_whose_attacks_use_any_answer_takes_answers_unchecked(tmp_path, hostile):
    hostile(since=1, factor=1e3)
    over = federation()
    chosen = spec(tmp_path)
    run = Run(chosen, over, build.setup(chosen, over))

    def host(checked, files):
        agents = deploy.deployed(chosen, run.setup, over, None, False, files)
        return asking.AskingEngine([deploy.lane(chosen, run.setup, over, agents)], checked=checked)

    with pytest.raises(Implausible):
        together([run.again()], host=lambda _, files: host(True, files))
    assert np.isfinite(together([run.again()], host=lambda _, files: host(False, files))[0].w).all()


def test_a_run_of_honest_agents_is_not_ended(tmp_path, hostile):
    hostile(factor=1.0)
    assert train(spec(tmp_path), out=tmp_path / "run").summary["rounds"] == 6
