"""The account of a site cannot be lost unnoticed: ledgers, witnesses, backups, and services that are killed."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.errors import DataError, IncompatibleError, LedgerCorrupt, LedgerMissing
from tacit.federation import ledger_files
from tacit.federation.messages import Refusal
from tacit.federation.restore import restore
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.lock import locked
from tacit.privacy.ledger import Ledger
from tacit.run.deployment import price
from tests.federation import sum_sites
from tests.federation.sites import ask, begun, join, make, service, told
from tests.federation.test_listen import PATIENCE, exchanged, folder, twin

__all__ = ["folder", "twin"]  # fixtures
SCRIPT = Path(__file__).with_name("killed_service.py")
AGENTS = ("north", "south")


def served(path):
    """The service in a process of its own, when it listens or has ended; and what it has logged until then."""
    command = [sys.executable, "-m", "tacit", "agent", "serve", "--log-json", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines = []
    while line := process.stderr.readline():
        lines.append(line)
        if '"event": "listening"' in line or '"event":"listening"' in line:
            return process, lines
    process.wait(PATIENCE)
    process.stderr.close()
    return process, lines


def stopped(process):
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return [json.loads(line) for line in log.splitlines()]


def releases(file, to=None):
    """The releases on record in a ledger, or in a copy of its file alone."""
    if to is not None:
        shutil.copy(file, to)
    with Ledger.open(to or file, price, create=False) as ledger:
        return ledger.verify().releases


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- the service ---------------------------------------------------------------------------------------------------


def test_a_copy_while_the_service_runs_or_after_a_kill_has_every_release_that_left(folder, twin):
    path = make(folder, AGENTS)
    site, first = read_site(path), join(twin)
    process, lines = served(path)
    accounts = [json.loads(line) for line in lines if '"account"' in line]
    assert [(one["agent"], one["entries"], one["epsilon"]) for one in accounts] == [(who, 1, 0.0) for who in AGENTS]
    assert exchanged(site, first).kind == "joined"
    for t in (1, 2, 3):
        assert exchanged(site, ask(twin, first, t)).kind == "answer"
        assert {releases(site.ledger / f"{who}.ledger", folder / f"{who}{t}") for who in AGENTS} == {t}
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert {releases(site.ledger / f"{who}.ledger", folder / f"{who}-killed") for who in AGENTS} == {3}
    process, _ = served(path)
    told = stopped(process)
    (end, *_) = [one for one in told if one["event"] == "account"]
    assert end["entries"] == 5
    assert end["epsilon"] > 0
    assert end["head"] == json.loads((site.witness / "north.witness").read_text())["head"]


@pytest.mark.parametrize(("lose", "says"), [
    (lambda site: shutil.move(site.ledger, site.ledger.with_name("away")), "the directory of the ledgers is not at"),
    (lambda site: (site.ledger / "south.ledger").unlink(), "the ledger of agent south is not at"),
    (lambda site: (site.witness / "south.witness").unlink(), "the witness of agent south is not at"),
    (lambda site: shutil.rmtree(site.witness), "the witness of agent north is not at"),
    (lambda site: (site.witness / "south.witness").write_text("{}"), "cannot be used (it needs agent"),
    (lambda site: shutil.copy(site.ledger / "north.ledger", site.ledger / "south.ledger"), "older copy or another"),
    (lambda site: (site.ledger / "south.ledger").write_bytes(b"SQLite format 3\0" + bytes(4096)), "cannot be trusted"),
])  # fmt: skip
def test_a_service_without_its_ledger_or_witness_exits_with_78_and_makes_nothing(folder, lose, says):
    path = make(folder, AGENTS)
    lose(read_site(path))
    before = {file for file in files_of(folder) if file.suffix in (".ledger", ".witness")}
    process, lines = served(path)
    assert process.returncode == 78
    assert says in " ".join("".join(lines).split())
    assert "Traceback" not in "".join(lines)
    assert {file for file in files_of(folder) if file.suffix in (".ledger", ".witness")} == before


def test_a_ledger_put_back_from_before_a_run_does_not_start(folder, twin):
    """The report's fault 15: a copy from before the run let the site spend its limit twice."""
    path = make(folder, AGENTS)
    site, first = read_site(path), join(twin)
    shutil.copytree(site.ledger, folder / "before")
    process, _ = served(path)
    assert exchanged(site, first).kind == "joined"
    assert exchanged(site, ask(twin, first)).kind == "answer"
    stopped(process)
    shutil.rmtree(site.ledger)
    shutil.copytree(folder / "before", site.ledger)
    process, lines = served(path)
    assert process.returncode == 78
    assert "answers have left that it does not count" in " ".join("".join(lines).split())


def test_ledger_and_run_key_of_a_secure_sum_rolled_back_together_do_not_start(tmp_path):
    """The report's fault 17: such a service would mask an answered round again with the same mask."""
    with sum_sites.begun(tmp_path) as party:
        one = party["alone"]
        assert told(one, party.ask(1)).kind == "answer"
        one.close()
        shutil.copytree(one.site.ledger, tmp_path / "early")
        one = party.reopened("alone")
        assert told(one, party.join).kind == "joined"
        assert told(one, party.meet()).kind == "met"
        assert told(one, party.ask(2)).kind == "answer"
        one.close()
        shutil.rmtree(one.site.ledger)
        shutil.copytree(tmp_path / "early", one.site.ledger)
        with pytest.raises(LedgerCorrupt, match="answers have left that it does not count"):
            Service(one.site)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_service_killed_at_twenty_moments_loses_no_release_and_pays_none_twice(folder):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(SCRIPT.parents[2])}
    found = subprocess.run([sys.executable, str(SCRIPT), str(folder), "20"], env=environment, text=True,
                           capture_output=True, check=False, timeout=300)  # fmt: skip
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    names = ("_made", "checkpoint", "write", "replace", "send")
    assert set(told["steps"]) == {f"{when} {name}" for name in names for when in ("before", "after")}
    assert len(told["steps"]) == 20
    site = read_site(folder / "site" / "site.toml")
    with ledger_files.opened(site, site.agents[0]) as ledger:
        rounds = [key.round for key in ledger.history().answers]
        assert rounds == sorted(set(rounds))
        assert set(map(int, told["sent"])) <= set(rounds)
        assert len(rounds) == len(told["sent"])  # the last question was asked until its answer came
        assert ledger.history().spent["north 2024"].total() == len(rounds)


def test_a_service_that_cannot_write_its_witness_answers_nothing_until_it_can(tmp_path):
    lines = []
    one, first = begun(tmp_path, log=lambda text, **_: lines.append(text))
    with one:
        file = one.site.witness / "north.witness"
        kept = file.read_bytes()
        file.unlink()
        file.mkdir()
        question = ask(one, first)
        assert told(one, question) == Refusal("r1")
        assert any("so that nothing leaves" in line for line in lines)
        assert len(one._ledgers["north"].history().answers) == 1
        file.rmdir()
        file.write_bytes(kept)
        assert told(one, question).kind == "answer"
        assert len(one._ledgers["north"].history().answers) == 1


def test_a_witness_inside_the_ledgers_folder_is_refused(tmp_path):
    for extra in ("witness = 'ledgers'", "witness = 'ledgers/w'", "witness = '.'", "witness = 'x/../ledgers'"):
        path = make(tmp_path, ledgers=False, extra=extra)
        assert main(["agent", "init", str(path)]) == 2
    assert not (tmp_path / "ledgers").exists()


# --- init ----------------------------------------------------------------------------------------------------------


def test_init_makes_what_is_missing_and_never_a_second_ledger(tmp_path, capsys):
    path = make(tmp_path, ledgers=False)
    assert main(["agent", "init", str(path)]) == 0
    assert "north: new ledger and witness" in capsys.readouterr().out
    site, before = read_site(path), files_of(tmp_path)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (site.ledger, site.witness)} == {0o700}
    assert main(["agent", "init", str(path)]) == 0
    assert "north: ledger as before" in capsys.readouterr().out
    assert files_of(tmp_path) == before
    (site.ledger / "north.ledger").rename(tmp_path / "away")
    assert main(["agent", "init", str(path)]) == 2
    assert "A new ledger would not count what that one has released" in " ".join(capsys.readouterr().err.split())
    assert not (site.ledger / "north.ledger").exists()
    (tmp_path / "away").rename(site.ledger / "north.ledger")
    make(tmp_path, AGENTS, ledgers=False)  # a second agent
    assert main(["agent", "init", "--json", str(path)]) == 0
    told = {one["agent"]: one["what"] for one in json.loads(capsys.readouterr().out)}
    assert told["north"].startswith("ledger as before: ")
    assert told["south"].startswith("new ledger and witness: ")


def test_init_adds_a_witness_to_a_ledger_of_an_earlier_version(tmp_path, capsys):
    one, first = begun(tmp_path)
    told(one, ask(one, first))
    one.close()
    shutil.rmtree(one.site.witness)
    path = tmp_path / "site.toml"
    assert main(["agent", "serve", str(path)]) == 78
    assert main(["agent", "init", str(path)]) == 0
    assert "north: ledger as before, new witness" in capsys.readouterr().out
    with Service(one.site) as again:
        assert len(again._ledgers["north"].history().answers) == 1


def test_init_draws_signing_keys_of_a_secure_sum(tmp_path, capsys):
    agree = '"privacy.trust" = "sum"\n[sum]\nthreshold = 3\n'
    path = make(tmp_path, agree=agree, ledgers=False)
    assert main(["agent", "init", str(path)]) == 0
    assert "north: new signing key" in capsys.readouterr().out
    assert stat.S_IMODE((tmp_path / "keys" / "north.key").stat().st_mode) == 0o600
    before = files_of(tmp_path)
    assert main(["agent", "init", str(path)]) == 0
    assert files_of(tmp_path) == before


def test_a_directory_that_is_in_use_is_left_alone(tmp_path):
    site = read_site(make(tmp_path))
    (site.ledger / "north.ledger").rename(tmp_path / "away")
    with locked(site.ledger, wait=False):
        for act in (lambda: ledger_files.init(site), lambda: restore(site, tmp_path)):
            with pytest.raises(IncompatibleError, match="another service holds"):
                act()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to give a file away")
def test_another_account_than_that_of_the_ledgers_is_refused(tmp_path):
    site = read_site(make(tmp_path))
    os.chown(site.ledger, 12345, -1)
    with pytest.raises(IncompatibleError, match="belongs to account 12345, and this process runs as 0"):
        ledger_files.init(site)


# --- backup and restore --------------------------------------------------------------------------------------------


def backed_up(tmp_path, **options):
    """A site whose run went on after a backup was made, and the messages of the run."""
    one, first = begun(tmp_path, AGENTS, **options)
    told(one, ask(one, first, 1))
    ledger_files.backup(one.site, tmp_path / "backup")  # while the service has the ledgers open
    told(one, ask(one, first, 2))
    told(one, ask(one, first, 3))
    return one, first


def test_a_backup_holds_ledgers_and_signing_keys_and_no_run_key(tmp_path, capsys):
    with sum_sites.begun(tmp_path / "sites") as party:
        one = party["pair"]
        assert list(one.site.ledger.glob("*.runkey"))
        path, to = one.site.ledger.parent / "site.toml", tmp_path / "backup"
        assert main(["agent", "backup", str(path), str(to)]) == 0
        assert "south: ledger south.ledger (2 entries, head " in capsys.readouterr().out
        found = sorted(str(file.relative_to(to)) for file in to.rglob("*") if file.is_file())
        assert found == ["east.ledger", "keys/east.key", "keys/south.key", "receipts.key", "south.ledger"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in to.rglob("*") if file.is_file()} == {0o600}
        assert stat.S_IMODE(to.stat().st_mode) == 0o700
        assert main(["agent", "backup", str(path), str(to)]) == 2
        assert "exists already" in capsys.readouterr().err
        inside = one.site.ledger / "backup"
        assert main(["agent", "backup", str(path), str(inside)]) == 2
        (one.site.ledger / "east.ledger").rename(tmp_path / "away")
        assert main(["agent", "backup", str(path), str(tmp_path / "half")]) == 2
        assert not [file for file in tmp_path.iterdir() if "half" in file.name]
        (tmp_path / "away").rename(one.site.ledger / "east.ledger")


def test_a_restored_site_counts_the_run_to_its_end_refuses_it_and_joins_new_ones(tmp_path, capsys):
    one, first = backed_up(tmp_path, limit=3.0)
    path, agreed = tmp_path / "site.toml", one._ledgers["north"].history().place("north 2024", "r1").terms
    one.close()
    shutil.rmtree(one.site.ledger)
    assert main(["agent", "serve", str(path)]) == 78
    capsys.readouterr()
    assert main(["agent", "restore", str(path), str(tmp_path / "backup")]) == 0
    told_owner = " ".join(capsys.readouterr().out.split())
    assert "north: restored" in told_owner
    assert "Were runs joined after this backup? Enter each now" in told_owner
    with Service(one.site) as again:
        spent = again._ledgers["north"].history().spent["north 2024"]
        assert spent == {agreed.release: agreed.rounds}
        for t in (2, 3, 4):  # the same question again would be answered with other noise
            assert told(again, ask(one, first, t)).kind in ("refusal", "unjoined")
        new = join(again, "r2")
        assert told(again, new).kind == "joined"
        assert told(again, ask(again, new)).kind == "answer"


def test_lost_runs_are_entered_and_count_for_the_limit(tmp_path, capsys):
    one, _ = backed_up(tmp_path, limit=1.2)
    path = tmp_path / "site.toml"
    one.close()
    shutil.rmtree(one.site.ledger)
    for bad in (["nan", "0"], ["-1", "0"], ["1", "1"], ["inf", "0"], ["1.0", "1e-6"]):
        assert main(["agent", "restore", str(path), str(tmp_path / "backup"), "--lost", *bad]) == 2
    assert not one.site.ledger.exists()
    assert "leaves nothing of a limit at delta 1e-06" in capsys.readouterr().err
    gaussian = ["--lost", "1.0", "1e-6", "--law", "gaussian"]
    assert main(["agent", "restore", str(path), str(tmp_path / "backup"), *gaussian]) == 0
    capsys.readouterr()
    with Service(one.site) as again:
        (account,) = again._ledgers["north"].show()
        assert {run.run: run.releases for run in account.runs} == {"r1": 4, "(entered by the owner)": 1}
        assert 1.2 < account.epsilon < 1.6  # a run of epsilon 1 beside another
        assert told(again, join(again, "r2")) == Refusal("r2")


def test_a_ledger_that_is_whole_is_not_replaced_by_an_older_one(tmp_path):
    one, _ = backed_up(tmp_path)
    one.close()
    before = (one.site.ledger / "south.ledger").read_bytes()
    with pytest.raises(DataError, match="nothing is to be restored"):
        restore(one.site, tmp_path / "backup")
    (one.site.ledger / "north.ledger").write_bytes(b"damaged")
    (done,) = restore(one.site, tmp_path / "backup")
    assert done.agent == "north"
    assert (one.site.ledger / "south.ledger").read_bytes() == before
    (aside,) = one.site.ledger.glob("north.ledger.replaced-*")
    assert aside.read_bytes() == b"damaged"
    Service(one.site).close()


@pytest.mark.parametrize("lose", [
    lambda witness: witness.unlink(),
    lambda witness: witness.write_text("{}"),
    lambda witness: witness.write_text(witness.read_text().replace('"head": "', '"head": "0').replace('0"', '"')),
])  # fmt: skip
def test_a_restore_keeps_a_ledger_that_is_newer_than_the_backup_and_makes_its_witness(tmp_path, lose):
    """A disk with the witness fails: the ledger counts three rounds, and the backup one."""
    one, first = backed_up(tmp_path)
    one.close()
    lose(one.site.witness / "north.witness")
    (done,) = restore(one.site, tmp_path / "backup")
    assert "as it was, with a new witness" in done.what
    with Service(one.site) as again:
        history = again._ledgers["north"].history()
        assert [key.round for key in history.answers] == [1, 2, 3]
        assert history.spent["north 2024"].total() == 4
        assert told(again, first) == Refusal("r1")


def test_two_ledgers_that_went_different_ways_are_not_chosen_from(tmp_path):
    one, _ = backed_up(tmp_path)
    one.close()
    file = one.site.ledger / "north.ledger"
    shutil.copy(tmp_path / "backup" / "north.ledger", file)
    for path, epsilon in ((file, "0.1"), (tmp_path / "backup" / "north.ledger", "0.2")):
        assert main(["ledger", "charge", str(path), "--epsilon", epsilon, "--dp-delta", "0"]) == 0
    before = files_of(one.site.ledger)
    with pytest.raises(DataError, match="have gone different ways"):
        restore(one.site, tmp_path / "backup")
    assert files_of(one.site.ledger) == before


def test_a_backup_on_a_disk_that_cannot_be_written_is_restored(tmp_path):
    one, _ = backed_up(tmp_path)
    one.close()
    (one.site.ledger / "north.ledger").unlink()
    for path in (tmp_path / "backup").iterdir():
        path.chmod(0o400)
    (tmp_path / "backup").chmod(0o500)
    before = files_of(tmp_path / "backup")
    restore(one.site, tmp_path / "backup", agent="north")
    assert files_of(tmp_path / "backup") == before
    Service(one.site).close()


@pytest.mark.parametrize("command", ["check", "status", "backup", "close"])
def test_no_command_takes_a_ledger_that_is_not_that_of_its_witness(tmp_path, capsys, command):
    """A nightly backup would replace good copies by what went back."""
    one, _ = backed_up(tmp_path)
    one.close()
    path, words = tmp_path / "site.toml", {"backup": [str(tmp_path / "nightly")], "close": ["r1"]}.get(command, [])
    shutil.copy(tmp_path / "backup" / "south.ledger", one.site.ledger / "south.ledger")
    assert main(["agent", command, str(path), *words]) != 0
    assert "answers have left that it does not count" in " ".join(capsys.readouterr().err.split())
    (one.site.ledger / "south.ledger").unlink()
    assert main(["agent", command, str(path), *words]) != 0
    assert "the ledger of agent south is not at" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "nightly").exists()


def test_what_a_command_enters_while_no_service_runs_is_witnessed(tmp_path):
    one, _ = backed_up(tmp_path)
    one.close()
    copy = (one.site.ledger / "north.ledger").read_bytes()
    assert main(["agent", "close", str(tmp_path / "site.toml"), "r1"]) == 0
    (one.site.ledger / "north.ledger").write_bytes(copy)
    with pytest.raises(LedgerCorrupt, match="older copy"):
        Service(one.site)


def test_a_renamed_agent_gets_no_second_budget(tmp_path, capsys):
    one, _ = backed_up(tmp_path)
    one.close()
    path = tmp_path / "site.toml"
    path.write_text(path.read_text().replace('[[agent]]\nname = "north"', '[[agent]]\nname = "nord"'))
    assert main(["agent", "init", str(path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert 'north.ledger counts what data_id = "north 2024" has released' in said
    assert not (one.site.ledger / "nord.ledger").exists()


def test_a_restore_that_cannot_be_done_changes_nothing(tmp_path):
    one, _ = backed_up(tmp_path)
    one.close()
    for who in AGENTS:
        (one.site.ledger / f"{who}.ledger").unlink()
    (tmp_path / "backup" / "south.ledger").write_bytes(b"damaged too")
    before = files_of(one.site.ledger.parent)
    with pytest.raises(LedgerCorrupt):
        restore(one.site, tmp_path / "backup")
    with pytest.raises(DataError, match="does not exist"):
        restore(one.site, tmp_path / "nothing")
    with pytest.raises(DataError, match="has no agent 'east'"):
        restore(one.site, tmp_path / "backup", agent="east")
    after = files_of(one.site.ledger.parent)
    assert {path: text for path, text in after.items() if path.parent.name != "backup"} == {
        path: text for path, text in before.items() if path.parent.name != "backup"
    }
    with pytest.raises(LedgerMissing):
        Service(one.site)


def test_a_restore_deletes_the_run_keys_of_a_secure_sum(tmp_path):
    with sum_sites.begun(tmp_path / "sites") as party:
        one = party["alone"]
        told(one, party.ask(1))
        ledger_files.backup(one.site, tmp_path / "backup")
        told(one, party.ask(2))
        one.close()
        (one.site.ledger / "north.ledger").unlink()
        assert list(one.site.ledger.glob("*.runkey"))
        restore(one.site, tmp_path / "backup")
        assert not list(one.site.ledger.glob("*.runkey"))
        again = Service(one.site)
        party.services["alone"] = again
        assert told(again, party.join) == Refusal("r1")


def test_a_restore_that_was_killed_is_done_again(tmp_path, monkeypatch):
    one, _ = backed_up(tmp_path)
    one.close()
    (one.site.ledger / "north.ledger").unlink()
    for killed in ("mark_restored", "attest"):
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, killed, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                restore(one.site, tmp_path / "backup")
        with pytest.raises((LedgerMissing, LedgerCorrupt)):
            Service(one.site)
    restore(one.site, tmp_path / "backup")
    with Service(one.site) as again:
        assert again._ledgers["north"].history().spent["north 2024"].total() == 4


def test_the_service_logs_no_more_than_the_account(tmp_path):
    lines = []
    with service(tmp_path, AGENTS, log=lambda text, **told: lines.append((text, told))) as one:
        one.log_accounts("start")
    assert [told["agent"] for _, told in lines] == list(AGENTS)
    assert lines[0][0].startswith("start: agent north has spent 0 of (3, 1e-06); 1 entries, head ")
