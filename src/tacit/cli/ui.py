"""Show runs, sweeps and federations on a live page, on this machine.

examples:
  tacit ui                                 everything below runs/, or below this folder where there is none
  tacit ui runs/grid --port 8700           another folder, and a port that stays
  tacit ui --open                          and open it in the browser
  ssh -L 8700:127.0.0.1:8700 cluster       then the printed link works here too, for runs on a cluster

The page shows curves of runs while they go on, compares runs, draws the budget of each agent from its ledger, the
effects of columns, and what `tacit audit --json` said, if that is in the run's folder as audit.json. It can ask a run
to stop after its round. It reads the folder that is given and nothing else, and writes nothing but that request.

The link holds a token, without which nothing is told: keep the link to yourself. The page listens on loopback; with
--host others can reach it, with the token, unencrypted.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from tacit import jsontext
from tacit.cli.folding import say
from tacit.cli.options import finish


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit ui`."""
    parser.add_argument("directory", nargs="?", type=Path, metavar="DIR", help="what to show (default runs, else .)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: a free one")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default 127.0.0.1)")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a name under which browsers reach the page"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Serve the page until the process is stopped."""
    from tacit.ui.serve import opener, serve, warning

    runs = Path("runs")
    root = options.directory or (runs if runs.is_dir() else Path())

    def told(address: str, token: str) -> None:
        link = f"{address}#token={token}"
        print(jsontext.dumps({"url": address, "token": token, "link": link}) if options.json else link, flush=True)
        if not options.quiet:
            say(f"runs below {root.resolve()}; Ctrl-C ends", file=sys.stderr)
        if options.quiet < 2 and (words := warning(options.host)):
            say(f"tacit: warning: {words}", file=sys.stderr)
        if options.open:
            show(link)

    with ExitStack() as opened:
        if options.open:
            show = opened.enter_context(opener())
        serve(root, told, options.host, options.port, options.allow_host)
    return 0
