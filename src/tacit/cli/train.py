"""tacit train: one run, from a preset, a TOML file, flags, or the directory of a run that was stopped."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tacit import jsontext
from tacit.cli.options import DATA_FLAGS, Commands, add_common, add_spec_flags, add_spec_sources, assignments, given
from tacit.cli.progress import Progress, shown
from tacit.errors import SpecError

DEFAULT_PRESET, DEFAULT_ALGORITHM = "sound", "objt"

RUN_FLAGS = (
    ("--epsilon", "privacy.epsilon", float, "E", "the budget: for the whole run under sound (default 1), for one "
     "round, as the paper states it, under paper and released; inf adds no noise"),
    ("--dp-delta", "privacy.dp_delta", float, "D", "delta of the budget (default 1e-6)"),
    ("--adjacency", "privacy.adjacency", str, "HOW", "zero_out (default) or replace_one"),
    ("--noise", "privacy.noise", str, "KIND", "simulated (default, from the seed) or exact (of the operating system)"),
    ("--ledger", "privacy.ledger", str, "DIR", "keep each agent's ledger in DIR; needs --noise exact"),
    ("--limit", "privacy.limit", float, "E", "epsilon that every ledger allows over all runs on the same data"),
    ("--rounds", "run.rounds", int, "T", "number of rounds (default: 300 under sound, else 100)"),
    ("--seed", "run.seed", int, "N", "seed of the noise (default 0)"),
    ("--record-every", "run.record_every", int, "N", "rounds between two records (default: about 100 in all)"),
    ("--engine", "run.engine", str, "NAME", "who computes a round: fast (default), plain or torch"),
    ("--device", "run.device", str, "NAME", "where the torch engine computes: cpu (default), cuda or mps"),
)  # fmt: skip

EPILOG = """examples:
  tacit train                                        the bundled MNIST, ten agents, (1, 1e-6)-DP in all
  tacit train --epsilon 3 --dp-delta 1e-6 --adjacency replace_one
  tacit train --preset released --algorithm outp --epsilon 0.1 --rounds 500
  tacit train --preset paper --algorithm objp --set schedule.eta_a=100
  tacit train --data patients.csv --agent-column hospital --label-column outcome --classes ill,well --out runs/patients
  tacit train --data patients.csv --schema schema.toml --set privacy.sensitivity=feature_bounds
  tacit train --config runs/patients/spec.toml --seed 1
  tacit train --resume runs/patients
  tacit train --keys                                 every key that --set and --config take
"""


def add_to(commands: Commands, about: str) -> None:
    parser = commands.add_parser(
        "train",
        help=about,
        description="Train one model over a federation. Later sources win: preset, --config, flags, --set.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_spec_flags(parser, DATA_FLAGS)
    parser.add_argument(
        "--preset", help="sound (a guarantee for the whole run; default), paper (the text), or released (what made the "
        "paper's numbers)"
    )  # fmt: skip
    parser.add_argument("--algorithm", help="the method: objt (default), or any of tacit compare --list")
    add_spec_flags(parser, RUN_FLAGS)
    add_spec_sources(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the run (default runs/NAME)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="continue the run in DIR")
    parser.add_argument("--keys", action="store_true", help="list every key and its default, and stop")
    add_common(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from tacit.report import output
    from tacit.run import train as experiment
    from tacit.run.directory import RunDirectory

    if options.keys:
        print(_keys())
        return 0
    if options.resume:
        _refuse_other_options(options)
        out, spec = options.resume, RunDirectory.open(options.resume).spec()
    else:
        spec = spec_of(options)
        out = options.out or _free_name(spec.data.source, spec.algorithm.name)
    progress = Progress(spec.run.rounds, options.quiet, options.verbose)
    try:
        go = partial(experiment.resume, out) if options.resume else partial(experiment.train, spec, out=out)
        result = go(listener=progress)
    finally:
        progress.stop()
    output.write([out], out / "report.html")
    _show(result.summary, out, options.json)
    return 0


def _refuse_other_options(options: argparse.Namespace) -> None:
    clash = given(options, DATA_FLAGS + RUN_FLAGS) or options.set or options.config or options.out
    if clash or options.preset or options.algorithm:
        raise SpecError("--resume takes everything from the run it continues: drop the other options.")


def spec_of(options: argparse.Namespace) -> Any:
    from tacit import toml
    from tacit.run.presets import preset

    config = toml.read(options.config) if options.config else {}
    flags, sets = given(options, DATA_FLAGS + RUN_FLAGS), assignments(options.set)
    for flag, key, said in (
        ("--preset", "run.preset", options.preset),
        ("--algorithm", "algorithm.name", options.algorithm),
    ):
        if key in sets:
            raise SpecError(f"{key} names a bundle of values: choose it with {flag}.")
        if said is not None and said != config.get(key, said):
            raise SpecError(f"{options.config} was made for {key} = {config[key]}: drop {flag}, or that file.")
        if not isinstance(config.get(key, ""), str):
            raise SpecError(f"{options.config}: {key} takes a name, got {config[key]!r}.")
    name = options.preset or config.get("run.preset", DEFAULT_PRESET)
    algorithm = options.algorithm or config.get("algorithm.name", DEFAULT_ALGORITHM)
    source = (config | flags | sets).get("data.source", "mnist")
    if not isinstance(source, str):
        raise SpecError(f"{options.config}: data.source takes a name or a path, got {source!r}.")
    return preset(name, algorithm, source).with_values(config | flags | sets).checked()


def _free_name(source: str, algorithm: str) -> Path:
    """runs/mnist-objt-1, or the first number that is not taken."""
    stem = f"{Path(source).stem}-{algorithm}"
    taken = {path.name for path in Path("runs").iterdir()} if Path("runs").is_dir() else set()
    number = next(n for n in range(1, len(taken) + 2) if f"{stem}-{n}" not in taken)
    return Path("runs") / f"{stem}-{number}"


def _show(summary: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        print(jsontext.dumps(summary | {"out": str(out)}))
        return
    rows = [
        ("algorithm", f"{summary['algorithm']} ({_bundle(summary)}), {summary['rounds']} rounds"),
        ("data", f"{summary['dataset']}: {summary['records']} records, {summary['agents']} agents"),
        ("test error", f"{_percent(summary['test_error'])} last, {_percent(summary['test_error_averaged'])} averaged"),
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


def _bundle(summary: dict[str, Any]) -> str:
    changed = ", ".join(summary["changed"])
    return f"{summary['preset']} preset" + (f", changed: {changed}" if changed else "")


def _percent(value: float | None) -> str:
    return "no test records" if value is None else f"{100 * value:.2f}%"


def _keys() -> str:
    from tacit.run.spec import keys

    lines = []
    for key, found in keys().items():
        choices = f" [{', '.join(found.metadata['choices'])}]" if found.metadata["choices"] else ""
        default = "unset" if found.default is None else found.default
        lines.append(f"{key:<26} {default!s:<12} {found.metadata['about']}{choices}")
    return "\n".join(lines)
