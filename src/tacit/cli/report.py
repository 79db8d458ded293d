"""Write one self-contained HTML page about finished runs, from their records alone.

examples:
  tacit report runs/patients                              one run
  tacit report runs/compare-heart                         the leaderboard of a comparison
  tacit report runs/patients --share                      report-shared.html, a page for everybody
  tacit report runs/grid runs/other --out both.html       sweeps side by side
  tacit report records/paper.jsonl --figures figures      and every chart as PNG and SVG (needs matplotlib)

The page of one run draws what each column adds to the score of the model, where the score is such a sum (--features
columns --set data.row_mode=clip when training); --json prints the numbers.

A source is the directory of a run, a sweep or a comparison, the --out of `tacit reproduce` or one artefact in it, or a
file of records. Records that were edited, or are not of the spec they name, are refused.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import add_sharing, finish


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit report`."""
    about = "a run, a sweep, a comparison, or records; see below"
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE", help=about)
    place = "default report.html; with --share, report-shared.html in the directory of the run"
    parser.add_argument("--out", type=Path, metavar="FILE", help=place)
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write every chart as PNG and SVG too")
    add_sharing(parser)
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Write the page and the figures."""
    from tacit.report import output
    from tacit.report.audience import Audience
    from tacit.report.source import read_all

    audience = Audience.of(options.share, options.test_is_public)
    first = options.sources[0]
    beside = first if audience.public and len(options.sources) == 1 and first.is_dir() else Path()
    out = options.out or beside / ("report-shared.html" if audience.public else "report.html")
    output.write(options.sources, out, options.figures, audience)
    if options.json:
        found = read_all(options.sources, audience)
        learnt = [{"source": one.name} | one.learnt.plain() for one in found if one.learnt is not None]
        told = {"out": str(out), "comparison": output.comparison(found), "shapes": learnt}
        boards = [{"source": one.name, "data": board.data, "rows": board.rows} for one in found for board in one.boards]
        print(jsontext.dumps(told | {"leaderboards": boards}))
    else:
        print(out)
    if options.figures is not None and not options.quiet:
        say(f"figures in {options.figures}", file=sys.stderr)
    return 0
