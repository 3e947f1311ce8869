"""What identifies a user's object: code and settings, the same in every process, whatever it remembers."""

import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.formats.ragicamp.state import state_of


class Settings:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Other(Settings):
    pass


def double(value: int, by: int = 2) -> int:
    return value * by


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [2, 1]}}),
        ({"a": {1, 2}}, {"a": {1, 3}}),
        ({"a": b"x"}, {"a": b"y"}),
        ({"a": Path("x")}, {"a": Path("y")}),
        ({"a": Settings(b=1)}, {"a": Settings(b=2)}),
        ({"a": Settings(b=1)}, {"a": Other(b=1)}),
        ({"a": partial(double, by=3)}, {"a": partial(double, by=4)}),
        ({"a": Settings(b=1).__init__}, {"a": Settings(b=2).__init__}),
    ],
)
def test_settings_that_differ_are_seen(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert state_of(Settings(**first)) != state_of(Settings(**second))
    assert state_of(Settings(**first)) == state_of(Settings(**first))


def test_what_differs_from_process_to_process_is_not_seen() -> None:
    thing = Settings(
        lock=threading.Lock(), thread=threading.current_thread(), event=threading.Event()
    )
    thing.__dict__["self"] = thing
    assert state_of(thing) == state_of(thing)
    assert "0x" not in repr(state_of(thing))


def test_an_object_may_know_better() -> None:
    assert state_of(Settings(identity={"v": 1}, memory=[1])) == state_of(
        Settings(identity={"v": 1}, memory=[2])
    )
    assert state_of(Settings(identity={"v": 1})) != state_of(Settings(identity={"v": 2}))
    held = [Settings(model=Settings(identity="gemma", calls=calls)) for calls in (1, 2)]
    assert state_of(held[0]) == state_of(held[1])


def test_code_without_a_file_is_seen() -> None:
    kinds: list[Any] = []
    for text in ("return 'a'", "return 'b'", "return 'a'"):
        scope: dict[str, Any] = {"__name__": "notebook"}
        exec(f"class Agent:\n    name = 'n'\n    def answer(self, q):\n        {text}\n", scope)
        kinds.append(scope["Agent"])
    first, second, third = (state_of(kind()) for kind in kinds)
    assert first == third != second


def test_it_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Agent:\n    def __init__(self):\n        self.words = {'b', 'a', 'c'}\n"
    )
    script = "from mine import Agent; from assay.formats.ragicamp.state import state_of; print(state_of(Agent()))"
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert "'words': ['a', 'b', 'c']" in said.pop()
