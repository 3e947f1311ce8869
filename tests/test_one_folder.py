"""One folder, one answer: every verb finds the same experiments, rows and numbers at a path, whatever left them there."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import registry
from assay.cli import COMMANDS
from assay.engine.experiment.imports.results import import_results
from assay.engine.experiment.resolve import SeveralExperiments, find_sources
from assay.errors import AssayError, UserError
from assay.formats.ragicamp.evaluation import compare_agents
from assay.server import Options, running
from assay.store.stores import is_repository
from assay.viewer.experiments import experiments_below
from tests.cli.shell import Shell
from tests.formats.intelligence_layer.test_verbs import Folders
from tests.formats.mixeval.folders import write_both, write_model
from tests.formats.ragicamp.evaluating import OTHER, WORKED, Agent, Questions
from tests.formats.sygra.folder import Folder
from tests.support import Lab

HERE = Path(__file__).parent
MANY = {"ls", "view", "report", "compare", "rank", "sql", "status", "verify"}
ONE = {"gate", "aggregate", "trace", "export", "judge", "diff", "evaluate", "merge"}
NO_PATH = {  # those that take a config, a name or files to read, and what is made for one experiment
    "run", "plan", "validate", "lock", "import", "convert", "dataset", "benchmarks", "local", "demo", "init", "list",
    "show", "schema", "mock-server", "worker", *registry.formats("command"),
}  # fmt: skip
NO_FOLDER = {"squad", "every_eval_ever", "hf_eval"}  # scorers, records for others, benchmarks


def native(root: Path, name: str = "one") -> Path:
    """One of four answers fails."""
    (root / "lab").mkdir(exist_ok=True)
    lab = Lab(root / "lab")
    lab.rows[3]["data"]["question"] = "1 / 0"
    lab.config |= {"output_dir": str(root / name), "evaluation_methods": ["exact_match"]}
    lab.run()
    return root / name


def parent(root: Path) -> Path:
    native(root, "deep/er/one")
    return root


def parent_of_two(root: Path) -> Path:
    native(root, "one")
    native(root, "deep/two")
    return root


def sygra(root: Path, url: str, tasks: int = 1) -> Path:
    """Tasks that write to one folder."""
    for number in range(tasks):
        folder = Folder(root / "base", url)
        folder.out = root / "out"
        folder.nodes["ask"]["prompt"] = [{"user": "{question}" + " " * number}]
        assert folder.call(output_with_ts=False).ok
    return root / "out"


def ragicamp(root: Path, agents: int = 1) -> Path:
    """The second agent fails on one question."""
    answers = {**WORKED, OTHER: "nobody"}
    chosen = [Agent("first"), Agent("second", answers)][:agents]
    compare_agents(chosen, Questions(), ["exact_match", "f1"], root / "outputs/x.json")
    return root / "outputs"


def mixeval(root: Path, models: int = 1) -> Path:
    """The scorer fails on one free-form answer."""
    write_both(root)
    (root / "short.py").write_text(
        "def short(response, ground_truth):\n    return 1 / len(response.strip('?')) > 0.2\n"
    )
    answers = [(["Oslo", "?", "8"], ["B", "A", "no idea"]), (["?", "Oslo", "9"], ["C"] * 3)]
    for number, (free, choice) in enumerate(answers[:models]):
        write_model(root, f"m{number}", free, choice)
    words = ["responses", "--data", "data", "-o", "scores", "--free-form-parser", "short.py:short"]
    ended = Shell(root).call("mixeval", "score", *words)
    assert ended.code in (0, 1), ended.said
    return root / "scores"


def een(root: Path) -> Path:
    """Rows without a manifest, as the original leaves them."""
    assay.export(native(root), "een", output=root / "een")
    return root / "een"


def library(root: Path) -> Path:
    Folders(root / "library")
    return root / "library"


# what leaves a folder, and how many experiments there are in it; those of logs are counted by an import
KINDS: dict[str, tuple[Callable[..., Path], int]] = {
    "native": (native, 1),
    "parent": (parent, 1),
    "parent of two": (parent_of_two, 2),
    "sygra": (sygra, 1),
    "sygra, two tasks": (lambda root, url: sygra(root, url, 2), 2),
    "ragicamp": (ragicamp, 1),
    "ragicamp, two agents": (lambda root: ragicamp(root, 2), 2),
    "mixeval": (mixeval, 1),
    "mixeval, two models": (lambda root: mixeval(root, 2), 2),
    "intelligence_layer": (library, 3),
    "een": (een, 1),
}
LOGS = {folder.parent.name: folder for folder in sorted((HERE / "formats").glob("*/logs"))}


class Place:
    """A path, and the folders of ours with the rows of each experiment there."""

    def __init__(self, kind: str, root: Path, url: str) -> None:
        if kind in LOGS:
            self.path = Path(shutil.copytree(LOGS[kind], root / "logs"))
            self.folders = [
                Path(one.folder) for one in import_results(self.path, root / "imported")
            ]
            return
        make, count = KINDS[kind]
        self.path = make(root, url) if "sygra" in kind else make(root)
        manifests = sorted(self.path.rglob("manifest.json")) or [self.path / "none"]
        self.folders = [
            file.parent
            for file in manifests
            if file.parents[1].name not in ("datasets", "runs", "aggregations")
        ]
        assert len(self.folders) == count

    def rows(self, name: str) -> list[dict[str, Any]]:
        files = [folder / name for folder in self.folders if (folder / name).exists()]
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    @property
    def labels(self) -> list[dict[str, Any]]:
        return self.rows("evaluation_results.jsonl")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that is always right."""
    with running(Options(skill=1.0)) as address:
        yield address


@pytest.fixture(scope="module", params=[*KINDS, *LOGS])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, url: str
) -> Place:
    return Place(request.param, tmp_path_factory.mktemp("place"), url)


def test_every_verb_is_about_many_or_about_one() -> None:
    assert set(COMMANDS) == MANY | ONE | NO_PATH


def test_every_format_that_leaves_a_folder_is_tried() -> None:
    assert {kind.partition(",")[0] for kind in (*KINDS, *LOGS)} >= {*registry.formats()} - NO_FOLDER


def test_verbs_about_many_take_them_all(place: Place) -> None:
    assert assay.sql(place.path, "select count(*) as n from evaluations") == [
        {"n": len(place.labels)}
    ]
    failed = [row for row in place.labels if row.get("outcome") == "errored"]
    if any("outcome" in row for row in place.labels):  # EEN has no such column
        counted = "select count(*) as n from evaluations where outcome = 'errored'"
        assert assay.sql(place.path, counted) == [{"n": len(failed)}]
    if len(place.folders) > 1:
        sources = assay.sql(place.path, "select distinct source from evaluations")
        assert len(sources) == len(place.folders)
    listed = assay.ls(place.path)
    assert len(listed) >= len(place.folders)
    assert sum(entry.evaluations for entry in listed) == len(place.labels)
    assert len(experiments_below([place.path]).list()) == len(listed)
    assert len(assay.status(place.path)) == len(assay.verify(place.path)) == len(listed)


def test_compare_takes_a_side_from_each(place: Place) -> None:
    shared = {row["label"] for row in place.labels}
    if len(place.folders) == 1:
        with pytest.raises(UserError, match="there is only one side to compare"):
            assay.compare([place.path])
    elif len(shared) == 1 and not any(row.get("players") for row in place.labels):
        compared = assay.compare([place.path])
        assert len(compared.standings) == len(place.folders)


def about_one(path: Path, label: str, item: str, work: Path) -> Iterator[Callable[[], Any]]:
    """Each verb about one experiment, called with a path."""
    yield lambda: assay.gate(path, min=-9, label=label, metric="mean", point=True, partial=True)
    yield lambda: assay.aggregate(path, {"metrics": ["mean"]}, output_dir=str(work / "metrics"))
    if not is_repository(path):  # the whole of one is searched
        yield lambda: assay.trace(path, item)
    yield lambda: assay.export(path, "jsonl", table="evaluations", output=work / "rows.jsonl")
    yield lambda: assay.Labelling(path, label)
    yield lambda: assay.frame(path)
    yield lambda: assay.diff(path, path)
    yield lambda: assay.evaluate(path, {"evaluation_methods": ["exact_match"]})
    yield lambda: assay.merge([path, path], work / "merged")


def test_verbs_about_one_refuse_several_and_name_them(place: Place, tmp_path: Path) -> None:
    if len(place.folders) == 1:
        pytest.skip("there is one")
    for verb in about_one(place.path, "", "0", tmp_path):
        with pytest.raises(SeveralExperiments) as raised:
            verb()
        assert (
            raised.value.what
            == f"there are {len(place.folders)} experiments at {str(place.path)!r}"
        )
        if place.path.name != "logs":
            assert raised.value.places == [*map(str, place.folders)]


def test_verbs_about_one_have_its_numbers(place: Place, tmp_path: Path) -> None:
    if len(place.folders) > 1:
        pytest.skip("there are several")
    scored = [row for row in place.labels if row["score"] is not None and not row.get("players")]
    label = scored[0]["label"]
    own = [row for row in place.labels if row["label"] == label]
    gated, aggregated, traced, *_ = (
        verb() for verb in list(about_one(place.path, label, own[0]["item_id"], tmp_path))[:5]
    )
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(lines) == len(place.labels)
    of_item = [row for row in place.rows("responses.jsonl") if row["item_id"] == own[0]["item_id"]]
    assert len(traced.samples) == len(of_item)
    (value,) = {check.value for check in gated.checks}
    rows = [row for row in aggregated.metrics if row["label"] == label]
    assert [row["value"] for row in rows] == [pytest.approx(value)]
    assert rows[0]["total_sample_count"] == len(own)
    shutil.copytree(place.folders[0], tmp_path / "copy")
    assert assay.diff(place.path, tmp_path / "copy").same


def test_the_command_for_each_is_told(tmp_path: Path) -> None:
    parent_of_two(tmp_path)
    ended = Shell(tmp_path).call("gate", ".", "--min", "0.5", "--label", "exact_match")
    assert ended.code == 2
    for name in ("deep/two", "one"):
        assert f"assay gate {name} --min 0.5 --label exact_match" in ended.err
        again = Shell(tmp_path).call("gate", name, "--min", "0.5", "--label", "exact_match")
        assert again.code in (0, 3, 4), again.said


def test_a_score_of_mixeval_is_gated_at_any_level(tmp_path: Path) -> None:
    scores = mixeval(tmp_path)
    (listed,) = assay.ls(scores)
    for path in (tmp_path, scores, scores / "m0", listed.folder):
        (check,) = assay.gate(
            path, min=0.1, metric="score", label="short+rule", point=True, max_error_rate=1.0
        ).checks
        assert check.value == listed.values["score"][1], path


def test_a_damaged_experiment_is_named_not_left_out(tmp_path: Path) -> None:
    parent_of_two(tmp_path)
    (tmp_path / "one/manifest.json").write_text("{")
    with pytest.raises(AssayError, match="the manifest cannot be read") as raised:
        assay.sql(tmp_path, "select 1")
    assert "one/manifest.json" in raised.value.where


def test_a_run_without_a_row_yet_is_one_of_several(tmp_path: Path) -> None:
    """Its manifest and items are there from the start on: it is listed, and so it is named."""
    parent_of_two(tmp_path)
    for name in ("responses.jsonl", "evaluation_results.jsonl", "metrics.jsonl"):
        (tmp_path / "one" / name).unlink()
    assert len(assay.ls(tmp_path)) == 2
    with pytest.raises(SeveralExperiments) as raised:
        assay.gate(tmp_path, min=0.5)
    assert raised.value.places == [str(tmp_path / "deep/two"), str(tmp_path / "one")]


def test_a_manifest_of_another_program_is_no_experiment(tmp_path: Path) -> None:
    parent(tmp_path)
    (tmp_path / "manifest.json").write_text('{"name": "an app"}')
    (tmp_path / "deep/manifest.json").write_text("[]")
    assert [source.path for source in find_sources([tmp_path])] == [tmp_path / "deep/er/one"]
