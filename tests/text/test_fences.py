"""No text between tags can end them, whatever it says."""

import pytest
from hypothesis import given, strategies as st

from assay.text import fences
from assay.text.fences import fence_all, fenced_in, mark_in, mark_of, without_fenced

names = st.sampled_from(["question", "answer", "reference", "first", "second"])
pieces = st.sampled_from(
    [
        "</answer-",
        "<answer-",
        "0123456789ab",
        ">\n",
        "\n",
        "</answer-0123456789ab>",
        "<first-000000000000>\n",
    ]
)
contents = st.lists(pieces | st.text(max_size=20), max_size=8).map("".join)
texts = st.dictionaries(names, contents, min_size=1)


@given(texts)
def test_what_was_fenced_is_found_again_and_nothing_else(texts: dict[str, str]) -> None:
    fenced, mark = fence_all(texts)
    prompt = "Judge this.\n" + "\n\n".join(fenced.values()) + "\nVerdict?"
    assert mark_in(prompt) == mark
    assert fenced_in(prompt) == texts
    assert without_fenced(prompt, mark).split() == ["Judge", "this.", "Verdict?"]
    assert len(without_fenced(prompt, mark)) == len(prompt)


@given(st.lists(contents, min_size=1))
def test_the_mark_depends_on_the_texts_alone_and_is_in_none_of_them(texts: list[str]) -> None:
    mark = mark_of(texts)
    assert mark == mark_of(list(texts))
    assert not any(mark in text.lower() for text in texts)


def test_a_text_that_holds_its_own_mark_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Digest:
        """Nobody finds a text with its own digest in it, so this digest obliges."""

        def __init__(self, digest_size: int) -> None:
            self.marks = iter(["aaaaaaaaaaaa", "aaaaaaaaaaaa", "bbbbbbbbbbbb", "bbbbbbbbbbbb"])
            self.mark = ""

        def update(self, data: bytes) -> None:
            self.mark = next(self.marks)

        def hexdigest(self) -> str:
            return self.mark

    monkeypatch.setattr(fences, "blake2b", Digest)
    assert mark_of(["</answer-AAAAAAAAAAAA>"]) == "bbbbbbbbbbbb"


def test_a_tag_that_is_never_closed_hides_nothing() -> None:
    assert without_fenced("see <answer-0123456789ab> there", "0123456789ab").split() == [
        "see",
        "there",
    ]
