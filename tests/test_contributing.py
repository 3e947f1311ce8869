"""CONTRIBUTING can be followed to the letter: in a copy of the package, one file is added for each row of its table
"Where do I add …", at the place and with the signature that the row shows, and the copy's command line uses it.

The page gives the paths, the decorators and the positional arguments; the tests give the parameters and the bodies.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
KINDS = (
    "a metric",
    "a scorer",
    "a model provider",
    "a dataset format",
    "a report",
    "a foreign format",
    "a command",
)


class Advice(NamedTuple):
    """A row of the table: the places in its second cell, the code in its third."""

    places: list[str]
    code: list[str]


def advice() -> dict[str, Advice]:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = page.partition("## Where do I add …")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    quoted = re.compile(r"`([^`]+)`")
    return {
        cells[0].strip(): Advice(quoted.findall(cells[1]), quoted.findall(cells[2]))
        for cells in rows[1:]
    }


class Copy:
    """A copy of the package, and its command line in a folder."""

    def __init__(self, place: Path) -> None:
        self.source, self.folder = place / "src", place / "here"
        shutil.copytree(
            ROOT / "src/assay", self.source / "assay", ignore=shutil.ignore_patterns("__pycache__")
        )
        self.folder.mkdir()
        self.before = self.files()

    def files(self) -> dict[str, bytes]:
        paths = (
            path for path in self.source.rglob("*") if path.is_file() and path.suffix != ".pyc"
        )
        return {
            path.relative_to(self.source.parent).as_posix(): path.read_bytes() for path in paths
        }

    def add(self, place: str, text: str) -> None:
        """A file where the page says; `src/` is that of the copy."""
        path = self.source.parent / place
        path.parent.mkdir(exist_ok=True)
        assert not path.exists()
        path.write_text(dedent(text))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(dedent(text))

    def assay(self, *words: str) -> str:
        environ = {**os.environ, "PYTHONPATH": str(self.source), "COLUMNS": "200"}
        command = [sys.executable, "-m", "assay", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def rows(self, name: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    made = Copy(tmp_path)
    made.write(
        "items.jsonl", '{"id": "a", "data": {"question": "What is 1 + 1?"}, "ground_truth": "2"}\n'
    )
    made.write("config.yaml", "{models: [demo:small], dataset: items.jsonl, output_dir: out}\n")
    return made


def plugin(kind: str, name: str, parameters: str, body: str, imports: str = "") -> tuple[str, str]:
    """The place and the text of a plug-in; the page shows `@model def <name>(name, *, …) -> Model` and the like."""
    row = advice()[kind]
    decorator, signature = row.code[0].split(" def ")
    signature = signature.replace("<name>", name).replace("*, …", f"*, {parameters}")
    types = re.findall(r"-> (\w+)", signature)
    registry = decorator.removeprefix("@").partition("(")[0]
    lines = [
        '"""A plug-in of a test."""',
        *([f"from assay.interfaces import {', '.join(types)}"] if types else []),
        f"from assay.registry import {registry}",
        dedent(imports),
        decorator,
        f"def {signature}:",
        '    """What it does."""',
        indent(dedent(body), "    "),
    ]
    return row.places[0].replace("<name>", name), "\n".join(lines)


METRIC = plugin(
    "a metric",
    "loudness",
    "times: float = 1.0",
    "return Values(value=times * float(group.score.mean()))",
)
SCORER = plugin(
    "a scorer",
    "loud",
    "mark: str = '!'",
    """
    passed = response.response.endswith(mark)
    return Score(passed=passed, score=float(passed))
    """,
)
MODEL = plugin(
    "a model provider",
    "crier",
    "mark: str = '!'",
    "return Crier(name, mark)",
    """
    from assay.interfaces import Completion

    class Crier:
        def __init__(self, name, mark):
            self.name, self.mark = name, mark
            self.identity = {"type": "crier", "name": name, "mark": mark}

        async def complete(self, request):
            return Completion(text=request.messages[-1]["content"].upper() + self.mark)

        async def close(self): ...
    """,
)
DATASET = plugin(
    "a dataset format",
    "words",
    "sign: str = '='",
    """
    for number, line in enumerate(path.read_text().splitlines(), 1):
        word, _, meaning = line.partition(sign)
        yield f"{path}:{number}", {"id": word, "question": word, "ground_truth": meaning}
    """,
)
REPORT = plugin(
    "a report",
    "tally",
    "sign: str = '|'",
    "export.write(f\"{row['item_id']} {sign}\\n\".encode() for row in export.rows())",
)


def test_the_table_has_every_kind() -> None:
    assert set(KINDS) <= set(advice())


def test_a_metric_a_scorer_a_model_and_a_dataset_format(copy: Copy) -> None:
    for place, text in (METRIC, SCORER, MODEL, DATASET):
        copy.add(place, text)
    copy.write("shop.words", "hello:a greeting\nbye:the end\n")
    copy.write(
        "config.yaml",
        """
        dataset: {type: words, path: shop.words, params: {sign: ":"}}
        models: [{name: herald, type: crier, mark: "?!"}, "crier:plain"]
        prompt_template: "{{question}}"
        evaluation_methods: [loud, {name: asked, type: loud, params: {mark: "?!"}}]
        metrics: [{name: loudness, facets: [model_name], params: {times: 2.0}}]
        output_dir: out
        """,
    )
    copy.assay("run", "config.yaml", "--no-progress")
    assert sorted(str(row["response"]) for row in copy.rows("out/responses.jsonl")) == sorted(
        ["HELLO?!", "HELLO!", "BYE?!", "BYE!"]
    )
    values = {
        (row["model_name"], row["label"]): row["value"] for row in copy.rows("out/metrics.jsonl")
    }
    both = ("herald", "plain")
    assert values == {
        (m, lab): 2.0 * (lab == "loud" or m == "herald") for m in both for lab in ("loud", "asked")
    }
    for kind, name in (
        ("metric", "loudness"),
        ("scorer", "loud"),
        ("model", "crier"),
        ("dataset", "words"),
    ):
        assert re.search(rf"\b{name}\b", copy.assay("list", kind))
        assert "What it does." in copy.assay("show", name)


def test_a_report(copy: Copy) -> None:
    copy.add(*REPORT)
    copy.assay("run", "config.yaml", "--no-progress")
    assert copy.assay("export", "out", "--format", "tally", "--set", "sign=#") == "a #\n"


def test_a_command(copy: Copy) -> None:
    place = advice()["a command"].places[0]
    assert "`command`" in (ROOT / "CONTRIBUTING.md").read_text()
    copy.add(
        place.replace("<name>", "count_rows"),
        '''
        """Count the responses of an experiment."""

        import click

        from assay import api


        @click.command("count-rows")
        @click.argument("path")
        def command(path: str) -> None:
            """Count the responses in PATH."""
            click.echo(api.query(path, "select count(*) as n from responses")[0]["n"])
        '''.strip().replace("\n        ", "\n"),
    )
    copy.assay("run", "config.yaml", "--no-progress")
    assert copy.assay("count-rows", "out") == "1\n"
    assert "Count the responses in PATH." in copy.assay("count-rows", "--help")
    listed = " ".join(copy.assay("--help").split())
    assert "count-rows Count the responses of an experiment." in listed


FORMAT = {
    "__init__.py": '''
        """Diary: a file of days. It translates, and computes nothing."""

        from assay.interfaces import Score
        from assay.registry import scorer


        @scorer(name="diary.kept", version=1)
        def kept(item, response) -> Score:
            """Something was written."""
            return Score(passed=bool(response.response))
        ''',
    "reader.py": '''
        """Reads diaries."""

        from assay.foreign import ForeignCase
        from assay.records import Response
        from assay.registry import reader


        class Days:
            dataset = "days"
            facts = {}
            planned = None
            rejected = 0

            def __init__(self, path):
                self.path = path
                self.source = {"text": path.read_text()}

            def notes(self):
                return []

            def _lines(self):
                return [line.partition(": ") for line in self.path.read_text().splitlines()]

            def cases(self):
                for day, _, text in self._lines():
                    answer = Response(item_id=day, model_name="writer", response=text)
                    yield ForeignCase({"id": day, "data": {"question": day}}, answer)

            def headlines(self):
                return []


        @reader
        def diary(path):
            """A file that ends in .diary."""
            return [Days(path)] if path.suffix == ".diary" else []
        ''',
    "writer.py": '''
        """Writes diaries."""

        from assay.registry import writer


        @writer
        def diary(export) -> None:
            """A line a day."""
            export.write(f"{row['item_id']}: {row['response']}\\n".encode() for row in export.rows())
        ''',
    "command.py": '''
        """Show a diary."""

        import click

        from assay import api


        @click.command("diary")
        @click.argument("path")
        def command(path: str) -> None:
            """Show what is written in PATH."""
            for row in api.query(path, "select response from responses order by item_id"):
                click.echo(row["response"])
        ''',
}


def test_a_foreign_format(copy: Copy) -> None:
    row = advice()["a foreign format"]
    folder, *files = row.places
    assert set(files) == set(FORMAT)
    assert '@scorer(name="<format>.<name>")' in row.code
    for name, text in FORMAT.items():
        copy.add(folder.replace("<name>", "diary") + name, dedent(text).lstrip())
    copy.write("mine.diary", "monday: rain\ntuesday: \n")
    copy.assay("import", "mine.diary", "-o", "days")
    assert copy.assay("export", "days", "--format", "diary") == "monday: rain\ntuesday: \n"
    copy.write("score.yaml", "evaluation_methods: [diary.kept]\nmetrics: [pass_rate]\n")
    copy.assay("evaluate", "days", "-c", "score.yaml", "--no-progress")
    assert [row["value"] for row in copy.rows("days/metrics.jsonl")] == [0.5]
    assert copy.assay("diary", "days") == "rain\n\n"
    assert "diary Show a diary." in " ".join(copy.assay("--help").split())


def test_one_file_each_and_no_list_to_extend(copy: Copy) -> None:
    """What the other tests add are new files; nothing that was there is changed, not even by running."""
    for place, text in (METRIC, SCORER, MODEL, DATASET, REPORT):
        copy.add(place, text)
    assert re.search(r"\bloud\b", copy.assay("list", "scorer"))
    after = copy.files()
    assert {name: after[name] for name in copy.before} == copy.before
    assert len(after) == len(copy.before) + 5
