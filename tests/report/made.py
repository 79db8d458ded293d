"""Records made by hand: two budgets, seeds whose numbers a person can check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tacit import record
from tacit.privacy.guarantee import FIELDS, NoiseSource, Unit, described
from tests.privacy.guarantees import guarantee

ERRORS = {1.0: (0.10, 0.12, 0.14, 0.16, 0.28), 3.0: (0.05, 0.06)}  # test error at the end, by epsilon, a seed each
ROUNDS = (1, 5, 10)


def spec(epsilon: float = 1.0, seed: int = 0, name: str = "objt", rounds: int = 10, radius: float = 1.0) -> str:
    return (
        f'[algorithm]\nname = "{name}"\n\n[schedule]\nradius_a = {radius}\n\n[privacy]\nepsilon = {epsilon}\n\n'
        f'[data]\nsource = "mnist"\n\n[run]\npreset = "sound"\nrounds = {rounds}\nseed = {seed}\n'
    )


def one(error: float, text: str, name: str, fields: bool = True, **more: Any) -> dict[str, Any]:
    """A sealed record whose error falls from 0.9 to `error`; its averaged iterate is a tenth worse.

    It has the fields of its guarantee, unless an earlier version made it (`fields` false).
    """
    falling = [0.9, 2 * error, error]
    curve = {
        "t": list(ROUNDS), "test_error": falling, "test_error_averaged": [1.1 * y for y in falling],
        "objective": [10 * y for y in falling], "consensus_violation": [3.0, 2.0, 1.0],
        "noise_gradient_units": [0.1, 0.1, 0.1], "noise_parameter_units": [0.01, 0.005, 0.001], "rho": [1.0, 1.0, 1.0],
    }  # fmt: skip
    told = {
        "name": name, "algorithm": text.split('"')[1], "preset": "sound", "dataset": "mnist", "rounds": 10,
        "test_error": error,
        "test_error_averaged": 1.1 * error, "objective": 10 * error, "guarantee": "(1, 1e-06)-DP for the whole run",
        "epsilon": 1.0, "epsilon_per_round": 0.2, "dp_delta": 1e-6, "accountant": "gdp", "accounted_delta": 1e-6,
        "releases": [{"mechanism": "gaussian", "multiplier": 15.0, "rate": 1.0}], "seconds": 2.0,
    }  # fmt: skip
    told |= {"adjacency": "zero_out", "simulated_noise": False} if fields else {}
    told |= more
    told |= {FIELDS: stated(told)} if fields and FIELDS not in told else {}
    return record.sealed(told | {"curve": curve, "spec": text})


def stated(told: dict[str, Any]) -> dict[str, Any]:
    """The fields of a guarantee that says what the rest of a result says."""
    source = NoiseSource.SIMULATED if told["simulated_noise"] else NoiseSource.EXACT
    unit = next(unit for unit in Unit if unit.adjacency == told["adjacency"])
    if told["epsilon"] is None:
        return described(guarantee(reasons=("no noise is added.",), noise=source, unit=unit))
    changes = {"epsilon": told["epsilon"], "dp_delta": told["dp_delta"], "allowed_delta": told["dp_delta"]}
    return described(guarantee(noise=source, unit=unit)) | changes


def not_private(error: float, text: str, name: str) -> dict[str, Any]:
    return one(error, text, name, guarantee="not private: no noise is added. For reproduction only.", epsilon=None,
               epsilon_per_round=None, dp_delta=None, accountant=None, releases=None, accounted_delta=None)  # fmt: skip


def records() -> list[dict[str, Any]]:
    return [
        one(error, spec(epsilon, seed), f"epsilon{epsilon}-seed{seed}")
        for epsilon, errors in ERRORS.items()
        for seed, error in enumerate(errors)
    ]


ARTEFACT: dict[str, Any] = {
    "name": "fig9", "title": "Figure 9: <error>", "about": "An example.", "scale": "quick", "columns": 2,
    "panels": [
        {"title": "by round", "x": "t", "y": "test_error", "where": {"privacy.epsilon": 1.0}, "lines_by": [],
         "x_label": "round", "y_label": "test error (%)"},
        {"title": "by epsilon", "x": "privacy.epsilon", "y": "test_error", "where": {}, "lines_by": ["algorithm.name"],
         "x_label": "epsilon", "y_label": "test error (%)", "log_x": True},
    ],
    "printed": [
        {"label": "near", "where": {"privacy.epsilon": 1}, "y": "test_error", "paper": 0.15, "tolerance": 0.01},
        {"label": "far", "where": {"privacy.epsilon": 3}, "y": "test_error", "paper": 0.08, "tolerance": 0.01},
        {"label": "shown", "where": {"privacy.epsilon": None}, "y": "test_error", "paper": 0.05, "tolerance": None},
        {"label": "missing", "where": {"privacy.epsilon": 7}, "y": "test_error", "paper": 0.05, "tolerance": 0.01},
    ],
    "table": {"columns": ["constant", "value"], "rows": [["U1", 12.5]]},
    "series": [{"panel": 0, "name": "bound", "x": [1, 10], "y": [0.5, 0.2]}],
    "notes": ["A note."],
}  # fmt: skip


def write(directory: Path, found: list[dict[str, Any]] | None = None, artefact: dict[str, Any] | None = None) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "records.jsonl").write_text(record.lines(records() if found is None else found))
    if artefact is not None:
        artefact = artefact | {"runs": {one["name"]: one["seal"] for one in (records() if found is None else found)}}
        (directory / "artefact.json").write_text(json.dumps(record.with_seal(artefact)))
    return directory


def write_artefact(directory: Path) -> Path:
    bare = not_private(0.04, spec(float("inf"), 0, "iadmm-trust"), "bare")
    return write(directory, [*records(), bare], ARTEFACT)
