"""A sheet in every form: nothing is lost at any width, and no text is obeyed by what shows it."""

import csv
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import assay
from assay.errors import UserError
from assay.records import Manifest
from assay.reports.run import metrics_table
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Sheet,
    Table,
    averaged_over,
    decimals,
    figures,
    number_text,
    one_line,
    passed_text,
)
from assay.reports.wrapping import cells, wrapped

EVIL = "\x1b[2J\x9b31m\u202e<b>|*_[x](y)&amp;\\end{tabular}%\n=1+1"
FORMS = ("table", "markdown", "latex", "csv", "html")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def sheet_of(*texts: str, **more: object) -> Sheet:
    columns = [
        Column("name", text=True),
        Column("a_long_heading_of_words"),
        Column("verdict", text=True),
    ]
    rows = [[text, f"{number}.125", Cell("better", "good")] for number, text in enumerate(texts)]
    return Sheet(
        [Line("lead", "quiet"), Table(columns=columns, rows=rows)], notes=["mind"], title="Title"
    )


@pytest.mark.parametrize("form", FORMS)
def test_no_form_obeys_a_text(form: str) -> None:
    shown = sheet_of(EVIL).form(form, width=200)
    assert not CONTROL.search(shown)
    assert "\\x1b" in shown or r"\textbackslash{}x1b" in shown or r"\\x1b" in shown


def test_html_is_one_tree_of_plain_texts() -> None:
    class Tags(HTMLParser):
        seen: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.seen.append(tag)

    parser = Tags()
    parser.feed(sheet_of(EVIL).form("html"))
    assert "b" not in parser.seen
    assert parser.seen.count("table") == 1
    assert sheet_of("x")._repr_html_() == sheet_of("x").form("html")


def test_latex_has_only_its_own_commands() -> None:
    shown = sheet_of(EVIL).form("latex")
    assert shown.count(r"\end{tabular}") == 1
    assert not re.search(r"(?<!\\)%", shown.split("tabular}")[1])


def test_csv_disarms_formulas_and_has_the_exact_values() -> None:
    table = Table(columns=[Column("x")], rows=[["0.33"]], data=(["x", "y"], [[1 / 3, "=1+1"]]))
    (row,) = csv.DictReader(Sheet([table]).form("csv").splitlines())
    assert float(row["x"]) == 1 / 3
    assert row["y"] == "'=1+1"


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5), st.integers(10, 120))
def test_a_terminal_of_any_width_shows_every_letter(texts: list[str], width: int) -> None:
    sheet = sheet_of(*texts)
    shown = sheet.form(width=width)
    assert all(cells(line) <= width for line in shown.split("\n"))
    seen = Counter(re.sub(r"[\s─…]", "", shown))
    prefix = (re.findall(r"name: … is (\S*)", shown.replace("\n", "")) or [""])[0]
    for letter, number in Counter(
        re.sub(r"[\s─…]", "", "".join(map(one_line, set(texts))))
    ).items():
        assert seen[letter] >= number - len(texts) * prefix.count(letter)
    for number in range(len(texts)):
        assert f"{number}.125" in shown


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=80), st.integers(2, 40))
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    pieces = wrapped(text, width)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(cells(piece) <= width for piece in pieces)


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("–…→", 3), ("🙂", 2)]
)
def test_columns_of_a_text(text: str, columns: int) -> None:
    assert cells(text) == columns


def test_colours_are_for_terminals_that_want_them() -> None:
    assert "\x1b[32mbetter\x1b[0m" in sheet_of("x").form(colour=True)
    assert "\x1b" not in str(sheet_of("x"))


def test_a_long_heading_is_broken_before_a_table_becomes_lines() -> None:
    shown = sheet_of("x").form(width=30).splitlines()
    assert [line.split() for line in shown[1:5]] == [
        [],
        ["a_long_"],
        ["heading_of_"],
        ["name", "words", "verdict"],
    ]
    stacked = sheet_of("x").form(width=23).splitlines()
    assert [line.strip() for line in stacked[2:5]] == ["name", "x", "a_long_heading_of_words"]


def test_names_lose_what_they_share_before_they_are_broken() -> None:
    names = [f"meta-llama/Meta-Llama-3.1-{size}-Instruct" for size in ("70B", "8B")]
    columns = [
        Column("model", text=True),
        Column("value"),
        Column("items", spare=True),
        Column("n", spare=True),
    ]
    table = Table(columns, [[name, "0.500", "1,319", str(n)] for n, name in enumerate(names)])
    wide, narrow, least = (Sheet([table]).form(width=width).splitlines() for width in (60, 40, 22))
    assert wide[3].split() == [names[0], "0.500", "1,319", "0"]
    assert narrow[3].split() == ["…70B-Instruct", "0.500", "1,319", "0"]
    assert narrow[-1] == "model: … is meta-llama/Meta-Llama-3.1-"
    assert [line.split() for line in least[3:5]] == [
        ["…70B-Instruct", "0.500"],
        ["…8B-Instruct", "0.500"],
    ]
    assert "items: 1,319 in each row" in " ".join(least)
    assert "n: shown on a wider terminal" in " ".join(least)


def test_a_name_of_many_rows_is_their_heading() -> None:
    rows = [
        [model * 30, label, "0.500"]
        for model in "ab"
        for label in ("exact_match", "bleu", "contains")
    ]
    table = Table([Column("model", text=True), Column("label", text=True), Column("value")], rows)
    assert [line.split() for line in Sheet([table]).form(width=40).splitlines()[3:8]] == [
        ["model:", "a" * 30],
        ["exact_match", "0.500"],
        ["bleu", "0.500"],
        ["contains", "0.500"],
        ["model:", "b" * 30],
    ]


@pytest.mark.parametrize("width", [10, 20, 30, 60])
def test_a_number_stays_whole_and_with_its_word(width: int) -> None:
    table = Table([Column("failed", folds=True)], [["3 errored, 12 unparsed"]])
    shown = Sheet([table]).form(width=width)
    assert "errored" in shown
    assert "unparsed" in shown
    assert width < 20 or re.search(r"(?<!, )12 unparsed$", shown.strip(), re.M) or width > 22


def test_what_replaces_a_table_that_does_not_fit() -> None:
    wide = Table(columns=[Column("x" * 30)], rows=[["1"]])
    part = Table(columns=[Column("y")], rows=[["2"]], title="part")
    assert Sheet([wide._replace(instead=[part])]).form(width=20).split() == ["part", "y", "─", "2"]
    assert Sheet([wide._replace(extra=True)]).form(width=20) == ""
    assert Sheet([wide]).form(width=20).split() == ["x" * 20, "x" * 10, "1"]
    assert Sheet([wide]).form(width=26).split() == ["x" * 11, "1", "x" * 11, "x" * 8]


def test_files_by_their_names(tmp_path: Path) -> None:
    described = assay.show("exact_match")
    for suffix, said in (
        (".md", "exact\\_match"),
        (".tex", "exact\\_match"),
        (".html", "<table>"),
        (".csv", "name,type"),
    ):
        assay.save(described, tmp_path / f"x{suffix}")
        assert said in (tmp_path / f"x{suffix}").read_text()
    with pytest.raises(UserError, match=r"cannot be written as 'x\.doc'"):
        assay.save(described, tmp_path / "x.doc")


def test_only_results_have_sheets() -> None:
    with pytest.raises(UserError, match="there is no view of a int"):
        assay.sheet(3)


def test_facets_that_begin_alike_are_not_cut_to_one() -> None:
    texts = [
        f"Answer the following question as briefly as you can {end}: {{{{q}}}}"
        for end in ("now", "then")
    ]
    rows = [
        {"metric_name": "mean", "label": "x", "facets": ["prompt"], "prompt": text, "value": 1.0}
        for text in texts
    ]
    shown = Sheet([metrics_table(rows)]).form(width=200)
    assert all(text in shown for text in texts)


@pytest.mark.parametrize(
    ("numbers", "shown", "span"),
    [
        ((0.9995, 0.9972, 0.99991), "0.9995", "0.9972–0.9999"),  # 1,999 of 2,000
        ((0.00042, 0.00032, 0.00052), "0.00042", "0.00032–0.00052"),
        ((0.00042, None, None), "0.00042", "–"),
        ((0.9995, None, None), "0.9995", "–"),
        ((99195.2, 94296.409, 104094.745), "99,195", "94,296–104,095"),
        ((0.88, 0.812, 0.926), "0.880", "0.812–0.926"),
        ((1.0, 0.919, 1.0), "1.000", "0.919–1.000"),
        ((4.99983, 4.9, 5.0), "4.9998", "4.9000–5.0000"),
        ((12.345, 10.1, 15.3), "12.3", "10.1–15.3"),
        ((3.1, 2.2, None), "3.100", "≥ 2.200"),
        ((3.1, None, 4.5), "3.100", "≤ 4.500"),
        ((-1e-17, -0.02, 0.02), "0.000", "-0.020–0.020"),
        ((None, None, None), "–", "–"),
    ],
)
def test_digits_come_from_the_width(
    numbers: tuple[float | None, float | None, float | None], shown: str, span: str
) -> None:
    assert figures(*numbers) == (shown, Cell(span))


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(0, 5))
def test_only_a_whole_number_is_shown_as_one(value: float, below: float, above: float) -> None:
    ends = value - below, value + above
    places = decimals(value, *ends)
    for number in (value, *ends):
        text = number_text(number, places)
        if abs(number) < 10 and abs(number - round(number)) > 1e-9:
            assert not float(text.replace(",", "")).is_integer()
        assert not text.startswith("-") or float(text.replace(",", "")) < 0


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "html"])
def test_a_weak_interval_is_marked_and_explained_once(form: str) -> None:
    _, span = figures(0.5, 0.2, 0.8, "wilson; weak: fewer than 30 items")
    table = Table([Column("value"), Column("interval")], [["0.5", span], ["0.6", "0.5–0.7"]])
    shown = Sheet([table, table] if form != "latex" else [table]).form(form)
    mark = {"latex": r"\textasciitilde{}", "markdown": r"\~"}.get(form, "~")
    assert f"0.8{'00'}{mark}" in shown
    assert shown.count(f"{mark} weak: fewer than 30 items") == 1


def test_verdicts_have_their_counts() -> None:
    row = {"metric_type": "mean", "value": 0.9995, "used_sample_count": 2000}
    assert passed_text({**row, "ci_method": "wilson"}) == "1,999/2,000"
    assert passed_text({**row, "ci_method": "wilson_of_items"}) == ""
    assert passed_text({**row, "ci_method": "scaled_wilson"}) == "", "ratings of 1 to 5"
    assert passed_text({**row, "ci_method": "wilson", "metric_type": "recall"}) == ""
    assert passed_text({"passed_count": 0, "total_count": 7}) == "0/7"


def test_missing_rows_are_seen_with_their_bounds() -> None:
    row = {
        "metric_name": "mean",
        "value": 0.8,
        "planned_sample_count": 46,
        "total_sample_count": 46,
        "used_sample_count": 31,
        "errored_count": 6,
        "skipped_count": 9,
        "value_if_missing_wrong": 0.615,
        "value_if_missing_right": 0.96,
    }
    shown = Sheet([metrics_table([row])]).form(width=80)
    assert "0.615 … 0.960" in shown
    assert "31/46" in shown
    assert "6 errored, 9 skipped" in " ".join(shown.split())


def test_facets_that_are_pooled_are_named() -> None:
    tasks = [
        {
            "name": f"{model}/{prompt}",
            "facets": {"model_id": model, "prompt_template": prompt, "t": t},
        }
        for model, t in (("a", 0), ("b", 1))
        for prompt in ("short", "polite")
    ]
    run = Manifest(id="r", kind="run", plan={"tasks": tasks})
    assert averaged_over([["model_name"]], run) == ["averaged over prompt_template (2)"]
    assert averaged_over([["metadata.model_id", "prompt_template"]], run) == []
    assert averaged_over([["task"]], run) == []
    assert averaged_over([["prompt_template"]], run) == ["averaged over model_id (2), t (2)"]
    assert averaged_over([["model_name"]], None) == []
