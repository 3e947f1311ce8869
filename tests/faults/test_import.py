"""`import` is never silently empty or half, and resumes after a kill."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from assay import api, registry
from assay.cli import main
from fuzz.imports import MEMORY, sources
from tests.formats.ragicamp import generations


def test_every_reader_is_attacked() -> None:
    assert set(sources()) == set(registry.reader.names())


def test_a_killed_import_goes_on_with_the_same_command() -> None:
    """What it leaves in the end is what an import leaves that nobody killed."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        command = [sys.executable, "-m", "tests.faults.killed_import", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    result = json.loads(done.stdout)
    assert not result["wrong"], result["wrong"][:5]
    assert result["kills"] > 300


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_source_that_is_not_whole_is_in_the_exit_code(
    tmp_path: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    path = generations.three_files(tmp_path / "src")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(SystemExit) as ended:
        main(["import", str(tmp_path / "src"), "-o", str(tmp_path / "out")])
    assert ended.value.code == (1 if share == 0.9 else 2)
    said = capsys.readouterr()
    assert ("rejected: 1 rows or files" in said.out and "is not whole" in said.err) == (
        share == 0.9
    )


@pytest.mark.parametrize(
    "value", ["text", [0.5], {"f1": {"value": 1}}, {"f1": [1]}, {"f1": "high"}]
)
def test_metrics_of_a_wrong_type_are_counted(tmp_path: Path, value: object) -> None:
    path = generations.three_files(tmp_path / "src")
    content = json.loads(path.read_text())
    content["predictions"][0]["metrics"] = value
    path.write_text(json.dumps(content))
    (imported,) = api.import_(tmp_path / "src", tmp_path / "out")
    assert imported.rejected + imported.evaluations.get("errored", 0) == 1
