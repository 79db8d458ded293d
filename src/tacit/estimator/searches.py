"""The search of scikit-learn that makes a fit: how many trials it has, and which budgets, as far as that can be known.

scikit-learn tells an estimator nothing of this, but the functions that make the trials are being run, and know. In
another process, or thread, only the function that makes one trial is there: then the other trials are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

_AT_ONCE = {GridSearchCV._run_search, RandomizedSearchCV._run_search}  # which make all trials in one go


@dataclass(frozen=True, eq=False)
class Search:
    """A search over parameters that a fit is part of; `ends` at its last fit, on all records."""

    own: Any  # the search itself; None in another process
    candidates: int
    splits: int
    ends: bool
    tried: Sequence[Mapping[str, Any]] | None = None  # the parameters of every candidate; None where not all are known

    @property
    def trials(self) -> int:
        return self.candidates * self.splits

    @property
    def refits(self) -> bool:
        """Whether a last fit is on all records; it may be so in another process."""
        return self.own is None or bool(getattr(self.own, "refit", True))

    def models(self, kind: type) -> list[Any] | None:
        """Return the estimators of a kind that each candidate is made of, one after another; None if not known."""
        if self.tried is None or len(self.tried) != self.candidates:
            return None
        found: list[Any] = []
        try:
            for one in self.tried:
                model = clone(self.own.estimator).set_params(**clone(dict(one), safe=False))
                parts = [model, *model.get_params(deep=True).values()]
                found += {id(part): part for part in parts if isinstance(part, kind)}.values()
        except Exception:  # whatever other estimators do with their parameters: the trial itself will tell
            return None
        return found


def search_of(frame: FrameType | None) -> Search | None:
    """Return the search of scikit-learn that calls the fit, None where none does.

    A version that works otherwise is not recognised; the odometer counts all the same.
    """
    trial: tuple[int, int] | None = None
    now: Sequence[Mapping[str, Any]] | None = None
    for name, known in _callers(frame):
        splits, candidates = known.get("split_progress"), known.get("candidate_progress")
        if name == "_fit_and_score" and splits and candidates:
            trial = candidates[1], splits[1]
        if name == "evaluate_candidates":
            now = known.get("candidate_params")
        if name == "fit" and "all_candidate_params" in known:
            own, every = known.get("self"), known["all_candidate_params"]
            if trial is None:
                splits = int(getattr(own, "n_splits_", known.get("n_splits") or 1))
                return Search(own, len(every), splits, ends=True, tried=every)
            at_once = getattr(type(own), "_run_search", None) in _AT_ONCE and isinstance(now, list)
            return Search(own, *trial, ends=False, tried=now if at_once else None)
    return None if trial is None else Search(None, *trial, ends=False)


def _callers(frame: FrameType | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the functions of scikit-learn's model selection that are being run, the innermost first."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("sklearn.model_selection."):
            yield frame.f_code.co_name, frame.f_locals
        frame = frame.f_back
