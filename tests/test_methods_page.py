"""The table of docs/methods/README.md: whether agents of a method can be deployed, and why, as the registry has it."""

import re
from functools import lru_cache
from pathlib import Path

import pytest

from tacit.admm.rule import Output
from tacit.errors import IncompatibleError
from tacit.methods.method import Curated
from tacit.methods.promise import Trusted, no_privacy
from tacit.methods.queried import QueryMethod
from tacit.methods.registry import METHODS
from tacit.privacy.exact import Law
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.query.registry import QUERIES
from tacit.run import build
from tacit.run.noise import deployable
from tacit.run.presets import preset

PAGE = Path(__file__).parents[1] / "docs" / "methods" / "README.md"
HEAD = "| method | deployed | why |\n|---|---|---|\n"
SMALL = {"data.records": 120, "data.agents": 3, "data.features": 4, "features.map": "none"}


def spec_of(name):
    return preset("sound", name, "synthetic").with_values(SMALL)


@lru_cache
def records(n=120):
    return build.federation(spec_of("objt").with_values({"data.records": n}))


def setup_of(name, **values):
    return build.setup(spec_of(name).with_values({f"privacy.{key}": value for key, value in values.items()}), records())


@lru_cache
def deployments(name):
    """What agents agree to if they are deployed, by how answers leave: "alone" or "in a sum" (some by their name)."""
    found = {}
    for asked in ({}, {"trust": "sum"}):
        try:
            agreed = setup_of(name, noise="exact", **asked).deployment.first_agreement
        except IncompatibleError:
            continue
        found["alone" if agreed.in_sum is None else "in a sum"] = agreed
    return found


def deployed(name):
    return ", ".join(deployments(name)) or "no: simulated"


def why(name):
    agreed = list(deployments(name).values())
    return why_deployed(name, agreed[0]) if agreed else why_simulated(setup_of(name))


def why_deployed(name, agreed):
    (one,) = agreed.queries
    (query,) = [known for known in QUERIES if QUERIES[known] is type(one.query)]
    words = f"asks `{query}`, {one.noise.law.name.capitalize()} noise"
    if not one.query.additive:
        return f"{words}; each agent is asked at its own model"
    if one.noise.law is not Law.GAUSSIAN:
        return f"{words}, shares of which do not add up to noise of the same law"
    agents = setup_of(name).agents
    if agents and isinstance(agents[0].variant.perturbation, Output):
        return f"{words}; the noise is on each agent's solution"
    return f"{words}; every agent is asked the same"


def why_simulated(setup):
    promise, method = setup.promise, None if setup.hosted is None else setup.hosted.method
    if promise.caveats == no_privacy().caveats:
        return "adds no noise"
    if promise.caveats:
        return "its noise gives no guarantee"
    if isinstance(method, Curated):
        return "a curator holds all records"
    if promise.trusted is Trusted.SERVER:
        return "a trusted server adds the noise"
    laws = {type(release) for release, _ in (*promise.each_round, *promise.once)}
    if not laws <= {GaussianRelease, LaplaceRelease}:
        return "its noise is neither Gaussian nor Laplace"
    if sum(count for _, count in promise.each_round) > 1:
        return "agents take several noisy steps per round"
    task = setup.hosted.task
    own = method.carried(task)
    if own:
        return f"agents keep {' and '.join(f'`{array}`' for array in own)} of their own"
    _, answers = method.answer(task, own, setup.server.ask(setup.server.start()))
    assert any(max(task.sizes) in answer.shape[1:] for answer in answers.values())
    return "agents send a row per record"


def row(name):
    return f"| `{name}` | {deployed(name)} | {why(name)} |"


@pytest.mark.parametrize("name", list(METHODS))
def test_the_page_says_of_a_method_whether_it_can_be_deployed_and_why(name):
    table = PAGE.read_text(encoding="utf-8").split(HEAD)[1].split("\n\n")[0]
    assert [line for line in table.splitlines() if line.startswith(f"| `{name}` |")] == [row(name)]


def test_the_table_has_the_methods_of_the_registry_and_no_others():
    table = PAGE.read_text(encoding="utf-8").split(HEAD)[1].split("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE) == list(METHODS)


@pytest.mark.parametrize("name", list(METHODS))
def test_an_entry_says_what_its_method_is(name):
    entry, agreed, spec = METHODS[name], deployments(name), spec_of(name)
    if not entry.is_admm:
        assert entry.queries == isinstance(setup_of(name).hosted.method, QueryMethod)
        assert entry.queries == bool(agreed)
    assert deployable(spec) == bool(agreed)  # what a run without a seed goes by
    assert ("in a sum" in agreed) == entry.sums


@pytest.mark.parametrize("name", list(METHODS))
def test_a_refusal_to_deploy_names_methods_that_can_be(name):
    told = build.not_deployable(METHODS[name])
    (named,) = re.findall(r"or (?:a method|one) of (.*) \(docs/", told)
    assert set(named.split(", ")) == {one for one in METHODS if deployments(one)}
    assert (PAGE.parents[1] / "adding-a-method.md").exists()


if __name__ == "__main__":  # the table, for the page
    print(HEAD + "\n".join(map(row, METHODS)))
