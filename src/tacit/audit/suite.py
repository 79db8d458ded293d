"""The default targets of `tacit audit`: one spec for every kind of release that tacit makes."""

from __future__ import annotations

from tacit.run.presets import preset
from tacit.run.spec import Spec

ROUNDS = 100  # rounds of a whole run under audit: enough to test composition, and quick


def standard() -> Spec:
    """Return the default spec of `tacit train`, without its feature map: a canary of few features is seen best."""
    return preset("sound", "objt").with_values({"features.map": "none"})


def mechanisms() -> list[Spec]:
    """Return specs with both laws, adjacencies and places of the noise, clipped and declared bounds, deployed agents.

    Laplace noise accounted in l2 is attacked at epsilon 8, where its claim is nearly tight (mechanism.few_rounds).
    """
    sound = standard()
    laplace = {"privacy.mechanism": "laplace"}
    pure = {"privacy.covers": "round", "privacy.epsilon": 1.0}  # with Laplace noise, a pure epsilon through l1
    deployed = {"privacy.noise": "exact", "privacy.epsilon": 8.0}  # a larger epsilon needs fewer draws
    return [
        sound,
        preset("sound", "objt"),  # canaries that pass the feature map
        sound.with_values({"privacy.adjacency": "replace_one"}),
        sound.with_values(laplace | {"privacy.epsilon": 8.0}),
        sound.with_values(laplace | pure),
        sound.with_values(laplace | pure | {"privacy.adjacency": "replace_one"}),
        preset("sound", "outp").with_values({"privacy.epsilon": 3.0, "features.map": "none"}),
        preset("paper", "objp").with_values(pure | {"privacy.sensitivity": "feature_bounds"}),
        sound.with_values(deployed),
        sound.with_values(deployed | pure | laplace | {"privacy.epsilon": 3.0, "privacy.adjacency": "replace_one"}),
    ]


def sums() -> list[Spec]:
    """Return the specs of secure sums, which need the extra `secure` (tacit.audit.secure_sum)."""
    return [standard().with_values({"privacy.noise": "exact", "privacy.epsilon": 8.0, "privacy.trust": "sum"})]
