"""Noise in gradient units of one weight, so that the noise of OutP can stand beside the noise of ObjP and ObjT.

A run records the noise in the units of its own gradients. Released OutP weighs a gradient by 1/I_p, and ObjP and ObjT
weigh it by 1/I: with ten equal agents the same noise is ten times as large a number for OutP.
"""

from __future__ import annotations

from tacit import record
from tacit.jsontext import Values
from tacit.paper.archive import spec_of

MEASURED, ONE_WEIGHT = "noise_gradient_units", "noise_one_weight"


def on_one_weight(one: Values) -> Values:
    """The record with the curve `noise_one_weight`: the mean |noise| for gradients that are weighed by 1/I.

    mean_p |xi_p| I_p / I, where agents weigh by 1/I_p. Records hold the mean over agents alone, so this is exact for
    agents with equally many records or equal noise, and the mean agent's number for others: (1/P) mean_p |xi_p|.
    """
    curve = one.get("curve", {})
    if MEASURED not in curve:
        return one
    share = 1 / one["agents"] if spec_of(one)["algorithm.gradient_weight"] == "local" else 1.0
    scaled = [None if value is None else value * share for value in curve[MEASURED]]
    return record.sealed(one | {"curve": curve | {ONE_WEIGHT: scaled}})
