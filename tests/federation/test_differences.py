"""Where sites declare their records differently, the coordinator names the site and the column, whatever they sent."""

import json
import socket
import tempfile
import time
from pathlib import Path

import pytest

from tacit import toml
from tacit.errors import DataError
from tacit.federation import facts, wire
from tacit.federation.differences import LONGEST, MOST, in_words, quoted, schema_of
from tacit.federation.service import Service
from tacit.federation.site import load
from tacit.federation.site import read as read_site
from tacit.jsontext import canonical
from tacit.privacy.ledger import Ledger
from tacit.run.deployment import price
from tests.federation import sites as small
from tests.federation.room import Room, close, folder, go
from tests.federation.test_ledger_files import served as listened
from tests.federation.test_ledger_files import stopped

SCHEMA = """\
missing_marks = ["?"]
[columns.a]
kind = "numeric"
lo = 0
hi = 1
[columns.b]
kind = "numeric"
lo = 0
hi = 1
[columns.c]
kind = "numeric"
lo = 0
hi = 1
[columns.label]
kind = "label"
classes = ["no", "yes"]
"""
OTHER = SCHEMA.replace("lo = 0\nhi = 1\n[columns.c]", "lo = -1\nhi = 2.5\n[columns.c]")  # of column b
SITES = {"alone": ("north",), "pair": ("south",), "third": ("east",)}
FAULTS = "deadline = 60.0\nresend = 10.0\nstart_deadline = 100.0"


@pytest.fixture
def quick():
    """A place that is quick to sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        yield Path(place)


def site_file(path, agents, name, schema):
    file = small.make(path / name, agents, name=name)
    (path / name / "schema.toml").write_text(schema)
    declared = 'class_names = "no,yes"\nlow = 0.0\nhigh = 1.0'
    file.write_text(file.read_text().replace(declared, 'schema = "schema.toml"'))
    return file


def served(path, schemas):
    return {name: Service(read_site(site_file(path, SITES[name], name, text))) for name, text in schemas.items()}


def of_schema(text):
    return canonical({"schema": toml.plain(text, "the schema")})


# --- at the coordinator --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("schemas", "own", "says"), [
    ({"alone": SCHEMA, "pair": OTHER}, None,
     'column "b" has the bounds -1 to 2.5 at site pair and 0 to 1 at site alone. Give all sites one schema.'),
    ({"alone": OTHER, "pair": SCHEMA, "third": SCHEMA}, None,  # the first is not right for being first
     'column "b" has the bounds -1 to 2.5 at site alone and 0 to 1 at sites pair, third.'),
    ({"alone": SCHEMA, "pair": OTHER, "third": OTHER}, SCHEMA,  # the coordinator knows better than most
     'column "b" has the bounds -1 to 2.5 at site pair and 0 to 1 at the coordinator (data.schema); column "b" has the '
     "bounds -1 to 2.5 at site third and 0 to 1 at the coordinator (data.schema)."),
    ({"alone": SCHEMA, "pair": OTHER}, "not TOML", 'column "b" has the bounds -1 to 2.5 at site pair and'),
])  # fmt: skip
def test_the_coordinator_names_the_site_and_the_column(quick, schemas, own, says):
    """The report's fault 9: two sites were named, and no column."""
    room = Room(served(quick, schemas))
    where = folder(quick / "c", 2, FAULTS, sites={name: SITES[name] for name in schemas})
    if own is not None:
        (where / "run.toml").write_text('[data]\nschema = "schema.toml"\n')
        (where / "schema.toml").write_text(own)
    with pytest.raises(DataError) as found:
        go(where, room)
    assert says in str(found.value)
    assert "\n" not in str(found.value)
    assert not list((where / "runs").glob("*"))
    close(room)


class Process:
    """A service in a process of its own, as a room knows it."""

    def __init__(self, path):
        self.site = read_site(path)
        self.process, _ = listened(path)

    def answer(self, header, body):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            stream.settimeout(30.0)
            stream.connect(str(self.site.socket))
            wire.send(stream, header, body)
            return wire.receive(stream, 1 << 20)


def test_real_services_of_two_schemas_are_told_apart_by_site_and_column_and_release_nothing(quick):
    """The report's fault 9, with real processes: a bound of one column differs at one of three sites."""
    schemas = {"alone": SCHEMA, "pair": OTHER, "third": SCHEMA}
    processes = {name: Process(site_file(quick, SITES[name], name, text)) for name, text in schemas.items()}
    where = folder(quick / "c", 2, FAULTS, sites=SITES)
    says = 'column "b" has the bounds -1 to 2.5 at site pair and 0 to 1 at sites alone, third. Give all sites one'
    with pytest.raises(DataError, match=says):
        go(where, Room(processes))
    for one in processes.values():
        stopped(one.process)
        for who in one.site.agents:
            with Ledger.open(one.site.ledger / f"{who.name}.ledger", price, create=False) as ledger:
                assert (ledger.verify().releases, ledger.history().places) == (0, {})


def test_test_records_of_another_schema_name_the_column(quick):
    room = Room(served(quick, {"alone": SCHEMA}))
    where = folder(quick / "c", 2, FAULTS, sites={"alone": SITES["alone"]})
    (where / "run.toml").write_text('[data]\nschema = "schema.toml"\ntest = "test.csv"\n')
    (where / "schema.toml").write_text(OTHER)
    small.write_table(where / "test.csv", *small.records("north"))
    says = r'column "b" has the bounds -1 to 2.5 at the coordinator and 0 to 1 at the sites. Give the coordinator'
    with pytest.raises(DataError, match=says):
        go(where, room)
    close(room)


def test_two_agents_of_a_site_that_differ_are_named_with_the_column(tmp_path):
    path = small.make(tmp_path, ("north", "south"))
    (tmp_path / "south.csv").write_text((tmp_path / "south.csv").read_text().replace("a,b,c", "a,b,d"))
    says = r'column "d" is declared at agent south and missing at agent north; column "c" is missing at agent south and'
    with pytest.raises(DataError, match=says):
        load(read_site(path))


# --- what a hostile site declares ----------------------------------------------------------------------------------


def changed(facts_of_site, **values):
    return json.dumps(json.loads(facts_of_site) | values)


def no_key(text):
    found = json.loads(text)
    del found["columns"]
    return json.dumps(found)


HOSTILE = {
    "no JSON": lambda _: "{",
    "a list": lambda _: "[]",
    "nothing": lambda _: "{}",
    "a missing fact": no_key,
    "one fact more": lambda text: changed(text, more=1),
    "brackets without end": lambda _: "[" * 100_000,
    "infinitely many features": lambda text: text.replace('"n_features":', '"n_features":1e400, "was":', 1),
    "features of all kinds": lambda text: changed(text, features=[1, None, {"a": []}]),
    "classes that are none": lambda text: changed(text, classes={"a": 1}),
    "no class": lambda text: changed(text, classes=[], n_classes=0),
    "half a letter": lambda text: changed(text, classes=["\ud800", "b"]),
    "columns of no form": lambda text: changed(text, columns=[{"column": "a"}]),
    "columns that are text": lambda text: changed(text, columns=["a" * 1000]),
    "bounds of nothing": lambda text: changed(text, bounds=[2, 1]),
    "a target that is none": lambda text: changed(text, target={"lo": 1, "hi": 0}),
}


@pytest.mark.parametrize("evil", HOSTILE)
def test_a_site_that_declares_what_no_site_can_is_named_and_nothing_of_it_is_repeated(quick, evil):
    def change(site, header, reply):
        found, body = reply
        if site == "pair" and header["kind"] == "hello":
            found = {**found, "public": HOSTILE[evil](found["public"])}
        yield found, body

    schemas = {"alone": SCHEMA, "pair": SCHEMA}
    room = Room(served(quick, schemas), change=change)
    where = folder(quick / "c", 2, FAULTS, sites={name: SITES[name] for name in schemas})
    with pytest.raises(DataError, match="what site pair declares of its records is not of the form") as found:
        go(where, room)
    assert len(str(found.value)) < 200
    close(room)


LONG = "x" * 100_000


@pytest.mark.parametrize("text", [
    f'"columns" = {{"{LONG}" = {{"kind" = "numeric"}}}}\n',
    '"columns" = {' + ", ".join(f'"{n}" = {{"kind" = "numeric"}}' for n in range(20_000)) + "}\n",
    '"columns" = {"a\\u001b[2J\\u202e" = {"lo" = "\\u001b[2J\\r"}}\n',
    '"columns" = {"a" = {"lo" = ' + "9" * 5000 + "}}\n",
    '"columns" = 3\n',
    '"columns" = {"a" = 3}\n',
    "a" + ".a" * 200_000 + " = 1\n",
    '"a" = ' + "{" * 200_000,
    '"' * 400_000,
    '"\\' * 400_000,
    '"\\"' * 400_000,
    " = " * 300_000,
    "\n" * 400_000,
    "",
])  # fmt: skip
def test_a_hostile_schema_is_told_in_a_line_that_can_be_printed_and_takes_no_time(text):
    began = time.process_time()
    said = in_words(json.dumps({"schema": text}), of_schema(SCHEMA), "site evil", "site good")
    assert time.process_time() - began < 5.0  # a TOML parser takes minutes for some of these
    assert said.isprintable()
    assert len(said) < 4 * MOST * (LONGEST + 100)
    assert "site evil" in said


def test_a_schema_is_read_back_as_it_was_written():
    text = SCHEMA + "[columns.when]\nkind = 'date'\nlo = 2015-01-01\nhi = 2025-01-01\n"
    text += "[columns.'a \"b\" = {']\nkind = 'text'\n"
    read = schema_of(of_schema(text))
    assert read["columns"]["when"] == {"kind": "date", "lo": "2015-01-01", "hi": "2025-01-01"}
    assert list(read["columns"]) == ["a", "b", "c", "label", "when", 'a "b" = {']
    assert read["missing_marks"] == ["?"]
    assert read["columns"]["a"] == {"kind": "numeric", "lo": 0, "hi": 1}


@pytest.mark.parametrize(("change", "says"), [
    (("hi = 1\n[columns.b]", "hi = 1\nmissing = 0.5\n[columns.b]"), 'column "a" has "missing" 0.5 at x and null at y'),
    (('classes = ["no", "yes"]', 'classes = ["yes", "no"]'), 'column "label" has "classes" ["yes", "no"] at x and'),
    (("[columns.c]", "[columns.d]"), 'column "d" is declared at x and missing at y; column "c" is missing at x and'),
    (('["?"]', '["NA"]'), '"missing_marks" is ["NA"] at x and ["?"] at y'),
])  # fmt: skip
def test_every_difference_of_two_schemas_has_its_name(change, says):
    assert says in in_words(of_schema(SCHEMA.replace(*change)), of_schema(SCHEMA), "x", "y")


def test_columns_in_another_order_are_told(tmp_path):
    own = facts.public(load(read_site(site_file(tmp_path, ("north",), "a", SCHEMA))))
    swapped = SCHEMA.replace("[columns.a]", "[columns.b ]").replace("[columns.b]", "[columns.a]")
    other = facts.public(load(read_site(site_file(tmp_path, ("north",), "b", swapped))))
    assert own != other
    assert in_words(other, own, "x", "y").startswith('in the order of columns, number 1 is "b" at x and "a" at y')


def test_what_is_quoted_is_short_and_moves_no_cursor():
    assert quoted("a\x1b\u202e\ud800") == '"a\\u001b\\u202e\\ud800"'
    assert len(quoted("y" * 10**6)) == LONGEST + 3
