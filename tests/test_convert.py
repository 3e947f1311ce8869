"""Every format that can be read and written gives back all that was put into it, alone and through every other. The
formats are those of the registry: a new one is tested as soon as it has a reader and a writer."""

from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay
from assay.analysis.look.convert import formats, suffixes
from assay.engine.experiment.imports.foreign import ForeignCase
from assay.records import Evaluation, Response
from tests.convert_lab import content, evaluation, make, response

NEEDED = {"parquet": "duckdb", "hf": "pyarrow"}
OTHERS = [name for name in formats() if name != "assay"]
CHEAP = ("csv", "een", "hf")


def check_packages(*names: str) -> None:
    for name in names:
        if name in NEEDED and find_spec(NEEDED[name]) is None:
            pytest.skip(f"{NEEDED[name]} is not installed")


def there(source: Path, place: Path, name: str) -> Path:
    suffix = {format: suffix for suffix, format in suffixes().items()}.get(name, "")
    (converted,) = assay.convert(source, place.with_name(place.name + suffix), to=name)
    return Path(converted.path)


@pytest.mark.parametrize("name", formats())
def test_a_format_gives_back_all(name: str, tmp_path: Path) -> None:
    check_packages(name)
    own = make(tmp_path / "own")
    written = there(own, tmp_path / "written", name)
    assert content(there(written, tmp_path / "again", "assay")) == content(own)


@pytest.mark.parametrize(("first", "second"), list(permutations(OTHERS, 2)))
def test_every_pair_gives_back_all(first: str, second: str, tmp_path: Path) -> None:
    check_packages(first, second)
    path = own = make(tmp_path / "own")
    for number, name in enumerate((first, second, first)):
        path = there(path, tmp_path / f"way-{number}", name)
    assert content(there(path, tmp_path / "again", "assay")) == content(own)


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
def test_any_rows_come_back(name: str, cases: list[ForeignCase]) -> None:
    check_packages(name)
    with TemporaryDirectory() as folder:
        own = make(Path(folder, "own"), cases)
        written = there(own, Path(folder, "written"), name)
        assert content(there(written, Path(folder, "again"), "assay")) == content(own)


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
