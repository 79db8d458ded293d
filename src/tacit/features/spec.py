"""`FeatureSpec`: the section [features] of a spec. It says which public map each record passes."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.speckey import key


@dataclass(frozen=True)
class FeatureSpec:
    """The public map of each record, as plain values. What is unset, the map chooses from public facts."""

    map: str = key("none", "public map of each record: auto, none, a map's name, or module:function of your own")
    size: int | None = key(None, "how many features the map makes, or makes of a column, where it can be chosen")
    shape: str | None = key(None, "images: height x width, perhaps x channels, such as 28x28 or 32x32x3")
    scale: float | None = key(None, "fourier: how far apart two records are that the map hardly tells apart")
    seed: int = key(0, "fourier: public seed of the directions", when={"features.map": ("auto", "fourier")})
