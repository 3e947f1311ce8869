"""The code of inspect_ai on its page is the code that made the logs."""

import re
from pathlib import Path

from tests.formats import peers

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs/inspect_ai.md").read_text()


def test_the_page_shows_what_was_run() -> None:
    (code,) = re.findall(r"(?s)```py\n(.*?)```", PAGE)
    assert code == (HERE / "sums.py").read_text()


def test_the_page_asks_the_same_questions() -> None:
    (script,) = re.findall(r"(?s)<<'END'\nimport json\n(.*?)with open", PAGE)
    made: dict[str, object] = {}
    exec(script, made)
    assert made["rows"] == peers.QUESTIONS
