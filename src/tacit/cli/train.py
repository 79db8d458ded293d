"""Train one model over a federation. Later sources win: preset, --config, flags, --set.

examples:
  tacit train                                        the bundled MNIST, ten agents, (1, 1e-6)-DP in all, exact noise
  tacit train --seed 0                               the same, simulated: faster, repeatable, not for release
  tacit train --epsilon 3 --dp-delta 1e-6 --adjacency replace_one
  tacit train --preset released --algorithm outp --epsilon 0.1 --rounds 500
  tacit train --preset paper --algorithm objp --set schedule.eta_a=100
  tacit train --data patients.csv --agent-column hospital --label-column outcome --classes ill,well --out runs/patients
  tacit train --data patients.csv --schema schema.toml --set privacy.sensitivity=feature_bounds
  tacit train --data stays.csv --agents 4 --label-column days --target-low 0 --target-high 60
  tacit train --config runs/patients/spec.toml --seed 1
  tacit train --resume runs/patients
  tacit train --keys                                 every key that --set and --config take
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from tacit import jsontext
from tacit.cli.options import BUNDLE_FLAGS, DATA_FLAGS, RUN_FLAGS, add_spec_flags, finish, given, spec_of
from tacit.cli.progress import Progress, shown
from tacit.errors import SpecError
from tacit.jsontext import Values
from tacit.measures import JUDGES, MEASURES, Measure

FLAGS = DATA_FLAGS + BUNDLE_FLAGS + RUN_FLAGS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit train`."""
    add_spec_flags(parser, FLAGS)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the run (default runs/NAME)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="continue the run in DIR")
    parser.add_argument("--keys", action="store_true", help="list every key and its default, and stop")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Train or resume a run, and print its result."""
    from tacit.report import output
    from tacit.run.directory import RunDirectory
    from tacit.run.train import resume, train

    if options.keys:
        print(_keys())
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
    show_result(result.summary, out, options.json)
    return 0


def _free_name(source: str, algorithm: str) -> Path:
    """A path such as runs/mnist-objt-1, with the first number that is not taken."""
    stem = f"{Path(source).stem}-{algorithm}"
    taken = {path.name for path in Path("runs").iterdir()} if Path("runs").is_dir() else set()
    number = next(n for n in range(1, len(taken) + 2) if f"{stem}-{n}" not in taken)
    return Path("runs") / f"{stem}-{number}"


def show_result(summary: Values, out: Path, as_json: bool) -> None:
    """Print the result of a run."""
    if as_json:
        print(jsontext.dumps(summary | {"out": str(out)}))
        return
    changed = f", changed: {', '.join(summary['changed'])}" if summary["changed"] else ""
    rows = [
        ("algorithm", f"{summary['algorithm']} ({summary['preset']} preset{changed}), {summary['rounds']} rounds"),
        ("data", f"{summary['dataset']}: {summary['records']} records, {summary['agents']} agents"),
        ("features", summary.get("features")),
        *((one.name, _shown(one, summary)) for one in MEASURES if one.key in summary),
        ("objective", shown(summary["objective"], ".5f")),
        ("guarantee", summary["guarantee"]),
        ("trust", summary.get("trust")),
        ("not covered", "; ".join(summary.get("not_covered") or ())),
        ("time", f"{summary['seconds']:.1f} s"),
        ("report", str(out / "report.html")),
    ]
    for name, text in rows:
        if text:
            print(f"{name:<11} {text}")
    sys.stdout.flush()


def _shown(measure: Measure, summary: Values) -> str:
    """A measure of the last and of the averaged iterate, in words."""
    last, averaged = (summary[key] for key in (measure.key, measure.averaged))
    if last is None and averaged is None:
        return "no test records" if measure in JUDGES else ""
    return f"{measure.shown(last)} last, {measure.shown(averaged)} averaged"


def _keys() -> str:
    from tacit.methods.method import own_constants
    from tacit.methods.registry import METHODS
    from tacit.run.spec import keys

    lines = []
    for key, found in keys().items():
        choices = f" [{', '.join(found.metadata['choices'])}]" if found.metadata["choices"] else ""
        default = "unset" if found.default is None else found.default
        lines.append(f"{key:<26} {default!s:<12} {found.metadata['about']}{choices}")
    for entry in map(METHODS.__getitem__, METHODS):
        lines += [f"method.{name:<19} {entry.grid[0][name]!s:<12} of {entry.name}" for name in own_constants(entry)]
    return "\n".join(lines)
