"""A site of version 0.2 goes on with its ledger: version_0_2 has its files of commit 0634b28, after two rounds."""

import hashlib
import shutil
from pathlib import Path

from tacit.cli import main
from tacit.federation.service import Service
from tacit.federation.site import read
from tacit.privacy.ledger import Ledger
from tacit.run.deploy import price
from tests.federation.sites import ROUNDS, ask, join, make, told

OLD = Path(__file__).with_name("version_0_2")
SECOND = "7a18469e2d44303284aa6df93ab99aa8c03cf3d6b872863459e1fdf205706fbd"  # sha256 of the second answer


def test_a_site_of_version_0_2_goes_on_with_its_run_and_its_ledger_counts_on(tmp_path, capsys):
    path = make(tmp_path, ledgers=False)
    shutil.copy(OLD / "site.toml", path)
    (tmp_path / "ledgers").mkdir(mode=0o700)
    shutil.copy(OLD / "north.ledger", tmp_path / "ledgers")
    assert main(["agent", "serve", str(path)]) == 78
    assert main(["agent", "init", str(path)]) == 0
    assert "ledger as before, new witness" in capsys.readouterr().out
    with Service(read(path)) as one:
        ledger, first = one._ledgers["north"], join(one)
        before = price(tuple(ledger.history().spent["north 2024"].items()), 1e-6)
        (run,) = ledger.runs()
        assert (run.run, run.state, run.round, run.remaining) == ("r1", "unreserved", 2, 2)
        assert told(one, first).kind == "joined"
        again = told(one, ask(one, first, 2))
        assert hashlib.sha256(again.z.tobytes()).hexdigest() == SECOND
        assert ledger.verify().releases == 2
        for t in range(3, ROUNDS + 1):
            assert told(one, ask(one, first, t)).kind == "answer"
        assert ledger.verify().releases == ROUNDS
        assert ledger.show()[0].epsilon > before > 0
        new = join(one, "r2")
        assert told(one, new).kind == "joined"
        assert told(one, ask(one, new)).kind == "answer"
        assert [run.state for run in ledger.runs()] == ["finished", "open"]
    assert main(["agent", "backup", str(path), str(tmp_path / "backup")]) == 0
    with Ledger.open(tmp_path / "backup" / "north.ledger", price, create=False) as copy:
        assert copy.verify().releases == ROUNDS + 1
