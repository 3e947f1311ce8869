"""What a hostile answer's process may say to the process of its tests: no value that it makes up equals one that the
test expects, and no loop of the test ends by it."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from assay.scorers._sandbox.values import GROUPS, OTHERS, PLAIN
from assay.scorers._sandbox.wire import LOOPS, Wire
from fuzz import Attack

EXPECTED = 918273645546372819
LEAVES = (
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    float("nan"),
    "",
    "mine",
    "StopIteration",
    "builtins",
    "math",
    [],
    {},
    {"a": 1},
)
TAGS = (*GROUPS, "same", "other", "yours", "module", "error", "kind", "type", "mine", "do", "", 0)
NAMES = ("builtins", "math", "__main__", "unittest.case", "answer", "collections")
KINDS = (
    "StopIteration",
    "GeneratorExit",
    "SkipTest",
    "ValueError",
    "Over",
    "eval",
    "int",
    "BaseException",
    "SystemExit",
)


def _value(rng: random.Random, depth: int) -> Any:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(LEAVES)
    parts = [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    kind = [rng.choice(NAMES), rng.choice(KINDS), rng.choice(KINDS)]
    return rng.choice(
        (
            [rng.choice(TAGS), parts],
            [rng.choice(TAGS), rng.choice(LEAVES), *parts],
            ["dict", [[part, part] for part in parts]],
            ["other", rng.choice([*OTHERS, "os.system"]), _value(rng, depth - 1)],
            ["kind", kind],
            ["error", [*kind, *parts]],
            ["type", rng.choice(KINDS)],
            parts,
        )
    )


def _lines(rng: random.Random) -> Iterator[bytes]:
    for _ in range(6):
        kind = [rng.choice(NAMES), rng.choice(KINDS), rng.choice(KINDS), ["list", []], ["dict", []]]
        changes = [
            [rng.choice((0, 1, -1, 9, None)), _value(rng, 2)] for _ in range(rng.randrange(3))
        ]
        ways = [
            ["ok", _value(rng, 4), changes, ""],
            ["raise", kind, changes, ""],
            ["raise", _value(rng, 2), [], 0],
        ]
        ways += [
            ["do", rng.choice(("call", "getattr", "setattr")), _value(rng, 3), ["dict", []]],
            _value(rng, 3),
        ]
        text = bytearray(json.dumps(rng.choice(ways)).encode())
        if rng.random() < 0.2:
            text[rng.randrange(len(text))] = rng.randrange(256)
        yield bytes(text) + b"\n"


class _Said(io.BytesIO):
    def write(self, data: Any) -> int:
        return len(data)


def _refused(operation: str, *_: Any, **__: Any) -> Any:
    raise TypeError(operation)


def _attack(case: int) -> str | None:
    wire = Wire(_Said(b"".join(_lines(random.Random(case)))), _refused)
    changed = [1, [2]]
    try:
        value = wire.ask("call", changed, {3})
        if value == EXPECTED or EXPECTED in [value] or {EXPECTED: 1}.get(value):
            return f"{value!r} equals what is expected"
    except TypeError:
        return None  # not hashable
    except BaseException as error:
        return f"{type(error).__name__} ends a loop" if isinstance(error, LOOPS) else None
    if type(changed) is not list:
        return "an argument has another type"
    known = {*PLAIN, *GROUPS.values()}
    return (
        None
        if type(value) in known or not isinstance(value, tuple(known))
        else f"a subclass: {type(value)}"
    )


@contextmanager
def opened() -> Iterator[Attack]:
    yield _attack
