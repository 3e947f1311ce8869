"""Every format that can be read and written gives back all that was put into it, alone and through every other."""

from importlib.util import find_spec
from itertools import permutations
from pathlib import Path

import pytest

import assay
from assay.analysis.look.convert import formats
from tests.convert_lab import content, make

NEEDED = {"parquet": "duckdb", "hf": "pyarrow"}
OTHERS = [name for name in formats() if name != "assay"]


def names(*wanted: str) -> list[str]:
    for name in wanted:
        if name in NEEDED and find_spec(NEEDED[name]) is None:
            pytest.skip(f"{NEEDED[name]} is not installed")
    return list(wanted)


def there(source: Path, place: Path, name: str) -> Path:
    (converted,) = assay.convert(source, place, to=name)
    return Path(converted.path)


@pytest.mark.parametrize("name", formats())
def test_a_format_gives_back_all(name: str, tmp_path: Path) -> None:
    names(name)
    own = make(tmp_path / "own")
    written = there(own, tmp_path / "written", name)
    again = there(written, tmp_path / "again", "assay")
    assert content(again) == content(own)


@pytest.mark.parametrize(("first", "second"), list(permutations(OTHERS, 2)))
def test_every_pair_gives_back_all(first: str, second: str, tmp_path: Path) -> None:
    names(first, second)
    own = make(tmp_path / "own")
    path = own
    for number, name in enumerate((first, second, first)):
        path = there(path, tmp_path / f"{number}", name)
    assert content(there(path, tmp_path / "again", "assay")) == content(own)
