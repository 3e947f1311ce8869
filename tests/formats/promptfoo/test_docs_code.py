"""What the page shows of promptfoo is what made the logs."""

from pathlib import Path

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[3] / "docs/promptfoo.md"


def test_the_page_shows_what_was_run() -> None:
    assert f"```yml\n{(HERE / 'twelve_questions.yaml').read_text()}```" in PAGE.read_text()
