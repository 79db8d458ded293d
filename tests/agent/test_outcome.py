"""The outcome of a command does not depend on one record: two tables that differ in one cell end alike."""

import pytest

from tacit.cli import main
from tacit.engine.evaluate import PIECE

BASE = [f"{n % 4},{(n * 7 % 11) / 11:.3f},{(n * 5 % 13) / 13:.3f},{n % 2}" for n in range(60)]


def trained(tmp_path, name, cell, loss, features, times=1):
    """The exit code of training on a table with this cell in its first record; `times` makes the table longer."""
    lines = [f"0,{cell},0.5,1", *BASE[1:], *(times - 1) * BASE]
    path = tmp_path / f"{name}.csv"
    path.write_text("\n".join(["agent,u,v,label", *lines]) + "\n")
    return main([
        "train", "--data", str(path), "--classes", "2", "--rounds", "5", "--noise", "exact", "--dp-delta", "1e-3",
        "--set", "data.row_norm=none", "--set", "data.test_fraction=0", "--set", f"problem.loss={loss}",
        "--features", features, "--measure-training",  # which passes over the records once more
        "--out", str(tmp_path / f"run-{name}"), "-qq",
    ])  # fmt: skip


@pytest.mark.parametrize("features", ["none", "auto", "unit"])
@pytest.mark.parametrize("loss", ["softmax", "squared"])
@pytest.mark.parametrize("cell", ["1e35", "3.4e38", "-3.4e38", "1e-40"])
def test_one_huge_cell_changes_neither_the_exit_code_nor_what_is_warned_of(tmp_path, capsys, loss, cell, features):
    """Warnings are errors here: a flag that a record raises would end the run."""
    assert trained(tmp_path, "tame", "1", loss, features) == 0
    capsys.readouterr()
    assert trained(tmp_path, "huge", cell, loss, features) == 0
    assert capsys.readouterr().err == ""


def test_nor_does_it_where_threads_share_out_the_records(tmp_path, capsys):
    """What a thread ignores, it has to ignore by itself."""
    times = 5 * PIECE // len(BASE)
    assert trained(tmp_path, "tame", "1", "squared", "none", times) == 0
    capsys.readouterr()
    assert trained(tmp_path, "huge", "3.4e38", "squared", "none", times) == 0
    assert capsys.readouterr().err == ""
