import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from assay.config import Config, load
from assay.errors import ConfigError, UserError

Loaded = Callable[..., Config]
Problems = Callable[..., list[UserError]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with a dataset `d.jsonl`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.jsonl").write_text('{"id": "1", "question": "2+2?"}\n')
    return tmp_path


@pytest.fixture
def loaded(folder: Path) -> Loaded:
    """Load the text of `c.yaml`, or a dict, in an empty environment unless one is given."""

    def load_it(config: str | Mapping[str, Any], *, file: str = "c.yaml", **options: Any) -> Config:
        options.setdefault("environ", {})
        if isinstance(config, Mapping):
            return load(config, **options)
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(textwrap.dedent(config))
        return load(file, **options)

    return load_it


@pytest.fixture
def problems(loaded: Loaded) -> Problems:
    """The problems of a config that must be refused."""

    def problems_of(*arguments: Any, **options: Any) -> list[UserError]:
        with pytest.raises(ConfigError) as caught:
            loaded(*arguments, **options)
        return caught.value.problems

    return problems_of
