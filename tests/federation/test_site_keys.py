"""The site file that init writes and its page have every key that the parser accepts, and no other."""

import re
import tempfile
from dataclasses import fields
from pathlib import Path

import pytest

from tacit import toml
from tacit.errors import SpecError
from tacit.federation import folders
from tacit.federation.site import read
from tacit.federation.site_keys import TABLES, SiteKey
from tacit.federation.site_policy import DEFAULTS, NOT_ASKED, SitePolicy, askable
from tacit.run.spec import keys
from tests.federation.sites import join, make, service, spec, told

PAGE = Path(__file__).parents[2] / "docs" / "site-file.md"
COMMENT = re.compile(r'# (?P<key>[A-Za-z_]+|"[a-z0-9_.]+") = .+')
HEADER = re.compile(r"(?P<off># )?\[(?P<name>.+?)\]+(  #.*)?")
VALUES = folders.DEFAULTS
SUM = VALUES | {"privacy.trust": "sum", "privacy.colluding": 1}


def written(values, others=("b", "c")):
    return folders.site_text("a", ["a"], values, others)


def lines_of(text):
    """(table, whether the table is a comment, key, the line's number) of every commented key."""
    table, off = "", False
    for n, line in enumerate(text.splitlines()):
        if header := HEADER.fullmatch(line):
            table, off = header["name"].strip("["), bool(header["off"])
        elif (found := COMMENT.fullmatch(line)) and table != "sum.peers":
            yield table, off, found["key"].strip('"'), n


def uncommented(text, *numbers):
    found = text.splitlines()
    for n in numbers:
        found[n] = found[n].removeprefix("# ")
    return "\n".join(found) + "\n"


def accepted(table, key):
    """Whether the parser knows the key of a table, whatever it says of its value."""
    document = toml.loads(written(SUM), "a site file")
    section = document["agent"][0] if table == "agent" else document[table]
    section[key] = "a value"
    try:
        read_text(toml.document_of(document))
    except SpecError as error:
        return not re.search("unknown key|is not for a run to ask|is not for .agree.|is no key|said once", str(error))
    return True


def read_text(text):
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "site.toml"
        file.write_text(text)
        return read(file, with_data=False)


def known():
    """Every table with the keys that it is said to have."""
    tables = {name: list(found) for name, found in TABLES.items()}
    return tables | {"agree": [*tables["agree"], *askable()]}


# --- the parser, the file and the page ------------------------------------------------------------------------------

CANDIDATES = sorted(
    {key.name for some in TABLES.values() for key in some}
    | set(keys()) | {each.name for each in fields(SitePolicy)} | {"method.colluding", "method.x", "run", "peers", "id"}
)  # fmt: skip


@pytest.mark.parametrize("table", [name for name in TABLES if name != "sum.peers"])
def test_the_parser_accepts_the_keys_of_a_table_and_no_others(table):
    names = {key.name for key in known()[table]} | ({"peers"} if table == "sum" else set())
    found = {key for key in CANDIDATES if accepted(table, key)}
    assert found == names


@pytest.mark.parametrize("values", [VALUES, SUM], ids=["nobody", "sum"])
def test_the_file_that_init_writes_has_every_key_once_with_its_meaning(values):
    text = written(values)
    given = toml.loads(text, "the site file")
    for table, some in known().items():
        if table == "sum.peers":
            continue
        section = given[table][0] if table == "agent" else given.get(table, {})
        inside = {key for key in section if key != "peers"}
        behind = [key for where, _, key, _ in lines_of(text) if where == table]
        assert len(set(behind)) == len(behind)
        assert not inside & set(behind)
        assert inside | set(behind) == {key.name for key in some}
        for key in some:
            assert f"  # {key.meaning}" in text, key.name


def test_the_page_has_every_key_in_the_table_of_its_section_and_no_other():
    """To see the rows as they should be: print(rows(known()[table])) for each table."""
    sections = dict(re.findall(r"^## `\[+(.+?)\]+`.*?\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert set(sections) | {"sum.peers"} == set(TABLES)
    for table, some in known().items():
        section = sections["sum" if table == "sum.peers" else table]
        shown = [line for line in section.splitlines() if line.startswith("| `")]
        if table == "sum":
            shown = [line for line in shown if "AGENT" not in line]
        if table == "sum.peers":
            shown = [line for line in shown if "AGENT" in line]
        assert shown == rows(some), "\n".join(rows(some))


def rows(some):
    return [f"| `{name(key)}` | {key.meaning} | {default(key)} | `{example(key)}` |" for key in some]


def name(key: SiteKey):
    return toml.literal(key.name) if "." in key.name else key.name


def example(key: SiteKey):
    return '"5f01...c3"' if key.name == "AGENT" else toml.literal(key.default if key.example is None else key.example)


def default(key: SiteKey):
    return f"`{toml.literal(key.default)}`" if key.default is not None else key.without or "required"


# --- comments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [VALUES, SUM], ids=["nobody", "sum"])
def test_every_comment_of_a_key_is_read_once_it_is_none_any_more(values, tmp_path):
    text = written(values)
    found = list(lines_of(text))
    headers = {m["name"]: n for n, line in enumerate(text.splitlines()) if (m := HEADER.fullmatch(line)) and m["off"]}
    at = {(table, key): n for table, _, key, n in found}
    by_name = {(table, key.name): key for table, some in known().items() for key in some}
    seen = 0
    for table, off, key, n in found:
        about = by_name[table, key]
        needed = {n, *(at[table, other] for other in about.beside)}
        if off:  # a table that is a comment as a whole: its header, and what it cannot be without
            needed |= {headers[table], at["sum", "threshold"]}
        (tmp_path / "site.toml").write_text(uncommented(text, *needed))
        site = read(tmp_path / "site.toml", with_data=False)
        assert site.name == "a"
        seen += 1
    assert seen == len(found) > 50


def test_a_line_for_the_key_of_a_peer_is_refused_by_name_until_its_key_is_written():
    """A placeholder that can be read would pin an agent to a key that anybody may have."""
    text = written(SUM).replace('# "b" = ""', '"b" = ""')
    with pytest.raises(SpecError, match="key of agent b in 64 hexadecimal digits"):
        read_text(text)
    other = text.replace('"b" = ""', f'"b" = "{"0b" * 32}"')
    assert read_text(other).sum.peers == {"b": b"\x0b" * 32}


def test_a_comment_that_shows_a_default_changes_nothing(tmp_path):
    by_name = {(table, key.name): key for table, some in known().items() for key in some}
    text, path = written(VALUES), tmp_path / "site.toml"
    path.write_text(text)
    usual = read(path, with_data=False)
    defaults = [
        n for table, off, key, n in lines_of(text)
        if not off and by_name[table, key].default is not None and "." not in key
    ]  # fmt: skip
    assert len(defaults) > 10
    path.write_text(uncommented(text, *defaults))
    assert read(path, with_data=False) == usual


@pytest.mark.parametrize("change", [{}, {"problem.beta": 0.5}, {"data.row_norm": "l1"}, {"run.engine": "plain"}])
def test_a_comment_that_shows_a_default_allows_what_was_allowed_without_it(tmp_path, change):
    """Whoever uncomments a line has agreed to nothing new until he changes its value."""
    usual = [key for key in askable() if key.default is not None and key.name not in ("run.rounds", "algorithm.name")]
    listed = "\n".join(key.line(key.default) for key in usual)
    rounds = '"run.rounds" = 4'
    with service(tmp_path / "a", agree=f"{rounds}\n{listed}") as every, service(tmp_path / "b", agree=rounds) as none:
        first = join(none, chosen=spec(**change))
        assert told(every, first).kind == told(none, first).kind == ("refusal" if change else "joined")


def test_what_may_be_listed_is_every_key_of_a_spec_but_those_that_no_run_asks():
    assert {key.name for key in askable()} == set(keys()) - NOT_ASKED - {"privacy.colluding"}
    assert {key.name: key.default for key in TABLES["agree"] if key.name not in ("runs", "agents", "queries")} == {
        name: getattr(SitePolicy(), name) for name in ("fewest_agents", "most_agents", "fewest_records")
    }
    shown = {key.name: key.shown for key in askable()}
    assert {key: tuple(shown[key]) if isinstance(shown[key], list) else (shown[key],) for key in DEFAULTS} == DEFAULTS


def test_a_constant_of_a_method_is_no_key_of_agree(tmp_path):
    """It was a KeyError."""
    for key, says in (("method.colluding", "set sum.colluding"), ("method.clip", "unknown key of .agree.")):
        with pytest.raises(SpecError, match=says):
            read(make(tmp_path, agree=f'"{key}" = 1'))
