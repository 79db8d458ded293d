"""The rows of a leaderboard, and what a table of them says: the same on a terminal, in Markdown and on a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.jsontext import Values
from tacit.leaderboard.standing import Standing
from tacit.measures import ERROR, JUDGES, Measure
from tacit.privacy.guarantee import Trusted, Unit, trust_in_words

HEAD = (
    "method", ERROR.name, "20-80 %", "AUC", "features", "rounds", "seconds", "sent", "trusts",
    "guarantee of the whole run",
)  # fmt: skip
BRIEF = (0, 1, 2, 3, 8)  # the columns that a terminal has room for
NUMBERS = ("20-80 %", "AUC", "rounds", "seconds", "sent", *(one.name for one in JUDGES))
TUNING_SEED = 1000  # of no reported run
NOT_ACCOUNTED = (
    "tuning looked at the data as they are: what the choice of constants reveals is in no guarantee above",
    "noise is simulated, from the seed: whoever knows it can take it off, so none of these models is for release",
)


def rule(trials: int, seeds: int, rounds: int | None = None) -> str:
    """Return the tuning rule in words, for the output."""
    most = f" (of at most {rounds} rounds)" if rounds else ""
    last = f"seeds 0 to {seeds - 1}" if seeds > 1 else "seed 0"
    return (
        f"each method tries up to {trials} choices of its constants{most}, fixed in advance, at the same total budget, "
        "on all but a random sixth of each agent's training records, with the noise that these records need; the error "
        f"on that sixth decides (seed {TUNING_SEED}), and the best choice trains on all training records ({last})"
    )


def measure_of(one: Mapping[str, Any]) -> Measure:
    """Return the measure that the error of a record or a row is."""
    return next((known for known in JUDGES if known.key == one.get("measure")), ERROR)


def rows(standings: Sequence[Standing]) -> list[Values]:
    """Return the rows, budget by budget: methods with a guarantee before the others, and the least mean error first."""
    budgets = list(dict.fromkeys(one.epsilon for one in standings))

    def rank(row: Values) -> tuple[int, bool, float]:
        error = float("inf") if row["error_mean"] is None else row["error_mean"]
        return budgets.index(row["budget_epsilon"]), not row["private"], error

    return sorted(map(_row, standings), key=rank)


def _row(of: Standing) -> Values:
    models = [one for one in of.runs if one["error"] is not None]
    errors = [one["error"] for one in models]
    told = of.runs or of.trials
    lost = [one for one in told if one["failed"]]
    low, high = np.percentile(errors, [20, 80]).tolist() if errors else (None, None)
    aucs = [one["auc"] for one in models if one.get("auc") is not None]
    maps = [one["features"].partition(":")[0] for one in models if one.get("features")]
    return {
        "method": of.method, "measure": next(map(measure_of, models), ERROR).key,
        "budget_epsilon": of.epsilon, "budget_dp_delta": of.dp_delta,
        "error_mean": float(np.mean(errors)) if errors else None, "error_20": low, "error_80": high, "errors": errors,
        "auc_mean": float(np.mean(aucs)) if aucs else None, "features": maps[0] if maps else None,
        "seeds": len(of.runs), "failed": f"{len(lost)} of {len(told)}: {lost[0]['failed']}" if lost else None,
        "seconds": float(np.mean([one["seconds"] for one in models])) if models else None,
        **{key: told[0][key] for key in ("rounds", "sent_bytes", "choice", "trusted", "unit", "private")},
        **{key: told[0][key] for key in ("guarantee", "epsilon", "dp_delta", "accountant")},
        **{key: told[0].get(key) for key in ("coalition", "best_guess")},  # which earlier records do not name
        "trials": [{"choice": one["choice"], "error": one["error"]} for one in of.trials],
    }  # fmt: skip


def by_budget(table: Sequence[Values]) -> Iterator[tuple[str, list[Values]]]:
    """Yield the rows of each budget, with the budget in words."""
    for epsilon in dict.fromkeys(row["budget_epsilon"] for row in table):
        own = [row for row in table if row["budget_epsilon"] == epsilon]
        total = "no noise (epsilon = inf)" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        seeds = max(row["seeds"] for row in own)
        yield f"total budget: {total}, delta {own[0]['budget_dp_delta']:g}; mean of {seeds} seeds", own


def notes(table: Sequence[Values]) -> list[str]:
    """Say what the words in a table mean: who is trusted, and what is protected if guarantees differ in that."""
    trusting = [(one, row) for one in Trusted for row in table if row["trusted"] == one.name.lower()]
    words = list(dict.fromkeys(_trusts(*pair) for pair in trusting))
    units = [unit.value for unit in Unit if any(row["unit"] == unit.name.lower() for row in table)]
    if len(units) > 1:
        words.append(f"guarantees differ in what they protect, and do not compare: {'; '.join(units)}")
    return words


def _trusts(whom: Trusted, row: Values) -> str:
    """Say who is trusted by a row, and with what: of a secure sum, how many agents may collude with the server."""
    coalition = None if row["coalition"] is None else tuple(row["coalition"])
    return f"trusts {trust_in_words(whom, coalition)}"


def heads(table: Sequence[Values]) -> tuple[str, ...]:
    """Return the names of the columns; the second is what the methods are judged by."""
    names = dict.fromkeys(measure_of(row).name for row in table if row["error_mean"] is not None)
    return (HEAD[0], " or ".join(names) or HEAD[1], *HEAD[2:])


def cells(row: Values) -> tuple[str, ...]:
    """Return the cells of a row."""
    if row["error_mean"] is None:
        return (row["method"], *"--------", no_model(row))
    measure = measure_of(row)
    low, high = (measure.number(row[key]) for key in ("error_20", "error_80"))
    failed = f" (failed: {row['failed']})" if row["failed"] else ""
    return (
        row["method"], measure.shown(row["error_mean"]), f"{low}-{high}",
        "-" if row["auc_mean"] is None else f"{row['auc_mean']:.3f}", row["features"] or "none", str(row["rounds"]),
        f"{row['seconds']:.1f}", size(row["sent_bytes"]), row["trusted"] or "-", row["guarantee"] + failed,
    )  # fmt: skip


def no_model(row: Values) -> str:
    """Say why a row has no model: its jobs failed, or were not run yet."""
    return f"no model, {row['failed']}" if row["failed"] else "not finished: run the same tacit compare again"


def guarantees(table: Sequence[Values]) -> list[tuple[str, list[str]]]:
    """Return each guarantee once, or each reason for a missing model, with the methods that it is for."""
    found: dict[str, list[str]] = {}
    for row in table:
        found.setdefault(cells(row)[-1], []).append(row["method"])
    return list(found.items())


def size(n_bytes: float) -> str:
    """Write a number of bytes in words: 9.41 MB."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def label(row: Values) -> str:
    """Return the name of a method, with the unit and the trust of its guarantee if they are not a record and nobody."""
    if not row["private"]:
        return f"{row['method']} (not private)"
    apart = [word for word in (row["unit"], row["trusted"]) if word not in ("record", "nobody")]
    return f"{row['method']} ({', '.join(apart)})" if apart else str(row["method"])


def markdown(table: Sequence[Values]) -> str:
    """One table of Markdown for each budget, and what the words in the tables mean."""
    parts = []
    for budget, own in by_budget(table):
        head = heads(own)
        lines = [f"| {' | '.join(line)} |" for line in (head, *map(cells, own))]
        parts += [budget, "", lines[0], "|---" * len(head) + "|", *lines[1:], ""]
    return "\n".join([*parts, "", *notes(table)])
