"""A key that a run does not read can say anything: the run is the same to the last bit."""

import numpy as np
import pytest

import tacit
from tacit.errors import IncompatibleError
from tacit.run import build
from tacit.run.build import unread
from tacit.run.presets import fitted, preset
from tacit.run.spec import _kinds, keys

SMALL = {"data.records": 120, "data.agents": 3, "data.features": 5, "run.rounds": 2, "run.seed": 0}
HEART = {"data.source": "heart", "run.rounds": 2, "run.seed": 0}
RUNS = {
    "sound objt on heart": ("sound", "objt", HEART),
    "released objt": ("released", "objt", SMALL),
    "paper objp": ("paper", "objp", SMALL),
    "paper outp": ("paper", "outp", SMALL | {"data.low": None}),
    "static rho": ("released", "objt", SMALL | {"schedule.rho": "static"}),
    "exact steps": ("sound", "admm", SMALL),
    "dirichlet": ("sound", "objt", SMALL | {"data.partition": "dirichlet"}),
    "fedgd": ("sound", "fedgd", SMALL),
    "dpsgd on heart": ("sound", "dpsgd", HEART),
    "onemessage": ("sound", "onemessage", SMALL | {"run.rounds": 1}),
}


def spec_of(run):
    name, algorithm, values = RUNS[run]
    source = values.get("data.source", "synthetic")
    values = {"data.source": source, **values}
    return fitted(preset(name, algorithm, source).with_values(values).checked(), chosen=values)


def other(key, value):
    """Another value that the key may have."""
    choices = [one for one in keys()[key].metadata["choices"] if one != value]
    if choices:
        return choices[0]
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "-other"
    return value + 1 if int in _kinds(key) else value * 0.75


def numbers(spec):
    found = tacit.train(spec)
    return found.w, found.summary["guarantee"], found.summary["noise"]


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
@pytest.mark.parametrize("run", RUNS)
def test_what_a_run_does_not_read_changes_no_bit_of_it(run):
    spec = spec_of(run)
    values = spec.values()
    idle = {key: other(key, values[key]) for key in sorted(unread(values)) if values[key] is not None}
    assert {"data.dedup", "run.device"} <= {*idle}
    changed = {}
    for key, value in idle.items():
        if key == "run.device":  # of the torch engine, which other engines refuse
            continue
        own = spec.with_values({key: value})
        refused = ""
        try:
            build.setup(own, build.federation(own))
        except IncompatibleError as error:
            refused = str(error)
        if refused:  # a key that is not read may be refused: for heart, its schema names the columns
            assert "does not read" in refused or key.endswith("_column")
        else:
            changed[key] = value
    for found, wanted in zip(numbers(spec.with_values(changed)), numbers(spec), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
@pytest.mark.parametrize("key", [
    "data.records", "data.features", "data.classes", "data.seed", "data.row_bound", "algorithm.trust_norm",
    "schedule.rho_c1", "schedule.radius_a", "privacy.epsilon",
])  # fmt: skip
def test_what_a_run_reads_is_not_called_unread(key):
    binding = {"data.row_norm": "l2", "data.row_bound": 0.5, "schedule.radius_a": 1e-3}
    spec = spec_of("released objt").with_values(binding)
    assert key not in unread(spec.values())
    changed = spec.with_values({key: other(key, spec.values()[key])})
    assert not np.array_equal(numbers(changed)[0], numbers(spec)[0])
