"""Opacus: DP-SGD on one linear layer with softmax, by a curator who holds all records.

The constants are the best of the grid and of some points around its best; tuning.jsonl has them all.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.peers.peer import Constants, Peer, Trained
from benchmarks.peers.task import DELTA, EPSILON, Task


def train(task: Task, seed: int, constants: Constants) -> Trained:
    """Poisson batches, per-record clipping and Gaussian noise; Opacus finds the noise for the budget."""
    import torch
    from opacus import PrivacyEngine

    warnings.filterwarnings("ignore", module="opacus")  # simulated noise, as everywhere in this table
    warnings.filterwarnings("ignore", module="torch")
    torch.manual_seed(seed)
    pooled, epochs = task.pooled, int(constants["epochs"])
    records = _Records(torch.from_numpy(pooled.x), torch.from_numpy(pooled.y))
    batch = max(1, round(len(pooled) * constants["rate"]))
    torch.set_num_threads(_threads(torch, records, batch, task.over.n_classes))
    start = time.perf_counter()
    model: Any = torch.nn.Linear(task.over.n_features, task.over.n_classes, bias=False)
    torch.nn.init.zeros_(model.weight)
    steps: Any = torch.optim.SGD(model.parameters(), lr=constants["lr"])
    loader: Any = torch.utils.data.DataLoader(records, batch_size=batch, collate_fn=lambda both: both)
    engine = PrivacyEngine(accountant="prv")
    # ghost clipping finds the norm of each record's gradient without making the gradient: the faster of Opacus's ways
    model, steps, loss, loader = engine.make_private_with_epsilon(
        module=model, optimizer=steps, criterion=torch.nn.CrossEntropyLoss(), data_loader=loader,
        target_epsilon=EPSILON, target_delta=DELTA, epochs=epochs, max_grad_norm=constants["clip"],
        grad_sample_mode="ghost",
    )  # fmt: skip
    total = epochs * len(loader)
    for done in range(epochs):
        for i, (x, y) in enumerate(loader):
            if constants["decay"]:
                steps.param_groups[0]["lr"] = constants["lr"] * (1 - (done * len(loader) + i) / total)
            steps.zero_grad()
            loss(model(x), y).backward()
            steps.step()
    seconds = time.perf_counter() - start
    score = model(torch.from_numpy(task.over.test.x)).detach().numpy()
    return Trained(score, seconds, engine.get_epsilon(DELTA), DELTA, f"{epochs} epochs of {len(loader)} batches")


def _threads(torch: Any, records: _Records, batch: int, classes: int) -> int:
    """As many threads as are fastest for a batch: small products lose more to the threads' meetings than they gain."""
    x, y = records.__getitems__(list(range(min(batch, len(records)))))
    model = torch.nn.Linear(x.shape[1], classes, bias=False)
    spent = {}
    for threads in {1, torch.get_num_threads()}:
        torch.set_num_threads(threads)
        times = []
        for _ in range(10):
            start = time.perf_counter()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            times.append(time.perf_counter() - start)
        spent[threads] = sorted(times)[len(times) // 2]
    return min(spent, key=lambda threads: spent[threads])


class _Records:
    """A data set that gives a batch at once: record by record, torch's loader would take most of the time."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.x[i], self.y[i]

    def __getitems__(self, rows: list[int]) -> tuple[Any, Any]:
        return self.x[rows], self.y[rows]


PEER = Peer(
    "Opacus, DP-SGD", "a curator, who holds all records", "one record, added or removed", "Opacus, PRV accountant",
    train,
    constants={
        "mnist": {"rate": 1 / 16, "epochs": 100, "lr": 16.0, "clip": 0.5, "decay": False},
        "adult": {"rate": 1 / 16, "epochs": 40, "lr": 32.0, "clip": 0.5, "decay": False},
    },
    grid={
        "rate": (1 / 16, 1 / 4), "epochs": (10, 40), "lr": (2.0, 8.0, 32.0), "clip": (0.1, 0.5), "decay": (False, True),
    },
    packages=("opacus", "torch"),
)  # fmt: skip
