"""Tasks that come with lm-eval, on small data of their schema: the same requests, values, results, standard errors."""

from pathlib import Path

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.facade.sources import installed_tasks
from tests.formats.lm_eval.test_as_the_harness import HERE, Run, assert_equal, expected, options_of

FIXTURES = expected(HERE / "shipped/expected")
RUNS = [name for name, fixture in FIXTURES.items() if "error" not in fixture]

pytestmark = [
    pytest.mark.benchmarks,
    pytest.mark.skipif(
        installed_tasks() is None, reason="needs lm-eval: pip install 'assay-eval[benchmarks]'"
    ),
]


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("ASSAY_DATA", str(HERE / "shipped/data"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)


@pytest.mark.parametrize("name", RUNS)
def test_a_shipped_task(name: str, tmp_path: Path) -> None:
    fixture = FIXTURES[name]
    entries = [{"task": task, **options_of(fixture)} for task in fixture["run"]["tasks"]]
    chat = fixture["run"].get("model") == "local-chat-completions"
    try:
        run = Run(
            entries, tmp_path / "run", chat=chat, iterations=fixture["run"]["bootstrap_iters"]
        )
    except UserError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))
    assert_equal([fixture], run)


def test_there_are_enough_of_them() -> None:
    assert len(RUNS) >= 40
