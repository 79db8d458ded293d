"""docs/estimator.md: its blocks run, and its numbers are those that the code gives."""

import re
import warnings
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from tacit.estimator.repeated import Cost

PAGE = (Path(__file__).parents[2] / "docs" / "estimator.md").read_text(encoding="utf-8")


def test_every_block_of_the_page_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning, message="some records of this fit")
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(compile(code, "docs/estimator.md", "exec"), names)
    said = capsys.readouterr().out
    assert "(1, 1e-06)-DP for the whole run of 100 rounds" in said
    assert "exact noise" in said
    assert "any 1 of the 4 agents together" in said
    assert "of this process. With this one, whose budget is (1, 1e-06)-DP, they cost" in said
    assert len(names["figure"].axes) == 7


def test_the_cost_of_the_search_is_the_one_that_is_printed():
    assert "(2.89, 1e-6)" in PAGE
    assert Cost(1.0, 1e-6, gaussian=True).composed(7) == "(2.89, 1e-06)-DP"
