"""The call that repeats a run whose records were given in Python: no command could read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from tacit.data.spec import ESTIMATOR, GIVEN
from tacit.errors import InputError
from tacit.report.runs import Recorded
from tacit.run.build import unread
from tacit.run.keywords import KEYS
from tacit.run.model import Model
from tacit.run.presets import preset

PARAMETERS = {  # parameter of an estimator -> the key that it sets, if `tacit.train` has another name for it
    "random_state": "run.seed", "image_shape": "features.shape", "data_id": "privacy.data_id",
}  # fmt: skip
SAME = ("epsilon", "dp_delta", "adjacency", "trust", "colluding", "ledger", "limit", "rounds", "features")
FOLLOWS = ("data.source", "algorithm.name", "run.preset", "run.name", "privacy.noise", "run.record_every")
SCHEMA = 'schema=tacit.Model.read("model.npz").schema'  # the text, of any length, is in the model


def is_given(run: Recorded) -> bool:
    """Tell whether the records of a run were given in Python, or by the agents of a federation."""
    return str(run.values.get("data.source")).startswith(GIVEN)


def python_call(directory: Path, run: Recorded) -> tuple[str, str]:
    """Return what to say of a run of given records, and the call that repeats it; no call if none would."""
    if run.summary.get("took_part"):
        return "Agents of a federation held the records. The federation repeats the run: tacit federate run.", ""
    estimator = run.values["data.source"] == GIVEN + ESTIMATOR
    about = f"The records were given in Python, {'to an estimator' if estimator else 'as a federation'}."
    if estimator and not run.private:
        why = "without a guarantee, it may have read classes or bounds from them, and its files do not tell"
        return f"{about} No call is shown that repeats the run: {why}.", ""
    same = "X, y and agents" if estimator else "federation"
    try:
        call = _fit(run, Model.read(directory)) if estimator else _train(run)
    except InputError as error:  # the rest of the card can be written still
        return f"{about} No call is shown that repeats the run: {error}", ""
    return f"{about} With the same {same}, this repeats the run.", call


def _train(run: Recorded) -> str:
    found, rest = _settings(run, KEYS)
    start = {"preset": run.values["run.preset"], "algorithm": run.values["algorithm.name"]}
    values = {"values": rest} if rest else {}
    return f"import tacit\n\nresult = tacit.train({_lines(['data=federation', *_written(start | found | values)])})\n"


def _fit(run: Recorded, model: Model) -> str:
    names = {name: KEYS[name] for name in SAME} | PARAMETERS
    found, rest = _settings(run, names)
    found = {"algorithm": run.values["algorithm.name"]} | found
    linear = run.values.get("features.map") == "none"
    rest.pop("data.intercept", None)
    if linear and not run.values.get("data.intercept"):
        found["fit_intercept"] = False
    if rest:
        found["options"] = rest
    kind = "Classifier" if model.target is None else "Regressor"
    declared = SCHEMA if model.schema else _outcome(model)
    fit = f"model.fit(X, y{'' if run.summary.get('agents') == 1 else ', agents=agents'})"
    return f"import tacit\n\nmodel = tacit.PrivateFederated{kind}({_lines([*_written(found), declared])})\n{fit}\n"


def _settings(run: Recorded, names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that set what differs from the preset, and the other keys that differ, without paths."""
    values, usual = run.values, preset(str(run.values["run.preset"]), str(run.values["algorithm.name"])).values()
    idle = {*unread(values), *FOLLOWS}
    differ = {key: value for key, value in values.items() if key not in idle and value != usual.get(key)}
    differ |= {key: values[key] for key in ("privacy.epsilon", "privacy.dp_delta") if key in values}
    if "privacy.ledger" in differ:
        differ["privacy.ledger"] = PureWindowsPath(str(differ["privacy.ledger"])).name
    found = {name: differ.pop(key) for name, key in names.items() if key in differ}
    return found, differ


def _outcome(model: Model) -> str:
    """Write the declaration of y, if there is no schema."""
    if model.target is not None:
        return f"target_bounds=({model.target.lo!r}, {model.target.hi!r})"
    numbers = all(name.removeprefix("-").isdecimal() for name in model.classes)
    return f"classes={[int(name) if numbers else name for name in model.classes]!r}"


def _written(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in arguments.items()]


def _lines(arguments: list[str]) -> str:
    return "".join(f"\n    {one}," for one in arguments) + "\n"
