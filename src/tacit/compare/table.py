"""The leaderboard: one row a method, from its records alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tacit.compare.comparison import Standing
from tacit.compare.job import measure_of
from tacit.jsontext import Values
from tacit.measures import ERROR, JUDGES
from tacit.methods.promise import Promise, Trusted, Unit

DrawTable = Callable[[Sequence[str], Iterable[Sequence[str]]], str]  # heads and rows -> a table

HEAD = (
    "method", ERROR.name, "20-80 %", "AUC", "features", "rounds", "seconds", "sent", "trusts",
    "guarantee of the whole run",
)  # fmt: skip
NUMBERS = ("20-80 %", "AUC", "rounds", "seconds", "sent", *(one.name for one in JUDGES))


def rows(standings: Sequence[Standing]) -> list[Values]:
    """The rows, budget by budget: methods with a guarantee before the others, and the least mean error first."""
    budgets = list(dict.fromkeys(one.budget.epsilon for one in standings))

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
        "budget_epsilon": of.budget.epsilon, "budget_dp_delta": of.budget.dp_delta,
        "error_mean": float(np.mean(errors)) if errors else None, "error_20": low, "error_80": high, "errors": errors,
        "auc_mean": float(np.mean(aucs)) if aucs else None, "features": maps[0] if maps else None,
        "seeds": len(of.runs), "failed": f"{len(lost)} of {len(told)}: {lost[0]['failed']}" if lost else None,
        "seconds": float(np.mean([one["seconds"] for one in models])) if models else None,
        **{key: told[0][key] for key in ("rounds", "sent_bytes", "choice", "trusted", "unit", "private")},
        **{key: told[0][key] for key in ("guarantee", "epsilon", "dp_delta", "accountant")},
        **{key: told[0].get(key) for key in ("coalition", "best_guess")},  # which earlier records do not name
        "trials": [{"choice": one["choice"], "error": one["error"]} for one in of.trials],
    }  # fmt: skip


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    body = [f"| {' | '.join(line)} |" for line in (head, *lines)]
    return "\n".join(["", body[0], "|---" * len(head) + "|", *body[1:], ""])


def text(table: Sequence[Values], layout: DrawTable) -> str:
    """One table for each budget, and what the words in the tables mean."""
    parts = []
    for epsilon in dict.fromkeys(row["budget_epsilon"] for row in table):
        own = [row for row in table if row["budget_epsilon"] == epsilon]
        total = "no noise (epsilon = inf)" if epsilon == float("inf") else f"epsilon {epsilon:g}"
        seeds = max(row["seeds"] for row in own)
        parts.append(f"total budget: {total}, delta {own[0]['budget_dp_delta']:g}; mean of {seeds} seeds")
        names = dict.fromkeys(measure_of(row).name for row in own if row["error_mean"] is not None)
        parts.append(layout((HEAD[0], " or ".join(names) or HEAD[1], *HEAD[2:]), map(_cells, own)))
    trusting = [(one, row) for one in Trusted for row in table if row["trusted"] == one.name.lower()]
    words = list(dict.fromkeys(_trusts(*pair) for pair in trusting))
    units = [unit.value for unit in Unit if any(row["unit"] == unit.name.lower() for row in table)]
    if len(units) > 1:
        words.append(f"guarantees differ in what they protect, and do not compare: {'; '.join(units)}")
    return "\n".join([*parts, "", *words])


def _trusts(whom: Trusted, row: Values) -> str:
    """Who is trusted by a row, and with what: of a secure sum, how many agents may collude with the server."""
    coalition = None if row["coalition"] is None else tuple(row["coalition"])
    return f"trusts {Promise(Unit.RECORD, whom, coalition=coalition).trusting}"


def _cells(row: Values) -> tuple[str, ...]:
    if row["error_mean"] is None:
        return (row["method"], *"--------", f"no model, {row['failed']}")
    measure = measure_of(row)
    low, high = (measure.number(row[key]) for key in ("error_20", "error_80"))
    failed = f" (failed: {row['failed']})" if row["failed"] else ""
    return (
        row["method"], measure.shown(row["error_mean"]), f"{low}-{high}",
        "-" if row["auc_mean"] is None else f"{row['auc_mean']:.3f}", row["features"] or "none", str(row["rounds"]),
        f"{row['seconds']:.1f}", size(row["sent_bytes"]), row["trusted"] or "-", row["guarantee"] + failed,
    )  # fmt: skip


def size(n_bytes: float) -> str:
    """A number of bytes in words: 9.41 MB."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"
