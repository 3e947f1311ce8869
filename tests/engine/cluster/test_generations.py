"""What is left by processes that died while they opened or closed a generation, and by those of other machines."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.cluster.worker import Worked, work
from assay.errors import LockedError
from assay.store.shared.claims import new_beat
from assay.store.shared.generations import (
    Generation,
    close,
    compact,
    is_open,
    last_generation,
    living,
)
from assay.store.shared.objects import FolderObjects
from assay.store.shared.segments import ClosedError
from assay.threads import run_blocking
from tests.engine.cluster.test_worker import assert_equal, begun, rows, sharded
from tests.support import Lab


def worker(folder: Path) -> Worked:
    return run_blocking(lambda: work(folder))


def unfinished(lab: Lab, folder: Path) -> tuple[FolderObjects, Generation]:
    """A generation of which all rows are committed, and no shard is finished."""
    sharded(lab, 1, 2)
    for name in ("whole", "shards"):
        shutil.rmtree(folder / name)
    objects = FolderObjects(folder)
    generation = last_generation(objects)
    assert generation is not None
    return objects, generation


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_generation_that_was_closed_in_vain(tmp_path: Path, is_compacted: bool) -> None:
    """Its rows are in segments and in the file: workers refuse it, and the next run of the same plan begins anew."""
    lab, one, many = begun(tmp_path)
    objects, generation = unfinished(lab, many)
    paid = lab.calls()
    close(objects, generation)
    kept = tmp_path / "kept"
    shutil.copytree(many / "responses.d", kept)
    if is_compacted:
        compact(many, generation)
        # killed before they were removed
        shutil.copytree(kept, many / "responses.d", dirs_exist_ok=True)
    with pytest.raises(ClosedError):
        worker(many)
    sharded(lab, 1, 2)
    assert lab.calls() == paid
    assert_equal(one, many)
    last = last_generation(objects)
    assert last is not None
    assert last.number == generation.number + 1


def test_a_log_that_is_closed_while_a_worker_takes_its_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next generation's opener has put the rows of the segments into the file that the worker reads first."""
    lab, _, many = begun(tmp_path)
    objects, generation = unfinished(lab, many)
    monkeypatch.setattr("assay.engine.cluster.worker.is_open", lambda *_: True)
    close(objects, generation)
    with pytest.raises(ClosedError):
        worker(many)


@pytest.mark.parametrize("name", ["responses.jsonl", "items.jsonl"])
def test_a_file_that_is_missing_is_not_an_empty_one(tmp_path: Path, name: str) -> None:
    lab, one, many = begun(tmp_path)
    lab.run(limit=5)
    objects, generation = unfinished(lab, many)
    assert generation.base["responses.jsonl"] > 0
    paid = lab.calls()
    (many / name).rename(tmp_path / "aside")
    assert not is_open(objects, generation)
    with pytest.raises(ClosedError):
        worker(many)
    (tmp_path / "aside").rename(many / name)
    assert worker(many).result is not None
    assert lab.calls() == paid
    assert_equal(one, many)


def test_a_worker_that_died_elsewhere_counts_as_alive_for_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_LEASE", "0.3")
    lab, one, many = begun(tmp_path)
    objects, generation = unfinished(lab, many)
    beat = new_beat("elsewhere")
    beat.place = "another"
    generation.workers(objects).beat(beat)
    assert living(objects, generation) == []
    lab.run()
    assert_equal(one, many)


def test_a_worker_that_works_elsewhere_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_LEASE", "5")
    lab, _, many = begun(tmp_path)
    objects, generation = unfinished(lab, many)
    workers, beat = generation.workers(objects), new_beat("elsewhere")
    beat.place = "another"
    workers.beat(beat)
    monkeypatch.setattr("time.sleep", lambda seconds: workers.beat(beat))
    with pytest.raises(LockedError, match="this folder is used by elsewhere-"):
        lab.run()


def test_a_finished_generation_with_failures_is_left_alone_by_workers(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 6)
    code = (tmp_path / "model.py").read_text()
    lab.write(
        "model.py",
        code.replace("    with lock", "    raise ConnectionError('away')\n    with lock"),
    )
    lab.config["models"] = [lab.model("calculator", max_retries=0)]
    sharded(lab, 1, 2)
    before = (tmp_path / "out/manifest.json").read_bytes()
    worked = worker(tmp_path / "out")
    assert worked.shards == 0
    assert worked.result is not None
    assert (tmp_path / "out/manifest.json").read_bytes() == before


def test_a_scorer_that_is_added_to_a_finished_run(tmp_path: Path) -> None:
    lab, _, many = begun(tmp_path)
    sharded(lab, 1, 2)
    paid = lab.calls()
    lab.config["evaluation_methods"].append(
        {"name": "f1", "type": "f1", "params": {"threshold": 0.5}}
    )
    assert sharded(lab, 1, 2).evaluation.counts == {"scored": 72}
    assert lab.calls() == paid
    assert len(rows(many, "responses")) == 24


def test_metrics_that_changed_are_made_of_the_finished_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of two processes at once: the other one finds the result when it gets the lock."""
    lab, _, _ = begun(tmp_path)
    sharded(lab, 1, 2)
    paid, times = lab.calls(), 0

    def measured(self: Any, metrics: Any) -> Any:
        nonlocal times
        times += 1
        return original(self, metrics)

    original = assay.engine.experiment.experiment.Experiment.measure
    monkeypatch.setattr("assay.engine.experiment.experiment.Experiment.measure", measured)
    lab.config["metrics"] = ["pass_rate"]
    results = [sharded(lab, 1, 2), sharded(lab, 1, 2)]
    assert (times, lab.calls()) == (1, paid)
    assert results[0].metrics == results[1].metrics
