"""Generations in a bucket: what the common copy on a machine must not decide."""

import json
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.cluster import placement as opening
from assay.engine.cluster.worker import work
from assay.store.shared.generations import Generation, last_generation
from assay.store.shared.mirror import mirror
from assay.store.shared.objects import Objects, open_objects
from assay.store.shared.replica import Replica
from assay.threads import run_blocking
from tests.support import Lab

pytestmark = pytest.mark.cluster


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    lab = Lab(tmp_path, 12)
    lab.config["output_dir"] = f"memory://{tmp_path.name}/many"
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    return lab


def keys(objects: Objects, generation: Generation) -> list[str]:
    names = [
        "responses.jsonl",
        *(entry.name for entry in objects.names(f"responses.d/{generation.number}/")),
    ]
    lines = (line for name in names for line in (objects.read(name) or b"").splitlines())
    return sorted(json.loads(line)["key"] for line in lines)


def test_a_row_that_is_committed_until_the_logs_are_closed_is_kept(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = lab.config["output_dir"]
    assay.run(lab.config, shard="1/2")
    original = opening.close

    def late(objects: Objects, generation: Generation) -> None:
        segments = generation.segments(objects, "responses", 0)
        list(segments.read())
        segments.commit(b'{"item_id":"q0","key":"00ff"}\n')
        original(objects, generation)

    monkeypatch.setattr(opening, "close", late)
    lab.config["sample_params"]["num_samples"] = 3
    assay.run(lab.config, shard="1/2")
    assert b"00ff" in (open_objects(place).read("superseded/responses.jsonl") or b"")


@pytest.mark.parametrize(
    "harm", [lambda path: path.unlink(), lambda path: path.write_bytes(2 * path.read_bytes())]
)
def test_workers_do_not_trust_the_common_copy(
    lab: Lab, harm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which stays as it is while another process writes to it."""

    def updated(self: Replica, *, original: Any, own: bool = False, **options: Any) -> None:
        if own:
            original(self, own=own, **options)

    place = lab.config["output_dir"]
    assay.run(lab.config, shard="1/2", limit=8)
    lab.config["metrics"] = []
    assay.run(lab.config, workers=0)
    paid = lab.calls()
    objects = open_objects(place)
    generation = last_generation(objects)
    assert generation is not None
    assert (generation.number, generation.base["responses.jsonl"] > 0) == (1, True)
    harm(mirror(place) / "responses.jsonl")
    monkeypatch.setattr(Replica, "update", partialmethod(updated, original=Replica.update))
    run_blocking(lambda: work(place))
    assert lab.calls() == paid + 8
    assert len(set(keys(objects, generation))) == len(keys(objects, generation)) == 24
