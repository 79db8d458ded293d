"""The run of a federation, once more in one process: what its model has to be, to the bit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacit import toml
from tacit.run.result import Result
from tacit.run.spec import Spec
from tacit.run.train import train
from tacit.types import Federation, Shard
from tests.federation.room import Room


def spec_of(where: Path) -> Spec:
    """The spec of the one run in a coordinator's folder."""
    (path,) = (where / "runs").glob("*/spec.toml")
    return Spec().with_values(toml.read(path))


def together(room: Room) -> Federation:
    """The records of all sites, the agents in the order of the run."""
    own = [service.own for service in room.services.values()]
    names, shards = ([one for each in own for one in getattr(each, part)] for part in ("agents", "shards"))
    nothing = Shard(np.zeros((0, own[0].n_features)), np.zeros(0, int))
    return replace(own[0], shards=tuple(shards), agents=tuple(names), name="trial", test=nothing)


def trained(where: Path, room: Room) -> Result:
    """The same run with all agents in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ledgers, which this run has for itself
        return train(spec_of(where), together(room))
