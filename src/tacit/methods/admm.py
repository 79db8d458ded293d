"""The ADMM family: each name stands for a rule, a noise and an order. tacit.run.compose makes the agents."""

from __future__ import annotations

from tacit.methods.method import SILENT, Choice, Entry

_SILENT = {"algorithm.perturbation": "none", **SILENT}
_LAPLACE = {"algorithm.perturbation": "objective", "privacy.mechanism": "laplace"}

# the first takes clip and score_noise by the rules of the sound preset (tacit.run.rules)
_GRID: tuple[Choice, ...] = (
    {"rounds": 100},
    {"rounds": 100, "clip": 0.7, "score_noise": 0.5},
    {"rounds": 100, "clip": 0.35, "score_noise": 1.0},
    {"rounds": 100, "clip": 0.35, "score_noise": 2.0},
)

OBJP = Entry(
    "objp", "inexact ADMM with proximal steps, Gaussian noise at each agent", None, _GRID,
    {"algorithm.rule": "prox", **_LAPLACE}, sums=True,
)  # fmt: skip
OBJT = Entry(
    "objt", "inexact ADMM with trust-region steps, Gaussian noise at each agent", None, _GRID,
    {"algorithm.rule": "trust", **_LAPLACE}, sums=True,
)  # fmt: skip
OUTP = Entry(
    "outp", "inexact ADMM, Gaussian noise on each agent's solution", None, _GRID,
    {
        "algorithm.rule": "prox", "algorithm.perturbation": "output", "algorithm.order": "zwd",
        "privacy.mechanism": "gaussian",
    },
)  # fmt: skip
OBJT_LAPLACE = Entry(
    "objt-laplace", "the same with Laplace noise, accounted in l2", None, _GRID, OBJT.values, law="laplace"
)
ADMM = Entry(
    "admm", "exact ADMM; not private", None, _GRID, {"algorithm.rule": "exact", **_SILENT}, ranked=False
)
IADMM_PROX = Entry(
    "iadmm-prox", "ObjP without noise; not private", None, _GRID, {"algorithm.rule": "prox", **_SILENT}, ranked=False
)
IADMM_TRUST = Entry(
    "iadmm-trust", "ObjT without noise; not private", None, _GRID, {"algorithm.rule": "trust", **_SILENT}, ranked=False
)
