"""tacit new: from a table that nobody prepared to a project, and from there to a private model by its README alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main

N = 200
FILES = [".gitignore", "README.md", "run.toml", "schema.toml"]
SECRETS = ("91.25", "Quiet Valley", "1931-02-03")  # values of single records


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, separator: str = ",", decimal: str = ".", start: str = "", end: str = "\n") -> Path:
    """A table of patients with an odd header, ids, dates, missing cells, quotes, a constant and a rare value."""
    rng = np.random.default_rng(0)
    age, dose = rng.integers(20, 80, N), rng.uniform(0, 90, N).round(2)
    dose[7] = 91.25
    lines = [["Patient ID", '"Age, in years"', "dose", "place", "born", "constant", "empty", "site", "out come"]]
    for i in range(N):
        place = "Quiet Valley" if i == 5 else "ab"[i % 2]
        born = "1931-02-03" if i == 9 else f"19{50 + i % 40}-0{1 + i % 9}-1{i % 10}"
        row = [f"P-{i:04}", "NA" if i % 9 == 0 else str(age[i]), f"{dose[i]:.2f}".replace(".", decimal), f'"{place}"']
        lines.append([*row, born, "7", "", "nsw"[i % 3], "ill" if age[i] + dose[i] > 95 else "well"])
    path = Path(name)
    path.write_text(start + end.join(separator.join(line) for line in lines) + end, encoding="utf-8", newline="")
    return path


@pytest.fixture
def table() -> Path:
    return write("patients.csv")


NEW = ["new", "project", "--data", "patients.csv", "--label", "out come", "--agent", "site"]


@pytest.mark.parametrize(("content", "says"), [
    (b"", "is empty"),
    (b"a,b,label\n", "holds no records"),
    (b"a,b\n1,2\n", "say which to predict with --label COLUMN"),
    (b"a,a,label\n1,2,3\n", "2 columns are named 'a'"),
    (b",a,label\n0,1,x\n1,2,y\n", "column 1 has no name: name it or drop it (the index of pandas?"),
    (b"a,label\n1,x\n2,x\n", "a classifier needs two"),
    (b"PK\x03\x04\x00\xff\xfe,\x00\n\x01", "patients.csv"),
    ("a,label\n1,2\n".encode("utf-16"), "is UTF-16"),
    ("größe,label\n1,2\n".encode("cp1252"), "save it as UTF-8"),
    (b"id,label\n" + b"".join(b"%d,%s\n" % (i, b"xy"[i % 2 :][:1]) for i in range(60)), "no column to predict from"),
])  # fmt: skip
def test_a_table_that_cannot_be_used_is_one_sentence_and_leaves_nothing(
    content: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("patients.csv").write_bytes(content)
    assert main(["new", "some/project", "--data", "patients.csv"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert os.listdir() == ["patients.csv"]


ALICE = "Alice Smith,1971-03-02,HIV positive,yes"


@pytest.mark.parametrize(("first", "rest", "separator", "says"), [
    (ALICE, "Bob Jones,1980-01-0{},well,{}", ",", "cell 2 is a date"),
    (ALICE.replace("1971-03-02", "2.3.1971"), "Bob Jones,{}.1.1980,well,{}", ",", "cell 2 is a date"),
    (ALICE.replace("1971-03-02", "53"), "Bob Jones,{},well,{}", ",", "cell 2 is a number"),
    (ALICE.replace("1971-03-02", "53,5").replace(",", ";").replace("53;5", "53,5"), "Bob Jones;{},25;well;{}", ";",
     "cell 2 is a number"),
    (ALICE.replace("1971-03-02", "old"), "Bob Jones,{},well,{}", ",", "cell 4 is also a value of its column"),
])  # fmt: skip
@pytest.mark.parametrize("arguments", [["--label", "yes"], [], ["--label", "absent"]])
def test_a_table_without_names_of_columns_shares_nobody(
    first: str, rest: str, separator: str, says: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [rest.format(1 + i % 9, "yes" if i % 2 else "no") for i in range(40)]
    Path("p.csv").write_text("\n".join([first, *rows]) + "\n")
    assert separator in first
    assert main(["new", "project", "--data", "p.csv", *arguments]) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert "put a line with the names" in err
    assert err.count("\n") == 1
    assert not any(cell in out + err for cell in ("Alice", "1971", "53", "HIV"))
    assert os.listdir() == ["p.csv"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("arguments", "says"), [
    (["--label", "outcom"], "did you mean 'out come'?"),
    (["--label", "out come", "--agent", "sites"], "did you mean 'site'?"),
    (["--label", "site", "--agent", "site"], "name two columns"),
    (["--label", "empty"], "holds 0 classes"),
    (["--data", "absent.csv"], "absent.csv does not exist"),
    (["--data", "patients.xlsx", "--label", "x"], "patients.xlsx"),
])  # fmt: skip
def test_columns_and_files_that_are_not_there_are_refused(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("patients.xlsx").write_bytes(b"PK\x03\x04")
    assert main(["new", "project", "--data", "patients.csv", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert not Path("project").exists()


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("taken", FILES)
def test_nothing_is_overwritten_and_nothing_half_written(taken: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("project").mkdir()
    Path("project", taken).write_text("mine")
    assert main(NEW) == 2
    assert f"{taken} exists" in capsys.readouterr().err
    assert os.listdir("project") == [taken]
    assert Path("project", taken).read_text() == "mine"


@pytest.mark.usefixtures("table")
def test_a_link_is_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("project").mkdir()
    Path("project", "README.md").symlink_to(Path.cwd() / "elsewhere.md")
    assert main(NEW) == 2
    assert "README.md exists" in capsys.readouterr().err
    assert not Path("elsewhere.md").exists()
    assert os.listdir("project") == ["README.md"]


@pytest.mark.usefixtures("table")
def test_a_folder_that_cannot_be_made_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    assert main(["new", "file/project", *NEW[2:]]) == 2
    assert "cannot write file/project" in capsys.readouterr().err
    assert main(["new", "file", *NEW[2:]]) == 2


@pytest.mark.usefixtures("table")
def test_what_is_shared_holds_nothing_of_a_record_and_the_draft_is_ignored_by_git() -> None:
    assert main([*NEW, "-qq"]) == 0
    assert sorted(os.listdir("project")) == FILES
    draft = Path("project", "schema.toml").read_text()
    assert all(secret in draft for secret in SECRETS)  # so the test below can fail
    for name in set(FILES) - {"schema.toml"}:
        assert not any(secret in Path("project", name).read_text() for secret in SECRETS)


def staged() -> set[str]:
    """What `git add -A` takes of the project."""
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    subprocess.run(["git", "add", "-A"], cwd="project", env=alone, check=True)
    found = subprocess.run(["git", "ls-files", "-z"], cwd="project", env=alone, check=True, stdout=subprocess.PIPE)
    return {*found.stdout.decode().split("\0")} - {""}


@pytest.mark.usefixtures("table")
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_repository_takes_nothing_but_what_is_listed() -> None:
    assert main([*NEW, "-qq"]) == 0
    subprocess.run(["git", "init", "-q"], cwd="project", check=True)
    for name in ("t.tsv", "p.csv.gz", "model2/result.json", "model2/README.md", "ledgers/a", ".env", "a/b/run.toml"):
        Path("project", name).parent.mkdir(parents=True, exist_ok=True)
        Path("project", name).write_text("a record")
    assert staged() == {*FILES} - {"schema.toml"}
    ignore = Path("project", ".gitignore")
    ignore.write_text(ignore.read_text().replace("#!/schema.toml", "!/schema.toml"))  # as its README says
    assert staged() == {*FILES}


@pytest.mark.usefixtures("table")
def test_the_readme_names_every_line_that_its_owner_must_confirm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(NEW) == 0
    out, err = capsys.readouterr()
    assert "NOT PRIVATE YET" in err
    assert "wrote schema.toml, run.toml, README.md, .gitignore in project" in out
    assert out.splitlines()[-1].startswith("next: cd project, confirm the marked lines")
    lines = Path("project", "schema.toml").read_text().splitlines()
    marked = {i + 1 for i, line in enumerate(lines) if "# READ FROM THE DATA: replace" in line}
    told = re.findall(r"^\| `.*?` \| ([0-9 and]+) \|", Path("project", "README.md").read_text(), re.MULTILINE)
    assert {int(n) for each in told for n in each.split(" and ")} == marked
    assert len(marked) > 6


def commands(readme: str) -> list[list[str]]:
    """The commands that a README shows, without the name of the program."""
    (block,) = re.findall(r"```\n(.*?)```", readme, re.DOTALL)
    return [shlex.split(line)[1:] for line in block.splitlines()]


@pytest.mark.parametrize(("separator", "decimal", "start", "end"), [
    (",", ".", "", "\n"), (";", ",", "\ufeff", "\r\n"), ("\t", ".", "", "\n"),
])  # fmt: skip
def test_the_three_commands_of_the_readme_lead_to_a_private_model(
    separator: str, decimal: str, start: str, end: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    table = write("the patients.csv", separator, decimal, start, end)
    if separator == ",":  # a comma in quotes is in the name
        assert '"Age, in years"' in table.read_text()
    assert main(["new", "project", "--data", str(table), *NEW[4:], "-qq"]) == 0
    monkeypatch.chdir("project")
    check, train, predict = commands(Path("README.md").read_text())
    assert main([*train, "-qq"]) == 2
    assert "read from the data" in capsys.readouterr().err
    schema = Path("schema.toml")
    schema.write_text(re.sub("read_from_data = true.*\n", "", schema.read_text()))
    assert main(check) == 0
    Path("new.csv").write_bytes(Path("..", table).read_bytes())
    assert main([*train, "--json", "--rounds", "20"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["agents"], result["simulated_noise"]) == (3, False)
    assert result["guarantee"].startswith("(1, 1e-06)-DP for the whole run")
    assert len(os.listdir("ledgers")) >= 3
    assert main([*predict, "-q"]) == 0
    assert len(capsys.readouterr().out.split()) == N
    assert main([*predict, "--proba", "-q"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "ill,well"


@pytest.mark.usefixtures("table")
def test_without_a_column_of_agents_one_owner_holds_all() -> None:
    assert main(["new", "project", "--data", "patients.csv", "--label", "out come", "-qq"]) == 0
    assert "agents = 1  # no column names an agent" in Path("project", "run.toml").read_text()
    assert main([*NEW[:1], "other", *NEW[2:], "-qq"]) == 0
    assert "agents" not in Path("other", "run.toml").read_text()


def test_hostile_names_of_columns_and_files_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    name = "$(touch owned) `x`.csv"
    rows = [f"{i / 7:.3f},{i % 2},{i % 3},{i % 2}\n" for i in range(40)]
    Path(name).write_text("<script>alert(1)</script>,a|b,`c`,label\n" + "".join(rows))
    assert main(["new", "project", "--data", name, "-qq"]) == 0
    readme = Path("project", "README.md").read_text()
    assert "`<script>alert(1)</script>`" in readme  # in a span of code
    assert r"`a\|b`" in readme
    check, *_ = commands(readme)
    assert check[2] == f"../{name}"  # one word for a shell
    assert "owned" not in os.listdir()
    capsys.readouterr()


def test_odd_classes_are_said_to_the_owner(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i},{('NA' if i == 3 else 'rare' if i < 2 else 'xy'[i % 2])}" for i in range(60)]
    Path("t.csv").write_text("age,label\n" + "\n".join(r.replace(",", ".5,", 1) for r in rows) + "\n")
    assert main(["new", "project", "--data", "t.csv", "-qq"]) == 0
    out = capsys.readouterr().out
    assert "'NA' looks like a missing label" in out
    assert "1 of 4 classes have fewer than 10 records, such as 'rare'" in out


@pytest.mark.usefixtures("table")
def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NEW, "--json", "-qq"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["wrote"]) == FILES
    assert (found["records"], found["kinds"]["dose"], found["kinds"]["born"]) == (N, "numeric", "date")
    assert list(found["ignored"]) == ["Patient ID", "empty"]


def test_a_number_to_predict_has_no_probabilities_in_its_readme() -> None:
    Path("t.csv").write_text("age,days\n" + "".join(f"{i % 50},{i / 8}\n" for i in range(90)))
    assert main(["new", "project", "--data", "t.csv", "--label", "days", "-qq"]) == 0
    readme = Path("project", "README.md").read_text()
    assert "`predict` prints a number a record." in readme
    assert "proba" not in readme


def test_a_column_that_says_the_label_in_other_words_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i / 9:.3f},{['no', 'yes'][i % 2]},{'abc'[i % 3]},{i % 2}" for i in range(90)]
    Path("t.csv").write_text("age,alive,group,label\n" + "\n".join(rows) + "\n")
    assert main(["new", "project", "--data", "t.csv", "-qq"]) == 0
    out = capsys.readouterr().out
    assert "note: 'alive': its values go one with one with those of 'label': is it known before" in out
    assert out.count("one with one") == 1
