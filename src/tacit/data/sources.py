"""Where records come from: every source by its name, or by what lies at a path.

A new source is one file, with a function from a `DataSpec` to a `Federation`, and one line here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

from tacit.data.formats import FORMATS, suffix_of
from tacit.data.share import ALONE, Share, kept
from tacit.data.spec import DataSpec
from tacit.errors import DataError, IncompatibleError, unknown
from tacit.types import Federation, is_unicode


@dataclass(frozen=True)
class DataSource:
    """One source: how errors call it, its loader "module:function", and what it takes."""

    title: str
    loader: str  # imported on first use, so that the command line starts quickly
    takes: tuple[str, ...] = ()  # of the options that are not for every source
    classes: str = ""  # how its classes are declared, where they can be
    fits: Callable[[str], bool] = os.path.exists  # whether it lies at a path; not asked of a source with a name
    in_parts: bool = False  # whether its loader takes a Share, and reads the records of some agents alone

    def refuse_foreign(self, spec: DataSpec) -> None:
        """Refuse an option that was given and is for other sources."""
        for option, called in OPTIONS.items():
            if getattr(spec, option) is None or option in self.takes:
                continue
            titles = " and ".join(source.title for source in (*NAMED.values(), *AT_PATHS) if option in source.takes)
            declares = self.classes and option in ("class_names", "class_count")
            advice = f": {self.classes}" if declares else ", which says its own: drop it"
            raise IncompatibleError(f"{called} is for {titles}, and this is {self.title}{advice}.")


def is_leaf(source: str) -> bool:
    """Tell whether `source` names a LEAF directory: a folder, and no name of ours, with JSON in train/ and test/."""
    has_json = (any(Path(source, part).glob("*.json*")) for part in ("train", "test"))
    return source not in NAMED and os.path.isdir(source) and all(has_json)


NAMED = {
    "mnist": DataSource("MNIST", "tacit.data.mnist:load"),
    "heart": DataSource("heart", "tacit.data.heart:load"),
    "synthetic": DataSource("synthetic data", "tacit.data.synthetic:load"),
}

# from the general to the special: the last that fits a path is taken
AT_PATHS = [
    DataSource("tables", "tacit.data.tables:load", ("test", "class_names", "schema", "bounds", "target"),
               "name the classes (--classes or --schema)", in_parts=True),
    DataSource("LEAF", "tacit.data.leaf:load", ("bounds", "class_count"),
               "say how many classes there are (data.class_count)", is_leaf, in_parts=True),
]  # fmt: skip

# options that are for some sources alone, and how errors call them
OPTIONS = {
    "test": "test", "class_names": "class_names (--classes)", "schema": "schema",
    "bounds": "bounds (data.low, data.high)", "class_count": "class_count",
    "target": "a number to predict (--target-low, --target-high)",
}  # fmt: skip


def load(spec: DataSpec, share: Share = ALONE) -> Federation:
    """Load the federation that a spec names, before the intercept and the rescaling; or the share of this process."""
    for path in (spec.source, spec.test, spec.schema):
        if path is not None and not is_unicode(path):  # no spec or report of a run could hold the name
            raise DataError(f"the name {path!r} is not UTF-8: rename the file or folder.")
    source = find(spec.source)
    source.refuse_foreign(spec)
    loader = resolve_name(source.loader)
    federation: Federation = loader(spec, share) if source.in_parts else kept(loader(spec), share)
    _check_same(federation, share, spec.source)
    here = [int(k) for shard in federation.shards if shard.here for k in (shard.y.min(), shard.y.max())]
    found = {k for own in share.together(here) for k in own}
    if not federation.public_classes and len(found) < 2:
        raise DataError(f"every training record of {spec.source} has one label: a classifier needs two classes.")
    return federation


def _check_same(federation: Federation, share: Share, source: str) -> None:
    """Refuse processes that read copies of a source in which agents or their records differ: none knows who holds whom.

    Numbers in a copy may differ unseen: no process reads them all.
    """
    if share.alone:
        return
    known = (federation.agents, federation.features, federation.n_features, federation.classes, federation.n_classes)
    facts = repr((known, [len(shard) for shard in federation.shards]))
    here = [p for p, shard in enumerate(federation.shards) if shard.here]
    told = share.together([hashlib.sha256(facts.encode()).hexdigest(), here])
    held = [p for _, own in told for p in own]
    if len({digest for digest, _ in told}) > 1 or held != list(range(federation.n_agents)):
        raise DataError(f"ranks find different agents or records at {source}: give every machine the same files.")


def may_be(source: str) -> set[str]:
    """Return what a source can be, judged only by its name: the name itself, or the titles of what a path may hold."""
    if source in NAMED:
        return {source}
    return {"tables"} if suffix_of(Path(source)) in FORMATS else {candidate.title for candidate in AT_PATHS}


def find(source: str) -> DataSource:
    """Find the source that a name or a path means; a name of ours wins over a file that is called so."""
    if source in NAMED:
        return NAMED[source]
    for candidate in reversed(AT_PATHS):
        if candidate.fits(source):
            return candidate
    if Path(source).name == source and not Path(source).suffix:
        raise unknown("data source", source, [*NAMED, "a file or directory that exists"])
    raise DataError(f"{source} does not exist: check the path, it is taken from the current directory.")
