"""Unfinished or damaged evidence is never a verdict: every verb says what there is, in every format."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import assay
from assay.cli import group
from assay.datasets.parquet import parquet
from assay.records import ROWS_FILE, Manifest
from assay.store.seal import BLOCK
from assay.store.stores import FlatStore
from tests.analysis.match_lab import won
from tests.analysis.rows import save

ITEMS, SAMPLES = 60, 4
LABELS = ROWS_FILE["evaluation"]
ANSWERS = ROWS_FILE["run"]


MODEL = """
def answer(prompt):
    return "yes" if int(prompt.split()[-1]) < 15 else "no"
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quarter of the answers are right: all of the first 15 items."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "model.py").write_text(MODEL)
    rows = [{"id": f"q{number}", "n": number, "ground_truth": "yes"} for number in range(ITEMS)]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "dataset": "items.jsonl",
        "models": ["model.py:answer"],
        "prompt_template": "Is it {{n}}",
        "evaluation_methods": ["exact_match"],
        "metrics": ["pass_rate"],
        "sample_params": {"num_samples": SAMPLES},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    assay.run(folder / "config.yaml", output_dir=str(folder / "out"))
    return folder / "out"


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "out")


def first_rows(folder: Path, name: str = LABELS) -> str:
    """`head`: the first quarter, in which all is right."""
    file = folder / name
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:60]))
    return "60 of 240 evaluations"


def killed(folder: Path) -> str:
    """What a kill leaves: rows, and the manifest of the start."""
    _edit(
        folder,
        lambda manifest: manifest.update(
            complete=False, ended=None, segments=[], checksums={}, present=0
        ),
    )
    return first_rows(folder)


def repeated(folder: Path) -> str:
    file = folder / LABELS
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines, *lines[:60]]))
    return "60 repeated"


def flipped(folder: Path) -> str:
    """One bit, the file's time as before."""
    at = (folder / LABELS).stat().st_size - 50
    _flip(folder / LABELS, at)
    return f"block {at // BLOCK + 1} of {LABELS}"


def not_utf8(folder: Path) -> str:
    file = folder / LABELS
    lines = file.read_bytes().splitlines(keepends=True)
    lines[100] = lines[100].replace(b'"exact_match"', b'"exact_\xffmatch"')
    file.write_bytes(b"".join(lines))
    return "239 of 240 evaluations; 1 unreadable"


def narrowed(folder: Path) -> str:
    """The run was not finished when its answers were scored."""
    _edit(folder, lambda manifest: manifest["inputs"][0].update(partial="60 of 240 responses"))
    return "60 of 240 responses"


STATES = [first_rows, killed, repeated, flipped, not_utf8, narrowed]


def _edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    sections = json.loads((folder / "manifest.json").read_bytes())
    change(sections["evaluation"])
    (folder / "manifest.json").write_text(json.dumps(sections))


def _flip(file: Path, at: int, bit: int = 0) -> None:
    content, stat = bytearray(file.read_bytes()), file.stat()
    content[at] ^= 1 << bit
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def call(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(group, [str(word) for word in words], env={"COLUMNS": "300"})
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize("state", STATES)
def test_a_gate_is_incomplete(out: Path, state: Callable[[Path], str]) -> None:
    text = state(out)
    bound = ("gate", out, "--metric", "pass_rate", "--min", "0.1")
    for policy in ("exit", "pass", "fail"):
        code, said = call(*bound, "--inconclusive", policy)
        assert code == 4
        assert "gate: incomplete" in said
        assert text in said
    code, said = call(*bound, "--partial", "--point")
    assert code == 0
    assert text in said


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv", "html", "json"])
@pytest.mark.parametrize("state", STATES)
def test_numbers_say_what_they_are_over(
    out: Path, whole: Path, state: Callable[[Path], str], form: str
) -> None:
    text = state(out)
    text = text.replace("_", "\\_") if form in ("latex", "markdown") else text
    verbs = [("aggregate", out), ("compare", whole, out), ("compare", whole, out, "--all-labels")]
    verbs.append(("gate", out, "--metric", "pass_rate", "--min", "0.1"))
    for verb, *words in verbs:
        _, said = (
            call(verb, *words, "--format", form) if form != "json" else call(verb, *words, "--json")
        )
        assert text in said, (verb, said)


@pytest.mark.parametrize("state", STATES)
def test_a_comparison_has_no_verdict(out: Path, whole: Path, state: Callable[[Path], str]) -> None:
    state(out)
    assert [pair.verdict for pair in assay.compare([whole, out]).pairs] == ["incomplete"]
    assert [pair.verdict for pair in assay.compare([whole, out], partial=True).pairs] != [
        "incomplete"
    ]


@pytest.mark.parametrize("state", STATES)
def test_an_export_says_so(out: Path, tmp_path: Path, state: Callable[[Path], str]) -> None:
    text = state(out)
    code, said = call("export", out, "--table", "evaluations", "-o", tmp_path / "rows.csv")
    assert code == 0
    assert text in said


@pytest.mark.parametrize("state", [repeated, flipped, not_utf8])
def test_rows_that_do_not_count_are_in_no_table(
    out: Path, tmp_path: Path, state: Callable[[Path], str]
) -> None:
    text = state(out)
    for suffix in ("jsonl", "parquet"):
        assay.export(out, table="evaluations", output=str(tmp_path / f"rows.{suffix}"))
    count = len((tmp_path / "rows.jsonl").read_bytes().splitlines())
    assert count <= 240
    assert len(list(parquet(tmp_path / "rows.parquet"))) == count
    assert assay.sql(out, "select count(*) as n from evaluations") == [{"n": count}]
    assert text in call("sql", out, "select 1 as n from evaluations")[1]


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv", "html", "json"])
def test_a_ranking_says_so(tmp_path: Path, form: str) -> None:
    folder = save(tmp_path, won("a", "b", 6, 3))
    FlatStore(folder).put_manifest(Manifest(kind="evaluation", id="e", planned=500))
    _, said = call("rank", folder, *(("--json",) if form == "json" else ("--format", form)))
    assert "of 500 evaluations" in said


def test_rows_that_repeat_count_once(out: Path) -> None:
    before = assay.aggregate(out).metrics
    repeated(out)
    after = assay.aggregate(out).metrics
    assert [row["value"] for row in after] == [row["value"] for row in before]
    assert [row["total_sample_count"] for row in after] == [
        row["total_sample_count"] for row in before
    ]


def test_scoring_unfinished_responses_elsewhere_is_partial(out: Path, tmp_path: Path) -> None:
    first_rows(out, ANSWERS)
    result = assay.evaluate(out, output_dir=str(tmp_path / "scored"))
    assert {row["partial"] for row in result.metrics} == {"60 of 240 responses"}
    code, said = call("gate", tmp_path / "scored", "--metric", "pass_rate", "--min", "0.9")
    assert code == 4
    assert "60 of 240 responses" in said


def test_a_whole_experiment_says_nothing(whole: Path) -> None:
    for row in assay.aggregate(whole).metrics:
        assert "partial" not in row
    assert call("gate", whole, "--metric", "pass_rate", "--min", "0.1")[0] == 0


@pytest.mark.parametrize("case", range(40))
def test_every_flipped_bit_of_sealed_rows_is_found_and_mended(
    out: Path, whole: Path, case: int
) -> None:
    """The damaged block is named, its cells run again, and the numbers are those of before."""
    name, draw = (ANSWERS, LABELS)[case % 2], random.Random(case)
    at = draw.randrange((out / name).stat().st_size)
    _flip(out / name, at, draw.randrange(8))
    notes = "\n".join(assay.run(whole.parent / "config.yaml", output_dir=str(out)).notes)
    assert f"block {at // BLOCK + 1} of {name}" in notes
    for file in (ANSWERS, LABELS):
        assert sorted(_keys(out / file)) == sorted(_keys(whole / file))
    assert [row["value"] for row in assay.aggregate(out).metrics] == [0.25]


def test_a_flipped_bit_in_the_metrics_is_found(out: Path) -> None:
    before = (out / ROWS_FILE["aggregation"]).read_bytes()
    _flip(out / ROWS_FILE["aggregation"], 30)
    assay.aggregate(out)
    assert (out / ROWS_FILE["aggregation"]).read_bytes() == before


def _keys(file: Path) -> list[str]:
    return [json.loads(line)["key"] for line in file.read_bytes().splitlines()]
