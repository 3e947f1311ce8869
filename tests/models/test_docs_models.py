"""The Python of docs/models.md and docs/mock-server.md runs, and their tables are complete."""

import re
from pathlib import Path

import msgspec
import pytest

from assay.models._local_openai import Docker
from assay.registry import model, parameters
from assay.server import Options

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = [
    (page, code)
    for page in ("models.md", "mock-server.md")
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
]


@pytest.mark.parametrize(("page", "code"), BLOCKS)
def test_the_code_runs(
    page: str,
    code: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model, "_found", dict(model._found))
    exec(compile(code, page, "exec"), {"__name__": page})
    for expected in re.findall(r"print\(.*\)  # (.*)", code):
        assert expected in capsys.readouterr().out


def test_every_parameter_is_named() -> None:
    page = (DOCS / "models.md").read_text()
    for name in model.names():
        row = next(line for line in page.splitlines() if line.startswith(f"| [`{name}`]("))
        for parameter in parameters(model.get(name)):
            assert f"`{parameter}`" in row


def test_every_key_of_docker_is_named() -> None:
    page = (DOCS / "models.md").read_text()
    for field in msgspec.structs.fields(Docker):
        assert any(
            f"`{field.name}`" in line for line in page.splitlines() if line.startswith("| `")
        )


def test_every_flag_is_named() -> None:
    page = (DOCS / "mock-server.md").read_text()
    for field in msgspec.structs.fields(Options):
        assert f"`--{field.name.replace('_', '-')}`" in page
