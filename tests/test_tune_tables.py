"""The evidence for the defaults on tables (benchmarks/tune_tables.py): its tables, its record and its summary."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from benchmarks import tune_tables
from benchmarks.study_tables import BINS, REAL, Range, Table, bins, drawn, federation, splines
from benchmarks.tune_tables import (
    EPSILONS,
    LARGE,
    OUT,
    SEEDS,
    VARIANTS,
    cases,
    extend,
    losses,
    read,
    rises,
    summary,
    tried,
)

from tacit.run.presets import preset

KEYS = {
    "table", "variant", "epsilon", "error", "error_sd", "objective", "objective_sd", "records", "columns", "classes",
    "agents", "seeds",
}  # fmt: skip
NEVER = ("adult", "heart", "cancer", "wine", "mnist")


def row(epsilon: float, error: float, sd: float, **more: Any) -> dict[str, Any]:
    usual = {"table": "a", "variant": "default", "records": 100, "objective": 1.0, "objective_sd": 0.0}
    return {**usual, "epsilon": epsilon, "error": error, "error_sd": sd, **more}


def cells(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(start))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_every_line_of_the_record_is_complete_and_there_once() -> None:
    rows = read(OUT)
    assert all(set(row) == KEYS for row in rows)
    assert len({(row["table"], row["variant"], row["epsilon"]) for row in rows}) == len(rows)
    assert all(row["seeds"] == (len(SEEDS) if math.isfinite(row["epsilon"]) else 1) for row in rows)
    assert all(0 <= row["error"] <= 1 and row["error_sd"] >= 0 and math.isfinite(row["objective"]) for row in rows)


def test_the_record_holds_every_case_of_every_table_and_no_table_that_tests_use() -> None:
    rows = read(OUT)
    names = {f"{kind} {records}" for kind, records in tune_tables.DRAWN} | set(REAL)
    assert {row["table"] for row in rows} == names
    assert not [name for name in names if any(word in name.lower() for word in NEVER)]
    for name in names:
        own = [row for row in rows if row["table"] == name]
        n = own[0]["records"]
        blank = Table(name, np.zeros((n, 1)), np.zeros((n, 0), int), np.zeros(n, int), 0)
        assert sorted((row["variant"], row["epsilon"]) for row in own) == sorted(cases(blank))


def test_the_numbers_of_the_summary_are_those_of_the_record() -> None:
    rows, text = read(OUT), summary(read(OUT))
    for name in VARIANTS:
        own = [row for row in rows if row["variant"] == name]
        errors = [mean(r["error"] for r in own if r["epsilon"] == e and r["records"] < LARGE) for e in EPSILONS]
        shown = cells(text, f"| {name} |")
        assert shown[1:-2] == [f"{100 * error:.1f}" for error in errors]
        assert shown[-1].split(" of ")[0] == str(sum(rise[1] == name for rise in rises(rows, "error")))


@pytest.mark.parametrize("reference", [0, 1])
def test_large_tables_are_compared_with_their_run_without_noise_and_with_a_converged_one(reference: int) -> None:
    rows, text = read(OUT), summary(read(OUT))
    errors = {(row["table"], row["variant"], row["epsilon"]): row["error"] for row in rows if row["records"] >= LARGE}
    quiet = [key[:2] for key in errors if key[2] == 8.0]
    assert {"default", "200 rounds"} <= {variant for _, variant in quiet}
    for table, variant in quiet:
        gap = errors[table, variant, 8.0] - errors[table, (variant, tune_tables.CONVERGED)[reference], math.inf]
        assert cells(text, f"| {table} | {variant} |")[reference - 2] == f"{100 * gap:+.2f}"


def test_a_rise_counts_beyond_one_std_of_the_seeds() -> None:
    rows = [row(1.0, 0.10, 0.01), row(math.inf, 0.13, 0.0), row(0.3, 0.2, 0.05), row(3.0, 0.115, 0.02)]
    assert rises(rows, "error") == []  # 0.100 to 0.115 is within 0.02, and 0.115 to 0.130 too
    assert [rise[2:4] for rise in rises([*rows, row(8.0, 0.12, 0.001)], "error")] == [(8.0, math.inf)]


def test_rises_are_of_one_table_one_variant_and_one_measure() -> None:
    rows = [row(1.0, 0.1, 0.0), row(3.0, 0.2, 0.0, table="b"), row(3.0, 0.2, 0.0, variant="before")]
    assert rises(rows, "error") == []
    rows.append(row(8.0, 0.1, 0.0, objective=1.5))
    assert rises(rows, "error") == []
    assert rises(rows, "objective") == [("a", "default", 1.0, 8.0, 0.5)]


def test_a_loss_counts_beyond_a_point_and_one_std_of_the_seeds() -> None:
    rows = [row(1.0, 0.2, 0.01), row(3.0, 0.2, 0.05), row(8.0, 0.2, 0.0)]
    rows += [row(e, error, 0.0, variant="before") for e, error in ((1.0, 0.17), (3.0, 0.17), (8.0, 0.195), (9.0, 0.0))]
    assert [loss[:2] for loss in losses(rows, "before")] == [("a", 1.0)]


def test_before_is_the_preset_without_features_and_the_default_changes_nothing() -> None:
    assert VARIANTS["before"].spec(1.0, 0).features.map == "none"
    free = {"run.record_every", "run.seed", "privacy.epsilon"}
    usual, own = preset("sound", "objt", "x.csv").values(), VARIANTS["default"].spec(3.0, 4).values()
    assert {key for key in usual if usual[key] != own[key]} <= free


@pytest.mark.parametrize("encoding", [bins, splines])
def test_shares_add_up_to_one_and_are_where_the_number_is(encoding: Any) -> None:
    u = np.linspace(0, 1, 41)
    shares = encoding(u)
    assert shares.min() >= 0
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    places = np.linspace(0, 1, shares.shape[1])
    np.testing.assert_allclose(shares @ places, u, atol=0 if shares.shape[1] < BINS else 1 / BINS, rtol=1e-12)


def test_a_missing_number_is_a_level_of_its_own() -> None:
    table = Table("t", np.array([[0.5], [np.nan], [0.25], [1.0]] * 3), np.zeros((12, 0), int), np.arange(12) % 2, 4)
    as_number, as_shares = federation(table), federation(table, splines)
    np.testing.assert_array_equal(as_number.test.x, [[0.5, 0], [0, 1], [0.25, 0], [1, 0]])
    np.testing.assert_array_equal(as_shares.test.x.sum(axis=1), 1)
    assert as_shares.test.x[1, -1] == 1
    assert (as_number.columns[0].number, as_shares.columns[0].shares) == (True, True)


def test_a_declared_range_maps_its_ends_to_zero_and_one_and_moves_what_is_outside() -> None:
    np.testing.assert_allclose(Range(1, 100, log=True).unit(np.array([0.5, 1, 10, 100, 1e6])), [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(Range(0, 9, log=True).unit(np.array([0, np.sqrt(10) - 1, 9])), [0, 0.5, 1])
    np.testing.assert_allclose(Range(-5, 65).unit(np.array([-5, 30, 70])), [0, 0.5, 1])


def test_a_small_table_is_drawn_again_bit_for_bit() -> None:
    once, again = drawn("additive", 50, 30), drawn("additive", 50, 30)
    np.testing.assert_array_equal(once.numbers, again.numbers)
    np.testing.assert_array_equal(once.y, again.y)
    assert federation(once).n_records == 50


def test_the_script_runs_a_tiny_table_and_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {name: VARIANTS[name] for name in ("default", "before", "splines, 5 knots")}
    monkeypatch.setattr(tune_tables, "VARIANTS", few)
    table, out = drawn("one", 60, 40), tmp_path / "record.jsonl"
    first = next(tried(table, cases(table)))
    out.write_text("".join(tune_tables.dumps(row) + "\n" for row in first))
    extend(out, [table])
    rows = read(out)
    assert rows[: len(first)] == first
    assert {(row["variant"], row["epsilon"]) for row in rows} == set(cases(table))
    assert len(rows) == len(few) * len(EPSILONS)
    assert all(set(row) == KEYS and row["agents"] == 3 for row in rows)
    tune_tables.main(["--summary", "--out", str(out)])
    assert f"| {next(iter(few))} |" in capsys.readouterr().out
