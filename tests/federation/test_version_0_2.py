"""A site of version 0.2 goes on with its ledger: version_0_2 has its files of commit 0634b28, after two rounds."""

import hashlib
import shutil
from pathlib import Path

from tacit.cli import main
from tacit.federation.messages import Refusal, written
from tacit.federation.service import Service
from tacit.federation.site import read
from tacit.privacy.ledger import Ledger, _unpack
from tacit.privacy.terms import Key
from tacit.run.deployment import price
from tests.federation.sites import ROUNDS, ask, join, make, stored, told

OLD = Path(__file__).with_name("version_0_2")
SECOND = "8aacb7e4f274414894ea2c0c31846efcd9d14cdf850ad9c7f2c7a6c34c5b297d"  # sha256 of the second answer


def test_a_site_of_version_0_2_goes_on_with_its_ledger_and_refuses_the_rest_of_an_open_run(tmp_path, capsys):
    """The agreement of the open run is about steps of ADMM, so that no run that asks queries has its hash."""
    path = make(tmp_path, ledgers=False)
    shutil.copy(OLD / "site.toml", path)
    (tmp_path / "ledgers").mkdir(mode=0o700)
    shutil.copy(OLD / "north.ledger", tmp_path / "ledgers")
    assert main(["agent", "serve", str(path)]) == 78
    assert main(["agent", "init", str(path)]) == 0
    assert "ledger as before, new witness" in capsys.readouterr().out
    lines = []
    with Service(read(path), lambda text, **_: lines.append(text)) as one:
        ledger, first = one._ledgers["north"], join(one)
        before = price(tuple(ledger.history().spent["north 2024"].items()), 1e-6)
        (run,) = ledger.runs()
        assert (run.run, run.state, run.round, run.remaining) == ("r1", "unreserved", 2, 2)
        second = stored(ledger, Key("north 2024", "r1", 2))
        assert hashlib.sha256(_unpack(second).tobytes()).hexdigest() == SECOND
        header, body = written(first)
        assert one.answer(header | {"version": 1}, body) == written(Refusal())
        assert "the message has version 1 of the wire format, and this is version 2" in lines[-1]
        assert told(one, first) == Refusal("r1")
        assert "run 'r1' was agreed on other terms" in lines[-1]
        assert "start a run with a new name" in lines[-1]
        assert ledger.verify().releases == 2
        new = join(one, "r2")
        assert told(one, new).kind == "joined"
        sent = [told(one, ask(one, new, t)) for t in range(1, ROUNDS)]
        assert {reply.kind for reply in sent} == {"answer"}
        again = told(one, ask(one, new, ROUNDS - 1))
        assert again.words.tobytes() == sent[-1].words.tobytes()
        assert ledger.verify().releases == ROUNDS + 1
        assert ledger.show()[0].epsilon > before > 0
        assert [run.state for run in ledger.runs()] == ["unreserved", "open"]
    assert main(["agent", "close", str(path), "r1"]) == 0
    with Service(read(path)) as one:
        assert [run.state for run in one._ledgers["north"].runs()] == ["ended", "open"]
        assert told(one, new).kind == "joined"
        assert told(one, ask(one, new, ROUNDS)).kind == "answer"
    assert main(["agent", "backup", str(path), str(tmp_path / "backup")]) == 0
    with Ledger.open(tmp_path / "backup" / "north.ledger", price, create=False) as copy:
        assert copy.verify().releases == ROUNDS + 2
