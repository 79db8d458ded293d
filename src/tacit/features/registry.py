"""The feature maps by name, and which of them is the default for which data.

A new map is one file and one line here. A function of one's own needs no line: [features] map = "module:function".
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, replace
from typing import Any

from tacit.errors import RunDirectoryError, SpecError, printable, unknown
from tacit.features.map import FeatureMap, FeatureSpec, PublicFacts, recipe
from tacit.privacy.guarantee import PROBED
from tacit.registry import Registry

FEATURES: Registry[type[FeatureMap]] = Registry("feature map", {
    "columns": "tacit.features.columns:ColumnsMap",
    "unit": "tacit.features.unit:UnitMap",
    "fourier": "tacit.features.fourier:FourierMap",
    "orientations": "tacit.features.orientations:OrientationsMap",
    "own": "tacit.features.own:OwnMap",
})  # fmt: skip

LONG = 256  # numbers without bounds of which more are taken for one vector, such as the output of another model


def chosen(asked: FeatureSpec, facts: PublicFacts) -> tuple[FeatureMap, str] | None:
    """Return the map that [features] asks for and its recipe, from public facts alone; None where records stay."""
    if asked.shape is not None:
        facts = replace(facts, image=image_of(asked.shape, facts.n_inputs))
    name = default(facts) if asked.map == "auto" else "own" if ":" in asked.map else asked.map
    if name == "none":
        return None
    if name not in FEATURES or asked.map == "own":
        known = [one for one in FEATURES if one != "own"]
        raise unknown("feature map", asked.map, ["auto", "none", *known, "module:function"])
    found = FEATURES[name].made_for(facts, asked)
    return found, recipe(name, found)


def default(facts: PublicFacts) -> str:
    """Return the map that `auto` means: images by their orientations, columns by their shapes, long vectors as one."""
    if facts.image is not None:
        return "orientations"
    return "unit" if facts.bounds is None and facts.n_inputs > LONG else "columns"


def image_of(shape: str, n_inputs: int) -> tuple[int, int, int]:
    """Read the height, width and channels that a text such as 28x28 or 32x32x3 says."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,2}))?", shape.replace(" ", ""))
    if found is None:
        raise SpecError(f"features.shape is height x width, perhaps x channels, such as 28x28: got {printable(shape)}.")
    height, width, channels = int(found[1]), int(found[2]), int(found[3] or 1)
    if height * width * channels != n_inputs:
        raise SpecError(f"features.shape = {shape} has {height * width * channels} numbers, and a record {n_inputs}.")
    return height, width, channels


def name_of(text: str) -> str:
    """Return the name of the map that a recipe makes: a registered name, or the user's module:function."""
    constants = json.loads(text)
    return str(constants["where"] if constants["map"] == "own" else constants["map"])


def described(text: str) -> str:
    """Say in a few words what a recipe makes: its map, how many features, and that a function of one's own is that."""
    found = read(text, trusted=name_of(text))
    label = f", {PROBED}" if json.loads(text)["map"] == "own" else ""
    return f"{name_of(text)}: {found.n_inputs} numbers of a record become {found.n_outputs}{label}"


def read(text: str, source: str = "the recipe", trusted: str | None = None) -> FeatureMap:
    """Make a map again from its recipe; a function of the user's own only where the user names it as `trusted`.

    A recipe may come from anywhere, and to import the module that it names would run code of the sender's choice.
    """
    try:
        constants = json.loads(text)
        name = constants.pop("map")
        if name == "own" and constants.get("where") != trusted:
            raise RunDirectoryError(
                f"{source} was trained on features of {constants.get('where')!r}, a function that is not part of "
                "tacit: name it with --features (features=... in Python) if you trust it."
            )
        kind = FEATURES[name]
        for field in fields(kind):  # type: ignore[arg-type]
            if field.name in constants:
                _check_constant(field.name, str(field.type), constants[field.name])
        return kind(**constants)
    except (ValueError, TypeError, KeyError, AttributeError, SpecError, RecursionError, OverflowError) as error:
        raise RunDirectoryError(f"{source} names no feature map that can be made ({error}): train again.") from None


def _check_constant(name: str, kind: str, value: Any) -> None:
    """Refuse a constant of a recipe that is not of its declared kind: a recipe may come from anywhere."""
    if value is None and "None" in kind:
        return
    fits = {
        "int": type(value) is int and 0 <= value < 2**31,
        "float": type(value) in (int, float) and math.isfinite(value) and abs(value) < 1e100,
        "bool": type(value) is bool,
        "str": isinstance(value, str),
    }
    if not fits.get(kind.partition(" ")[0], True):
        raise ValueError(f"{name} = {str(value)[:40]!r} is no {kind}")
