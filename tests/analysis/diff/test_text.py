"""What differs between two texts: marked lines, bounded in length and time for any texts."""

import time

from hypothesis import given, strategies as st

from assay.analysis.diff.text import text_diff


@given(st.text(), st.text())
def test_equal_texts_have_none_and_others_have_some(first: str, second: str) -> None:
    lines = text_diff(first, second)
    assert bool(lines) == (first != second)
    assert len(lines) <= 9
    assert all(len(text) <= 160 for _, text in lines)
    assert {mark for mark, _ in lines} <= {"A", "B", " "}
    swapped = text_diff(second, first)
    assert bool(swapped) == bool(lines)


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=6),
    st.lists(st.sampled_from(["a", "b", "d"]), max_size=6),
)
def test_every_marked_line_is_one_of_its_side(first: list[str], second: list[str]) -> None:
    for mark, text in text_diff("\n".join(first), "\n".join(second), most=100):
        if mark != " ":
            assert text in ((first if mark == "A" else second) or [""])


def test_a_changed_line_among_equal_ones() -> None:
    assert text_diff("one\ntwo\nthree", "one\n2\nthree") == [("A", "two"), ("B", "2")]
    assert text_diff("one", "one\ntwo") == [("B", "two")]
    assert text_diff("", "x") == [("A", ""), ("B", "x")]


def test_long_lines_begin_shortly_before_the_difference() -> None:
    words = "the quick brown fox jumps over the lazy dog " * 10
    (_, first), (_, second) = text_diff(f"{words}Paris {words}", f"{words}Lyon {words}")
    assert first.startswith("…")
    assert "Paris" in first[:60]
    assert "Lyon" in second[:60]
    assert len(first) == len(second) == 160


def test_many_changes_end_with_a_mark() -> None:
    lines = text_diff("\n".join(map(str, range(50))), "\n".join(f"{n}!" for n in range(50)), most=4)
    assert [mark for mark, _ in lines] == ["A", "B", "A", "B", " "]
    assert lines[-1] == (" ", "…")


def test_line_ends_alone() -> None:
    assert text_diff("a\nb", "a\nb\n") == [(" ", "only white space or line ends differ")]


def test_hostile_texts_take_no_longer_than_a_moment() -> None:
    started = time.process_time()
    text_diff("a\nb\n" * 100_000, "b\na\na\n" * 100_000)
    text_diff("x" * 5_000_000, "x" * 4_999_999 + "y")
    text_diff(
        "\n".join("ab"[n % 2] for n in range(5000)), "\n".join("ab"[n % 3 % 2] for n in range(5000))
    )
    assert time.process_time() - started < 5
