"""Importing the functions of tasks."""

import os
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.facade.importing import registered
from assay.formats.lm_eval.tasks.definition import Hook
from tests.formats.lm_eval.folders import write

SIBLINGS = {
    "lm_eval/tasks/a/utils.py": """
        from lm_eval.tasks.b import words
        from lm_eval.tasks.b.words import GREETING
        from .near import here
        from . import near

        def text(doc):
            from lm_eval.tasks.late import LATE
            return GREETING + words.GREETING + here() + near.here() + LATE
    """,
    "lm_eval/tasks/a/near.py": "def here(): return '.'",
    "lm_eval/tasks/b/words.py": "GREETING = 'hi'",
    "lm_eval/tasks/late.py": "LATE = '!'",
}


def value(folder: Path, code: str, name: str = "x") -> Any:
    write(folder, {"utils.py": code})
    return Hook(f"utils.{name}", str(folder)).value


def test_siblings_are_taken_from_the_same_tasks_and_lm_eval_is_not_imported(tmp_path: Path) -> None:
    folder = write(tmp_path, SIBLINGS) / "lm_eval/tasks/a"
    assert Hook("utils.text", str(folder)).value({}) == "hihi..!"
    assert Hook("lm_eval.tasks.b.words.GREETING", str(folder)).value == "hi"
    assert not [name for name in sys.modules if name.split(".")[0] == "lm_eval"]


def test_an_installed_lm_eval_is_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path / "site",
        {"lm_eval/__init__.py": "raise RuntimeError('imported')", "lm_eval/tasks/s.py": "y = 3"},
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert value(tmp_path / "mine", "from lm_eval.tasks.s import y as x") == 3
    assert (
        value(
            tmp_path / "other",
            "import lm_eval.utils\nx = lm_eval.utils.general_detokenize('( a )')",
        )
        == "(a)"
    )


def test_a_module_outside_lm_eval_is_found_beside_the_file_and_then_among_the_installed(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"deep/er.py": "x = 1", "json.py": "dumps = 'mine'"})
    assert Hook("deep.er.x", str(tmp_path)).value == 1
    assert Hook("json.dumps", str(tmp_path)).value == "mine"
    assert Hook("os.path.join", str(tmp_path)).value is os.path.join
    assert str(tmp_path) not in sys.path


def test_a_file_that_changed_is_loaded_again(tmp_path: Path) -> None:
    assert value(tmp_path, "x = 1") == 1
    before = Hook("utils.x", str(tmp_path)).identity
    assert value(tmp_path, "x = 22") == 22
    assert Hook("utils.x", str(tmp_path)).identity != before


def test_identity_is_of_the_bytes_of_all_local_files_wherever_they_are(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, SIBLINGS) / "lm_eval/tasks/a" for name in ("1", "2"))
    hooks = [Hook("utils.text", str(folder)) for folder in (first, second)]
    assert hooks[0].identity == hooks[1].identity
    write(tmp_path / "2", {"lm_eval/tasks/late.py": "LATE = '?'"})
    assert Hook("utils.text", str(second)).identity != hooks[0].identity
    write(
        tmp_path / "1",
        {
            "lm_eval/tasks/a/utils.py": "try:\n    from .near import x\nexcept ImportError:\n    x = 1"
        },
    )
    before = (
        Hook("lm_eval.tasks.a.utils.x", str(second)),
        Hook("lm_eval.tasks.a.utils.x", str(first)).identity,
    )
    write(tmp_path / "1", {"lm_eval/tasks/a/near.py": "x = 2"})
    assert Hook("lm_eval.tasks.a.utils.x", str(first)).identity not in (
        before[1],
        before[0].identity,
    )


def test_classes_of_a_module_can_be_pickled(tmp_path: Path) -> None:
    code = "from dataclasses import dataclass\n@dataclass\nclass x:\n    n: 'int' = 3\n"
    made = value(tmp_path, code)(4)
    assert pickle.loads(pickle.dumps(made)) == made
    hook = Hook("utils.x", str(tmp_path))
    assert pickle.loads(pickle.dumps(hook)) == hook


def test_many_threads_load_a_module_once(tmp_path: Path) -> None:
    write(tmp_path, {"utils.py": "import time\ntime.sleep(0.05)\nx = object()\n"})
    values: list[object] = []
    threads = [
        threading.Thread(target=lambda: values.append(Hook("utils.x", str(tmp_path)).value))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) == 8
    assert len(set(values)) == 1


@pytest.mark.parametrize(
    "code,what,where,fix",
    [
        (
            "import no_such_package.part",
            "it needs the package no_such_package",
            "utils.x",
            "pip install 'no_such_package'",
        ),
        (
            "try:\n    import bert_score_\nexcept ImportError:\n    raise ImportError('please install it')",
            "it needs the package bert_score_",
            "utils.x",
            "pip install 'bert_score_'",
        ),
        (
            "import json.nothing",
            "it needs json.nothing, which the installed version",
            "utils.x",
            "",
        ),
        (
            "from lm_eval.api.model import LM",
            "it imports lm_eval.api.model, which is not a part",
            "utils.x",
            "",
        ),
        (
            "from lm_eval.tasks.none import x",
            "it imports lm_eval.tasks.none, which is not a part",
            "utils.x",
            "",
        ),
        (
            "from lm_eval.utils import none",
            "ImportError: cannot import name 'none'",
            "utils.py:1",
            "",
        ),
        (
            "a = 1\nb = a / 0",
            "it cannot be loaded: ZeroDivisionError: division by zero",
            "utils.py:2",
            "",
        ),
        ("a = 1\nb = (", "it cannot be loaded: SyntaxError", "utils.py:2", ""),
        (
            "import sys\nsys.exit('no prolog')",
            "it cannot be loaded: SystemExit: no prolog",
            "utils.py:2",
            "",
        ),
        ("a = 1\na.b", "it cannot be loaded: AttributeError: 'int' object", "utils.py:2", ""),
        ("y = 1", "utils.py has no x", "utils.x", ""),
    ],
)
def test_modules_that_cannot_be_loaded(
    tmp_path: Path, code: str, what: str, where: str, fix: str
) -> None:
    with pytest.raises(UserError, match=what.replace("(", r"\(")) as error:
        value(tmp_path, code)
    assert where in error.value.where
    assert str(tmp_path) in error.value.where
    assert error.value.fix == fix


@pytest.mark.parametrize("code", ["a = 1\nb = a / 0\n", "a = 1\nb = (\n"])
def test_the_place_of_an_error_in_a_local_module_is_that_module(tmp_path: Path, code: str) -> None:
    write(tmp_path, {"near.py": code})
    with pytest.raises(UserError) as error:
        value(tmp_path, "\n\nfrom .near import b as x")
    assert error.value.where == f"{tmp_path}/near.py:2"


def test_a_function_without_a_module(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="names no module"):
        _ = Hook("text", str(tmp_path)).value


def test_what_a_module_registers(tmp_path: Path) -> None:
    code = """
        from lm_eval.api.filter import Filter
        from lm_eval.api.registry import register_filter, register_metric, register_aggregation
        from lm_eval.filters.extraction import RegexFilter

        @register_filter("shout")
        class Shout(RegexFilter):
            def apply(self, resps, docs):
                return [[text.upper() for text in texts] for texts in super().apply(resps, docs)]

        @register_metric(metric="half", aggregation="mean")
        def half(items): return 0.5

        @register_aggregation("last")
        def last(items): return items[-1]

        x = Shout
    """
    shout = value(tmp_path, code)
    assert registered("filter", "shout") is shout
    assert registered("metric", "half")([]) == 0.5
    assert registered("aggregation", "last")([1, 2]) == 2
    assert registered("filter", "half") is None
    answers = [["#### 5a", "it is #### 1,2.5 or #### 7"], ["none", 3]]
    assert shout(fallback="no").apply(answers, []) == [["5", "1,2.5"], ["NO", "NO"]]
    assert shout(r"(a)?(b)?(c*)", group_select=-1, fallback="f").apply([["xbcc", "xa"]], []) == [
        ["F", "F"]
    ]


def test_functions_of_the_harness(tmp_path: Path) -> None:
    code = """
        from evaluate import load
        from lm_eval.api.metrics import mean, metric_max_over_ground_truths
        from lm_eval.utils import general_detokenize, weighted_f1_score
        import transformers.data.metrics.squad_metrics as squad

        x = {
            "text": general_detokenize("I do n't ( see ) \\" it \\" . It 's , well"),
            "f1": weighted_f1_score([(0, 0), (1, 1), (1, 0), (2, 2)]),
            "mean": mean([1, 2]),
            "max": metric_max_over_ground_truths(squad.compute_f1, "the red cat", ["a dog", "cat"]),
            "exact": squad.compute_exact("The Cat!", "cat"),
            "empty": (squad.compute_f1("the", "a"), squad.compute_f1("the", "b")),
            "accuracy": load("accuracy").compute(predictions=[1, 0], references=[1, 1]),
            "exact_match": load("exact_match").compute(predictions=["a", "b"], references=["a", "c"]),
        }
    """
    pytest.importorskip("sklearn")
    assert value(tmp_path, code) == {
        "text": "I don't (see)\"it\". It's, well",
        "f1": 0.75,
        "mean": 1.5,
        "max": 2 / 3,
        "exact": 1,
        "empty": (1, 0),
        "accuracy": {"accuracy": 0.5},
        "exact_match": {"exact_match": 0.5},
    }


def test_metrics_that_only_the_hub_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import evaluate\nx = evaluate.load('bleurt', 'base')"
    monkeypatch.setitem(sys.modules, "evaluate", None)
    with pytest.raises(UserError, match="the metric 'bleurt' needs the package evaluate") as error:
        value(tmp_path, code)
    assert error.value.fix == "pip install 'evaluate'"

    class Offline:
        def load(self, name: str, size: str) -> None:
            raise ConnectionError(name + size)

    monkeypatch.setitem(sys.modules, "evaluate", Offline())
    with pytest.raises(
        UserError, match="'bleurt' is code of the Hugging Face hub, and could not be fetched"
    ):
        value(tmp_path, code)


def test_metrics_that_datasets_had(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    code = """
        from datasets import Dataset, load_metric
        labels = {"references": [0, 1, 2, 2], "predictions": [0, 2, 2, 1]}
        x = Dataset, load_metric("f1").compute(**labels, labels=[0, 2], average=None)
    """
    table, scores = value(tmp_path, code)
    assert table is datasets.Dataset
    assert list(scores["f1"]) == [1.0, 0.5]
    assert not hasattr(datasets, "load_metric")
