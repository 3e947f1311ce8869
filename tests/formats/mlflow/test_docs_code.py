"""The page shows the evaluation that the logs were really made with."""

from pathlib import Path

HERE = Path(__file__).parent


def test_the_page_has_the_code_of_the_evaluation() -> None:
    page = (HERE.parents[2] / "docs/mlflow.md").read_text()
    _, _, code = (HERE / "evaluation.py").read_text().partition('"""\n\n')
    assert code.count("\n") > 20
    assert f"```py\n{code}```" in page
