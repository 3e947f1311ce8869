"""Every verb on experiments in a bucket: the same numbers as on disk, addresses in what people read, nothing lost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.api import finish
from assay.engine.experiment.existing import aggregate
from assay.errors import StoreError, UserError
from assay.store.log import FileLog
from assay.store.shared.mirror import mirror
from assay.store.shared.objects import Objects, open_objects
from assay.threads import run_blocking
from assay.viewer.experiments import experiments_below
from assay.viewer.index.opening import open_index
from assay.viewer.pages import page
from tests.cluster import servers
from tests.cluster.servers import BUCKET, Faulty, StoreServer
from tests.cluster.test_storage import use

pytestmark = pytest.mark.cluster
ROOT = f"s3://{BUCKET}"
ITEMS = [
    {
        "id": f"q{n}",
        "data": {"question": f"What is {n} + 1?"},
        "ground_truth": str(n + (1 if n % 4 else 2)),
    }
    for n in range(24)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with servers.seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


class Place:
    """A prefix of its own in the bucket, a folder with a config, and the commands that are typed there."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.address = address
        self.objects = open_objects(address)
        self.objects.write(
            "data/items.jsonl", b"".join(json.dumps(item).encode() + b"\n" for item in ITEMS)
        )
        self.config: dict[str, Any] = {
            "name": "sums",
            "dataset": f"{address}/data/items.jsonl",
            "models": ["demo:small"],
            "prompts": ["{{ question }}"],
            "evaluation_methods": ["exact_match", "contains"],
            "metrics": [{"name": "mean", "facets": ["model_name"]}],
            "output_dir": f"{address}/runs/one",
        }
        (folder / "config.yaml").write_text(json.dumps(self.config))

    def assay(self, *words: str, code: int = 0, more: Mapping[str, str] | None = None) -> str:
        """What a command prints."""
        command = [sys.executable, "-m", "assay", *words]
        environ = {**os.environ, **(more or {}), "COLUMNS": "200"}
        done = subprocess.run(
            command, cwd=self.folder, env=environ, input=b"", capture_output=True, timeout=120
        )
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == code, text
        assert "/mirrors/" not in text  # people read addresses
        assert servers.SECRET not in text
        return text

    def rows(self, name: str) -> list[bytes]:
        """The lines of a file, and of the segments of its last generation, as they are in the bucket."""
        return lines_of(self.objects, name)


def lines_of(objects: Objects, name: str) -> list[bytes]:
    folder, _, file = name.rpartition("/")
    generations = [
        entry.name.rpartition("/")[2] for entry in objects.names(f"{folder}/generations/")
    ]
    last = max((int(number.removesuffix(".json")) for number in generations), default=0)
    segments = objects.names(f"{folder}/{file.removesuffix('.jsonl')}.d/{last}/")
    names = [name, *(segment.name for segment in segments)]
    return b"".join(objects.read(each) or b"" for each in names).splitlines()


@pytest.fixture
def place(server: StoreServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Place:
    use(monkeypatch, server.environ)
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    return Place(tmp_path, f"{ROOT}/{tmp_path.name}")


@pytest.fixture
def done(place: Place) -> Place:
    assay.run(str(place.folder / "config.yaml"))
    return place


def test_the_same_experiment_on_disk_and_in_a_bucket(done):
    local = assay.run({**done.config, "dataset": ITEMS, "output_dir": str(done.folder / "disk")})
    assert (
        done.objects.read("runs/one/metrics.jsonl")
        == (done.folder / "disk/metrics.jsonl").read_bytes()
    )
    values = {row["label"]: row["value"] for row in local.metrics}
    assert values["exact_match"] == sum(row["passed"] for row in _rows(done, "exact_match")) / len(
        ITEMS
    )
    again = assay.run(str(done.folder / "config.yaml"))
    assert again.folder == f"{done.address}/runs/one"
    assert len(done.rows("runs/one/responses.jsonl")) == len(ITEMS)


def _rows(done: Place, scorer: str) -> list[dict[str, Any]]:
    rows = map(json.loads, done.rows("runs/one/evaluation_results.jsonl"))
    return [row for row in rows if row["label"] == scorer]


def test_verbs_that_read(done):
    one = f"{done.address}/runs/one"
    for entry in list(done.objects.names("runs/one/")):
        done.objects.write(
            entry.name.replace("/one/", "/copy/"), done.objects.read(entry.name) or b""
        )
    assert '"24"' in done.assay(
        "sql", one, "select cast(count(*) as varchar) as n from responses", "--json"
    )
    assert "24/24" in done.assay("ls", done.address)
    listed = [
        json.loads(line)["folder"]
        for line in done.assay("ls", f"{done.address}/runs", "--json").splitlines()
    ]
    assert listed == [f"{done.address}/runs/copy", one]
    assert "What is 3 + 1?" in done.assay("trace", one, "q3")
    sides = done.assay("compare", one, f"{done.address}/runs/copy", "--label", "exact_match")
    assert "one" in sides
    assert "copy" in sides
    assert "is given twice" in done.assay("compare", one, one, code=2)
    assert one in done.assay("plan", "config.yaml")
    assert "pass" in done.assay("gate", one, "--label", "exact_match", "--min", "0.2").lower()
    assert "q3" in done.assay("export", one, "-t", "items", "-f", "jsonl")
    done.assay("report", one, "-o", "report.html")
    assert (done.folder / "report.html").stat().st_size > 10_000
    assert "there is no file or folder" in done.assay(
        "sql", f"{done.address}/none", "select 1", code=2
    )


def test_verbs_that_write_push_what_they_changed(done):
    one = f"{done.address}/runs/one"
    done.assay(
        "aggregate", one, "--set", "metrics=[{name: count, facets: [model_name]}]", "--trust"
    )
    assert {json.loads(row)["metric_name"] for row in done.rows("runs/one/metrics.jsonl")} == {
        "count"
    }
    done.assay("evaluate", one, "--set", "evaluation_methods=[exact_match]", "--no-progress")
    assert len(done.rows("runs/one/evaluation_results.jsonl")) == len(ITEMS)
    labelling = assay.label(one, label="exact_match", annotator="ann", count=4)
    for answer in labelling.waiting[:2]:
        labelling.save(answer, 1.0)
    assert len(done.rows("runs/one/labels.jsonl")) == 2
    to_label = f"{done.address}/out/answers.csv"
    done.assay("judge", "label", one, "--label", "exact_match", "--count", "4", "-o", to_label)
    assert len(done.rows("out/answers.csv")) == 4 + 1
    done.assay("export", one, "-o", f"{done.address}/out/rows.csv")
    assert len(done.rows("out/rows.csv")) == len(ITEMS) + 1
    assert "such an object already" in done.assay(
        "export", one, "-o", f"{done.address}/out/rows.csv", code=2
    )
    done.assay("report", one, "-o", f"{done.address}/out/report.html")
    assert len(done.objects.read("out/report.html") or b"") > 10_000
    assert not (done.folder / "s3:").exists()
    done.assay("export", one, "-t", "items", "-o", f"{done.address}/out/rows.csv", "--force")
    assert b"question" in done.rows("out/rows.csv")[1]


def test_evaluations_elsewhere_remember_addresses(done):
    one, two = f"{done.address}/runs/one", f"{done.address}/runs/two"
    done.assay("evaluate", one, "-o", two, "--no-progress")
    assert done.objects.read("runs/two/responses.jsonl") is None
    manifest = json.loads(done.objects.read("runs/two/manifest.json") or b"{}")
    assert manifest["evaluation"]["metadata"]["rows"]["run"] == f"{one}/responses.jsonl"
    assert str(done.folder).encode() not in (done.objects.read("runs/two/manifest.json") or b"")
    assert str(done.folder).encode() not in (done.objects.read("runs/two/config.yaml") or b"")
    elsewhere = {"ASSAY_STATE_DIR": str(done.folder / "another machine")}
    refused = done.assay("compare", one, two, "--label", "contains", code=2, more=elsewhere)
    assert f"reads {one}/responses.jsonl" in refused  # this machine did not make them
    assert "1.000" not in done.assay(
        "compare", one, two, "--label", "exact_match", "--trust", more=elsewhere
    )


def test_outputs_of_a_config_go_to_the_bucket(place):
    outputs = [
        {"type": "csv"},
        {"type": "jsonl", "table": "items", "path": f"{place.address}/elsewhere/items.jsonl"},
    ]
    result = assay.run({**place.config, "outputs": outputs})
    assert f"written to {place.address}/runs/one/responses.csv" in result.notes
    assert len(place.rows("runs/one/responses.csv")) == len(ITEMS) + 1
    assert len(place.rows("elsewhere/items.jsonl")) == len(ITEMS)
    assay.run({**place.config, "outputs": outputs})  # and in place of its own


def test_datasets_by_pattern_compressed_and_stored(place):
    import gzip

    halves = [
        b"".join(json.dumps(item).encode() + b"\n" for item in half)
        for half in (ITEMS[:10], ITEMS[10:])
    ]
    place.objects.write("parts/a.jsonl.gz", gzip.compress(halves[0]))
    place.objects.write("parts/b.jsonl.gz", gzip.compress(halves[1]))
    plan = assay.plan({**place.config, "dataset": f"{place.address}/parts/*.jsonl.gz"})
    assert plan.planned == len(ITEMS)
    place.objects.write("parts/b.jsonl.gz", gzip.compress(halves[1][: halves[1].index(b"\n") + 1]))
    assert (
        assay.plan({**place.config, "dataset": f"{place.address}/parts/*.jsonl.gz"}).planned == 11
    )
    with pytest.raises(UserError, match="no file matches"):
        assay.plan({**place.config, "dataset": f"{place.address}/parts/none.jsonl"})
    repository = f"{place.address}/repository"
    place.assay(
        "dataset",
        "add",
        f"{place.address}/data/items.jsonl",
        "--name",
        "sums",
        "--repository",
        repository,
    )
    assert place.objects.read("repository/datasets/sums/items.jsonl") is not None
    other = {"ASSAY_STATE_DIR": str(place.folder / "other")}
    assert "24 items" in place.assay("dataset", "ls", "--repository", repository, more=other)
    assert "ok" in place.assay("dataset", "verify", "sums", "--repository", repository, more=other)


def test_what_another_machine_changed_is_not_overwritten(done):
    experiment = aggregate(f"{done.address}/runs/one", overrides={"metrics": [{"name": "count"}]})
    done.objects.write(
        "runs/one/manifest.json", done.objects.read("runs/one/manifest.json") + b"\n"
    )
    before = {entry.name: entry.stamp for entry in done.objects.names("runs/one/")}
    with pytest.raises(StoreError, match="changed in the bucket since it was read"):
        run_blocking(lambda: finish(experiment))
    assert {entry.name: entry.stamp for entry in done.objects.names("runs/one/")} == before
    assay.aggregate(f"{done.address}/runs/one", metrics=["count"])  # now it is read
    assert {json.loads(row)["metric_name"] for row in done.rows("runs/one/metrics.jsonl")} == {
        "count"
    }


def test_a_list_of_many_experiments_fetches_no_rows(done, monkeypatch):
    contents = {
        entry.name: done.objects.read(entry.name) for entry in done.objects.names("runs/one/")
    }
    for number in range(30):
        for name, content in contents.items():
            done.objects.write(name.replace("runs/one", f"many/{number:02}"), content or b"")
    monkeypatch.setenv("ASSAY_STATE_DIR", str(done.folder / "fresh"))
    assert len(assay.ls(f"{done.address}/many")) == 30
    fetched = [
        path.name for path in (done.folder / "fresh").rglob("*.json*") if path.name[0] != "."
    ]
    assert fetched.count("manifest.json") == fetched.count("metrics.jsonl") == 30
    assert not _copied_rows(done.folder / "fresh")


def test_the_viewer_shows_a_bucket_and_fetches_rows_when_they_are_read(done, monkeypatch):
    monkeypatch.setenv("ASSAY_STATE_DIR", str(done.folder / "fresh"))
    experiments = experiments_below([done.address])
    assert experiments.names == [done.address]
    assert list(experiments.list()) == ["runs/one"]
    assert not _copied_rows(done.folder / "fresh")
    assert page(experiments, "leaderboard", {})
    index, _ = open_index(experiments, "runs/one", wait=True)
    assert sorted(index.item_ids()) == sorted(item["id"] for item in ITEMS)
    assert _copied_rows(done.folder / "fresh")


def _copied_rows(folder: Path) -> list[Path]:
    return [
        *folder.rglob("responses.jsonl"),
        *folder.rglob("*.d/**/*.jsonl"),
        *folder.rglob("items.jsonl"),
    ]


def test_a_mirror_through_a_store_that_misbehaves(done, server, monkeypatch):
    monkeypatch.setenv("ASSAY_STATE_DIR", str(done.folder / "fresh"))
    plan = Faulty(server.url, share=0.4)
    with servers.faulty(plan) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        folder = mirror(f"{done.address}/runs/one")
        result = assay.aggregate(f"{done.address}/runs/one", metrics=["count"])
        assert {row["metric_name"] for row in result.metrics} == {"count"}
    assert sum(plan.counts.values()) > 5
    for name in ("items.jsonl", "metrics.jsonl", "manifest.json"):
        assert (folder / name).read_bytes() == done.objects.read(f"runs/one/{name}")
    rows = [line for _, line in FileLog(folder / "responses.jsonl").scan()]
    assert sorted(rows) == sorted(done.rows("runs/one/responses.jsonl"))


def test_a_run_does_not_trust_a_store_that_overwrites(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    with servers.rclone(tmp_path / "rclone") as server:
        use(monkeypatch, server.environ)
        place = Place(tmp_path, f"{ROOT}/bad")
        refused = place.assay("run", "config.yaml", "--no-progress", code=1)
        assert "this store cannot be shared: it overwrites an object" in refused
        assert place.objects.read("runs/one/generations/0.json") is None
        alone = {"ASSAY_SINGLE_WRITER": "1"}
        place.assay("run", "config.yaml", "--no-progress", more=alone)
        assert len(place.rows("runs/one/responses.jsonl")) == len(ITEMS)
        assert "cannot be shared" in place.assay("aggregate", f"{place.address}/runs/one", code=1)


def test_memory_is_a_place_for_a_process():
    objects = open_objects("memory://lab/x")
    objects.write("items.jsonl", b"".join(json.dumps(item).encode() + b"\n" for item in ITEMS[:4]))
    config = {
        "name": "m",
        "dataset": "memory://lab/x/items.jsonl",
        "models": ["demo:small"],
        "prompts": ["{{ question }}"],
        "evaluation_methods": ["exact_match"],
        "metrics": ["mean"],
        "output_dir": "memory://lab/x/out",
    }
    assert assay.run(config).folder == "memory://lab/x/out"
    assert len(lines_of(objects, "out/responses.jsonl")) == 4
    assert [entry.folder for entry in assay.ls("memory://lab/x")] == ["memory://lab/x/out"]
