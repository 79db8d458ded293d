"""Coordinators show sites what they had answered: a ledger that was put back together with its witness is found."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.errors import DataError, IncompatibleError, LedgerCorrupt, LedgerMissing, RunDirectoryError
from tacit.federation import ledger_files, messages, receipts
from tacit.federation.messages import Join, Joined, Refusal
from tacit.federation.restore import restore
from tacit.federation.service import Service
from tacit.privacy.witness import ReceiptKey
from tests.federation import room as rooms
from tests.federation import sites as small
from tests.federation.room import QUICK, Room

ROUNDS = 2


class Institutions:
    """Two sites, whose coordinators come and go. The logs of the services are kept."""

    def __init__(self, path: Path) -> None:
        self.path, self.logs = path, []
        for name, agents in rooms.SITES.items():
            small.make(path / name, agents, name=name, limit=9.0)

    def site(self, name: str = "pair"):
        return small.read_site(self.path / name / "site.toml")

    def run(self, coordinator: str, fate=rooms.fate, rounds: int = ROUNDS, services=None):
        """Run a coordinator from its own folder against services that are started for it."""
        where = rooms.folder(self.path / coordinator, rounds, "start_deadline = 5", "[privacy]\nepsilon = 0.2\n")
        log = lambda text, **_: self.logs.append(text)  # noqa: E731
        mine = services or {name: Service(self.site(name), log) for name in rooms.SITES}
        room = Room(mine, fate)
        try:
            return rooms.go(where, room)
        finally:
            for service in mine.values():
                service.close()

    def kept(self, name: str = "pair") -> Path:
        """Copy the folder of ledgers and witnesses of a site, as a snapshot of its disk would."""
        return Path(shutil.copytree(self.path / name, self.path / f"{name} snapshot", dirs_exist_ok=True))

    def put_back(self, name: str = "pair") -> None:
        """Put back the snapshot: ledgers, witnesses and keys together."""
        shutil.rmtree(self.path / name)
        shutil.copytree(self.path / f"{name} snapshot", self.path / name)


@pytest.fixture
def both(tmp_path) -> Institutions:
    return Institutions(tmp_path)


def ledgers(site) -> dict[str, bytes]:
    """The ledgers and witnesses of a site, as bytes."""
    found = [*site.ledger.glob("*.ledger"), *site.witness.iterdir()]
    return {path.name: path.read_bytes() for path in found}


def test_a_coordinator_keeps_the_last_receipt_of_each_agent_and_the_result_holds_its_head(both):
    result = both.run("one")
    kept = receipts.read(both.path / "one")
    assert set(kept) == {"north", "south", "east"}
    for name in rooms.SITES:
        site = both.site(name)
        for one in site.agents:
            with ledger_files.beside(site, one) as ledger:
                last = list(ledger.history().answers.values())[-1]
            assert (kept[one.name].entries, kept[one.name].head) == (last.n, last.head)
            assert result.summary["ledger_heads"][one.name] == last.head
            assert ledger_files.receipt_key(site).made(kept[one.name])
    both.run("one")
    assert all(receipts.read(both.path / "one")[name].entries > kept[name].entries for name in kept)


def test_a_site_is_shown_the_receipts_of_its_own_agents_only(both):
    shown = {}

    def noted(way, site, header):
        if way == "to" and header["kind"] == "join":
            shown[site] = {one["agent"] for one in header["receipts"]}
        return [QUICK]

    both.run("one", noted)
    assert shown == {"alone": set(), "pair": set()}
    both.run("one", noted)
    assert shown == {"alone": {"north"}, "pair": {"south", "east"}}


def test_a_site_that_was_put_back_with_its_witnesses_answers_no_coordinator_until_it_is_restored(both, tmp_path):
    both.run("one")
    ledger_files.backup(both.site(), tmp_path / "backup")
    both.kept()
    both.run("one")  # answers leave that the snapshot does not count
    both.put_back()
    both.run("other")  # a coordinator that has seen nothing shows nothing: this goes unnoticed
    with pytest.raises(IncompatibleError, match="site pair does not join"):
        both.run("one")
    assert any("valid receipt of entry" in text for text in both.logs)
    with pytest.raises(LedgerCorrupt, match="restore"):  # also after a restart, for every coordinator
        Service(both.site())
    assert main(["agent", "serve", str(both.path / "pair" / "site.toml")]) == 78
    restore(both.site(), tmp_path / "backup")
    both.run("one")
    both.run("other")


def test_an_agent_that_a_receipt_contradicts_answers_nobody_while_the_service_runs(both):
    both.run("one", rounds=1)
    both.kept()
    both.run("one", rounds=1)
    both.put_back()
    services = {name: Service(both.site(name)) for name in rooms.SITES}
    try:
        one = services["pair"]
        kept = receipts.read(both.path / "one")
        joined = small.join(one, "fresh")
        assert isinstance(reply(one, joined), Joined)  # of a coordinator that has no receipts
        assert isinstance(reply(one, joined.to(("south",), kept)), Refusal)
        answered = reply(one, small.ask(one, joined, 1, asked=("south",)))
        assert isinstance(answered, Refusal)
    finally:
        for service in services.values():
            service.close()


def reply(service: Service, message) -> messages.Message:
    return messages.read(*service.answer(*messages.written(message)), messages.REPLIES)


@pytest.mark.parametrize("change", [{"head": "0" * 64}, {"entries": 99}, {"tag": "0" * 64}, {"agent": "north"}])
def test_a_coordinator_that_invents_a_receipt_is_refused_and_changes_nothing(both, change):
    both.run("one")
    forged = replace(receipts.read(both.path / "one")["south"], **change)
    before = ledgers(both.site())
    with Service(both.site(), lambda text, **_: both.logs.append(text)) as service:
        join = replace(small.join(service, "fresh"), receipts=(forged,))
        assert isinstance(reply(service, join), Refusal)
        assert any("was not made with the key of this site" in text for text in both.logs)
        assert ledgers(both.site()) == before
        assert isinstance(reply(service, replace(join, receipts=())), Joined)
    both.run("other")
    both.run("one")


def test_one_invented_receipt_among_valid_ones_changes_nothing(both):
    both.run("one")
    both.kept()
    both.run("one")
    lost = receipts.read(both.path / "one")
    both.put_back()
    before = ledgers(both.site())
    with Service(both.site()) as service:
        forged = replace(lost["east"], tag="0" * 64)
        join = replace(small.join(service, "fresh"), receipts=(lost["south"], forged))
        assert isinstance(reply(service, join), Refusal)
    assert ledgers(both.site()) == before


def test_receipts_are_no_part_of_what_is_joined():
    one = Join("r", "", "0" * 64, (("a", 1),))
    receipt = ReceiptKey(bytes(32)).receipt(receipts.Receipt("a", "1" * 64, 1, "2" * 64, "").position)
    assert one.to(["a"], {"a": receipt}) == one


def test_a_coordinator_that_is_killed_in_a_run_shows_what_it_had_heard(both):
    """The checkpoint has the receipts of the run, so that a site put back during it is found when it joins again."""
    both.kept()

    class Killed(BaseException):
        pass

    def dies(way, _site, header):
        if way == "to" and header["kind"] == "ask" and header["t"] == 3:
            raise Killed
        return [QUICK]

    with pytest.raises(Killed):
        both.run("one", dies, rounds=4)
    (both.path / "one" / receipts.FILE).unlink()  # as if the process had had no time to write it
    both.put_back()
    result = both.run("one", rounds=4)  # which goes on without the site, as [faults] allows
    assert any("valid receipt of entry" in text for text in both.logs)
    assert result.summary["took_part"]["south"]["missed"] == 2
    assert result.summary["took_part"]["north"]["missed"] == 0


def test_a_service_without_its_key_of_receipts_does_not_start(both, tmp_path, capsys):
    key = both.site().ledger / ledger_files.RECEIPT_KEY
    assert key.stat().st_mode & 0o777 == 0o600
    ledger_files.backup(both.site(), tmp_path / "backup")
    was = key.read_bytes()
    key.unlink()
    with pytest.raises(LedgerMissing, match="key of receipts"):
        Service(both.site())
    path = str(both.path / "pair" / "site.toml")
    assert main(["agent", "serve", path]) == 78
    assert main(["agent", "check", path]) == 2
    assert "tacit agent init" in capsys.readouterr().err
    restore(both.site(), tmp_path / "backup")  # ledgers are whole: only the key comes back
    assert key.read_bytes() == was
    with pytest.raises(DataError, match="nothing is to be restored"):
        restore(both.site(), tmp_path / "backup")
    key.write_bytes(b"12")
    with pytest.raises(LedgerCorrupt, match="damaged"):
        Service(both.site())


def test_a_site_whose_key_is_new_refuses_receipts_of_before_and_says_what_to_do(both):
    both.run("one")
    (both.site().ledger / ledger_files.RECEIPT_KEY).unlink()
    ledger_files.init(both.site())
    with pytest.raises(IncompatibleError, match="site pair does not join"):
        both.run("one")
    assert any("the coordinator deletes receipts.json" in text for text in both.logs)
    (both.path / "one" / receipts.FILE).unlink()
    shutil.rmtree(sorted((both.path / "one" / "runs").iterdir())[-1], ignore_errors=True)
    both.run("one")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"agent": "a"}]'])
def test_a_damaged_file_of_receipts_is_refused_before_anybody_is_asked(both, text):
    rooms.folder(both.path / "one")
    (both.path / "one" / receipts.FILE).write_text(text)
    with pytest.raises(RunDirectoryError, match=r"receipts\.json is damaged"):
        both.run("one")


def test_the_file_of_receipts_holds_no_more_than_receipts(both):
    both.run("one")
    found = json.loads((both.path / "one" / receipts.FILE).read_text())
    assert {frozenset(one) for one in found} == {frozenset({"agent", "first", "entries", "head", "tag"})}


def test_a_restored_site_joins_the_next_run_of_a_coordinator_that_had_heard_its_last_answer(both, tmp_path):
    """The last entry that was lost need not be an answer: the witness holds the head of the last receipt as well."""
    ledger_files.backup(both.site(), tmp_path / "backup")
    both.run("one")
    with Service(both.site()) as service:  # a join of another run is the last entry
        assert isinstance(reply(service, small.join(service, "another")), Joined)
    for path in both.site().ledger.glob("*.ledger*"):
        path.unlink()
    restore(both.site(), tmp_path / "backup")
    both.run("one")


def test_a_checkpoint_replaces_no_later_receipt_of_the_same_ledger():
    def receipt(entries: int, first: str = "1") -> receipts.Receipt:
        return receipts.Receipt("a", first * 64, entries, "2" * 64, "3" * 64)

    known = {"a": receipt(50)}
    assert receipts.later({"a": receipt(10)}, known) == {}
    assert receipts.later({"a": receipt(51)}, known) == {"a": receipt(51)}
    assert receipts.later({"a": receipt(10, "4")}, known) == {"a": receipt(10, "4")}
    assert receipts.later({"a": receipt(10)}, {}) == {"a": receipt(10)}
    names = ["b", "a"]
    assert receipts.loaded(receipts.saved(known, names), names) == known
