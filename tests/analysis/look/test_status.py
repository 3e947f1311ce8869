"""What `assay status`, `ls` and the viewer say of workers, from what these wrote; and of a run by one process."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import assay
from assay.cli import group
from assay.engine.calls.progress import LaneProgress, Progress
from assay.engine.cluster.status import WorkerStatus, worker_status
from assay.errors import UserError
from assay.reports.wrapping import cells
from assay.store.files import here
from assay.store.shared.generations import Generation, begin
from assay.store.shared.objects import FolderObjects
from assay.viewer.live import progress_of
from tests.support import Lab

MODEL = "meta-llama/Meta-Llama-3.1-70B-Instruct"
HOST = "ip-10-0-112-133.eu-central-1.compute.internal"


def told(shard: int, done: int, **more: Any) -> dict[str, Any]:
    lane = {
        "total": 250,
        "present": 10,
        "done": done,
        "errors": 2,
        "retries": 1,
        "tokens": 50 * done,
        "cost": 0.5,
    }
    status = {
        "shards": [shard],
        "step": "run",
        "total": 250,
        "present": 10,
        "done": done,
        "errors": 2,
        "rate": 12.5,
    }
    return {
        **status,
        "made": 700 + done,
        "tokens": 50 * done,
        "cost": 0.5,
        "models": {MODEL: lane},
        **more,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Eight shards of 250 rows: two finished, two under way, one that a dead worker held, one that another process of
    this machine held and left behind."""
    folder = tmp_path / "big"
    objects = FolderObjects(folder)
    begin(objects, Generation(number=0, shards=8, verb="run", id="big", created=time.time()))
    objects.write(
        "manifest.json",
        json.dumps({"run": {"planned": 2000}, "evaluation": {"planned": 4000}}).encode(),
    )
    for shard in (0, 1):
        part = {
            "run": {"present": 250, "counts": {"ok": 247, "errored": 3}},
            "evaluation": {"present": 500},
        }
        objects.create(f"shards/0/{shard:05}.json", json.dumps(part).encode())
    waiting = f"{MODEL}: within its limits per minute until 12:00:00"
    say(objects, "a", status=told(2, 90, waiting=waiting), pid=os.getpid(), place=here())
    say(objects, "b", status=told(3, 40, cost=0.25, waiting=waiting))
    say(objects, "c", status=told(4, 20), silent=95)
    say(objects, "d", status=told(5, 30), pid=2**22 + 1, place=here())
    say(objects, "e", status={"made": 500, "tokens": 7, "cost": 1.0}, ended=True, silent=3600)
    return folder


def say(objects: FolderObjects, name: str, silent: float = 0.0, **beat: Any) -> None:
    worker = f"{HOST}-{name * 8}"
    beat = {"worker": worker, "host": HOST, "started": time.time() - 7260, **beat}
    objects.write(f"workers/0/{worker}.json", json.dumps(beat).encode())
    then = time.time() - silent
    os.utime(objects.folder / f"workers/0/{worker}.json", (then, then))


def test_a_shard_that_is_finished_since_its_worker_spoke_counts_once(root: Path) -> None:
    FolderObjects(root).create(
        "shards/0/00002.json", json.dumps({"run": {"present": 250}}).encode()
    )
    (status,) = assay.status(root)
    assert (status.finished, status.under_way, status.free) == (3, 1, 4)
    assert status.rows == 3 * 250 + (10 + 40)


def test_what_workers_say_adds_up(root: Path) -> None:
    (status,) = assay.status(root)
    assert (status.state, status.step, status.planned) == ("running", "run", 2000)
    assert (status.shards, status.finished, status.under_way, status.free) == (8, 2, 2, 4)
    assert status.rows == 2 * 250 + (10 + 90) + (10 + 40)
    assert status.errors == 2 * 3 + 2 * 2
    assert status.rate == 25
    assert status.left_seconds == (2000 - 650) / 25
    assert (status.tokens, status.cost) == (
        50 * (90 + 40 + 20 + 30) + 7,
        0.5 + 0.25 + 0.5 + 0.5 + 1.0,
    )
    assert [line.state for line in status.workers] == [
        "working",
        "working",
        "dead",
        "dead",
        "ended",
    ]
    assert sum("is dead: the next free worker takes it" in reason for reason in status.waiting) == 2
    say(FolderObjects(root), "b", status=told(4, 40))
    (after,) = assay.status(root)
    assert sum("is dead" in reason for reason in after.waiting) == 1, (
        "another worker has taken its shard"
    )
    assert any(
        "within its limits per minute" in reason and "(2 workers)" in reason
        for reason in status.waiting
    )


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_real_names_fit_a_terminal(root: Path, width: int) -> None:
    shown = (
        CliRunner(env={"COLUMNS": str(width)})
        .invoke(group, ["status", str(root)], catch_exceptions=False)
        .stdout
    )
    lines = shown.splitlines()[1:]  # the path is left to the terminal
    assert max(map(cells, lines)) <= width, shown
    text = " ".join(shown.split())
    assert "650 of 2,000 (32%)" in text
    assert "2 working, 2 dead, 1 ended" in text
    assert "2 of 8 finished, 2 under way, 4 free" in text
    assert "left: 54 s" in text


def test_json_and_watch(root: Path) -> None:
    for name in "abcd":
        say(FolderObjects(root), name, ended=True, status=told(2, 1))
    shown = (
        CliRunner()
        .invoke(group, ["status", str(root), "--json", "--watch"], catch_exceptions=False)
        .stdout
    )
    (status,) = map(json.loads, shown.splitlines())  # nobody works: it does not look again
    assert status["state"] == "stopped"
    assert len(status["workers"]) == 5


def test_a_cost_that_is_not_known_is_not_zero(root: Path) -> None:
    say(FolderObjects(root), "b", status=told(3, 40, cost=None))
    assert assay.status(root)[0].cost is None
    assert "unknown" in str(assay.sheet(assay.status(root)))


def test_a_worker_of_another_version_is_listed(root: Path) -> None:
    say(FolderObjects(root), "b", status={"shards": "three"})
    shards = {line.worker[-1]: line.status.shards for line in assay.status(root)[0].workers}
    assert shards == {"a": [2], "b": [], "c": [4], "d": [5], "e": []}


def test_ls_and_the_viewer_show_the_same(root: Path) -> None:
    (listed,) = assay.ls(root)
    assert (listed.state, listed.responses, listed.errors, listed.planned) == (
        "running",
        650,
        10,
        2000,
    )
    live = progress_of(root)
    assert live is not None
    assert live["models"] == {"2 workers": {"total": 2000, "done": 650, "errors": 10, "retries": 0}}
    assert (live["rate"], live["left_seconds"]) == (25, 54)


def test_a_run_by_one_process(tmp_path: Path) -> None:
    Lab(tmp_path, 5).run()
    (status,) = assay.status(tmp_path / "out")
    assert (status.state, status.rows, status.planned, status.shards, status.workers) == (
        "complete",
        10,
        10,
        0,
        [],
    )
    assert "10 of 10 (100%)" in str(assay.sheet(status))


def test_a_run_by_workers(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 5)
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    assay.run(lab.config, shard="1/2")
    (status,) = assay.status(tmp_path / "out")
    assert (status.state, status.rows, status.planned) == ("complete", 10, 10)
    assert status.finished == status.shards
    assert [line.status.made for line in status.workers] == [10]


def test_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no experiment in"):
        assay.status(tmp_path)
    with pytest.raises(UserError, match="no file or folder"):
        assay.status(tmp_path / "nowhere")


def test_what_a_worker_says_of_its_progress() -> None:
    progress = Progress("run")
    progress.lanes["run", "m"] = LaneProgress(
        "m", total=9, done=3, present=2, errors=1, tokens=30, cost=0.5
    )
    first = worker_status(progress, [4])
    assert (first.shards, first.total, first.present, first.done, first.made, first.errors) == (
        [4],
        9,
        2,
        3,
        3,
        1,
    )
    assert first.rate > 0
    progress.lanes["run", "m"].unpriced = 1
    second = worker_status(progress, [], WorkerStatus(tokens=5, made=7, cost=1.0))
    assert (second.tokens, second.made, second.cost, second.rate) == (35, 10, None, 0)
