"""Tables as frames of pandas and polars."""

import json
from pathlib import Path

import pytest

import assay
from assay.errors import UserError
from tests.support import Lab


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    lab.run()
    return lab.folder / "out"


def test_pandas(out: Path) -> None:
    pd = pytest.importorskip("pandas")
    found = assay.frame(out)
    assert isinstance(found, pd.DataFrame)
    assert len(found) == 16
    assert found.groupby("label").score.mean().to_dict() == {"contains": 1.0, "exact_match": 1.0}
    assert json.loads(found.metadata[0])["model_id"] == "calculator"


def test_polars(out: Path) -> None:
    pl = pytest.importorskip("polars")
    found = assay.frame(out, "metrics", library="polars")
    assert isinstance(found, pl.DataFrame)
    assert found["value"].to_list() == [1.0, 1.0]
    assert found["metadata.model_id"].unique().to_list() == ["calculator"]


def test_a_field_that_comes_late_is_a_column(tmp_path: Path) -> None:
    rows = ['{"item_id": "x"}\n'] * 1200 + ['{"item_id": "y", "late": 3}\n']
    (tmp_path / "responses.jsonl").write_text("".join(rows))
    assert assay.frame(tmp_path, "responses")["late"].sum() == 3


def test_unknown_names(out: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no table 'metric'") as caught:
        assay.frame(out, "metric")
    assert "did you mean 'metrics'?" in caught.value.fix
    with pytest.raises(UserError, match="no library 'panda'"):
        assay.frame(out, library="panda")  # type: ignore[arg-type]
    (tmp_path / "items.jsonl").write_text('{"id": "x"}\n')
    with pytest.raises(UserError, match="there are no evaluations"):
        assay.frame(tmp_path)
