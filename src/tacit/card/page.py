"""A card as one HTML file that needs no other, and no script: for a screen and for paper."""

from __future__ import annotations

from importlib.resources import files

from tacit.card import drawing
from tacit.card.blocks import Blank, Block, Bullets, Card, Code, Facts, Matrix, Pictures, Signatures, Table, Text
from tacit.report import matrix
from tacit.report.chart import Chart
from tacit.report.markup import Raw, facts, folded, html, table

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # were a name ever markup, it could load and run nothing
SCREEN = (  # of whom the sheet is
    ("tacit.report", "shared.css"), ("tacit.report", "page.css"), ("tacit.report", "board.css"),
    ("tacit.card", "card.css"),
)  # fmt: skip


def write(card: Card) -> str:
    """Return the page."""
    style = "".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, name in SCREEN)
    body = "\n".join(f"<section><h2>{html(one.title)}</h2>\n{''.join(map(_block, one.blocks))}</section>"
                     for one in card.sections)  # fmt: skip
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html(card.title)}</title><style>
{Raw(style)}</style></head><body class="card"><header><h1>{html(card.title)}</h1></header>
<main><p class="notice{"" if card.notice.public else " owners"}">{html(card.notice.text)}</p>
<p class="lead">{html(card.about)}</p>
{body}</main></body></html>
"""


def _block(block: Block) -> str:
    match block:
        case Text(text, kind):
            return f'<p class="{kind}">{html(text)}</p>'
        case Facts(pairs):
            return facts(pairs)
        case Table(caption, columns, rows):
            return table(caption, columns, rows)
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{html(item)}</li>" for item in items) + "</ul>"
        case Blank(label, lines):
            return f'<div class="blank"><b>{html(label)}</b>{"<i></i>" * lines}</div>'
        case Signatures(roles):
            return "".join(f'<div class="sign"><b>{html(role)}</b>' + "".join(
                f"<span><i></i><small>{what}</small></span>" for what in ("name", "date", "signature")) + "</div>"
                for role in roles)  # fmt: skip
        case Code(text):
            return f"<pre>{html(text)}</pre>"
        case Pictures(charts, tables):
            drawn = "".join(map(_figure, charts))
            numbers = folded("The numbers", "".join(map(_block, tables)))
            return f'<div class="charts" style="--columns: {min(3, len(charts))}">{drawn}</div>{numbers}'
        case Matrix(confusion, beside):
            drawn = f'<div class="matrix"><div class="plot">{matrix.drawing(confusion)}</div></div>'
            return drawn + (folded("The numbers", _block(beside)) if len(beside.rows) else "")


def _figure(chart: Chart) -> str:
    words = f"<figcaption>{html(chart.title)}</figcaption>"
    return f'<figure>{words}<div class="plot">{drawing.draw(chart)}</div>{drawing.legend(chart)}</figure>'
