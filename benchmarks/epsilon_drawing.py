"""The README's figure by matplotlib: direct labels, and colours that follow the reader's dark or light page."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

if TYPE_CHECKING:
    from benchmarks.epsilon_figure import Curve

# name -> (what matplotlib writes, on a light page, on a dark page); the written colours are placeholders
COLOURS = {
    "ink": ("#010101", "#1b1d20", "#e8eaed"), "soft": ("#020202", "#555b63", "#aab1ba"),
    "rule": ("#030303", "#dfe3e7", "#343b44"), "paper": ("#040404", "#ffffff", "#15181c"),
    "own": ("#050505", "#0b5fb0", "#6db3ff"), "sum": ("#060606", "#0a7d55", "#5fd3a4"),
    "curator": ("#070707", "#6b5f00", "#d9c65a"), "library": ("#080808", "#a34a00", "#f0a35e"),
    "published": ("#090909", "#8f3b76", "#e08ac8"),
}  # fmt: skip
SIZE = (5.4, 4.9)  # inches: on a phone letters are still a tenth of an inch high
STYLE = {
    "svg.hashsalt": "tacit", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": COLOURS["soft"][0], "text.color": COLOURS["ink"][0], "axes.labelcolor": COLOURS["ink"][0],
    "xtick.color": COLOURS["soft"][0], "ytick.color": COLOURS["soft"][0], "axes.facecolor": "none",
    "figure.facecolor": COLOURS["paper"][0], "savefig.facecolor": COLOURS["paper"][0], "grid.color": COLOURS["rule"][0],
    "figure.constrained_layout.w_pad": 0.12, "figure.constrained_layout.h_pad": 0.1,
}  # fmt: skip
MARKS = (1, 2, 5, 10, 20, 50)  # per cent, of the y axis


@dataclass(frozen=True)
class Look:
    """How a line is drawn, and where its label stands: at an epsilon, so many points from the line."""

    colour: str
    label: str
    says: str  # the second line of the label
    at: float
    offset: tuple[float, float]
    side: str = "left"  # where the text begins
    bold: bool = False
    dashed: bool = False


LOOKS = {
    "paper": Look(
        "published", "the paper's ObjT", "not private: the data scale its noise", 8.0, (0, 28), "right", dashed=True
    ),
    "diffprivlib": Look("library", "diffprivlib", "a curator holds all records", 1.0, (12, 8)),
    "alone": Look("own", "tacit", "trusts nobody", 0.5, (0, 9), bold=True),
    "sum": Look("sum", "tacit behind a secure sum", "one agent may collude with the server", 0.5, (0, -39), bold=True),
    "curator": Look("curator", "DP-SGD", "a curator holds all records", 8.0, (0, -33), "right"),
}  # fmt: skip


def draw(found: Mapping[str, Curve], path: Path) -> None:
    """Write the figure as SVG; equal curves give equal bytes."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=SIZE, layout="constrained")
        place = figure.add_subplot()
        for name, look in LOOKS.items():
            if found[name].errors:
                _line(place, found[name], look)
        place.set(xscale="log", yscale="log", xlim=(0.46, 8.6), ylim=(0.72, 60))
        for axis, marks, unit in ((place.xaxis, sorted(found["alone"].errors), ""), (place.yaxis, MARKS, " %")):
            axis.set_major_locator(FixedLocator(list(marks)))
            axis.set_minor_locator(NullLocator())
            axis.set_ticklabels([f"{mark:g}{unit}" for mark in marks])
        place.grid(visible=True)
        place.set_axisbelow(True)
        place.tick_params(length=0)
        place.set_xlabel("total epsilon of the whole run (delta 1e-6)")
        place.set_title("Test error, MNIST over ten agents", loc="left", fontsize=12, color=COLOURS["ink"][0])
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    path.write_text(_themed(text.getvalue()), encoding="utf-8")


def _line(place: Any, curve: Curve, look: Look) -> None:
    """One line with a bar from the least to the largest error of the seeds, and its label."""
    means, colour = curve.means, COLOURS[look.colour][0]
    place.plot(list(means), list(means.values()), marker="o", markersize=5 if look.bold else 4, color=colour,
               linewidth=2.4 if look.bold else 1.5, linestyle="--" if look.dashed else "-", clip_on=False)  # fmt: skip
    place.vlines(list(means), [min(curve.errors[e]) for e in means], [max(curve.errors[e]) for e in means],
                 color=colour, linewidth=1.2)  # fmt: skip
    across, up = look.offset
    for rise, text, size in ((13, look.label, 11), (0, look.says, 9)):
        place.annotate(text, (look.at, means[look.at]), xytext=(across, up + rise), textcoords="offset points",
                       ha=look.side, color=colour, fontsize=size,
                       fontweight="bold" if look.bold and text == look.label else "normal")  # fmt: skip


def _themed(svg: str) -> str:
    """The SVG with each placeholder as a variable that the reader's colour scheme sets."""
    light, dark = (";".join(f"--{name}:{shades[k]}" for name, shades in COLOURS.items()) for k in (1, 2))
    for name, (written, shade, _) in COLOURS.items():
        svg = svg.replace(written, f"var(--{name}, {shade})")
    themes = f"svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}"
    return svg.replace('<style type="text/css">', f'<style type="text/css">{themes}', 1)
