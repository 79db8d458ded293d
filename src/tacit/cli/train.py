"""Train one model over a federation. Later sources win: preset, --config, flags, --set.

examples:
  tacit train                                        the bundled MNIST, ten agents, (1, 1e-6)-DP in all, exact noise
  tacit train --seed 0                               the same, simulated: faster, repeatable, not for release
  tacit train --epsilon 1 --dp-delta 1e-7 --adjacency replace_one
  tacit train --preset released --algorithm outp --epsilon 0.1 --rounds 500
  tacit train --preset paper --algorithm objp --set schedule.eta_a=100
  tacit train --data patients.csv --agent-column hospital --label-column outcome --classes ill,well --out runs/patients
  tacit train --data patients.csv --schema schema.toml --set privacy.sensitivity=feature_bounds
  tacit train --data stays.csv --agents 4 --label-column days --target-low 0 --target-high 60
  tacit train --config runs/patients/spec.toml --seed 1
  tacit train --resume runs/patients
  tacit train --keys                                 every key that --set and --config take, with the defaults of sound
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import BUNDLE_FLAGS, DATA_FLAGS, TRAIN_FLAGS, add_spec_flags, finish, given, spec_of
from tacit.cli.progress import Progress
from tacit.errors import SpecError
from tacit.jsontext import Values
from tacit.measures import JUDGES, MEASURES, Measure

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee
    from tacit.run.spec import Spec

FLAGS = DATA_FLAGS + BUNDLE_FLAGS + TRAIN_FLAGS
LABEL = 12  # columns of the names in a result
NOT_STATED = "not stated: an earlier version made this result (its words are in result.json)"
MOST = 320  # letters about what a guarantee does not cover: the whole of it is in result.json


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit train`."""
    add_spec_flags(parser, FLAGS)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the run (default runs/NAME)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="continue the run in DIR")
    parser.add_argument("--keys", action="store_true", help="list every key and its default under sound, and stop")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Train or resume a run, and print its result."""
    from tacit.report import output
    from tacit.run.directory import RunDirectory
    from tacit.run.train import resume, train

    if options.keys:
        say(_keys(spec_of(options)))
        return 0
    if options.resume:
        if given(options, FLAGS) or options.set or options.config or options.out:
            raise SpecError("--resume takes everything from the run it continues: drop the other options.")
        out, spec = options.resume, RunDirectory.open(options.resume).spec()
    else:
        spec = spec_of(options)
        out = options.out or _free_name(spec.data.source, spec.algorithm.name)
    go = partial(resume, out) if options.resume else partial(train, spec, out=out)
    with Progress(spec.run.rounds, options) as progress:
        result = go(listener=progress)
    output.write([out], out / "report.html")
    show_result(result.summary, out, options.json, result.notes)
    return 0


def _free_name(source: str, algorithm: str) -> Path:
    """A path such as runs/mnist-objt-1, with the first number that is not taken."""
    stem = f"{Path(source).stem}-{algorithm}"
    taken = {path.name for path in Path("runs").iterdir()} if Path("runs").is_dir() else set()
    number = next(n for n in range(1, len(taken) + 2) if f"{stem}-{n}" not in taken)
    return Path("runs") / f"{stem}-{number}"


def show_result(summary: Values, out: Path, as_json: bool, notes: Sequence[str] = ()) -> None:
    """Print the result of a run, with what public numbers say against it."""
    from tacit.privacy.guarantee import stated_in
    from tacit.run.result import records_in_words

    if as_json:
        print(jsontext.dumps(summary | {"out": str(out), "notes": [*notes]}))
        return
    stated = stated_in(summary)  # None: an earlier version finished the run that was to be resumed
    changed = f", changed: {', '.join(summary['changed'])}" if summary["changed"] else ""
    agents = "agent" if summary["agents"] == 1 else "agents"
    rows = [
        ("algorithm", f"{summary['algorithm']} ({summary['preset']} preset{changed}), {summary['rounds']} rounds"),
        ("data", f"{summary['dataset']}, {summary['agents']} {agents}; {records_in_words(summary)}"),
        ("features", summary.get("features")),
        *((one.name, _shown(one, summary)) for one in MEASURES if one.key in summary),
        ("objective", "" if summary["objective"] is None else f"{summary['objective']:.5f} (exact: not for release)"),
        ("guarantee", stated.sentence if stated else summary["guarantee"]),
        ("risk", _risk(summary)),
        ("trust", (stated.private and stated.trust) if stated else NOT_STATED),
        ("ledgers", _ledgers(summary)),
        ("new ledger", _new_ledgers(summary)),
        ("took part", _missed(summary)),
        ("not covered", _not_covered(stated, out) if stated else NOT_STATED),
        *(("note", note) for note in notes),
        ("time", f"{summary['seconds']:.1f} s"),
        ("report", str(out / "report.html")),
    ]
    for name, text in rows:
        if text:
            say(f"{name:<{LABEL}}{text}".replace("\n", "\n" + " " * LABEL), hang=LABEL)


def _missed(summary: Values) -> str:
    """Return how many rounds the agents answered that missed some; "" if all of them answered every round."""
    rounds, took_part = summary["rounds"], summary.get("took_part") or {}
    answered = {name: counts["answered"] for name, counts in took_part.items()}
    return "; ".join(f"{name} answered {n} of {rounds} rounds" for name, n in answered.items() if n < rounds)


def _risk(summary: Values) -> str:
    """Return what the guarantee means for one record; "" without a guarantee."""
    from tacit.privacy import risk

    if summary.get("epsilon") is None:
        return ""
    found = risk.stated(summary)
    return "; ".join(filter(None, (str(found), found.verdict)))


def _shown(measure: Measure, summary: Values) -> str:
    """A measure of the last and of the averaged iterate, in words."""
    last, averaged = (summary[key] for key in (measure.key, measure.averaged))
    if last is None and averaged is None:
        return "no test records" if measure in JUDGES else ""
    return f"{measure.shown(last)} last, {measure.shown(averaged)} averaged"


def _keys(spec: Spec) -> str:
    """List every key with its value in a spec, and what it means."""
    from tacit.methods.registry import METHODS, own_constants
    from tacit.run.presets import REMARKS
    from tacit.run.spec import keys

    lines = [
        f"# The values of --preset {spec.run.preset} --algorithm {spec.algorithm.name}. Without options these are "
        "sound and objt; other presets and methods have other values."
    ]
    if remark := REMARKS.get((spec.run.preset, spec.algorithm.name)):
        lines.append(f"# {remark}")
    values = spec.values()
    for key, found in keys().items():
        choices = f" [{', '.join(found.metadata['choices'])}]" if found.metadata["choices"] else ""
        value = "unset" if values[key] is None else values[key]
        lines.append(f"{key:<26} {value!s:<12} {found.metadata['about']}{choices}")
    for entry in map(METHODS.__getitem__, METHODS):
        for name in own_constants(entry):
            about = entry.constants.get(name, "a constant")
            lines.append(f"method.{name:<19} {entry.grid[0][name]!s:<12} {entry.name}: {about}")
    return "\n".join(lines)


def _ledgers(summary: Values) -> str:
    """Say what the ledger that has spent most holds, if it knows other runs or has a limit."""
    from tacit.privacy.budget import upward

    totals = (summary.get("ledger_totals") or {}).values()
    most = max(totals, key=lambda one: float(one["epsilon"]), default=None)
    alone = summary["epsilon"]
    if most is None or alone is None or not (most["limit"] or most["epsilon"] > alone * (1 + 1e-6)):
        return ""
    limit = f"of {most['limit']:g} allowed" if most["limit"] else "and no limit is set (tacit ledger limit)"
    return f"epsilon {upward(most['epsilon'])} is spent over all runs, {limit}"


def _new_ledgers(summary: Values) -> str:
    """Name the agents for which this run has made a ledger of all runs."""
    new = [agent for agent, one in (summary.get("ledger_totals") or {}).items() if one.get("new")]
    if not new:
        return ""
    some = f"{', '.join(new[:3])}{f' and {len(new) - 3} more' if len(new) > 3 else ''}"
    return f"made for {some}; runs before this one are not counted: if there were any, put their ledgers back"


def _not_covered(stated: Guarantee, out: Path) -> str:
    """Name what a guarantee does not cover in a few lines, and say where the whole of it stands."""
    briefs = [brief.replace("this file", "result.json") for brief in stated.brief_exclusions]
    for told in range(len(briefs), 0, -1):
        more = f"; and {len(briefs) - told} more" if told < len(briefs) else ""
        named = "; ".join(briefs[:told]) + more
        if len(named) <= MOST:
            break
    return f"{named}\nin full: {out / 'result.json'} (not_covered), and docs/guarantees.md" if briefs else ""
