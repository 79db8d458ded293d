"""report.html: one run on one self-contained page, from its records alone."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from tacit.report.curve import Line, chart

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } td { padding: .25rem .5rem; border-bottom: 1px solid #8884; }
td:first-child { white-space: nowrap; color: GrayText; } pre { overflow-x: auto; background: #8882; padding: 1rem; }
.chart { width: 100%; height: auto; margin: 1rem 0; }
"""


def write(directory: Path) -> Path:
    """Write report.html into the directory of a finished run."""
    result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (directory / "rounds.jsonl").read_text(encoding="utf-8").splitlines()]
    spec = (directory / "spec.toml").read_text(encoding="utf-8")
    path = directory / "report.html"
    draft = path.with_name(".report.html.draft")
    draft.write_text(page(result, rows, spec), encoding="utf-8")
    draft.replace(path)
    return path


def page(result: dict[str, Any], rows: list[dict[str, Any]], spec: str) -> str:
    """The page as text."""
    title = f"tacit: {result['algorithm']} on {result['dataset']}"
    facts = "\n".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td><td>{escape(_text(value))}</td></tr>"
        for name, value in result.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p><strong>Guarantee.</strong> {escape(result["guarantee"])}</p>
{error_chart(rows)}
{chart("Training objective", "round", "objective", [_line(rows, "objective", "last iterate")])}
{chart("Noise", "round", "mean absolute value", [
    _line(rows, "noise_gradient_units", "gradient units"), _line(rows, "noise_parameter_units", "parameter units"),
], log_y=True)}
{chart("Consensus violation", "round", "sum of |w - z|", [_line(rows, "consensus_violation", "sum")], log_y=True)}
<h2>Result</h2><table>{facts}</table>
<h2>Specification</h2><pre>{escape(spec)}</pre>
</body></html>
"""


def error_chart(rows: list[dict[str, Any]]) -> str:
    """Test error against rounds, of the last and of the averaged iterate."""
    return chart(
        "Test error",
        "round",
        "per cent",
        [_line(rows, "test_error", "last iterate", 100), _line(rows, "test_error_averaged", "averaged iterate", 100)],
    )


def _line(rows: list[dict[str, Any]], key: str, name: str, factor: float = 1) -> Line:
    kept = [row for row in rows if row.get(key) is not None]
    return name, [row["t"] for row in kept], [factor * row[key] for row in kept]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_text(one)}" for key, one in value.items()) or "none"
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
