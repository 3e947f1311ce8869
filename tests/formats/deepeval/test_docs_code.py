"""What the page shows of deepeval is what made the logs."""

from pathlib import Path

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[3] / "docs/deepeval.md"


def test_the_page_shows_what_was_run() -> None:
    assert f"```py\n{(HERE / 'twelve_questions.py').read_text()}```" in PAGE.read_text()
