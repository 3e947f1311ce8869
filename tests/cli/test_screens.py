"""Every verb on terminals of 60, 80, 120 and 200 columns, with the names that models have: tables that fit, no prose.

`screens/` has what they show. ASSAY_WRITE_SCREENS=1 writes these files anew.
"""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from assay.cli import COMMANDS, group
from assay.reports.wrapping import cells
from tests.analysis import judges
from tests.analysis.match_lab import won
from tests.analysis.rows import rows_of, save

SCREENS = Path(__file__).parent / "screens"
WIDTHS = (60, 80, 120, 200)
MODELS = (
    "meta-llama/Meta-Llama-3.1-70B-Instruct",
    "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "Qwen/Qwen2.5-72B-Instruct",
)
LABELS = ("exact_match", "faithfulness", "answer_relevance")
PROMPTS = ("Answer in one word: {{question}}", "Think step by step, then answer: {{question}}")
GOLDEN = {  # the words of each screen
    "run": "run config.yaml --no-progress",
    "plan": "plan config.yaml",
    "validate": "validate config.yaml",
    "aggregate": "aggregate results -c metrics.yaml -o output/metrics",
    "compare": "compare results --facet model_name --label faithfulness",
    "compare-labels": "compare results --facet model_name --all-labels",
    "diff": "diff older newer --limit 2",
    "rank": "rank arena --rounds 100",
    "gate": f"gate results --label exact_match --min 0.6 --where model_name={MODELS[0]} --inconclusive pass",
    "judge": "judge calibrate judged --labels people.csv",
    "trace": "trace judged q01",
    "ls": "ls output",
    "status": "status output/run",
    "verify": "verify output/run",
    "sql": "sql results 'select model_name, label, count(*) as n, avg(score) as mean from evaluations group by 1, 2'",
}
OTHERS = {  # what they show changes with each plug-in
    "dataset-add": "dataset add items.jsonl --name questions-of-the-whole-project",
    "dataset-ls": "dataset ls",
    "dataset-show": "dataset show questions-of-the-whole-project",
    "evaluate": "evaluate output/run --no-progress",
    "merge": "merge output/run copy -o merged",
    "init": "init --list",
    "lock": "lock config.yaml",
    "list": "list",
    "list-benchmarks": "list benchmarks sums-of-screens --include-path tasks",
    "list-providers": "list providers",
    "local": "local list",
    "show": "show exact_match",
    "show-benchmark": "show sums-of-screens --include-path tasks",
    "import": "import camp -o imported",
    "convert": "convert camp table-WIDTH.csv",
    "demo": "demo shown --no-progress",
}
# they write files, serve, or speak to programs
NO_SCREEN = {"benchmarks", "export", "schema", "mock-server", "report", "view", "worker"}
FORMATS = {"mixeval", "sygra"}  # their views have tests of their own
# a path or a command is left to the terminal
COPIED = re.compile(r"files: |folder: |  assay |\d+ more reasons are in ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("screens")
    _config(folder)
    rows = []
    for at, model in enumerate(MODELS):
        for column, label in enumerate(LABELS):
            for prompt in PROMPTS:
                verdicts = {
                    f"q{n:03}": "errored" if n == at else (n * 7 + column) % 10 < 6 + at
                    for n in range(60)
                }
                rows += rows_of(
                    verdicts, model_name=model, label=label, scorer=label, prompt_template=prompt
                )
    save(folder / "results", rows)
    save(folder / "arena", won(*MODELS[:2], 30, 10, 2) + won(*MODELS[1:], 25, 15))
    verdicts = [
        judges.verdict(f"q{n:02}", n < 30 or n % 7 == 0, model=MODELS[n % 2]) for n in range(60)
    ]
    judges.save(
        folder / "judged",
        verdicts,
        [judges.response(f"q{n:02}", "x" * n, model=MODELS[n % 2]) for n in range(60)],
    )
    people = "".join(f"q{n:02},{'yes' if n % 30 < 25 and n < 30 else 'no'}\n" for n in range(50))
    (folder / "people.csv").write_text("item,label\n" + people)
    camp = {"agent_name": MODELS[0].replace("/", "_"), "dataset_name": "nq", "num_examples": 1}
    (folder / "camp").mkdir()
    row = {
        "question_id": "0",
        "question": "Who?",
        "prediction": "I",
        "metrics": {"f1": 1.0},
        "metadata": {},
    }
    (folder / "camp" / "x_predictions.json").write_text(json.dumps({**camp, "predictions": [row]}))
    _two(folder)
    before = Path.cwd()
    os.chdir(folder)
    # what others show does not depend on which were run before
    for name in ("run", "aggregate", "judge"):
        screen(GOLDEN[name], 80)
    screen(OTHERS["dataset-add"], 80)
    shutil.copytree("output/run", "copy")
    yield folder
    os.chdir(before)


def _two(folder: Path) -> None:
    """Two experiments of two models, the second of which answers otherwise, is served otherwise and stops early."""
    for name, model, wrong in (("older", MODELS[0], 20), ("newer", MODELS[1], 5)):
        verdicts = {f"q{n:02}": n >= wrong for n in range(40)}
        rows = [
            row
            for label in LABELS
            for row in rows_of(verdicts, model_name=model, label=label, scorer=label)
        ]
        save(folder / name, rows)
        responses = [
            {
                "item_id": item,
                "model_name": model,
                "sample_index": 0,
                "outcome": "ok",
                "inference_time": 1.5,
                "cost": 0.002,
            }
            | {
                "response": "It is "
                + "very " * 40 * passed
                + ("right" if passed else "wrong\nand long"),
                "prompt_tokens": 9,
            }
            | {
                "served_model": f"{model}-{name}",
                "metadata": {"finish_reason": "stop" if passed else "length"},
            }
            for item, passed in verdicts.items()
        ]
        (folder / name / "responses.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in responses)
        )
        items = [
            {"id": item, "data": {"question": f"{item} of {name if item == 'q07' else 'all'}?"}}
            for item in verdicts
        ]
        (folder / name / "items.jsonl").write_text(
            "".join(json.dumps(item) + "\n" for item in items)
        )


def _config(folder: Path) -> None:
    code = "def model(prompt):\n    if '2' in prompt:\n        raise ValueError('no twos')\n    return '2'\n"
    (folder / "model.py").write_text(code)
    items = [
        {"id": f"q{n}", "question": f"What is {n} plus 1?", "answer": str(n + 1)} for n in range(4)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    model = {"type": "python", "path": "model.py", "function_name": "model"}
    metrics = [{"name": "pass_rate", "facets": ["model_name", "prompt_template"]}]
    config = {
        "max_error_rate": 1,  # one model fails
        "dataset": "items.jsonl",
        "models": [{"name": name, **model} for name in MODELS],
        "prompt_templates": list(PROMPTS),
        "evaluation_methods": [
            "exact_match",
            "contains",
            {"name": "f1", "params": {"threshold": 0}},
        ],
        "metrics": metrics,
        "output_dir": "output/run",
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "tasks").mkdir()
    sums = {
        "task": "sums-of-screens",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "items.jsonl"}},
    }
    sums |= {
        "test_split": "test",
        "doc_to_text": "{{question}}",
        "doc_to_target": "answer",
        "num_fewshot": 2,
    }
    (folder / "tasks/sums.yaml").write_text(json.dumps(sums))
    (folder / "metrics.yaml").write_text(json.dumps({"metrics": metrics}))


def screen(words: str, width: int) -> str:
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(
        group, shlex.split(words.replace("WIDTH", str(width))), catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.stdout.replace(str(Path.cwd()), "FOLDER")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*GOLDEN, *OTHERS])
def test_a_table_within_the_terminal(folder: Path, name: str, width: int) -> None:
    shown = screen({**GOLDEN, **OTHERS}[name], width)
    lines = [line for line in shown.splitlines() if not COPIED.match(line)]
    assert max(map(cells, lines)) <= width, shown
    # numbers in prose
    assert not re.search(r"(value|interval|items|errors|responses) [\d.,–]+, ", shown), shown
    if name in GOLDEN:
        file = SCREENS / f"{name}-{width}.txt"
        if os.environ.get("ASSAY_WRITE_SCREENS"):
            file.write_text(shown)
        assert shown == file.read_text()


def test_every_verb_has_a_screen() -> None:
    seen = {words.split()[0] for words in (*GOLDEN.values(), *OTHERS.values())}
    assert seen | NO_SCREEN | FORMATS == set(COMMANDS)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_gate_shows_its_whole_verdict(folder: Path, width: int) -> None:
    shown = " ".join(screen(GOLDEN["gate"], width).split())
    for part in ("exact_match", "at least 0.6", "inconclusive", *MODELS[:1], "gate: inconclusive"):
        assert part in shown
