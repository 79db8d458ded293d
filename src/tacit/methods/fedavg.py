"""FedAvg (McMahan et al. 2017): FedProx with mu = 0.

    w+ = sum_{p in S} (I_p / sum_S I_p) u_p,   u_p: epochs of SGD on F_p, from w   (tacit.methods.local_sgd)

One epoch of one batch at every agent is a gradient step on (1): w+ = w - step sum_p f'_p(w).
"""

from __future__ import annotations

from tacit.methods import fedprox
from tacit.methods.method import Entry

ENTRY = Entry(
    "fedavg",
    "agents train by themselves and are averaged; not private",
    fedprox.build,
    tuple(
        {"rounds": 30, "fraction": 1.0, "epochs": epochs, "batch": 50, "step": step}
        for step in (30.0, 100.0)
        for epochs in (1, 3)
    ),
)
