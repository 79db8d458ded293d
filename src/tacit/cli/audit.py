"""Attack tacit, and print the claimed epsilon, the lower bound that the attack certifies, and a verdict.

what is attacked:
  mechanism       a round with a worst-case record and without it, many draws of the noise; and the differences of two
                  agents and of two rounds, in which noise that is not new would cancel. Beside the attacks the scale of
                  the noise is tested, if its law is the claimed one. A secure sum (--trust sum) is attacked by the
                  server and a colluding agent: by the sum, by the words of one agent and of some, and by differences
                  of two attempts, of two rounds and of two sets. It needs the extra secure
  run             a whole training run with canaries in it, each included by a coin
  reconstruction  a server that knows all but one record tries to see it; draws a picture, with matplotlib
Without a preset, file or flag that names a method, mechanism goes through every kind of release tacit makes.
A mechanism spends the whole budget in one round (in eight, for Laplace noise accounted in l2); without --rounds or
--config, a run has at most 100.

what is printed:
  claimed         (epsilon, delta) by the accountant
  at least        the lower bound that a test certifies, and the test; "of E" where the test is of another epsilon, such
                  as that of the one Gaussian release which dominates all that is attacked. The test "noise" is no
                  attack: its epsilon is that of the claimed release with noise as small as was measured, and it is
                  printed where it alone refutes the claim. For --method, "w0" marks runs that start at a model
                  which steers the record, and "whitened" an attack that sees noise which cancels between rounds
  detects         x 0.85: these very draws would have refuted the claim, had their noise been 0.85 of what is claimed
                  (of what it is, for --method), or any smaller factor that was tried, down to 0.1

controls are mechanisms and methods broken on purpose; an audit that does not catch them is worth nothing:
{controls}

exit code: 0 if every claim is consistent with what was measured and every control is caught, else 1.
The lower bounds on all claims of a command hold together with 95 % confidence: one in twenty commands may err.
A consistent claim is not proved by it: the proof is in the accounting, the audit looks for its bugs.

examples:
  tacit audit --controls
  tacit audit --epsilon 8 --what run
  tacit audit --config runs/patients/spec.toml --what mechanism --draws 20000
  tacit audit --preset released                      a scale read from the data: VIOLATED
  tacit audit --control clean-dual
  tacit audit --trust sum --epsilon 8                agents behind a secure sum
  tacit audit --method fedgd --epsilon 3             a method of tacit compare; --method all for every private one
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext, record
from tacit.cli.folding import say
from tacit.cli.options import BUNDLE_FLAGS, DATA_FLAGS, RUN_FLAGS, add_spec_flags, finish, given, spec_of
from tacit.cli.table import FindingTable
from tacit.errors import IncompatibleError, MissingDependency, SpecError, TacitWarning

if TYPE_CHECKING:
    from tacit.audit.finding import Finding
    from tacit.audit.reconstruction import Recovery
    from tacit.methods.method import Budget
    from tacit.run.spec import Spec
    from tacit.types import Federation

WHAT = ("mechanism", "run", "reconstruction")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit audit`."""
    from tacit.audit.controls import CONTROLS

    add_spec_flags(parser, DATA_FLAGS + BUNDLE_FLAGS + RUN_FLAGS)
    parser.add_argument("--what", choices=(*WHAT, "all"), help="the attack (default all)")
    parser.add_argument("--controls", action="store_true", help="also attack every control")
    parser.add_argument("--control", action="append", default=[], metavar="NAME", help="attack this control")
    parser.add_argument("--method", action="append", default=[], metavar="NAME", help="attack this method")
    parser.add_argument("--draws", type=int, metavar="N", help="draws a side of a mechanism (default 12000)")
    parser.add_argument("--canaries", type=int, metavar="N", help="canaries in a run (default 4000)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="the PNG of reconstruction (default audit.png)")
    wide = max(map(len, CONTROLS)) + 2
    listed = "\n".join(f"  {one.name:<{wide}}{one.about}" for one in CONTROLS.values())
    finish(parser, (__doc__ or "").format(controls=listed), run)


def run(options: argparse.Namespace) -> int:
    """Attack what is asked for, and print each finding as it comes."""
    for flag, value in (("--draws", options.draws), ("--canaries", options.canaries)):
        if value is not None and value < 100:
            raise SpecError(f"{flag} {value} shows nothing: give at least 100.")
    spec = asked = spec_of(options)
    only = _only_mechanism(spec)
    if only and options.what not in (None, "mechanism"):
        raise IncompatibleError(f"--what {options.what} is {only}: attack this method with mechanism.")
    chosen = options.what or ("none" if options.control or options.method else "mechanism" if only else "all")
    attacks = [what for what in WHAT if chosen in (what, "all")]
    picture = _picture(options.picture) if "reconstruction" in attacks else None
    show = FindingTable(options.json)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)  # what training would warn of is what the audit measures
        spec, federation = _target(spec, options, attacks)
        mechanisms = _mechanisms(options, spec) if "mechanism" in attacks else []
        sure = _shared(options, len(mechanisms) + ("run" in attacks))
        findings = show.findings(_attack(options, attacks, mechanisms, spec, federation, sure))
        recovered = _reconstruct(spec, federation, picture, show) if "reconstruction" in attacks else []
        findings += show.findings(_methods(options, sure))
        controls = show.findings(_controls(options, sure))
    passed = not any(one.violated for one in findings) and all(one.violated for one in controls)
    if options.json:
        told = {"findings": [one.as_dict() for one in findings], "controls": [one.as_dict() for one in controls]}
        told["reconstruction"] = [one.as_dict() for one in recovered]
        named = record.spec_hash(asked.toml()) if _named(options) else None  # by which a card knows its audit
        print(jsontext.dumps({"passed": passed, **told, "picture": picture and str(picture), "spec_hash": named}))
    elif findings or controls:
        from tacit.audit.finding import CONFIDENCE

        say(f"the lower bounds hold together with {CONFIDENCE:.0%} confidence; no consistent claim is proved by them")
        say("detects x F: noise of F times the claim would have been caught by these draws (F and less were tried)")
    return 0 if passed else 1


def _is_other(spec: Spec) -> bool:
    """Whether the spec is of a method outside the ADMM family, which is attacked by what the untrusted saw."""
    from tacit.methods.registry import METHODS

    return not METHODS[spec.algorithm.name].is_admm


def _only_mechanism(spec: Spec) -> str:
    """Whom the other attacks are for, where the spec has only the attack on the mechanism; else nothing."""
    if _is_other(spec):
        return "for the ADMM family"
    return "for agents that answer alone, and a secure sum shows none of them" if spec.privacy.trust == "sum" else ""


def _mechanisms(options: argparse.Namespace, spec: Spec) -> list[Spec]:
    """The specs whose mechanisms are attacked: the one that is named, or one of every kind."""
    from tacit.audit import suite

    if _named(options):
        return [spec]
    return suite.mechanisms() + (suite.sums() if _can_sum("no attack on a secure sum") else [])


def _can_sum(otherwise: str) -> bool:
    """Whether secure sums can be attacked here. What is left out otherwise is said."""
    try:
        import tacit.agent.masks.primitives  # noqa: F401
    except MissingDependency as error:
        say(f"{otherwise}: {error}", file=sys.stderr)
        return False
    return True


def _shared(options: argparse.Namespace, attacks: int) -> float:
    """The confidence of one finding, such that all findings together have CONFIDENCE.

    Many claims are tight and the attacks nearly reach them: at 95 % each, a row of seven would cry wolf every few runs.
    """
    from tacit.audit import methods
    from tacit.audit.finding import CONFIDENCE

    return 1 - (1 - CONFIDENCE) / max(1, attacks + len(methods.chosen(options.method, _budget(options))))


def _target(spec: Spec, options: argparse.Namespace, attacks: list[str]) -> tuple[Spec, Federation | None]:
    """The spec that is attacked, and its data where an attack trains on them."""
    from tacit.audit import suite
    from tacit.run import build

    if getattr(options, "run.rounds") is None and not options.config:
        spec = spec.with_values({"run.rounds": min(spec.run.rounds, suite.ROUNDS)})
    return spec, build.federation(spec) if {"run", "reconstruction"} & set(attacks) else None


def _attack(
    options: argparse.Namespace,
    attacks: list[str],
    mechanisms: list[Spec],
    spec: Spec,
    federation: Federation | None,
    sure: float,
) -> Iterator[Finding]:
    from tacit.audit import mechanism, methods, training
    from tacit.audit.finding import at_least

    for one in mechanisms:
        if _is_other(one):
            yield methods.audit_spec(one, options.draws or methods.DRAWS, _seed(options), sure)
        elif one.privacy.trust == "sum":
            from tacit.audit import secure_sum

            yield secure_sum.audit(one, options.draws, at_least(sure, one))
        else:
            yield mechanism.audit(one, options.draws, _seed(options), at_least(sure, one))
    if "run" in attacks:
        canaries, enough = options.canaries or training.CANARIES, at_least(sure, spec)
        yield training.audit(spec, federation, canaries, seed=_seed(options), confidence=enough)


def _budget(options: argparse.Namespace) -> Budget:
    from tacit.methods.method import Budget

    asked = given(options, RUN_FLAGS)
    return Budget(asked.get("privacy.epsilon", 3.0), asked.get("privacy.dp_delta", 1e-5))


def _methods(options: argparse.Namespace, sure: float) -> Iterator[Finding]:
    from tacit.audit import methods

    asked = given(options, RUN_FLAGS)
    if options.method and (asked.get("privacy.trust") or asked.get("privacy.colluding")):
        raise SpecError("--method audits methods as they are named: audit --algorithm NAME --trust sum instead.")
    budget, draws = _budget(options), options.draws or methods.DRAWS
    for entry in methods.chosen(options.method, budget):
        yield methods.audit(entry, budget, draws, _seed(options), sure)


def _controls(options: argparse.Namespace, sure: float) -> Iterator[Finding]:
    from tacit.audit.controls import CONTROLS, control

    chosen = list(CONTROLS.values()) if options.controls else [control(name) for name in options.control]
    if options.controls and not _can_sum("no controls of a secure sum"):
        chosen = [one for one in chosen if one.fault is None]
    for one in chosen:
        yield one.audit(options.draws, _seed(options), sure)


def _named(options: argparse.Namespace) -> bool:
    """Whether the command line says what to audit, and not only on which data or with which seed."""
    method = {key for key in given(options, RUN_FLAGS) if key.startswith("privacy.")}
    return bool(method or given(options, BUNDLE_FLAGS) or options.config or options.set)


def _seed(options: argparse.Namespace) -> int:
    return getattr(options, "run.seed") or 0


def _picture(asked: Path | None) -> Path | None:
    """Where to draw. Without matplotlib, a picture that was asked for is refused, before the attacks start."""
    try:
        import tacit.report.figures  # noqa: F401
    except MissingDependency as error:
        if asked is not None:
            raise
        say(f"no picture: {error}", file=sys.stderr)
        return None
    return asked or Path("audit.png")


def _reconstruct(spec: Spec, federation: Federation | None, picture: Path | None, show: FindingTable) -> list[Recovery]:
    """Try to see records, and draw a row for each: the record, and what the server made of it at each epsilon.

    Images are attacked as pixels, without the default map: features show people nothing.
    """
    from tacit.audit import reconstruction
    from tacit.run import rules

    if federation is not None and spec.features.map == "auto" and rules.spread(federation):
        spec, federation = spec.with_values({"features.map": "none"}), None
    recovered = reconstruction.reconstruct(spec, federation)
    if picture is not None:
        from tacit.report.figures import draw_records

        rows = []
        for n, original in enumerate(recovered[0].originals):
            guesses = [(one.guesses[n], f"{one}\ncosine {one.cosines[n]:.2f}") for one in recovered]
            rows.append([(original, "record\n"), *guesses])
        try:
            draw_records(rows, picture)
        except OSError as error:
            raise SpecError(f"cannot write {picture}: {error.strerror}. Choose another --picture.") from None
    show.recovered(recovered, picture)
    return recovered
