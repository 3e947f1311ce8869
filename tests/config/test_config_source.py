"""Files: YAML 1.2 scalars, lines, duplicate keys, and everything that is no config."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.config import Config, load, to_yaml, where
from assay.config.source import Key, read, scalar
from assay.errors import ConfigError, UserError

Loaded = Callable[..., Config]
Problems = Callable[..., list[UserError]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("~", None),
        ("", None),
        ("1e-3", 0.001),
        ("1_000", "1_000"),
        ("010", 10),
        ("0x10", 16),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("[1, a]", [1, "a"]),
        ("{a: .5}", {"a": 0.5}),
        ("'1'", "1"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: [", 3, "this is not YAML"),
        ("a:\n\tb: 1\n", 2, "this is not YAML: found character"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice"),
        ("m:\n  - x: 1\n    x: 2\n", 3, "'x' is given twice"),
        ("a: *nothing\n", 1, "this is not YAML"),
        ("a: &a [*a]\n", 1, "the config is nested too deeply, or an anchor contains itself"),
        ("a: !!python/name:os.system\n", 1, "the tag"),
        ("? [a]\n: 1\n", 1, "a key must be text"),
        ("a: 1\nb: \x07\n", 2, "this is not YAML: a control character"),
        ("a: 1\n---\nb: 1\n", 2, "this is not YAML"),
    ],
)
def test_broken_yaml(problems: Problems, text: str, line: int, what: str) -> None:
    (problem,) = problems(text)
    assert problem.what.startswith(what)
    assert problem.where == f"c.yaml:{line}"


def test_tabs_have_a_fix(problems: Problems) -> None:
    (problem,) = problems("a:\n\tb: 1\n")
    assert problem.fix == "indent with spaces, not with tabs"


def test_anchors_cannot_explode(problems: Problems) -> None:
    layers = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    (problem,) = problems(f"l0: &l0 [x]\n{layers}")
    assert problem.what == "the config has more than 100000 values"


def test_anchors_and_merges(loaded: Loaded) -> None:
    config = loaded(
        """\
        models:
          - &small {name: a, type: demo, skill: 0.5}
          - {<<: *small, name: b}
        dataset: d.jsonl
        """
    )
    assert [(model.name, model.params) for model in config.models] == [
        ("a", {"skill": 0.5}),
        ("b", {"skill": 0.5}),
    ]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{"a": 1,\n}', 2, "this is not JSON"),
        ('{"a": {"b": 1,\n"b": 2}}', 2, "'b' is given twice"),
        ('{"a": ' + "1" * 5000 + "}", 1, "the config is nested too deeply, or has a number"),
    ],
)
def test_broken_json(problems: Problems, text: str, line: int, what: str) -> None:
    (problem,) = problems(text, file="c.json")
    assert problem.what.startswith(what)
    assert problem.where == f"c.json:{line}"


def test_json_with_tabs_and_places(problems: Problems) -> None:
    text = json.dumps(
        {"models": ["m", {"name": "ü\U0001f600", "timeout": 0}], "dataset": "d.jsonl"}, indent="\t"
    )
    (problem,) = problems(text, file="c.json")
    assert problem.where == "c.json:6 models[1].timeout"


def test_no_file_no_mapping_no_text(folder: Path) -> None:
    (folder / "empty.yaml").touch()
    (folder / "list.yaml").write_text("[1]")
    (folder / "latin.yaml").write_bytes(b"a: 1\nb: \xff\n")
    for name, what, place in [
        ("emty.yaml", "the config cannot be read: No such file or directory", "emty.yaml"),
        ("empty.yaml", "the config is empty", "empty.yaml"),
        ("list.yaml", "a config is a mapping of keys to values", "list.yaml"),
        ("latin.yaml", "the config is not UTF-8 text", "latin.yaml:2"),
        (".", "the config cannot be read: Is a directory", "."),
    ]:
        with pytest.raises(ConfigError) as caught:
            load(name, environ={})
        assert [(problem.what, problem.where) for problem in caught.value.problems] == [
            (what, place)
        ]
    with pytest.raises(ConfigError, match=r"did you mean 'empty\.yaml'"):
        load("emty.yaml", environ={})


def test_a_byte_order_mark_is_no_problem(folder: Path) -> None:
    (folder / "bom.yaml").write_bytes(b"\xef\xbb\xbfmodels: m\ndataset: d.jsonl\n")
    assert load("bom.yaml", environ={}).models[0].name == "m"


def test_where_finds_a_place_later(loaded: Loaded, folder: Path) -> None:
    config = loaded(
        "models:\n  - name: m\n    config:\n      endpont: http://h\ndataset: d.jsonl\n"
    )
    assert (
        where(config, "models", 0, "params", "endpont")
        == f"{folder}/c.yaml:4 models[0].config.endpont"
    )
    (folder / "c.yaml").unlink()
    assert where(config, "models", 0, "params", "endpont") == "models[0].params.endpont"


NAMES = st.text(min_size=1, max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(NAMES, children, max_size=3),
    max_leaves=12,
)


@given(value=st.dictionaries(NAMES, VALUES, max_size=4))
def test_yaml_gives_back_what_was_written(value: dict[str, Any]) -> None:
    assert scalar(to_yaml(value)) == value


@given(
    value=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    indent=st.sampled_from([None, 1, "\t"]),
)
def test_json_lines_are_the_lines_of_the_keys(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], indent: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "lines.json"
    text = json.dumps(value, indent=indent)
    file.write_text(text)
    document = read(file)
    assert document.data == value
    lines = text.split("\n")
    for key in _keys(value, ()):
        line = lines[document.lines[key] - 1]
        assert not isinstance(key[-1], str) or json.dumps(key[-1]) in line


def _keys(value: Any, key: Key) -> list[Key]:
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [found for name, part in parts for found in [(*key, name), *_keys(part, (*key, name))]]
