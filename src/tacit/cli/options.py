"""Options that several commands share, and what they say: a spec."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import SpecError
from tacit.jsontext import Values

if TYPE_CHECKING:
    from tacit.run.spec import Spec

Flags = tuple[tuple[str, str, type, str, str], ...]  # flag, spec key, type, metavar, help

DATA_FLAGS: Flags = (
    ("--data", "data.source", str, "SOURCE", "mnist or heart (bundled), synthetic, a LEAF directory, a table "
     "(.csv, .parquet, .npz), or a directory with one table per agent"),
    ("--agents", "data.agents", int, "P", "number of agents, where the data do not name them"),
    ("--partition", "data.partition", str, "HOW", "contiguous, shuffled, dirichlet or unequal"),
    ("--test", "data.test", str, "FILE", "test records; without it a part of each agent's is held out"),
    ("--classes", "data.class_names", str, "NAME,...", "tables: the classes, which are then public; or K for 0 to K-1"),
    ("--target-low", "data.target_low", float, "X", "tables: the label is a number to predict, of at least X"),
    ("--target-high", "data.target_high", float, "X", "tables: and of at most X; both bounds are then public"),
    ("--schema", "data.schema", str, "FILE", "tables: what is publicly known of each column, as TOML; "
     "tacit data schema init drafts one"),
    ("--features", "features.map", str, "MAP", "public map of each record: auto (default), none, columns, unit, "
     "orientations, fourier, or module:function of your own"),
    ("--label-column", "data.label_column", str, "NAME", "column with the label (default: label)"),
    ("--agent-column", "data.agent_column", str, "NAME", "column that names the agent (default: agent)"),
)  # fmt: skip

BUNDLE_FLAGS: Flags = (
    ("--preset", "run.preset", str, "NAME", "sound (a guarantee for the whole run; default), paper (the text), or "
     "released (what made the paper's numbers)"),
    ("--algorithm", "algorithm.name", str, "NAME", "the method: objt (default), or any of tacit compare --list"),
)  # fmt: skip

RUN_FLAGS: Flags = (
    ("--epsilon", "privacy.epsilon", float, "E", "the budget: for the whole run under sound (default 1), for one "
     "round, as the paper states it, under paper and released; inf adds no noise"),
    ("--dp-delta", "privacy.dp_delta", float, "D", "delta of the budget (default 1e-6)"),
    ("--adjacency", "privacy.adjacency", str, "HOW", "zero_out (default) or replace_one"),
    ("--trust", "privacy.trust", str, "WHOM", "nobody (default) or sum: agents share the noise of one, and a secure "
     "sum hides what each adds (docs/secure-sum.md)"),
    ("--colluding", "privacy.colluding", int, "C", "agents that may tell the server all they know, with --trust sum "
     "(default 1)"),
    ("--noise", "privacy.noise", str, "KIND", "exact (of the operating system; default of train under sound, where no "
     "seed and no engine but fast is named) or simulated (from the seed: not for release)"),
    ("--ledger", "privacy.ledger", str, "DIR", "keep each agent's ledger in DIR, over all runs; needs exact noise "
     "(default: in the run's directory, of this run alone)"),
    ("--limit", "privacy.limit", float, "E", "epsilon that every ledger allows over all runs on the same data"),
    ("--rounds", "run.rounds", int, "T", "number of rounds (default: the method's own; 100 under paper, released)"),
    ("--seed", "run.seed", int, "N", "simulate the noise, from this seed (default 0 where noise is simulated)"),
    ("--record-every", "run.record_every", int, "N", "rounds between two records (default: about 100 in all)"),
    ("--engine", "run.engine", str, "NAME", "who computes a round: fast (default); plain, torch, or mpi (over the "
     "ranks of mpiexec), which simulate noise"),
    ("--device", "run.device", str, "NAME", "where the torch engine computes: cpu (default), cuda or mps"),
)  # fmt: skip

TRAIN_FLAGS: Flags = (
    *RUN_FLAGS,
    ("--measure-training", "run.measure_training", bool, "", "with exact noise: also record the training objective. It "
     "is exact: with the model, it tells whether a given record was used. Then release only the model, no other file"),
)  # fmt: skip


def finish(parser: argparse.ArgumentParser, doc: str | None, run: Callable[[argparse.Namespace], int]) -> None:
    """Give a command the function that runs it, the options of all commands, and its help: a docstring.

    The first paragraph of the docstring stands before the options in the help, and the others stand after them.
    """
    parser.description, _, parser.epilog = (doc or "").partition("\n\n")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="a line for every recorded round")
    parser.add_argument("-q", "--quiet", action="count", default=0, help="no progress; -qq: no warnings either")
    parser.set_defaults(run=run)


def add_actions(parser: argparse.ArgumentParser, about: str) -> Any:
    """The actions of a command such as `tacit data`, which the caller adds."""
    parser.description = about
    return parser.add_subparsers(title="actions", metavar="ACTION", required=True)


def add_spec_flags(
    parser: argparse.ArgumentParser,
    flags: Flags,
    config: str = "a TOML file of keys, such as a spec.toml",
    keys: str = "any key of tacit train --keys",
) -> None:
    """Add flags that stand for keys of a spec, and --config and --set, which take other `keys` too."""
    for flag, key, kind, metavar, about in flags:
        if kind is bool:
            parser.add_argument(flag, dest=key, action="store_const", const=True, help=about)
        else:
            parser.add_argument(flag, dest=key, type=kind, metavar=metavar, help=about)
    parser.add_argument("--config", type=Path, metavar="FILE", help=config)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=keys)


def add_sharing(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say who may read a page."""
    parser.add_argument(
        "--share", action="store_true",
        help="write a page that may be shared: guarantee, public facts, settings without paths, the released model, "
        "totals and heads of ledgers; no test result, no training curve",
    )  # fmt: skip
    parser.add_argument(
        "--test-is-public", action="store_true",
        help="with --share: declare the test records public; the page then shows exact test results, and says so",
    )  # fmt: skip


def given(options: argparse.Namespace, flags: Flags) -> Values:
    """The spec values that were given as flags."""
    values = {key: getattr(options, key, None) for _, key, *_ in flags}  # a command may lack a flag
    return {key: value for key, value in values.items() if value is not None}


def assignments(pairs: list[str]) -> dict[str, str]:
    """The spec values that were given as --set key=value."""
    for pair in pairs:
        if "=" not in pair:
            raise SpecError(f"--set takes key=value, got {pair!r}: for example --set privacy.clip=0.5.")
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}


def spec_of(options: argparse.Namespace) -> Spec:
    """The spec that all flags ask for. Later sources win: preset, --config, flags, --set."""
    from tacit import toml
    from tacit.run.presets import fitted, preset

    config = toml.read(options.config) if options.config else {}
    bundle, sets = given(options, BUNDLE_FLAGS), assignments(options.set)
    for flag, key, *_ in BUNDLE_FLAGS:
        said = config.get(key, "")
        if key in sets:
            raise SpecError(f"{key} names a bundle of values: choose it with {flag}.")
        if not isinstance(said, str):
            raise SpecError(f"{options.config}: {key} takes a name, got {said!r}.")
        if key in config and bundle.get(key, said) != said:
            raise SpecError(f"{options.config} was made for {key} = {said}: drop {flag}, or that file.")
    said = given(options, DATA_FLAGS + TRAIN_FLAGS) | sets
    values = _with_other_noise(config, said) | said
    start = {"run.preset": "sound", "algorithm.name": "objt", "data.source": "mnist"} | values | bundle
    if not isinstance(start["data.source"], str):
        raise SpecError(f"{options.config}: data.source takes a name or a path, got {start['data.source']!r}.")
    spec = preset(start["run.preset"], start["algorithm.name"], start["data.source"]).with_values(values).checked()
    return fitted(spec, chosen=values)


def _with_other_noise(config: Values, said: Values) -> Values:
    """The values of a file, without its seed where exact noise is asked for, and without its noise where a seed is."""
    dropped = {"run.seed"} if said.get("privacy.noise") == "exact" else set()
    dropped |= {"privacy.noise"} if "run.seed" in said else set()
    return {key: value for key, value in config.items() if key not in dropped}
