"""Which classes there are, and which record is of which.

Declared classes are public: all of them need not be there, and a record whose label names none of them is absent in
its place, so that no label decides whether a run ends well. Classes that are read from the labels are not public.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.data.cells import Coded, plain
from tacit.data.partition import distinct
from tacit.data.table import MARKS
from tacit.errors import DataError, SpecError, printable
from tacit.types import Array, Federation, Shard

MOST = 10**6  # classes
MOST_NUMBERS = 20  # numbers that are taken for classes where nothing is declared: more are a quantity
NUMBERS_SHARE = 0.9  # of the labels of a quantity that are numbers, at the least; the others are remarks

_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")  # any number, whole or not
_DRESS = str.maketrans("\u2212", "-", "%$€£¥₹,'\u2019 \u00a0\u202f")  # what people write around and within a number


def parse_classes(text: str) -> tuple[str, ...]:
    """Read the classes that --classes names: "ill,well", or K for 0 .. K-1."""
    if re.fullmatch("[0-9]+", text.strip()):
        count = int(text) if len(text) < 10 else MOST + 1
        if not 2 <= count <= MOST:
            raise SpecError(f"classes (data.class_names) takes 2 to {MOST} classes, got {text}.")
        return tuple(map(str, range(count)))
    return check_class_names(text.split(","))


def check_class_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return class names as labels are written, after a check that there are two, none empty and none twice."""
    if isinstance(names, str):
        raise SpecError(f"classes (data.class_names) takes a list of names, got {printable(names)}: split it.")
    known = tuple(map(plain, names))
    if len(known) < 2 or "" in known or len(set(known)) < len(known):
        takes = "two or more names, none empty and none named twice, or how many classes there are"
        got = f"{len(known)}, of which {len({*known} - {''})} are different names"
        raise SpecError(f"classes (data.class_names) takes {takes}: got {got}.")
    return known


def found_classes(source: str, labels: set[str]) -> tuple[str, ...]:
    """Return the classes that labels name, sorted; labels that are no classes are refused."""
    names = distinct(labels)
    if len(names) < 2:
        raise DataError(f"{source}: every record has the same label: a classifier needs two classes.")
    found = quantity(names)
    if found:
        raise DataError(
            f"{source}: the labels are {found}: bin them into classes; if they are classes, name them (--classes, "
            "class_names, or a schema); to predict the number itself, declare its public bounds (--target-low and "
            '--target-high, target, or kind = "target" in a schema).'
        )
    return tuple(names)


def quantity(names: Sequence[str]) -> str:
    """Say which numbers labels are, where they measure something; "" where they are names of classes."""
    if all(map(_REAL.fullmatch, names)) and any("." in name or "e" in name.lower() for name in names):
        return "real numbers"
    bare = {name: name.translate(_DRESS) for name in names if name.lower() not in map(str.lower, MARKS)}
    numbers = sorted((float(text), name) for name, text in bare.items() if _REAL.fullmatch(text))
    if len(bare) > MOST_NUMBERS and len(numbers) >= NUMBERS_SHARE * len(bare):
        whole = "whole " if all(value.is_integer() for value, _ in numbers) else ""
        return f"{len(numbers)} different {whole}numbers"
    return ""


def class_numbers(labels: Coded, classes: Sequence[str]) -> Array:
    """Return the number of each label's class (I,), -1 where the label names none."""
    number = {name: k for k, name in enumerate(classes)}
    return labels.each(np.array([number.get(name, -1) for name in labels.names], dtype=np.int64))


def without_unknown(federation: Federation, known: Sequence[Array], in_test: Array) -> Federation:
    """Make records absent in their place where they are not `known`, one mask per agent.

    Such a record has features that are all zero, and so a gradient of zero; the number of records stays. It is left
    out of the test set. Bounds then hold zero, whether there is such a record or not.
    """
    # of an agent that another process holds, no record is here
    known = [mask if shard.here else mask[:0] for mask, shard in zip(known, federation.shards, strict=True)]
    low, high = federation.bounds or (0.0, 0.0)
    return replace(
        federation,
        shards=tuple(map(_absent, federation.shards, known)),
        test=federation.test if in_test.all() else federation.test.rows(in_test),
        bounds=federation.bounds and (min(low, 0.0), max(high, 0.0)),
    )


def _absent(shard: Shard, known: Array) -> Shard:
    return shard if known.all() else replace(shard, x=np.where(known[:, None], shard.x, 0), present=known)
