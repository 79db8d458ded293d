"""Canaries: the records of a tiny federation that move a gradient most.

A canary is the largest record that the spec allows, and the model steers it: its scores are certain, and its label is
another class, so |h - e_y| is near its bound. The opposite canary has nearly the same features; it is steered to the
label of the canary and has the other label, so its gradient is nearly minus the gradient of the canary. Under
replace-one the two canaries together are the worst case.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from tacit.data import is_leaf
from tacit.data.transform import rescale_rows, with_features
from tacit.features import registry
from tacit.features.map import PublicFacts, apply
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard

CLASSES, OTHERS = 3, 3  # OTHERS: the number of records of an agent beside the canary
TRIED = 64  # records that are mapped to find a long one
FEW = 16  # features that a map with many makes here: an attack needs no more, and many take long
COLUMNS = 5
_ASIDE = 0.02  # how far the opposite canary is from the canary, on the way to the mean record
_TO_ONE, _TO_ZERO, _NOWHERE = (-1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Canary:
    """A canary x (J,) with label 0, and its opposite with label 1; `steer` (J, K) pushes each to the other class."""

    x: Array
    opposite: Array
    steer: Array


def _range(spec: Spec) -> tuple[float, float]:
    d = spec.data
    return (0.0, 1.0) if d.low is None or d.high is None else (d.low, d.high)


def planted(spec: Spec) -> tuple[Canary, Federation]:
    """Return the canary of the spec, and two agents with OTHERS records each, the first with the canaries too.

    Where the spec has a feature map, the canary is what the map makes of a record, the longest of a few: a bound that
    the map does not keep shows here.
    """
    if spec.features.map != "none":
        return _mapped(spec)
    canary = _canary(spec)
    return canary, _federation(spec, canary)


def _canary(spec: Spec) -> Canary:
    """Return the canary that reaches the bound of the spec, which depends on privacy.sensitivity.

    clip, row_norm   nearly all of x on a feature of its own, a little on one that steers: the bound is on |x|,
                     however many features there are, and a gradient on two entries is seen best.
    feature_bounds   the bound is J max|x_j|, or sqrt(J) max|x_j| in l2, and only a corner of the box reaches it. Noise
                     on few entries hides least, so J = 1: x a^T is two entries of full size. Under replace-one the
                     model must tell two records near that corner apart, which takes J = 2.
    otherwise        the scale is read from the data: a record far longer than all others, in five features, whose
                     noise shows the scale.
    """
    low, high = _range(spec)
    m = high if abs(high) >= abs(low) else low
    if spec.privacy.sensitivity == "feature_bounds" and spec.privacy.adjacency == "replace_one":
        near = m - math.copysign(min(0.2 * abs(m), 0.5 * (high - low)), m)
        between = (1 + near / m) / 2
        return Canary(np.array([m, near]), np.array([m, m]), np.array([np.multiply(between, _TO_ONE), _TO_ZERO]))
    if spec.privacy.sensitivity == "feature_bounds":
        return Canary(np.array([m]), np.array([m]), np.array([_TO_ONE]))
    sparse = spec.data.row_norm != "none" or spec.privacy.sensitivity == "clip"
    if sparse and spec.privacy.adjacency != "replace_one":
        return Canary(np.array([0.0, 0.0, m]), np.zeros(3), np.array([_NOWHERE, _NOWHERE, _TO_ONE]))
    body, tail = ([0.0, 0.0, m], 0.01 * m) if sparse else ([m, m, m], m)
    x, opposite = np.array([*body, tail, 0.0]), np.array([*body, 0.0, tail])
    return Canary(x, opposite, np.array([_NOWHERE] * 3 + [_TO_ONE, _TO_ZERO]))


def _mapped(spec: Spec) -> tuple[Canary, Federation]:
    """Return the longest of a few records that have passed the map of the spec, a record near to it, and others.

    The model steers the one to class 1 and the other to class 0, and no more than it must: the shortest such model.
    """
    facts, rng = _facts(spec), np.random.default_rng(0)
    many = facts.image is not None or spec.features.map == "fourier"
    size = FEW if many and spec.features.size is None else spec.features.size
    found = registry.chosen(replace(spec.features, size=size), facts)
    assert found is not None, "the spec has a map"
    low, high = facts.bounds or (-1.0, 1.0)
    raw = low + (high - low) * rng.random((TRIED, facts.n_inputs))
    raw[0], raw[1] = low, high  # the corners of a box are often the longest
    longest = int(np.linalg.norm(apply(found[0], raw), axis=1).argmax())
    near = raw[longest] + _ASIDE * (raw.mean(axis=0) - raw[longest])
    rest = np.delete(raw, longest, axis=0)
    tiny = _of_rows(np.stack([*rest[:OTHERS], raw[longest], near, *rest[-OTHERS:]]))
    made = _rescaled(spec, with_features(tiny, *found))
    own, opposite = made.shards[0].x[OTHERS:].astype(np.float64)
    replaced = spec.privacy.adjacency == "replace_one"
    steer = np.linalg.pinv(np.stack([own, opposite])) @ [1.0, -1.0] if replaced else own / (own @ own)
    return Canary(own, opposite, np.outer(steer, _TO_ONE)), made


def _facts(spec: Spec) -> PublicFacts:
    """Return facts such as the map of the spec wants: an image, numbers with bounds, or numbers."""
    images = spec.data.source == "mnist" or is_leaf(spec.data.source)
    if spec.features.map == "orientations" or spec.features.shape or (images and spec.features.map == "auto"):
        shape = spec.features.shape or "28x28"
        n_inputs = math.prod(int(part) for part in re.findall("[0-9]+", shape))
        return PublicFacts(n_inputs, bounds=(0.0, 1.0), image=registry.image_of(shape, n_inputs))
    bounded = spec.features.map == "columns" or spec.data.schema or spec.data.low is not None
    return PublicFacts(COLUMNS, bounds=_range(spec) if bounded else None)


def _federation(spec: Spec, canary: Canary) -> Federation:
    """Return two agents with OTHERS small records each; after these, the first has the canary and its opposite."""
    d, features = spec.data, len(canary.x)
    low, high = _range(spec)
    largest = float(np.abs(canary.x).max())
    x, used = np.zeros((2 * OTHERS + 2, features)), min(2, features)  # other records are zero in the canary's features
    x[:, :used] = np.sign(canary.x.sum()) * largest / 2 * np.random.default_rng(0).random((len(x), used))
    x[OTHERS : OTHERS + 2] = canary.x, canary.opposite
    if d.row_norm == "none":
        x = np.clip(x, low, high)
    else:
        x[OTHERS : OTHERS + 2] *= 10 * d.row_bound / largest  # too long: rescaled to the allowed norm below
    return replace(_of_rows(x), bounds=(low, high)) if d.row_norm == "none" else _rescaled(spec, _of_rows(x))


def _of_rows(x: Array) -> Federation:
    """Return the two agents of these rows: OTHERS of the first agent, the two canaries, OTHERS of the second."""
    y = np.array([*range(OTHERS), 0, 1, *range(OTHERS)]) % CLASSES
    empty = Shard(np.zeros((0, x.shape[1])), np.zeros(0, dtype=np.int64))
    cut = OTHERS + 2
    return Federation((Shard(x[:cut], y[:cut]), Shard(x[cut:], y[cut:])), empty, CLASSES, "canary")


def _rescaled(spec: Spec, federation: Federation) -> Federation:
    d = spec.data
    return federation if d.row_norm == "none" else rescale_rows(federation, d.row_norm, d.row_bound, d.row_mode)
