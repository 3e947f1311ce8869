"""Several processes: the same bytes and the same errors as one, and nobody is left behind."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.bind import BoundMetric
from assay.engine.aggregate.measure import bind_metric
from assay.engine.run.evidence import DamagedError
from assay.errors import RunFailed, UserError
from assay.records import Manifest
from assay.store import lines, seal
from assay.store.log import FileLog
from assay.store.stores import FlatStore
from assay.store.table import processes

PARENT = os.getpid()
FILE = "evaluation_results.jsonl"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every row is worth a process, and every file has many blocks; and at the end no child is left."""
    monkeypatch.setattr(processes, "LEAST_BYTES", 1)
    monkeypatch.setattr(processes, "LEAST_ROWS", 1)
    monkeypatch.setattr(seal, "BLOCK", 64)
    monkeypatch.setattr(lines, "BLOCK", 128)
    before = children()
    yield
    assert children() <= before  # a library of another test may have one of its own


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def spelt(evaluation_results: list[dict[str, Any]], facets: list[str]) -> dict[str, Any]:
    """All rows in the order in which a metric gets them."""
    return {"value": len(evaluation_results), "rows": json.dumps(evaluation_results)}


def metrics() -> list[BoundMetric]:
    return [
        bind_metric(name="pass@1", type="pass_at_k", facets=["model_id", "level"]),
        bind_metric(name="boot", type="mean", facets=["kind"], interval="bootstrap"),
        bind_metric(name="mean", type="mean"),
        bind_metric(name="latency", type="latency", facets=["model_id"]),
        bind_metric(name="own", function=spelt, facets=["level"]),
    ]


def measured(
    folder: Path, workers: int, bound: list[BoundMetric], manifest: Manifest | None = None
) -> bytes:
    for name in ("manifest.json", "metrics.jsonl"):
        (folder / name).unlink(missing_ok=True)
    store = FlatStore(folder)
    if manifest is not None:
        store.put_manifest(manifest)
    Aggregator(store, workers=workers).aggregate(
        [store.id], bound, id="a", runs=[store.id], datasets=[store.id]
    )
    return (folder / "metrics.jsonl").read_bytes()


def write(folder: Path, name: str, rows: list[Any], pieces: list[int]) -> None:
    """Rows in one file, or in segments: flat ones, and of two generations of which the first does not count."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    cuts = sorted({min(piece, len(texts)) for piece in pieces} | {0, len(texts)})
    parts = [texts[a:b] for a, b in itertools.pairwise(cuts)] or [[]]
    places = [
        f"{name}.jsonl",
        f"{name}.d/1.jsonl",
        f"{name}.d/10/00000/0.jsonl",
        f"{name}.d/10/00001/0.jsonl",
    ]
    places += [f"{name}.d/10/00001/{number}.jsonl" for number in range(1, len(parts))]
    for place, part in zip(places, parts, strict=False):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text("".join(text + "\n" for text in part))
    if len(parts) > 2:
        (folder / f"{name}.d/9/00000").mkdir(parents=True)
        (folder / f"{name}.d/9/00000/0.jsonl").write_text('{"item_id": "old"}\n')
        (folder / f"{name}.d/10/00002").mkdir(parents=True)
        (folder / f"{name}.d/10/00002/0.jsonl").write_text("")


KINDS = st.sampled_from([None, 1, 1.0, "a", {"x": 1, "y": 2}, {"y": 2, "x": 1}])
EVALUATIONS = st.fixed_dictionaries(
    {
        "item_id": st.sampled_from(["i1", "i2", "i3", "i4"]),
        "model_id": st.sampled_from(["m", "n"]),
        "kind": KINDS,
        "score": st.sampled_from([0, 1, 0.25, -3.5, 70000.5, None]),
    },
    optional={
        "sample_index": st.integers(0, 300),
        "label": st.sampled_from(["match", "close", {"name": "close"}]),
        "scorer": st.sampled_from(["match", "close"]),
        "outcome": st.sampled_from(["scored", "errored", "skipped"]),
        "responses": st.lists(st.sampled_from(["00", "11", "22"]), max_size=2),
        "level": st.sampled_from(["low", 3]),
        "note": st.text("é\n", max_size=300),
    },
)
RESPONSES = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["00", "11", "22", "33"]),
        "inference_time": st.floats(0, 9),
        "item_id": st.just("i1"),
    },
    optional={"level": st.sampled_from(["high", None])},
)
ITEMS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["i1", "i2", "i3"]),
        "data": st.fixed_dictionaries({"level": st.sampled_from(["a", "b"])}),
    }
)


def some(rows: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(rows | st.just(""), min_size=1, max_size=most)


@settings(
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    evaluations=some(EVALUATIONS, 40),
    responses=some(RESPONSES, 12),
    items=some(ITEMS, 8),
    pieces=st.lists(st.integers(0, 40), max_size=5),
    workers=st.integers(2, 7),
)
def test_any_split_gives_the_same_bytes(
    evaluations: list[Any],
    responses: list[Any],
    items: list[Any],
    pieces: list[int],
    workers: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    write(
        folder,
        "evaluation_results",
        [{**evaluations[0], "item_id": "i1"} if evaluations[0] else EMPTY],
        [],
    )
    write(folder, "evaluation_results", [EMPTY, *evaluations], pieces)
    write(
        folder,
        "responses",
        [{"key": "11", "level": "high", "inference_time": 1.5}, *responses],
        pieces,
    )
    write(folder, "items", [{"id": "i1", "data": {"level": "a"}}, *items], pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seal, "BLOCK", 1 << 16)
        patch.setattr(lines, "BLOCK", 1 << 17)
        alone = measured(folder, 1, metrics())
    assert alone.count(b"\n") >= 5
    assert measured(folder, workers, metrics()) == alone


EMPTY = {
    "item_id": "i1",
    "model_id": "m",
    "kind": None,
    "score": 1,
    "responses": ["11"],
    "label": "match",
}


def plain(folder: Path, count: int = 60) -> Path:
    rows = [
        {
            "item_id": f"i{number % 20}",
            "sample_index": number // 20,
            "label": "match",
            "score": number % 3 % 2,
        }
        | {"outcome": "scored", "scorer": "match", "model_id": f"m{number % 4}"}
        for number in range(count)
    ]
    write(folder, "evaluation_results", rows, [])
    return folder


BY_MODEL = {"facets": ["model_id"]}


def test_children_are_used(tmp_path: Path) -> None:
    """Otherwise the other tests here would say nothing."""

    def where(group: Any) -> float:
        return float(os.getpid())

    bound = [bind_metric(name="where", function=where, **BY_MODEL)]
    rows = [json.loads(line) for line in measured(plain(tmp_path), 4, bound).splitlines()]
    pids = {row["value"] for row in rows}
    assert len(pids) == 4
    assert PARENT not in pids


def test_ties_of_an_ordered_metric(tmp_path: Path) -> None:
    """Rows that only their text tells apart, in two orders on disk."""
    rows = [
        {"item_id": "i", "label": "l", "score": 1, "model_id": "m", "note": str(number)}
        for number in range(50)
    ]
    write(tmp_path, "evaluation_results", rows, [])
    bound = [
        bind_metric(name="own", function=spelt, **BY_MODEL),
        bind_metric(name="again", function=spelt),
    ]
    alone = measured(tmp_path, 1, bound)
    assert measured(tmp_path, 3, bound) == alone
    write(tmp_path, "evaluation_results", rows[::-1], [])
    assert measured(tmp_path, 3, bound) == alone


def test_an_error_of_a_metric_is_its_row(tmp_path: Path) -> None:
    def picky(group: Any) -> float:
        if group.facets["model_id"] == "m2":
            raise ValueError("not this one")
        return 1.0

    bound = [bind_metric(name="picky", function=picky, **BY_MODEL)]
    alone = measured(plain(tmp_path), 1, bound)
    assert alone.count(b'"error":') == 1
    assert measured(tmp_path, 4, bound) == alone


def test_a_metric_that_ends_the_program_does_so(tmp_path: Path) -> None:
    def leaving(group: Any) -> float:
        sys.exit(7)

    with pytest.raises(SystemExit, match="7"):
        measured(plain(tmp_path), 4, [bind_metric(name="leaving", function=leaving, **BY_MODEL)])


@pytest.mark.parametrize(
    "number, error, text",
    [(signal.SIGKILL, RunFailed, "SIGKILL"), (signal.SIGINT, KeyboardInterrupt, None)],
)
def test_a_child_that_is_killed(
    tmp_path: Path, number: int, error: type[BaseException], text: str | None
) -> None:
    def killed(group: Any) -> float:
        if group.facets["model_id"] == "m2":
            os.kill(os.getpid(), number)
        return 1.0

    with pytest.raises(error, match=text):
        measured(plain(tmp_path), 4, [bind_metric(name="killed", function=killed, **BY_MODEL)])
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_bad_row_is_named_by_its_line(tmp_path: Path) -> None:
    path = plain(tmp_path) / FILE
    path.write_bytes(path.read_bytes() + b'{"score": 1}\n{"item_id": \n')
    errors: list[str] = []
    for workers in (1, 4):
        with pytest.raises(UserError) as caught:
            measured(tmp_path, workers, metrics()[2:3])
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "line 61" in errors[0]


@pytest.mark.parametrize("row", [0, 30, 59])
def test_damage_is_found(tmp_path: Path, row: int) -> None:
    store = FlatStore(plain(tmp_path))
    manifest = Manifest(kind="evaluation", id=store.id, complete=True)
    seal.seal(manifest, store.log("evaluation", store.id))
    bound = [bind_metric(type="mean")]
    whole = measured(tmp_path, 1, bound, manifest)
    assert measured(tmp_path, 4, bound, manifest) == whole
    rows = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    rows[row] = rows[row].replace(b': "i', b': "j')
    (tmp_path / FILE).write_bytes(b"".join(rows))
    with pytest.raises(DamagedError) as alone:
        measured(tmp_path, 1, bound, manifest)
    with pytest.raises(DamagedError) as several:
        measured(tmp_path, 4, bound, manifest)
    assert str(alone.value) == str(several.value)


def test_children_hash_what_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FlatStore(plain(tmp_path))
    manifest = Manifest(kind="evaluation", id=store.id, complete=True)
    seal.seal(manifest, store.log("evaluation", store.id))

    def read_again(path: Path) -> seal.Checksums:
        assert path.name != FILE
        return seal.read_checksums(path)

    monkeypatch.setattr("assay.store.log.read_checksums", read_again)
    measured(tmp_path, 4, [bind_metric(type="mean")], manifest)


SCRIPT = """
import sys
from assay.cli import main
from assay.store.table import processes
processes.LEAST_BYTES = processes.LEAST_ROWS = 1
sys.argv = ["assay", "aggregate", ".", "-c", "c.yaml", "--workers", "3"]
main()
"""
SLOW = """
import os, time
def slow(group):
    open(f"pid-{os.getpid()}", "w").close()
    time.sleep(60)
    return 1.0
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nobody_is_left_behind(tmp_path: Path, ending: int) -> None:
    plain(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "c.yaml").write_text(
        "metrics: [{name: slow, type: custom, path: slow.py, function_name: slow, facets: [model_id]}]"
    )
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as parent:
        wait_for(lambda: len(list(tmp_path.glob("pid-*"))) == 3, parent)
        if ending == signal.SIGINT:
            os.killpg(parent.pid, ending)  # as a terminal does
        else:
            os.kill(parent.pid, ending)
        output, _ = parent.communicate(timeout=20)
    assert (
        parent.returncode == {signal.SIGINT: 130, signal.SIGTERM: -15, signal.SIGKILL: -9}[ending]
    ), output.decode()
    assert b"Traceback" not in output
    wait_for(lambda: not any(is_alive(int(path.name[4:])) for path in tmp_path.glob("pid-*")))
    assert not (tmp_path / "metrics.jsonl").exists()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(
    condition: Callable[[], bool], parent: "subprocess.Popen[bytes] | None" = None
) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        assert parent is None or parent.poll() is None, parent.communicate()[0].decode()
        time.sleep(0.02)


def test_rows_of_several_folders(tmp_path: Path) -> None:
    """Logs that add a field to their rows, and hide some, are read by parts as well."""
    import assay

    for name, count in (("one", 60), ("two", 45)):
        (tmp_path / name).mkdir()
        plain(tmp_path / name, count)
    bound = {"metrics": [{"name": "mean", "facets": ["source", "model_id"]}]}
    paths = [tmp_path / "one" / FILE, tmp_path / "two" / FILE]
    alone = assay.aggregate(paths, bound)
    assert len(alone.metrics) == 8
    assert assay.aggregate(paths, bound, workers=5).metrics == alone.metrics


def test_hidden_rows_stay_hidden(tmp_path: Path) -> None:
    log = FileLog(plain(tmp_path) / FILE)
    places = [position for position, _ in log.scan()]
    log.hidden = set(places[::2])
    whole = [line for _, line in log.scan()]
    share = processes.Processes(4)._shares([log])
    assert len(share) == 4
    read: list[bytes] = []
    for (window,) in share:
        log.limit(window)
        read += [line for _, line in log.scan()]
        assert b"".join(log.blocks()).count(b"\n") == len(list(log.scan()))
    assert read == whole
    assert len(whole) == 30
