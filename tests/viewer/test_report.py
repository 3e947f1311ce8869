"""`assay report`: the pages in the file are those of the viewer, nothing of others is replaced, equal rows give equal
bytes."""

import base64
import gzip
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

import assay
from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.pages import page
from assay.viewer.report import query_text

PAGE = re.compile(rb'<script type="text/plain" data-page="(.*?)">(.*?)</script>', re.DOTALL)


def carried(file: Path) -> dict[str, Any]:
    """The pages inside a report, decoded."""
    pages: dict[str, Any] = {}
    for key, content in PAGE.findall(file.read_bytes()):
        text = gzip.decompress(base64.b64decode(content))
        name = unescape(key.decode())
        pages[name] = text.decode() if name == "rich.js" else msgspec.json.decode(text)
    return pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lab")
    rows = [
        {
            "id": f"i{n}",
            "question": f"What is {n} + {n}?",
            "answer": str(2 * n),
            "kind": "ab"[n % 2],
        }
        for n in range(20)
    ]
    for name, skill in (("weak", 0.2), ("strong", 0.95)):
        assay.run(
            dataset=rows,
            models=[{"name": name, "type": "demo", "skill": skill}],
            prompts={"short": "{{question}}", "long": "Please tell me: {{question}}"},
            scorers=[{"name": "exact_match", "params": {"expected": "answer"}}],
            metrics=[{"name": "pass@1", "facets": ["model_name", "prompt_template"]}],
            samples=2,
            output_dir=str(place / name),
        )
    return place


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    assay.report([folder], file, samples=30)
    return file


def test_the_pages_are_the_viewers(folder: Path, report: Path) -> None:
    pages = carried(report)
    experiments = Experiments([folder])
    for name in ("experiments", "leaderboard"):
        assert pages[f"{name}?"] == msgspec.json.decode(
            msgspec.json.encode(page(experiments, name, {}))
        )
    assert {row["experiment"] for row in pages["leaderboard?"]["rows"]} == {"weak", "strong"}


def test_whole_items_are_carried_the_hardest_first(folder: Path, report: Path) -> None:
    pages = carried(report)
    about = pages["report"]
    # 30 samples would cut an item of 8
    assert (about["rows"], about["all"], about["chunks"]) == (24, 160, 1)
    rows = pages["rows/0"]
    failures: dict[str, int] = {}
    for name in ("weak", "strong"):
        for line in (folder / name / "evaluation_results.jsonl").read_bytes().splitlines():
            row = msgspec.json.decode(line)
            failures[row["item_id"]] = failures.get(row["item_id"], 0) + (not row["passed"])
    shown = [failures[item] for item in dict.fromkeys(row["item"] for row in rows)]
    assert shown == sorted(failures.values(), reverse=True)[:3]
    for item in {row["item"] for row in rows}:
        passed = [row["labels"]["exact_match"]["passed"] for row in rows if row["item"] == item]
        assert passed == sorted(passed)
        assert len(passed) == 8
    for row in rows:
        details = pages[f"details/{about['details'][row['item']]}"][row["item"]]
        assert details["item_id"] == row["item"]
        assert {trace["experiment"] for trace in details["experiments"]} == {"weak", "strong"}


def test_all_samples(folder: Path, tmp_path: Path) -> None:
    assay.report([folder], tmp_path / "all.html", samples=None)
    pages = carried(tmp_path / "all.html")
    assert pages["report"]["rows"] == len(pages["rows/0"]) == 160


def test_pairs_are_compared(report: Path) -> None:
    pages = carried(report)
    pairs = [(pair["a"], pair["b"]) for pair in pages["report"]["comparisons"]]
    assert ("strong", "weak") in pairs
    assert ("weak::prompt_template=long", "weak::prompt_template=short") in pairs or (
        "weak::prompt_template=short",
        "weak::prompt_template=long",
    ) in pairs
    key = f"compare?{query_text({'a': 'strong', 'b': 'weak'})}"
    assert pages[key]["comparison"]["pairs"][0]["verdict"] == "worse"


def test_equal_rows_give_equal_bytes(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assay.report([folder], tmp_path / name / "report.html")
    assert (tmp_path / "one/report.html").read_bytes() == (
        tmp_path / "two/report.html"
    ).read_bytes()


def test_nothing_is_loaded_from_outside(report: Path) -> None:
    text = report.read_text()
    assert "default-src 'none'" in unescape(text)
    own = re.sub(r"<script.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)\s*=\s*(?!["']?data:)""", own)


def test_markdown_has_tables_and_pictures(folder: Path, tmp_path: Path) -> None:
    notes = assay.report([folder], tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert notes == [f"pictures are in {tmp_path / 'report_files'}"]
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert pictures
    for picture in pictures:
        assert ElementTree.parse(tmp_path / picture).getroot().tag.endswith("svg")
    assert "| experiment | model_name | prompt_template |" in text.replace("\\", "")
    assert "## Differences" in text
    assert "worse" in text


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_files_of_others_are_not_replaced(folder: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("mine")
    with pytest.raises(UserError, match="Assay did not write"):
        assay.report([folder], file)
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assay.report([folder], file, force=True)
    assert file.read_text() != "mine"


def test_export_and_outputs_write_the_same(folder: Path, tmp_path: Path) -> None:
    assay.export(folder / "weak", output=tmp_path / "out.html")
    assert carried(tmp_path / "out.html")["report"]["rows"] == 80
    config = {
        "name": "with-output",
        "dataset": {"path": str(folder / "weak" / "items.jsonl")},
        "models": [{"name": "weak", "type": "demo", "skill": 0.2}],
        "prompts": {"short": "{{question}}"},
        "evaluation_methods": [{"name": "exact_match", "params": {"expected": "answer"}}],
        "metrics": [{"name": "pass@1", "facets": ["model_name"]}],
        "outputs": ["report"],
    }
    assay.run(config, output_dir=str(tmp_path / "run"))
    assert carried(tmp_path / "run" / "report.html")["report"]["rows"] == 20


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda place: assay.report([place], place / "r.html"), "no experiments below"),
        (lambda place: assay.report([place / "absent"], place / "r.html"), "there is no folder"),
        (lambda place: assay.report([place], place / "r.docx"), "cannot be written as 'r.docx'"),
        (
            lambda place: assay.report([place], place / "r.html", format="docx"),
            "cannot be written as 'docx'",
        ),
    ],
)
def test_mistakes_are_told(call: Callable[[Path], Any], what: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=what):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_browser_a_pdf_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no browser"):
        assay.report([folder], tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []
