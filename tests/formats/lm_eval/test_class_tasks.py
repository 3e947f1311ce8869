"""Tasks that are Python classes."""

from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Definition, Hook
from assay.formats.lm_eval.tasks.definitions import definitions, members
from tests.formats.lm_eval.folders import write

CLASS = """
from copy import deepcopy
import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

class Words(ConfigurableTask):
    VERSION = 3
    DATASET_PATH = "org/words"
    DATASET_NAME = "small"

    def __init__(self, config=None):
        super().__init__(config={"metadata": {"version": self.VERSION}})

    def has_training_docs(self): return True
    def has_validation_docs(self): return True
    def has_test_docs(self): return False
    def training_docs(self): return self.dataset["train"]
    def validation_docs(self): return self.dataset["dev"]
    def doc_to_text(self, doc): return doc["q"]
    def doc_to_target(self, doc): return doc["a"]

    def construct_requests(self, doc, ctx, chat_template=None, apply_chat_template=False, **kwargs):
        arguments = deepcopy(self.config.generation_kwargs)
        arguments["max_gen_toks"] = 7
        return [Instance(request_type="generate_until", doc=doc, arguments=(ctx, arguments), idx=0, **kwargs)]

    def process_results(self, doc, results):
        return {"same": results[0] == self.doc_to_target(doc), "length": len(results[0])}

    def aggregation(self): return {"same": np.mean, "length": max}
    def higher_is_better(self): return {"same": True, "length": False}
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)
    monkeypatch.setattr("assay.formats.lm_eval.tasks.index.installed_tasks", lambda: None)


def made(folder: Path, code: str, **overrides: Any) -> Definition:
    write(folder, {"t.yaml": "task: words\nclass: !function task.Words\ndataset_path: not/used\n"})
    (folder / "task.py").write_text(code)
    (task,) = definitions(members(["words"], include_path=[folder], overrides=overrides))
    return task


def test_methods_stand_for_keys(tmp_path: Path) -> None:
    task = made(tmp_path, CLASS, num_fewshot=2)
    assert (task.dataset_path, task.dataset_name, task.metadata["version"]) == (
        "org/words",
        "small",
        3,
    )
    assert (task.training_split, task.validation_split, task.test_split) == ("train", "dev", None)
    assert task.generation_kwargs == {
        "temperature": 0.0,
        "do_sample": False,
        "max_gen_toks": 7,
        "until": ["\n\n"],
    }
    assert (task.output_type, task.num_fewshot, task.changes) == (
        "generate_until",
        2,
        {"num_fewshot": (None, 2)},
    )
    assert isinstance(task.doc_to_text, Hook)
    assert isinstance(task.doc_to_target, Hook)
    assert task.process_results
    assert (task.doc_to_text.value({"q": "Q"}), task.doc_to_target.value({"a": "A"})) == ("Q", "A")
    assert task.process_results.value({"a": "A"}, ["A"]) == {"same": True, "length": 1}
    metrics = {entry["metric"]: entry for entry in task.metric_list or []}
    assert [entry["higher_is_better"] for entry in metrics.values()] == [True, False]
    assert [metrics[name]["aggregation"].value([3, 6]) for name in ("same", "length")] == [4.5, 6]


@pytest.mark.parametrize(
    "before,after",
    [
        ("(ConfigurableTask):", "(ConfigurableTask, list):"),
        ('request_type="generate_until"', 'request_type="loglikelihood"'),
        (
            "return [Instance(",
            "return [Instance(request_type='loglikelihood', doc=1, arguments=(), idx=1), Instance(",
        ),
        ("    def doc_to_text", "    def download(self, *args): pass\n    def doc_to_text"),
        ('self.dataset["dev"]', 'self.dataset["dev"].map(len)'),
        ("class Words", "class Other"),
    ],
)
def test_classes_that_do_more_are_refused_by_name(tmp_path: Path, before: str, after: str) -> None:
    assert before in CLASS
    with pytest.raises(UserError, match=r"\(class:\) that does more than ask for a text"):
        made(tmp_path, CLASS.replace(before, after))
