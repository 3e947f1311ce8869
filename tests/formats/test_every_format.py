"""Every format in the registry leaves experiments like any other: its `test_verbs.py` calls each verb on its output."""

from pathlib import Path

import pytest

from assay import registry

HERE = Path(__file__).parent
VERBS = ("ls", "compare", "gate", "sql", "trace", "export", "aggregate")
# scorers under names of their own, records for others: no experiment
NO_FOLDER = {"squad", "every_eval_ever"}


def verbs_called(folder: Path) -> set[str]:
    """The verbs that the tests of a format call, by themselves or through `read_by_every_verb`."""
    text = (folder / "test_verbs.py").read_text()
    if "read_by_every_verb" in text:
        text += (HERE / "verbs.py").read_text()
    return {verb for verb in VERBS if f'"{verb}"' in text}


@pytest.mark.parametrize("format", [name for name in registry.formats() if name not in NO_FOLDER])
def test_every_verb_is_tried_on_what_a_format_leaves(format: str) -> None:
    assert verbs_called(HERE / format) == set(VERBS)


def test_a_format_without_such_tests_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_verbs.py").write_text('shell.call("ls", "out")\n')
    assert verbs_called(tmp_path) == {"ls"}
    with pytest.raises(FileNotFoundError):
        verbs_called(tmp_path / "nothing")
