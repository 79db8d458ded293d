"""docs/files.md: the LEAF file that it shows trains, and the forms of dates that it lists are read."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from tacit.data import load

PAGE = (Path(__file__).parent.parent / "docs" / "files.md").read_text(encoding="utf-8")


def test_the_leaf_file_on_the_page_is_a_federation(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "all.json").write_text(shown)
    found = load(str(tmp_path), class_count=2)
    assert (found.agents, found.n_features, found.n_classes) == (("anna", "bert"), 3, 2)
    assert found.shards[0].x[0].tolist() == [1.0, 0.0, 0.5]  # ink is 1
    assert found.public_classes


def test_every_form_of_a_date_on_the_page_reads_its_example() -> None:
    forms = re.findall(r'^\| `([^`]+)` \| `"(%[^`]+)"` \|$', PAGE, re.MULTILINE)
    assert len(forms) == 3
    assert {datetime.strptime(cell, form).date().isoformat() for cell, form in forms} == {"2020-03-31"}


@pytest.mark.parametrize("key", ["strangers", "class_count", "invert", "dedup", "low", "high", "test_fraction"])
def test_the_keys_on_the_page_exist(key: str) -> None:
    from tacit.run.spec import keys

    assert f"data.{key}" in PAGE
    assert f"data.{key}" in keys()
