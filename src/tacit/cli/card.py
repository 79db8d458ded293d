"""Write the model card of a finished run, for a review board to read and sign: card.md and card.html.

examples:
  tacit card runs/patients
  tacit card runs/patients --purpose "Helps to plan beds, not to decide about patients." --contact "the ward's office"
  tacit audit --config runs/patients/spec.toml --what mechanism --json > audit.json
  tacit card runs/patients --audit audit.json --out cards
  tacit card runs/patients --share                        card-shared.md and card-shared.html, for everybody

A card says what the model predicts and from what, who took part, what is guaranteed against whom, what an audit found,
how good the model is and for whom, what each column does, what is not covered, and how to train it again. It is made
from the directory of the run alone. What you do not tell is left as lines to write on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tacit import jsontext
from tacit.cli.options import add_sharing, finish


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tacit card`."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="a finished run, the --out of tacit train")
    parser.add_argument("--purpose", default="", metavar="TEXT", help="what the model is for, in your own words")
    parser.add_argument("--contact", default="", metavar="TEXT", help="who answers questions")
    parser.add_argument("--audit", type=Path, metavar="FILE", help="the output of tacit audit --json")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the card (default: the run)")
    add_sharing(parser)
    finish(parser, __doc__, run)


def run(options: argparse.Namespace) -> int:
    """Write the card."""
    from tacit.card import audited, content
    from tacit.card.content import Filled
    from tacit.report.audience import Audience

    audience = Audience.of(options.share, options.test_is_public)
    audit = None if options.audit is None else audited.read(options.audit)
    filled = Filled(options.purpose, options.contact, audit)
    written = content.write(options.directory, options.out, filled, audience)
    if options.json:
        print(jsontext.dumps({kind: str(path) for kind, path in written.items()}))
    else:
        print("\n".join(map(str, written.values())))
    return 0
