"""Values, texts, bytes and kinds of files that nobody expects, each drawn by a given random generator."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from random import Random
from typing import Any

import yaml

CONTROL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\u2066\u200b\u2028\x00\x7f\ufeff"
TEXTS = [
    *(
        "",
        " ",
        "a",
        "\n",
        "\t",
        "\x00",
        "a\x00b",
        CONTROL,
        "=1+1",
        " =1+1",
        "\ufeff@x",
        "+1",
        "-",
        "--",
        "- -",
    ),
    *(
        "nan",
        "inf",
        "-1",
        "0",
        "1e400",
        "1" * 5000,
        "9" * 30,
        "0x10",
        "1_000",
        "½",
        "٣",
        "²",
        "true",
        "null",
        "~",
    ),
    *(
        "{{",
        "{% for %}",
        "{{ x.y.z }}",
        "{{ 1/0 }}",
        "${HOME}",
        "${NOT_THERE}",
        "${",
        "$(",
        "%s",
        "%(x)s",
        "{0}",
    ),
    *(
        "a/b",
        "a.b",
        ".",
        "..",
        "a" * 300,
        "a\nb",
        "é",
        "\ud800",
        "\udcff",
        "日本",
        "[",
        "]",
        "{",
        "[]",
        "{}",
        "[1",
    ),
    *(
        "own.py",
        "own.py:",
        "own.py:nothing",
        "own.py:model",
        "own.py:rows",
        ":x",
        "x:y:z",
        "http://",
        "demo:",
        "a@b",
    ),
    *(
        "items.jsonl",
        "out",
        "nothing",
        "*.jsonl",
        "**",
        "[a-",
        "hf:",
        "hf:x",
        "select 1",
        "'",
        '"',
        "a=b",
        "=",
        "a=",
    ),
    *(
        "(",
        "(?P<",
        "a" * 50 + "!",
        "(a+)+$",
        "\\",
        "__class__",
        "__init__",
        "os",
        "json.loads",
        "builtins.len",
    ),
    *(
        "-h",
        "-o",
        "--json",
        "--set",
        "models.0.name=x",
        "models=",
        "a.b.c=1",
        "dataset=x",
        "metrics=[]",
        "x" * 70_000,
    ),
]
NUMBERS = [
    0,
    1,
    -1,
    2,
    3.5,
    -0.0,
    1e308,
    5e-324,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    10**5000,
]
STRANGE = [float("nan"), float("inf"), float("-inf")]
EMPTY: list[Any] = [None, True, False, [], {}, "", [[]], {"": ""}, [None], {"a": None}]
DEPTHS = [3, 60, 300, 1_200, 10_000, 100_000]


def value(random: Random, depth: int = 0) -> Any:
    """A JSON value, or nearly one: NaN, numbers of thousands of digits, texts that are no Unicode."""
    kind = random.random()
    if kind < 0.4:
        return text(random)
    if kind < 0.6:
        return random.choice(NUMBERS)
    if kind < 0.65:
        return random.choice(STRANGE)
    if kind < 0.8 or depth > 2:
        return random.choice(EMPTY)
    if kind < 0.9:
        return [value(random, depth + 1) for _ in range(random.randrange(4))]
    return {text(random)[:50]: value(random, depth + 1) for _ in range(random.randrange(4))}


def text(random: Random) -> str:
    return (
        random.choice(TEXTS)
        if random.random() < 0.9
        else random.choice(TEXTS)[:90] + random.choice(TEXTS)[:90]
    )


def brackets(random: Random) -> str:
    """Nested deeper than any parser likes, closed or not."""
    depth = random.choice(DEPTHS)
    opened = random.choice(
        ["[", "{a: ", '{"a":', "- ", "[[", "? ", "- - ", "(", '["', "&a [", "!!x [", "a:\n "]
    )
    return opened * depth + random.choice(["", "]" * depth, "}" * depth, "1"])


def changed(tree: Any, random: Random) -> Any:
    """A JSON value with one part of it replaced, removed, renamed, wrapped or repeated."""
    if isinstance(tree, dict) and tree and random.random() < 0.85:
        name = random.choice(list(tree))
        kind = random.random()
        if kind < 0.6:
            return {**tree, name: changed(tree[name], random)}
        if kind < 0.7:
            return {key: part for key, part in tree.items() if key != name}
        if kind < 0.8:
            return {(text(random)[:80] if key == name else key): part for key, part in tree.items()}
        return {**tree, name: value(random)}
    if isinstance(tree, list) and tree and random.random() < 0.85:
        at = random.randrange(len(tree))
        kind = random.random()
        if kind < 0.7:
            return [*tree[:at], changed(tree[at], random), *tree[at + 1 :]]
        return [*tree[:at], *tree[at + 1 :]] if kind < 0.8 else [*tree, *tree[at:]]
    return random.choice(
        [lambda: value(random), lambda: [tree], lambda: {"a": tree}, lambda: str(tree)]
    )()


def damaged(content: bytes, random: Random) -> bytes:
    """Bytes flipped, cut, doubled, moved to another encoding, or something else altogether."""
    at, until = sorted((random.randrange(len(content) + 1), random.randrange(len(content) + 1)))
    noise = random.choice(
        [
            random.randbytes(3),
            b"\x00",
            b"\xff\xfe",
            b"\xef\xbb\xbf",
            b"\t",
            b"\r",
            b"\n",
            b'"',
            b",",
            b"1e400",
        ]
    )
    kind = random.randrange(12)
    if kind < 4:
        return content[:at] + noise + content[at + random.randrange(3) :]
    if kind == 4:
        return content[:at]
    if kind == 5:
        return content[:at] + content[until:]
    if kind == 6:
        return content[:until] + content[at:]
    if kind == 7:
        return content.decode("utf-8", "replace").encode(
            random.choice(["utf-16", "utf-8-sig", "utf-32", "utf-7"])
        )
    if kind == 8:
        return content[:at] + text(random).encode("utf-8", "surrogatepass") + content[at:]
    if kind == 9:
        return content[:at] + brackets(random).encode() + content[until:]
    if kind == 10:
        return random.choice(
            [
                b"",
                b"\n",
                b"\x00" * 100,
                b"null",
                b"[]",
                b"{}",
                b"1",
                b"a: &a [*a]",
                laughs(),
                b"---\n---\n",
            ]
        )
    return brackets(random).encode()


def laughs() -> bytes:
    """Anchors that stand for 10^9 values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines).encode()


def spoil(path: Path, random: Random) -> None:
    """Change a file: in its values where it has some, else in its bytes; or put something that is not a file there."""
    kind = random.random()
    if not path.is_file():  # it went with another
        return
    if kind < 0.06:
        _replace(path, random)
        return
    content = path.read_bytes()
    path.write_bytes(
        _with_a_value_changed(path.name, content, random)
        if kind < 0.65
        else damaged(content, random)
    )


def _with_a_value_changed(name: str, content: bytes, random: Random) -> bytes:
    if name.endswith(".jsonl"):
        lines = content.splitlines(keepends=True)
        at = random.randrange(len(lines) or 1)
        lines[at : at + 1] = [
            _json(changed(_parsed(line), random)) + b"\n" for line in lines[at : at + 1]
        ]
        return b"".join(lines)
    if name.endswith((".json", ".yaml")):
        tree = changed(_parsed(content), random)
        if name.endswith(".yaml") and random.random() < 0.5:
            return _yaml(tree)
        return _json(tree)
    return damaged(content, random)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return yaml.load(content, Loader=yaml.CSafeLoader)


def _json(tree: Any) -> bytes:
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(tree, ensure_ascii=False).encode("utf-8", "surrogatepass")
    finally:
        sys.set_int_max_str_digits(most)


def _yaml(tree: Any) -> bytes:
    try:
        return yaml.dump(tree, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False).encode(
            "utf-8", "surrogatepass"
        )
    except (ValueError, UnicodeError):
        return _json(tree)


def _replace(path: Path, random: Random) -> None:
    """With a folder, a pipe, a device, or a link to one, to itself or to nothing."""
    path.unlink()
    kind = random.randrange(8)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(path.name)
    elif kind == 3:
        path.symlink_to("nothing")
    elif kind == 4:
        path.symlink_to(random.choice(["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"]))
    elif kind == 5:
        path.symlink_to(".")
    elif kind == 6:
        path.mkdir()
        (path / "x\ny.jsonl").write_text("{}\n")
    else:
        shutil.rmtree(path.parent) if path.parent.name in ("out", "camp") else None
