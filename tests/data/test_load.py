"""From tables to federations: agents, classes, held-out records; and `load` as the one way in."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import feature_table, formats, load, sources
from tacit.data.formats import chunk
from tacit.data.partition import PARTITIONS
from tacit.data.tables import deal, hold_out
from tacit.errors import DataError, IncompatibleError, InputError, OwnerWarning, SpecError
from tacit.run import build
from tacit.run.spec import Spec, keys
from tacit.types import Federation, Shard


def table(path: Path, *rows: str) -> str:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def sites(tmp_path: Path) -> str:
    """Ten records at site 10 and five at site 9; u numbers them."""
    rows = [f"{i},{i % 3},{10 if i < 10 else 9}" for i in range(15)]
    return table(tmp_path / "sites.csv", "u,label,agent", *rows)


def seen(federation: Federation) -> list[float]:
    return sorted(u for shard in (*federation.shards, federation.test) for u in shard.x[:, 0].tolist())


def test_agents_come_from_their_column_in_order_of_number(sites: str) -> None:
    federation = load(sites)
    assert federation.agents == ("9", "10")
    assert [len(shard) for shard in federation.shards] == [4, 8]
    assert federation.features == ("u",)
    assert federation.classes == ("0", "1", "2")
    assert federation.name == "sites"
    assert seen(federation) == list(range(15))
    assert all((shard.x[:, 0] % 3 == shard.y).all() for shard in (*federation.shards, federation.test))


def test_bounds_are_declared_and_made_true_and_never_read_from_the_data(sites: str) -> None:
    """A number outside them is no reason to stop: whether a command ends well would tell of its record."""
    assert load(sites).bounds is None
    assert load(sites, bounds=(0.0, 20.0)).bounds == (0.0, 20.0)
    with pytest.warns(OwnerWarning, match=r"13 numbers of .* outside the declared range \(0\.0, 1\.0\)"):
        over = load(sites, bounds=(0.0, 1.0))
    assert over.bounds == (0.0, 1.0)
    assert sorted({*over.shards[0].x.ravel(), *over.shards[1].x.ravel(), *over.test.x.ravel()}) == [0.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(sites, bounds=(0.0, 1.0))  # not even where warnings are errors


def test_bounds_that_bound_nothing_are_refused(sites: str) -> None:
    for bounds in ((-np.inf, np.inf), (0.0, np.inf), (1.0, 0.0), (np.nan, 1.0)):
        with pytest.raises(DataError, match="two finite numbers"):
            load(sites, bounds=bounds)
    values = {"data.source": sites, "data.low": -np.inf, "data.high": np.inf}
    with pytest.raises(SpecError, match=r"data\.low and data\.high go together, both finite"):
        build.federation(Spec().with_values(values))


def test_an_agent_called_test_is_an_agent() -> None:
    records, none = Shard(np.ones((2, 1)), np.array([0, 1])), Shard(np.ones((0, 1)), np.empty(0, int))
    assert Federation((records,), none, 2, agents=("test",)).agents == ("test",)
    with pytest.raises(DataError, match="agent 'test' has no records"):
        Federation((records, none), records, 2, agents=("a", "test"))
    with pytest.raises(DataError, match=r"the test set has a label outside 0\.\.1"):
        Federation((records,), Shard(np.ones((1, 1)), np.array([2])), 2)


def test_names_that_no_report_can_hold_are_refused(sites: str) -> None:
    for path in ("caf\udce9.csv", "caf\udce9/sites.csv"):
        with pytest.raises(DataError, match="is not UTF-8"):
            load(path)
    with pytest.raises(DataError, match="is not UTF-8"):
        load(sites, test="caf\udce9.csv")
    records = Shard(np.ones((2, 1)), np.array([0, 1]))
    for field in ("agents", "features", "name"):
        with pytest.raises(DataError, match="is not Unicode"):
            Federation((records,), records, 2, **{field: "caf\udce9" if field == "name" else ("caf\udce9",)})


def test_the_same_seed_holds_out_the_same_records(sites: str) -> None:
    first, again, other = (load(sites, seed=seed).test.x.tolist() for seed in (1, 1, 2))
    assert first == again != other


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    fraction=st.floats(0.0, 0.99),
    seed=st.integers(0, 9),
)
def test_holding_out_loses_no_record_and_leaves_every_agent_one(
    sizes: list[int], fraction: float, seed: int
) -> None:
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    try:
        kept, held = hold_out(parts, fraction, seed)
    except DataError:
        assert all(min(round(fraction * n), n - 1) == 0 for n in sizes)
        return
    assert np.array_equal(np.sort(np.concatenate([*kept, held])), np.arange(sum(sizes)))
    assert all(len(k) >= 1 and set(k) <= set(part) for k, part in zip(kept, parts, strict=True))


def test_a_test_table_is_used_whole_with_its_columns_by_name(sites: str, tmp_path: Path) -> None:
    wide = table(tmp_path / "wide.csv", "u,v,label,agent", "1,2,a,s", "3,4,b,s")
    other = table(tmp_path / "other.csv", "label,v,u", "c,6,5")
    federation = load(wide, test=other)
    assert federation.n_records == 2
    assert federation.test.x.tolist() == [[5, 6]]
    assert federation.classes == ("a", "b", "c")
    with pytest.raises(DataError, match=r"sites\.csv lacks 'v', unlike .*wide\.csv"):
        load(wide, test=sites)


def test_a_directory_has_one_file_an_agent(tmp_path: Path) -> None:
    table(tmp_path / "north.csv", "v,label,u", "2,a,1", "4,b,3")
    table(tmp_path / "east.csv", "u,v,label", "5,6,a")
    table(tmp_path / "README.md", "not a table")
    federation = load(str(tmp_path), test_fraction=0.0)
    assert federation.agents == ("east", "north")
    assert [shard.x.tolist() for shard in federation.shards] == [[[5, 6]], [[1, 2], [3, 4]]]
    assert len(federation.test) == 0
    table(tmp_path / "west.csv", "u,w,label", "1,2,a")
    with pytest.raises(DataError, match=r"west\.csv lacks 'v'; adds 'w'"):
        load(str(tmp_path))


def test_a_directory_of_files_with_an_agent_column_is_one_table(tmp_path: Path) -> None:
    table(tmp_path / "part-0.csv", "u,label,agent", "1,a,s", "2,b,t")
    table(tmp_path / "part-1.csv", "u,label,agent", "3,a,s")
    federation = load(str(tmp_path), test_fraction=0.0)
    assert federation.agents == ("s", "t")
    assert federation.shards[0].x.tolist() == [[1], [3]]
    table(tmp_path / "part-2.csv", "u,label", "3,a")
    with pytest.raises(DataError, match=r"part-2\.csv has no agent column"):
        load(str(tmp_path))


def test_two_files_of_one_name_would_count_twice_and_are_refused(tmp_path: Path) -> None:
    table(tmp_path / "north.csv", "u,label", "1,a")
    np.savez(tmp_path / "north.npz", x=[[1.0]], y=["b"])
    with pytest.raises(DataError, match="2 files for 'north'"):
        load(str(tmp_path))


def test_a_table_without_agents_needs_their_number(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "u,site,label", *(f"{i},0,{i % 2}" for i in range(20)))
    for partition in (None, "contiguous", "shuffled", "dirichlet", "unequal"):
        federation = load(path, agents=4, partition=partition)
        assert federation.n_agents == 4
        assert seen(federation) == list(range(20))
    with pytest.raises(DataError, match="into how many agents"):
        load(path)
    with pytest.raises(DataError, match="no column 'sit': did you mean 'site'"):
        load(path, agent_column="sit", agents=4)
    with pytest.raises(DataError, match="2 or 4 agents"):
        load(path, agents=3, partition="contiguous")
    with pytest.raises(SpecError, match="did you mean 'shuffled'"):
        load(path, agents=4, partition="shufled")


@pytest.mark.parametrize("given", [{"agents": 3}, {"partition": "shuffled"}])
def test_agents_that_the_file_names_cannot_be_cut_again(sites: str, given: dict[str, int]) -> None:
    with pytest.raises(DataError, match="already names its agents"):
        load(sites, **given)  # type: ignore[arg-type]


def test_given_classes_fix_the_order_and_are_given_once(sites: str) -> None:
    federation = load(sites, class_names=["2", "1", "0", "spare"])
    assert federation.n_classes == 4
    assert all((2 - shard.x[:, 0] % 3 == shard.y).all() for shard in federation.shards)
    with pytest.raises(SpecError, match="named twice"):
        load(sites, class_names=["0", "1", "1", "2"])


def test_one_class_and_real_labels_are_refused(tmp_path: Path) -> None:
    one = table(tmp_path / "one.csv", "u,label", "1,a", "2,a")
    with pytest.raises(DataError, match="two classes"):
        load(one, agents=1)
    two = table(tmp_path / "two.csv", "u,label", "1,a", "2,b")
    with pytest.raises(DataError, match="two classes"):
        load(one, agents=1, test=two)  # b is in test only
    real = table(tmp_path / "real.csv", "u,label", "1,0.5", "2,1.5")
    with pytest.raises(DataError, match="bin them"):
        load(real, agents=1)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, float("nan")])
def test_impossible_fractions_are_refused(sites: str, fraction: float) -> None:
    with pytest.raises(SpecError, match="test_fraction"):
        load(sites, test_fraction=fraction)


def test_too_few_records_to_hold_out_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "u,label,agent", "1,a,s", "2,b,t")
    with pytest.raises(DataError, match="give a test file"):
        load(path)


def test_sources_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'mnist'"):
        load("minst")
    with pytest.raises(DataError, match="does not exist"):
        load(str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="does not exist"):
        load("nowhere.csv")
    with pytest.raises(InputError, match="holds no table"):
        load(str(tmp_path))


@pytest.mark.parametrize("source", ["mnist", "synthetic"])
def test_options_of_tables_do_not_go_with_other_sources(source: str) -> None:
    with pytest.raises(IncompatibleError, match="test is for tables"):
        load(source, test="t.csv")
    with pytest.raises(IncompatibleError, match=r"data\.low, data\.high\) is for tables"):
        load(source, bounds=(0.0, 1.0))


def test_mnist_is_ten_contiguous_blocks_as_in_the_paper() -> None:
    federation = load("mnist")
    assert [len(shard) for shard in federation.shards] == [6000] * 10
    assert federation.bounds == (0.0, 1.0)
    assert federation.classes == tuple("0123456789")
    # the Laplace scales at w = 0 are 2 (1 - 1/K) max|x|_1 / (I epsilon); these are the first and the mean
    largest = [float(shard.x.sum(1, dtype=np.float64).max()) for shard in federation.shards]
    scales = 1.8 * np.array(largest) / 60000 / 0.05
    assert scales[0] == pytest.approx(0.16013, abs=1e-5)
    assert scales.mean() == pytest.approx(0.1572626, abs=1e-6)


def test_importing_the_package_loads_no_reader() -> None:
    code = "import sys, tacit.data; print([m for m in sys.modules if m.startswith(('tacit.data.', 'pyarrow'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_an_agent_without_records_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x_0=np.ones((2, 1)), y_0=[0, 1], x_1=np.ones((0, 1)), y_1=np.empty(0, int))
    with pytest.raises(DataError, match=r"x_1\) holds no records"):
        load(str(tmp_path / "t.npz"))
    table(tmp_path / "north.csv", "u,label", "1,a", "2,b")
    table(tmp_path / "east.csv", "u,label")
    (tmp_path / "t.npz").unlink()
    with pytest.raises(DataError, match=r"east\.csv holds no records"):
        load(str(tmp_path))


# --- a source, a format or a partition is added by one file and one line of its registry


@pytest.fixture
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module "pipes", as a contributor would write it: cells with | between them."""
    (tmp_path / "pipes.py").write_text(
        "import numpy as np\n"
        "from tacit.data.table import RawTable\n"
        "from tacit.types import Federation, Shard\n"
        "def read(path):\n"
        "    header, *rows = [line.split('|') for line in path.read_text().split()]\n"
        "    yield RawTable(str(path), dict(zip(header, np.array(rows, dtype=object).T)))\n"
        "def load(spec):\n"
        "    shard = Shard(np.ones((spec.records, 1)), np.arange(spec.records) % 2)\n"
        "    return Federation((shard,) * spec.n_agents, shard, 2, name='pipes')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pipes", raising=False)
    return tmp_path


def test_a_new_format_is_one_line(pipes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(formats.FORMATS, ".pipe", "pipes:read")
    path = table(pipes / "t.PIPE", "u|label|agent", "1|a|s", "2|b|s")
    assert load(path, test_fraction=0.0).shards[0].x.tolist() == [[1], [2]]
    schema = table(pipes / "s.toml", '[columns]\nu={kind="numeric",lo=0,hi=4}\nlabel={kind="label",classes=["a","b"]}',
                   'agent={kind="agent"}')  # fmt: skip
    assert load(path, schema=schema, test_fraction=0.0).shards[0].x.tolist() == [[0.25], [0.5]]
    with pytest.raises(DataError, match="PIPE, record 1, column 'u' is not a number"):
        load(table(pipes / "t.PIPE", "u|label|agent", "a|a|s"))


def test_a_new_source_is_one_line(pipes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sources.NAMED, "pipes", sources.DataSource("pipes", "pipes:load"))
    assert load("pipes", agents=3, records=4).n_records == 12
    with pytest.raises(IncompatibleError, match="class_count is for LEAF, and this is pipes"):
        load("pipes", class_count=2)
    with pytest.raises(SpecError, match="choose from a file or directory that exists, heart, mnist, pipes, synthetic"):
        load("xyz")
    here = sources.DataSource("pipes", "pipes:load", fits=lambda path: path.endswith("pipes.py"))
    monkeypatch.setattr(sources, "AT_PATHS", [*sources.AT_PATHS, here])
    assert load(str(pipes / "pipes.py"), agents=1, records=4).name == "pipes"


def test_a_new_partition_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTITIONS, "alternate", lambda y, n, _rng, _alpha: [np.arange(len(y))[p::n] for p in range(n)])
    path = table(tmp_path / "t.csv", "u,label", "0,a", "1,b", "2,a", "3,b")
    assert load(path, agents=2, partition="alternate", test_fraction=0.0).shards[1].x.tolist() == [[1], [3]]
    with pytest.raises(SpecError, match="choose from alternate, contiguous, dirichlet, shuffled, unequal"):
        load(path, agents=2, partition="zzz")


def test_the_choices_of_the_spec_are_those_of_the_registry() -> None:
    assert keys()["data.partition"].metadata["choices"] is PARTITIONS


# --- records are dealt run by run


def test_dealing_gives_each_part_its_records_and_keeps_none() -> None:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    runs = [x[:1], x[1:4], x[4:]]
    dealt = deal(runs, [np.array([5, 0]), np.array([], int), np.array([1, 3, 4])])  # nobody holds record 2
    assert [own.tolist() for own in dealt] == [x[[5, 0]].tolist(), [], x[[1, 3, 4]].tolist()]
    assert runs == []


def test_a_record_is_not_dealt_to_two_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTITIONS, "twice", lambda y, n, _rng, _alpha: [np.arange(len(y))] * n)
    path = table(tmp_path / "t.csv", "u,label", "0,a", "1,b", "2,a", "3,b")
    with pytest.raises(DataError, match="one record to two agents"):
        load(path, agents=2, partition="twice", test_fraction=0.0)


def test_a_federation_does_not_depend_on_how_long_the_runs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{i},{i / 7},{i % 3},{'ns'[i % 2]}" for i in range(200)]
    path = table(tmp_path / "t.csv", "u,v,label,agent", *rows)
    with pytest.warns(OwnerWarning, match="99 numbers"):
        whole = load(path, bounds=(0.0, 100.0))
    monkeypatch.setattr(feature_table, "RUN", 100)
    monkeypatch.setattr(chunk, "CHUNK", 50)
    monkeypatch.setattr(chunk, "CHUNK_ROWS", 1)
    with pytest.warns(OwnerWarning, match="99 numbers"):
        assert load(path, bounds=(0.0, 100.0)).checksum == whole.checksum
