"""Dataset formats: what they read, and that whatever they cannot read is named by file and line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.registry import dataset

Write = Callable[[bytes | str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: bytes | str) -> Path:
        path = tmp_path / "rows"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def rows(format: str, source: Any, **params: Any) -> list[Any]:
    return [row for _, row in dataset.get(format)(source, **params)]


def problem(format: str, source: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        rows(format, source)
    return caught.value


def test_every_format_is_found_by_its_name() -> None:
    assert {"jsonl", "json", "csv", "tsv", "parquet", "hf", "stored", "function"} <= set(
        dataset.names()
    )


@pytest.mark.parametrize(
    "content", ['{"a": 1}\n\n  \n{"a": 2}\n', '\ufeff{"a": 1}\r\n{"a": 2}', '{"a": 1}\n{"a": 2}\n']
)
def test_jsonl(write: Write, content: str) -> None:
    assert rows("jsonl", write(content)) == [{"a": 1}, {"a": 2}]


def test_jsonl_as_others_write_it(write: Write) -> None:
    (row,) = rows("jsonl", write('{"a": NaN, "b": Infinity}'))
    assert (str(row["a"]), str(row["b"])) == ("nan", "inf")


def test_jsonl_is_read_as_it_is_asked_for(write: Write) -> None:
    stream = dataset.get("jsonl")(write('{"a": 1}\nnot json\n'))
    assert next(stream)[1] == {"a": 1}
    with pytest.raises(UserError):
        next(stream)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"a": ', "not JSON"),
        ("[1, 2]", "expected an object, found list"),
        ("null", "found NoneType"),
        (b'{"a": "\xff"}', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_of_jsonl(write: Write, line: bytes | str, what: str) -> None:
    bad = line.encode() if isinstance(line, str) else line
    path = write(b'{"a": 1}\n\n' + bad + b'\n{"a": 2}\n')
    found = problem("jsonl", path)
    assert what in found.what
    assert found.where == f"{path}:3"


@pytest.mark.parametrize("content", [[{"a": 1}], {"items": [{"a": 1}], "version": 3}])
def test_json(write: Write, content: Any) -> None:
    assert rows("json", write(json.dumps(content))) == [{"a": 1}]
    assert rows("json", write("\ufeff" + json.dumps(content))) == [{"a": 1}]


@pytest.mark.parametrize(
    ("content", "what", "place"),
    [
        ('{"rows": []}', "expected a list of objects", ""),
        ('"text"', "expected a list of objects", ""),
        ('[{"a": 1}', "not JSON", ""),
        ('[{"a": 1}, 5]', "expected an object, found int", " [1]"),
    ],
)
def test_bad_json(write: Write, content: str, what: str, place: str) -> None:
    path = write(content)
    found = problem("json", path)
    assert what in found.what
    assert found.where == f"{path}{place}"


def test_csv(write: Write) -> None:
    path = write('\ufeffid,text\r\n1,"a, b"\r\n2,"two\nlines"\r\n')
    assert rows("csv", path) == [{"id": "1", "text": "a, b"}, {"id": "2", "text": "two\nlines"}]
    assert rows("csv", write("a;b\n1;2\n"), delimiter=";") == [{"a": "1", "b": "2"}]
    assert rows("csv", write("")) == []


def test_tsv(write: Write) -> None:
    path = write('id\ttext\n1\t"a\tb"\n2\tc, d\n')
    assert rows("tsv", path) == [{"id": "1", "text": "a\tb"}, {"id": "2", "text": "c, d"}]
    assert rows("tsv", write('a\tb\n"x\ty"\n'), quotes=False) == [{"a": '"x', "b": 'y"'}]
    assert rows("csv", write('a,b\n"x,y"\n'), quotes=False) == [{"a": '"x', "b": 'y"'}]


def test_csv_holds_long_documents(write: Write) -> None:
    assert len(rows("csv", write("text\n" + "x" * 300_000 + "\n"))[0]["text"]) == 300_000


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        ("a,b\n1,2\n1,2,3\n", "1 more fields than the header", 3),
        ("a,b\n1,2\n1\n", "fewer fields than the header", 3),
        ('a,b\n1,2\n"x" y,2\n', "expected after", 3),
        ("a,a\n1,2\n", "two columns are called 'a'", 1),
    ],
)
def test_bad_csv(write: Write, content: str, what: str, line: int) -> None:
    path = write(content)
    found = problem("csv", path)
    assert what in found.what
    assert found.where == f"{path}:{line}"


def test_csv_that_is_no_text(write: Write) -> None:
    found = problem("csv", write(b"a,b\n1,\xff\n"))
    assert "decode" in found.what
    assert found.where.endswith(", after line 0")


@pytest.mark.parametrize("made", [[{"a": 1}], ({"a": 1},), iter([{"a": 1}])])
def test_function(made: Any) -> None:
    assert rows("function", lambda: made) == [{"a": 1}]


def test_function_with_parameters_and_ids() -> None:
    def make(count: int) -> dict[str, Any]:
        return {f"q{number}": {"n": number} for number in range(count)}

    assert rows("function", make, params={"count": 2}) == [
        {"id": "q0", "n": 0},
        {"id": "q1", "n": 1},
    ]


def broken() -> Any:
    yield {"a": 1}
    raise ZeroDivisionError("x")


def test_a_function_that_fails_is_named() -> None:
    found = problem("function", broken)
    assert found.what == "the dataset function failed: ZeroDivisionError: x"
    assert found.where == "broken()"


@pytest.mark.parametrize(
    ("made", "where"),
    [([{"a": 1}, 3], "<lambda>() row 1"), (5, "<lambda>()"), ({"q": 1}, "<lambda>() 'q'")],
)
def test_a_function_that_makes_no_rows(made: Any, where: str) -> None:
    assert problem("function", lambda: made).where == where
