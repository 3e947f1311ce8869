"""Every format that can be read and written gives back all that was put into it but what is named as left out. The
formats are those of the registry: a new one is tested as soon as it has a reader and a writer."""

import json
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import assay
from assay.analysis.look.convert import Converted, formats, suffixes
from assay.foreign import ForeignCase
from assay.records import Evaluation, Response
from tests.convert_lab import content, evaluation, make, response

NEEDED = {"parquet": "duckdb", "hf": "pyarrow"}
OTHERS = [name for name in formats() if name != "assay"]
CHEAP = ("een", "hf")


def check_packages(*names: str) -> None:
    for name in names:
        if name in NEEDED and find_spec(NEEDED[name]) is None:
            pytest.skip(f"{NEEDED[name]} is not installed")


def there(source: Path, place: Path, name: str) -> list[Converted]:
    suffix = {format: suffix for suffix, format in suffixes().items()}.get(name, "")
    return assay.convert(source, place.with_name(place.name + suffix), to=name)


TABLE_OF = {
    "items": "items.jsonl",
    "responses": "responses.jsonl",
    "evaluations": "evaluation_results.jsonl",
}
TABLES = ("csv", "hf", "parquet")
SPELLED = r"\\u2028", r"\u2028"  # how CSV has a character that ends lines elsewhere


def kept(folder: Path, table: str, left_out: dict[str, int]) -> list[str]:
    """The rows without the fields that were left out, and without the rows that no table of samples has."""
    rows = content(folder)[TABLE_OF[table]]
    if table in left_out:
        rows = [row for row in rows if not row.get("players") and row.get("id") != "left out"]
    gone = {name.partition(".")[2] for name in left_out if name.startswith(f"{table}.")}
    plain = [{name: value for name, value in row.items() if name not in gone} for row in rows]
    return sorted(json.dumps(row).replace(*SPELLED) for row in plain)


@pytest.mark.parametrize("name", formats())
def test_what_is_not_named_as_left_out_comes_back(name: str, tmp_path: Path) -> None:
    check_packages(name)
    own = make(tmp_path / "own")
    (made,) = there(own, tmp_path / "written", name)
    (again,) = there(Path(made.path), tmp_path / "again", "assay")
    counts = len(content(own)["responses.jsonl"]), len(content(own)["evaluation_results.jsonl"])
    assert (made.responses, made.evaluations) == counts == (16, 38)
    left_out = made.left_out
    if name == "assay":
        assert left_out == {}
        assert content(Path(again.path)) == content(own)
    elif name != "sygra":  # which does not say what it holds
        assert {"calls", "traces", "config"} <= left_out.keys()
    if name == "een":
        left_out = {**left_out, "items.data": 5, "items.ground_truth": 3}
    if any("matches" in note for note in made.notes):
        left_out = {**left_out, "evaluations": 1}
    for table in TABLE_OF:
        if table == "items" and name in (*TABLES, "een"):
            continue  # texts of a table that read as numbers are numbers
        assert kept(Path(again.path), table, left_out) == kept(own, table, left_out)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("csv", {"items": 1, "evaluations": 1, "items.metadata": 1, "responses.messages": 3}),
        ("een", {"items": 5, "responses.key": 16, "responses.cost": 13, "evaluations.value": 19}),
        ("ragicamp", {"metrics": 1, "calls": 1, "traces": 1, "config": 1}),
    ],
)
def test_what_a_format_cannot_hold_is_counted(
    name: str, wanted: dict[str, int], tmp_path: Path
) -> None:
    (made,) = there(make(tmp_path / "own"), tmp_path / "written", name)
    assert made.left_out.items() >= wanted.items()
    held = {"responses.response", "evaluations.score", "responses.error", "items.id"}
    assert not held & made.left_out.keys()


@pytest.mark.parametrize(("first", "second"), list(permutations(OTHERS, 2)))
def test_every_pair_converts(first: str, second: str, tmp_path: Path) -> None:
    check_packages(first, second)
    path = make(tmp_path / "own")
    for number, name in enumerate((first, second, "assay")):
        (made,) = there(path, tmp_path / f"way-{number}", name)
        path = Path(made.path)
    answers = [row["response"] for row in content(path)["responses.jsonl"]]
    assert len(answers) == 16


def test_the_formats_that_were_promised() -> None:
    assert {"assay", "csv", "een", "hf", "parquet", "ragicamp"} <= set(formats())


# ---- any rows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(TEXT, VALUE, max_size=3)
SCORE = st.none() | st.floats(-1e9, 1e9)


@st.composite
def any_case(draw: st.DrawFn, item: dict[str, Any], number: int) -> ForeignCase:
    answer = response(
        item["id"], draw(st.sampled_from(["a", "b c", ""])), number, number, metadata=draw(FIELDS)
    )
    answer.response, answer.error, answer.output = draw(TEXT), draw(st.none() | TEXT), draw(VALUE)
    answer.outcome = draw(st.sampled_from(["ok", "refused", "errored", "skipped"]))
    answer.cost, answer.total_tokens = draw(SCORE), draw(st.none() | st.integers(0, 10**9))
    labels = draw(
        st.lists(st.tuples(TEXT, TEXT, SCORE, st.none() | st.booleans(), VALUE), max_size=3)
    )
    rows = [
        evaluation(
            answer,
            label,
            scorer,
            score,
            passed=passed,
            value=value,
            key=f"{number}-{at}",
            metadata=draw(FIELDS),
        )
        for at, (label, scorer, score, passed, value) in enumerate(labels)
    ]
    return ForeignCase(item, answer, rows)


@st.composite
def any_cases(draw: st.DrawFn) -> list[ForeignCase]:
    ids = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=3, unique=True))
    found: list[ForeignCase] = []
    for id in ids:
        item: dict[str, Any] = {"id": id, "data": draw(VALUE)}
        if draw(st.booleans()):
            item["ground_truth"] = draw(VALUE)
        found += [draw(any_case(item, number)) for number in range(draw(st.integers(1, 2)))]
    return found


@pytest.mark.parametrize("name", CHEAP)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases=any_cases())
def test_all_answers_of_any_rows_come_back(name: str, cases: list[ForeignCase]) -> None:
    check_packages(name)
    with TemporaryDirectory() as folder:
        own = make(Path(folder, "own"), cases)
        (made,) = there(own, Path(folder, "written"), name)
        (again,) = there(Path(made.path), Path(folder, "again"), "assay")
        assert answers(Path(again.path)) == answers(own)


def answers(folder: Path) -> list[list[str]]:
    """What tables and EEN have of answers."""
    names = ["item_id", "sample_index", "model_name", "total_tokens", "inference_time", "response"]
    rows = content(folder)["responses.jsonl"]
    return sorted([str(row[name]) for name in names] for row in rows)


def test_rows_are_what_the_lab_says(tmp_path: Path) -> None:
    """The lab has what the formats are tested with."""
    found = content(make(tmp_path / "own"))
    responses = [Response(**row) for row in found["responses.jsonl"]]
    evaluations = [Evaluation(**row) for row in found["evaluation_results.jsonl"]]
    assert {row.outcome for row in responses} == {"ok", "refused", "errored", "skipped"}
    assert {row.outcome for row in evaluations} == {"scored", "unparsed", "errored"}
    assert any(row.tool_calls for row in responses)
    assert any(row.players for row in evaluations)
    assert len({row.scorer for row in evaluations if row.label == "exact_match"}) == 2
