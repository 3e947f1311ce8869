"""Workers on a plain folder: the same rows and numbers as one process, however the work is split."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.cluster.root import Root
from assay.engine.cluster.status import LaneStatus, WorkerStatus, follow, sum_lanes
from assay.errors import ConfigError, Interrupted, UserError
from assay.store.log import FileLog
from assay.store.shared.claims import Beat
from assay.store.shared.generations import Generation
from assay.store.shared.objects import FolderObjects
from tests.support import Lab, without_times


def sharded(lab: Lab, number: int, parts: int, **options: Any) -> Any:
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    return assay.run(lab.config, shard=f"{number}/{parts}", **options)


def rows(folder: Path, stem: str) -> list[dict[str, Any]]:
    files = [folder / f"{stem}.jsonl", *sorted((folder / f"{stem}.d").rglob("*.jsonl"))]
    lines = (line for file in files if file.exists() for line in file.read_text().splitlines())
    return sorted((without_times(json.loads(line)) for line in lines), key=lambda row: row["key"])


def begun(tmp_path: Path, items: int = 12) -> tuple[Lab, Path, Path]:
    """A lab whose experiment one process has made in `out`, and whose next one is made in `many`."""
    lab = Lab(tmp_path, items)
    lab.run()
    lab.config["output_dir"] = str(tmp_path / "many")
    return lab, tmp_path / "out", tmp_path / "many"


def assert_equal(one: Path, many: Path) -> None:
    for stem in ("responses", "evaluation_results"):
        assert rows(one, stem) == rows(many, stem)
    assert (one / "metrics.jsonl").read_bytes() == (many / "metrics.jsonl").read_bytes()


def test_shards_make_what_one_process_makes(tmp_path: Path) -> None:
    lab, one, many = begun(tmp_path)
    paid = lab.calls()
    result = sharded(lab, 1, 3)
    assert_equal(one, many)
    assert result.run.complete
    assert lab.calls() == 2 * paid
    again = lab.run()
    assert (again.ran, again.paid) == (0, 0)


def test_one_process_goes_on_where_workers_stopped_and_they_where_it_stopped(
    tmp_path: Path,
) -> None:
    lab, one, many = begun(tmp_path)
    paid = lab.calls()
    lab.run(limit=3)
    sharded(lab, 2, 3, limit=7)
    assert lab.calls() == paid + 14
    lab.run(limit=9)
    assert [segment.name for segment in FileLog(many / "responses.jsonl").segments()] == [
        "responses.jsonl"
    ]
    sharded(lab, 1, 2)
    assert lab.calls() == 2 * paid
    assert_equal(one, many)


def test_a_changed_plan_is_a_new_generation(tmp_path: Path) -> None:
    lab, one, many = begun(tmp_path)
    sharded(lab, 1, 2)
    lab.config["sample_params"]["num_samples"] = 3
    del lab.config["evaluation_methods"][0]
    result = sharded(lab, 1, 2)
    assert result.run.planned == 36
    lab.config["output_dir"] = str(one)
    lab.run()
    assert_equal(one, many)


def test_failures_are_tried_again_by_the_next_run_only(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 6)
    code = (tmp_path / "model.py").read_text()
    away = "if __import__('os').path.exists(__file__ + '.off'): raise ConnectionError('away')"
    lab.write("model.py", code.replace("    with lock", f"    {away}\n    with lock"))
    (tmp_path / "model.py.off").touch()
    result = sharded(lab, 1, 2)
    assert result.run.counts["errored"] == 12
    (tmp_path / "model.py.off").unlink()
    assert sharded(lab, 1, 2).run.counts["errored"] == 12
    assert sharded(lab, 1, 2, retry_errors=True).run.counts == {"ok": 12}
    assert len(rows(tmp_path / "out", "responses")) == 12


def test_existing_responses_are_scored_by_shards(tmp_path: Path) -> None:
    lab, one, many = begun(tmp_path)
    lab.config["evaluation_methods"].append({"name": "f1", "params": {"threshold": 0.5}})
    config = lab.write("again.json", json.dumps(lab.config))
    assay.evaluate(one, config, output_dir=str(tmp_path / "alone"))
    result = assay.evaluate(one, config, output_dir=str(many), shard="1/2")
    assert rows(tmp_path / "alone", "evaluation_results") == rows(many, "evaluation_results")
    assert (tmp_path / "alone/metrics.jsonl").read_bytes() == (many / "metrics.jsonl").read_bytes()
    assert result.evaluation.counts == {"scored": 72}


def test_a_driver_that_is_asked_to_stop_says_so(tmp_path: Path) -> None:
    lab, _, many = begun(tmp_path, 4)
    stop = Stop()
    stop.request()
    with pytest.raises(Interrupted, match="every finished row is kept"):
        asyncio.run(assay.finish(assay.experiment(lab.config, shard="1/2"), stop))
    assert assay.status(many)[0].state == "stopped"


def test_of_two_workers_this_process_is_one(tmp_path: Path) -> None:
    lab, one, many = begun(tmp_path)
    assay.run(lab.config, workers=2)
    assert_equal(one, many)
    beats = [json.loads(file.read_text()) for file in (many / "workers/0").iterdir()]
    assert [
        beat["pid"] == os.getpid() for beat in sorted(beats, key=lambda beat: beat["started"])
    ] == [True, False]
    assert all(beat["ended"] for beat in beats)


def test_a_driver_that_is_stopped_has_its_workers_finish_their_calls(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 100)
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    code = (tmp_path / "model.py").read_text()
    lab.write(
        "model.py",
        code.replace("    with lock", "    __import__('time').sleep(0.4)\n    with lock"),
    )
    claims, stop = tmp_path / "out/claims/0", Stop()

    async def stopped() -> None:
        run = asyncio.create_task(assay.finish(assay.experiment(lab.config, workers=2), stop))
        while len({json.loads(file.read_text())["worker"] for file in claims.rglob("*.json")}) < 2:
            await asyncio.sleep(0.05)
        stop.request()
        await run

    with pytest.raises(Interrupted, match="every finished row is kept"):
        asyncio.run(stopped())
    done = len(rows(tmp_path / "out", "responses"))
    assert 0 < done == lab.calls() < 200
    again = assay.run(lab.config, workers=2)
    assert again.run is not None
    assert again.run.counts == {"ok": 200}
    assert lab.calls() == 200


def test_outputs_are_written_when_all_rows_are_there(tmp_path: Path) -> None:
    lab, _, many = begun(tmp_path, 4)
    lab.config["outputs"] = [{"type": "csv"}]
    result = assay.run(lab.config, workers=0)
    assert result.notes == [f"the plan has 4 shards: assay worker {many}"]
    assert not (many / "responses.csv").exists()
    sharded(lab, 1, 2)
    assert len((many / "responses.csv").read_text().splitlines()) == 1 + 8


def test_an_address_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab = Lab(tmp_path)
    lab.write("items.jsonl", "{}")
    with pytest.raises(UserError, match="rows cannot be kept at 'hdfs://store/x'"):
        assay.run(lab.config, output_dir="hdfs://store/x")
    lab.config["output_dir"] = "S3://bucket/x"
    with pytest.raises(ConfigError, match="nothing can be written to 'S3://bucket/x'"):
        assay.run(lab.config)
    assert not list(tmp_path.glob("*:"))


def test_a_driver_shows_the_whole_plan_and_its_own_rate(tmp_path: Path) -> None:
    """A worker of an earlier run has made 5 rows of lane `m`, one of this run makes 3 more, in a shard without items
    and in one of 6."""
    objects, progress = FolderObjects(tmp_path), Progress()
    generation = Generation(shards=8, verb="run")

    def say(worker: str, done: int) -> None:
        lanes = sum_lanes([{"m": LaneStatus()}, {"m": LaneStatus(total=6, done=done)}])
        assert lanes["m"].total == 6
        status = msgspec.to_builtins(WorkerStatus(step="run", lanes={"run": lanes}))
        generation.workers(objects).beat(Beat(worker=worker, status=status))

    async def look() -> None:
        say("earlier", 5)
        following = asyncio.create_task(
            follow(Root(tmp_path), generation, progress, {("run", "m"): 20})
        )
        while not progress.lanes:
            await asyncio.sleep(0.01)
        say("now", 3)
        while not progress.lanes["run", "m"].done:
            await asyncio.sleep(0.01)
        following.cancel()

    asyncio.run(look())
    lane = progress.lanes["run", "m"]
    assert (lane.total, lane.present, lane.done) == (20, 5, 3)


@pytest.mark.parametrize("text", ["0/3", "17/16", "3", "a/b", "-1/2", "1/0"])
def test_bad_shards(tmp_path: Path, text: str) -> None:
    lab = Lab(tmp_path)
    lab.write("items.jsonl", "{}")
    with pytest.raises(UserError, match="a shard is I/N with I from 1 to N"):
        assay.run(lab.config, shard=text)
