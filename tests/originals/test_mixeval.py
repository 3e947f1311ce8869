"""MixEval's own repository: its data, the responses that it ships, its prompts, and its rule parsers beside ours."""

import ast
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from assay.formats.mixeval.dataset import mixeval
from assay.formats.mixeval.evaluation_prompts import five_shot_prefixes, original_prompts
from tests.cli.shell import Shell

pytestmark = pytest.mark.originals
GEMMA, VERSION = "gemma_11_7b_instruct", "2024-06-01"
# right answers by the original's own rule parsers, and how many there are
RIGHT = {"mixeval": (0.538, 4000), "mixeval_hard": (0.279, 1000)}


@pytest.fixture
def package(originals: Callable[[str], Path]) -> Path:
    return originals("mixeval") / "mix_eval"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("version", ["2024-06-01", "2024-08-11"])
@pytest.mark.parametrize("benchmark", ["mixeval", "mixeval_hard"])
def test_its_data_are_items(package: Path, version: str, benchmark: str) -> None:
    rows = [row for _, row in mixeval(str(package / "data"), version=version, benchmark=benchmark)]
    files = (package / f"data/mixeval-{version}/{benchmark.replace('_', '-')}").glob("*.json")
    assert len(rows) == sum(len(json.loads(file.read_text())) for file in files)
    assert len({row["id"] for row in rows}) == len(rows)


def test_a_model_answers_a_slice_and_is_scored(package: Path, shell: Shell) -> None:
    data = ("--data", str(package / "data"), "--version", "2024-08-11", "--no-progress")
    ran = shell.call("mixeval", "run", *data, "-m", "demo:small", "--limit", "40", "-o", "answers")
    assert ran.code == 0, ran.said
    scored = shell.call("mixeval", "score", "answers", *data, "--parser", "rule-compat")
    assert scored.code == 0, scored.said
    folder = shell.folder / "mixeval_scores/small/mixeval/2024-08-11"
    assert len((folder / "responses.jsonl").read_text().splitlines()) == 40


def rules(package: Path) -> dict[str, Any]:
    """The functions of its `metric_utils.py` that need neither a judge nor torch, as they stand there."""
    tree = ast.parse((package / "utils/metric_utils.py").read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found: dict[str, Any] = {"re": re, "random": random.Random(42), "ast": ast, "np": numpy}
    exec(compile(tree, "metric_utils.py", "exec"), found)
    return found


def verdicts(package: Path, path: Path, kind: str) -> Iterator[tuple[str, bool]]:
    """What the original's own rules say of the rows of a response file, by id."""
    of, args = rules(package), SimpleNamespace()
    for row in map(json.loads, path.read_text().splitlines()):
        if kind == "freeform":
            found = of["parse_freeform_response_rule"](args, row["response"])
            yield row["id"], of["eval_freeform_rule"](row["target"], found)
            continue
        letters = [chr(ord("A") + number) for number in range(len(row["options"]))]
        options = dict(zip(letters, row["options"], strict=True))
        found = of["parse_multi_choice_response_rule"](args, row["response"], letters, options)
        yield row["id"], of["eval_multi_choice"](letters[row["target"][0]], found)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning")
@pytest.mark.parametrize("benchmark", ["mixeval", "mixeval_hard"])
def test_its_responses_have_the_verdicts_of_its_own_parsers(
    package: Path, shell: Shell, benchmark: str
) -> None:
    responses = package / f"data/model_responses/{GEMMA}"
    flags = ("--data", str(package / "data"), "--version", VERSION, "--benchmark", benchmark)
    done = shell.call("mixeval", "score", str(responses), *flags, "--parser", "rule-compat")
    assert done.code == 0, done.said
    folder = shell.folder / f"mixeval_scores/{GEMMA}/{benchmark}/{VERSION}"
    overall, count = RIGHT[benchmark]
    assert json.loads((folder / "score.json").read_text())["overall"] == pytest.approx(overall)
    hard = "_hard" * (benchmark == "mixeval_hard")
    compared = 0
    for kind, short in (("freeform", "ff"), ("multichoice", "mp")):
        file = responses / f"{benchmark}/{VERSION}/{GEMMA}_close_{kind}{hard}.jsonl"
        ours = {
            row["id"]: row["eval_result"]
            for row in map(
                json.loads, (folder / f"judge_results_{short}_rule.jsonl").read_text().splitlines()
            )
        }
        theirs = dict(verdicts(package, file, kind))
        assert ours == theirs
        compared += len(theirs)
    assert compared == count


def test_its_responses_are_imported(package: Path, shell: Shell) -> None:
    done = shell.call("import", str(package / f"data/model_responses/{GEMMA}"), "-o", "imported")
    assert done.code == 0, done.said
    assert "responses: 4,000 ok of 1 model" in done.out
    assert "responses: 1,000 ok of 1 model" in done.out


def test_its_prompts_are_brought_along(package: Path, shell: Shell) -> None:
    prompts = package / "prompts"
    assert len(five_shot_prefixes(prompts / "evaluation_prompts.py")) == 2
    assert len(original_prompts(prompts / "judge_prompts.py")) == 2
    data = ("--data", str(package / "data"), "--version", "2024-08-11", "--no-progress")
    base = ("--base", "--five-shot", str(prompts / "evaluation_prompts.py"))
    ran = shell.call(
        "mixeval", "run", *data, *base, "-m", "demo:m", "--limit", "4", "-o", "answers"
    )
    assert ran.code == 0, ran.said
    judge = ("--judge", "demo:judge", "--judge-prompts", str(prompts / "judge_prompts.py"))
    scored = shell.call("mixeval", "score", "answers", *data, *judge)
    assert "judge-compat" in scored.out, scored.said
    (shell.folder / "edited.py").write_text(
        (prompts / "judge_prompts.py").read_text().replace("judge", "judges")
    )
    edited = shell.call("mixeval", "score", "answers", *data, *judge[:3], "edited.py")
    assert edited.code == 2
    assert "with the protocol's hash" in edited.err
