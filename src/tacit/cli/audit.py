"""tacit audit: attack tacit, and put what was measured beside what is claimed."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import jsontext
from tacit.cli.options import DATA_FLAGS, Commands, add_common, add_spec_flags, given
from tacit.cli.train import RUN_FLAGS, spec_of
from tacit.errors import MissingDependency, SpecError, TacitWarning

if TYPE_CHECKING:
    from tacit.audit.finding import Finding
    from tacit.audit.reconstruction import Recovery
    from tacit.methods.method import Budget

WHAT = ("mechanism", "run", "reconstruction")

EPILOG = """what is attacked:
  mechanism       a round with a worst-case record and without it, many draws of the noise; and the differences of two
                  agents and of two rounds, in which noise that is not new would cancel. Beside the attacks the scale of
                  the noise is tested, if its law is the claimed one
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
                  printed where it alone refutes the claim
  detects         x 0.85: these very draws would have refuted the claim, had their noise been 0.85 of what is claimed
                  (of what it is, for --method), or any smaller factor that was tried, down to 0.1

controls are mechanisms broken on purpose; an audit that does not catch them is worth nothing:
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
  tacit audit --method fedgd --epsilon 3             a method of tacit compare; --method all for every private one
"""


def add_to(commands: Commands, about: str) -> None:
    parser = commands.add_parser(
        "audit",
        help=about,
        description="Attack tacit, and print the claimed epsilon, the lower bound that the attack certifies, and a "
        "verdict.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this help message and exit")
    add_spec_flags(parser, DATA_FLAGS)
    parser.add_argument("--preset", help="sound (default), paper or released")
    parser.add_argument("--algorithm", help="the method: objt (default), or any of tacit compare --list")
    add_spec_flags(parser, RUN_FLAGS)
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of keys, such as a spec.toml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any key of tacit train --keys")
    parser.add_argument("--what", choices=(*WHAT, "all"), help="the attack (default all)")
    parser.add_argument("--controls", action="store_true", help="also attack every broken mechanism")
    parser.add_argument("--control", action="append", default=[], metavar="NAME", help="attack this broken mechanism")
    parser.add_argument("--method", action="append", default=[], metavar="NAME", help="attack this method")
    parser.add_argument("--draws", type=int, metavar="N", help="draws a side of a mechanism (default 12000)")
    parser.add_argument("--canaries", type=int, metavar="N", help="canaries in a run (default 4000)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="the PNG of reconstruction (default audit.png)")
    add_common(parser)
    parser.set_defaults(run=run)


class _Help(argparse.Action):
    """Help that lists the controls of the registry, which is slow to import: only when help is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from tacit.audit.controls import CONTROLS

        parser.epilog = EPILOG.format(controls="\n".join(f"  {one.name:<18}{one.about}" for one in CONTROLS.values()))
        parser.print_help()
        parser.exit()


def run(options: argparse.Namespace) -> int:
    for flag, value in (("--draws", options.draws), ("--canaries", options.canaries)):
        if value is not None and value < 100:
            raise SpecError(f"{flag} {value} shows nothing: give at least 100.")
    _take_other_algorithms(options)
    chosen = options.what or ("none" if options.control or options.method else "all")
    attacks = [what for what in WHAT if chosen in (what, "all")]
    if "reconstruction" in attacks:
        options.picture = _picture(options.picture)
    show = _Table(options.json)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)  # what training would warn of is what the audit measures
        sure = _shared(options, attacks)
        findings, recovered = _attack(options, attacks, sure, show)
        findings += _methods(options, sure, show)
        controls = _controls(options, sure, show)
    passed = not any(one.violated for one in findings) and all(one.violated for one in controls)
    if options.json:
        print(jsontext.dumps(_as_dict(findings, controls, recovered, options, passed)))
    elif findings or controls:
        from tacit.audit.finding import CONFIDENCE

        print(f"the lower bounds hold together with {CONFIDENCE:.0%} confidence; no consistent claim is proved by them")
        print("detects x F: noise of F times the claim would have been caught by these draws (F and less were tried)")
    return 0 if passed else 1


def _take_other_algorithms(options: argparse.Namespace) -> None:
    """Attack an --algorithm that is not of the ADMM family as --method does: by what the untrusted saw."""
    from tacit.methods.method import Entry
    from tacit.methods.registry import METHODS

    if options.algorithm and isinstance(METHODS[options.algorithm], Entry):
        options.method, options.algorithm = [*options.method, options.algorithm], None


def _shared(options: argparse.Namespace, attacks: list[str]) -> float:
    """The confidence of one finding, such that all together have CONFIDENCE.

    Many claims are tight and the attacks nearly reach them: at 95 % each, a row of seven would cry wolf every few runs.
    """
    from tacit.audit import methods, suite
    from tacit.audit.finding import CONFIDENCE

    mechanisms = 1 if _named(options) else len(suite.mechanisms())
    others = methods.chosen(options.method, _budget(options))
    count = ("mechanism" in attacks) * mechanisms + ("run" in attacks) + len(others)
    return 1 - (1 - CONFIDENCE) / max(1, count)


def _attack(
    options: argparse.Namespace, attacks: list[str], sure: float, show: _Table
) -> tuple[list[Finding], list[Recovery]]:
    from tacit.audit import mechanism, reconstruction, suite, training
    from tacit.audit.finding import at_least
    from tacit.run import build

    spec, named, seed = spec_of(options), _named(options), _seed(options)
    if getattr(options, "run.rounds") is None and not options.config:
        spec = spec.with_values({"run.rounds": min(spec.run.rounds, suite.ROUNDS)})
    findings: list[Finding] = []
    if "mechanism" in attacks:
        for one in [spec] if named else suite.mechanisms():
            findings.append(mechanism.audit(one, options.draws, seed, at_least(sure, one)))
            show.finding(findings[-1])
    over = build.federation(spec) if {"run", "reconstruction"} & set(attacks) else None
    if "run" in attacks:
        canaries, enough = options.canaries or training.CANARIES, at_least(sure, spec)
        findings.append(training.audit(spec, over, canaries, seed=seed, confidence=enough))
        show.finding(findings[-1])
    if "reconstruction" not in attacks:
        return findings, []
    recovered = reconstruction.reconstruct(spec, over)
    if options.picture is not None:
        _draw(recovered, options.picture)
    show.recovered(recovered, options.picture)
    return findings, recovered


def _budget(options: argparse.Namespace) -> Budget:
    from tacit.methods.method import Budget

    asked = given(options, RUN_FLAGS)
    return Budget(asked.get("privacy.epsilon", 3.0), asked.get("privacy.dp_delta", 1e-5))


def _methods(options: argparse.Namespace, sure: float, show: _Table) -> list[Finding]:
    from tacit.audit import methods

    budget, found = _budget(options), []
    for entry in methods.chosen(options.method, budget):
        found.append(methods.audit(entry, budget, options.draws or methods.DRAWS, _seed(options), sure))
        show.finding(found[-1])
    return found


def _controls(options: argparse.Namespace, sure: float, show: _Table) -> list[Finding]:
    from tacit.audit.controls import CONTROLS, control

    chosen = list(CONTROLS.values()) if options.controls else [control(name) for name in options.control]
    found = []
    for one in chosen:
        found.append(one.audit(options.draws, _seed(options), sure))
        show.finding(found[-1])
    return found


def _named(options: argparse.Namespace) -> bool:
    """Whether the command line says what to audit, and not only on which data or with which seed."""
    method = {key for key in given(options, RUN_FLAGS) if key.startswith("privacy.")}
    return bool(method or options.preset or options.algorithm or options.config or options.set)


def _seed(options: argparse.Namespace) -> int:
    return getattr(options, "run.seed", None) or 0


class _Table:
    """Rows as they come."""

    def __init__(self, silent: bool) -> None:
        self.silent, self.begun = silent, False

    def finding(self, one: Finding) -> None:
        if not self.begun:
            self._line("attack", "what", "claimed", "at least", "detects", "verdict")
            self.begun = True
        claim = f"({one.claim.epsilon:.4g}, {one.claim.dp_delta:g})"
        tested = one.checks[one.by].claimed
        other = "" if tested == one.claim.epsilon else f" of {tested:.3f}"
        detects = "" if one.violated else "nothing" if one.detects is None else f"x {one.detects:g}"
        verdict = one.verdict
        if one.attack == "control":
            verdict += ": caught" if one.violated else ": NOT CAUGHT"
        self._line(one.attack, one.name, claim, f"{one.measured:.3f}{other} {one.by}", detects, verdict)
        if one.claim.note:
            self._line("", one.claim.note)

    def recovered(self, recovered: list[Recovery], picture: Path | None) -> None:
        chance = recovered[0].chance
        for one in recovered:
            seen = f"cosine to the record {one.cosines.mean():.3f} on average, {one.cosines.max():.3f} at best"
            self._line("recovery", f"{one}: {seen}")
        see = "" if picture is None else f"; see {picture}"
        self._line("", f"a random guess has a cosine near {chance:.3f}{see}")

    def _line(
        self, attack: str, what: str, claim: str = "", measured: str = "", detects: str = "", verdict: str = ""
    ) -> None:
        if not self.silent:
            print(f"{attack:<10} {what:<58} {claim:<14} {measured:<26} {detects:<8} {verdict}".rstrip())
            sys.stdout.flush()


def _picture(asked: Path | None) -> Path | None:
    """Where to draw. Without matplotlib, a picture that was asked for is refused, before the attacks start."""
    try:
        import tacit.report.figures  # noqa: F401
    except MissingDependency as error:
        if asked is not None:
            raise
        print(f"no picture: {error}", file=sys.stderr)
        return None
    return asked or Path("audit.png")


def _draw(recovered: list[Recovery], path: Path) -> None:
    """Draw a row for each record: the record, and what the server made of it at each epsilon."""
    from tacit.report.figures import draw_records

    rows = []
    for n, original in enumerate(recovered[0].originals):
        guesses = [(one.guesses[n], f"{one}\ncosine {one.cosines[n]:.2f}") for one in recovered]
        rows.append([(original, "record\n"), *guesses])
    try:
        draw_records(rows, path)
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}. Choose another --picture.") from None


def _as_dict(
    findings: list[Finding],
    controls: list[Finding],
    recovered: list[Recovery],
    options: argparse.Namespace,
    passed: bool,
) -> dict[str, Any]:
    return {
        "passed": passed,
        "findings": [one.as_dict() for one in findings],
        "controls": [one.as_dict() for one in controls],
        "reconstruction": [one.as_dict() for one in recovered],
        "picture": str(options.picture) if recovered and options.picture else None,
    }

