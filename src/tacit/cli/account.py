"""Print every valid bound on the privacy of a whole run. Each record lives at one agent, so agents do not add up.
The noise scale must be public: a scale read from the data has no total.

examples:
  tacit account --mechanism laplace --epsilon 0.05 --rounds 20000 --dp-delta 1e-6    the paper's headline run
  tacit account --mechanism laplace --epsilon 0.05 --rounds 20000 --l2-ratio 0.0253  the same noise, accounted in l2
  tacit account --mechanism gaussian --target-epsilon 1 --rounds 100                 noise for a total budget
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import finish
from tacit.cli.table import table
from tacit.errors import SpecError
from tacit.jsontext import Values

if TYPE_CHECKING:
    from tacit.privacy.budget import Total

GAUSSIAN_MEANING = {
    "pld": "the law of the privacy loss, which for Gaussian noise is known exactly: the same as gdp",
    "basic": "the exact epsilon of one release at delta / T, T times",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit account`."""
    parser.add_argument("--mechanism", choices=("laplace", "gaussian"), default="gaussian", help="the noise")
    parser.add_argument("--rounds", type=int, required=True, metavar="T", help="releases of each agent")
    parser.add_argument("--local-steps", type=int, default=1, metavar="E", help="noisy steps in a round (default 1)")
    parser.add_argument("--dp-delta", type=float, default=1e-6, metavar="D", help="delta of the total (default 1e-6)")
    parser.add_argument("--epsilon", type=float, metavar="E", help="of one round, as the paper states it: for Gaussian "
                        "noise the classic sigma = Delta sqrt(2 ln(1.25/D)) / E")  # fmt: skip
    parser.add_argument("--multiplier", type=float, metavar="M", help="noise scale over sensitivity")
    parser.add_argument("--l2-ratio", type=float, metavar="R", help="Laplace: l2 over l1 sensitivity, both public")
    parser.add_argument("--target-epsilon", type=float, metavar="E", help="invert: the least noise for this total")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Compose the releases of a run, or find the noise for a total, and print the bounds."""
    from tacit.privacy import budget
    from tacit.privacy.divergence import gaussian_epsilon
    from tacit.privacy.release import GaussianRelease

    count = options.rounds * options.local_steps
    if options.rounds < 1 or options.local_steps < 1:
        raise SpecError(f"rounds and local steps are at least 1, got {options.rounds} and {options.local_steps}.")
    found = _release(options, _multiplier(options))
    if options.target_epsilon is not None:
        found = budget.calibrate(found, options.target_epsilon, options.dp_delta, options.rounds, options.local_steps)
    multiplier = found.multiplier if isinstance(found, GaussianRelease) else 1 / found.l1
    try:
        spent = budget.total([(found, count)], options.dp_delta)
        bounds = {bound.name: bound.epsilon for bound in spent.bounds}
        if options.mechanism == "gaussian" and bounds:
            bounds["pld"] = bounds["gdp"]  # the law of the loss of composed Gaussians is known exactly
            bounds["basic"] = count * gaussian_epsilon(1 / multiplier, options.dp_delta / count)
    except (OverflowError, KeyError):
        raise SpecError(f"no bound is known for {count} releases of {found}: use less extreme numbers.") from None
    bounds = dict(sorted(bounds.items(), key=lambda item: item[1]))
    facts: Values = {
        "mechanism": options.mechanism,
        "rounds": options.rounds,
        "local_steps": options.local_steps,
        "dp_delta": options.dp_delta,
        "multiplier": multiplier,
        "epsilon_per_round": None if options.mechanism == "gaussian" else 1 / multiplier,
        "epsilon": spent.epsilon,
        "bound": spent.name,
        "best_guess": budget.best_guess(spent, options.dp_delta),
        **bounds,
        "notes": list(spent.notes),
    }
    if options.json:
        print(jsontext.dumps(facts))
    else:
        _say(facts, bounds, spent)
    return 0


def _multiplier(options: argparse.Namespace) -> float:
    """The noise scale over the sensitivity that is given; 1 where the noise is asked for."""
    from tacit.privacy.mechanism import Gaussian, Laplace

    if options.target_epsilon is not None:
        if options.epsilon is not None or options.multiplier is not None:
            raise SpecError("--target-epsilon asks for the noise: drop --epsilon and --multiplier.")
        return 1.0
    if (options.epsilon is None) == (options.multiplier is None):
        raise SpecError("give one of --epsilon, --multiplier and --target-epsilon.")
    if options.multiplier is not None:
        return float(options.multiplier)
    if options.mechanism == "laplace":
        return Laplace.pure(options.epsilon).multiplier
    return Gaussian.classic(options.epsilon, options.dp_delta).multiplier


def _release(options: argparse.Namespace, multiplier: float) -> Any:
    from tacit.privacy.mechanism import check_multiplier
    from tacit.privacy.release import GaussianRelease, LaplaceRelease

    check_multiplier(multiplier)
    if options.mechanism == "gaussian":
        if options.l2_ratio is not None:
            raise SpecError("--l2-ratio is for Laplace noise: a Gaussian is accounted in l2 already.")
        return GaussianRelease(multiplier)
    if options.l2_ratio is not None and not 0 < options.l2_ratio <= 1:
        raise SpecError(f"--l2-ratio lies in (0, 1], got {options.l2_ratio}.")
    return LaplaceRelease(1 / multiplier, None if options.l2_ratio is None else options.l2_ratio / multiplier)


def _say(facts: Values, bounds: dict[str, float], spent: Total) -> None:
    from tacit.privacy.budget import MEANING
    from tacit.privacy.risk import stated

    meaning = MEANING | (GAUSSIAN_MEANING if facts["mechanism"] == "gaussian" else {})
    per_round = facts["epsilon_per_round"]
    noise = f"scale = {facts['multiplier']:.6g} x sensitivity"
    noise += f" (epsilon {per_round:.6g} a round)" if per_round else ""
    count = facts["rounds"] * facts["local_steps"]
    say(f"{facts['mechanism']} noise, {noise}, {count} releases, delta = {facts['dp_delta']:g}\n")
    if bounds:
        rows = [(name, f"{epsilon:.6g}", meaning[name]) for name, epsilon in bounds.items()]
        print(table(("bound", "epsilon", "meaning"), rows, right=("epsilon",)))
    if math.isinf(spent.epsilon):
        say("\n".join(["", "total: no finite total", *spent.notes]))
        return
    found = stated({**facts, "adjacency": "zero_out"})
    risks = ["", f"total: {spent}", f"risk: {found}", *filter(None, [found.verdict])]
    say("\n".join([*risks, *spent.notes]))
