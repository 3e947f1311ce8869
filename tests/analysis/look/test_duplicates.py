"""Duplicates against brute force over all pairs, and that nothing is reported which is not so."""

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from assay.analysis.look.duplicates import Duplicates, duplicates, similarity
from assay.store.log import FileLog

WORDS = [
    f"{size}{thing}"
    for size in ("big", "small", "red", "old")
    for thing in ("dog", "house", "tree", "river", "x")
]


def found(folder: Path, texts: list[Any], **options: Any) -> Duplicates:
    log = FileLog(folder / "items.jsonl")
    rows = [{"id": f"i{number}", "data": text} for number, text in enumerate(texts)]
    log.replace(json.dumps(row).encode() + b"\n" for row in rows)
    return duplicates(log, **options)


def brute_force(texts: list[str], threshold: float) -> tuple[int, int, set[frozenset[str]]]:
    """How many repeat an earlier text exactly, how many more nearly, and the groups of the latter."""
    first = {text: number for number, text in reversed(list(enumerate(texts)))}
    groups = {number: frozenset([number]) for number in first.values()}
    for one, two in combinations(sorted(groups), 2):
        if groups[one] != groups[two] and similarity(texts[one], texts[two]) >= threshold:
            union = groups[one] | groups[two]
            groups |= dict.fromkeys(union, union)
    merged = set(groups.values())
    named = {frozenset(f"i{number}" for number in group) for group in merged if len(group) > 1}
    return len(texts) - len(first), len(first) - len(merged), named


def similar_texts(seed: int, threshold: float) -> list[str]:
    """Random texts, copies, and copies with a few words changed; no pair so close to the threshold that chance,
    not similarity, would decide whether it is found."""
    rng = random.Random(seed)
    texts: list[str] = []
    while len(texts) < 70:
        text = " ".join(rng.choices(WORDS, k=rng.randint(1, 120)))
        if texts and rng.random() < 0.5:
            words = rng.choice(texts).split()
            for _ in range(rng.choice([0, 1, 1, 2, 4])):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
            text = " ".join(words)
        if all(not threshold <= similarity(text, other) < threshold + 0.02 for other in texts):
            texts.append(text)
    return texts


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_are_those_of_brute_force(tmp_path: Path, seed: int) -> None:
    texts = similar_texts(seed, 0.8)
    exact, near, groups = brute_force(texts, 0.8)
    report = found(tmp_path, texts, examples=1000)
    assert exact > 5
    assert near > 5
    assert (report.items, report.exact, report.near) == (70, exact, near)
    assert {frozenset(group) for group in report.near_groups} == groups
    assert sum(len(group) - 1 for group in report.exact_groups) == exact


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a b c d e", "a b c d f"),
        ("a b c d e f g", "A, b c! d e f"),
        ("a", "b"),
        ("a b", "a b"),
        ("a b c", "c b a"),
    ],
)
def test_similarity_is_the_share_of_common_three_word_sequences(first: str, second: str) -> None:
    sets: list[set[tuple[str, ...]]] = []
    for text in (first, second):
        words = text.lower().replace(",", "").replace("!", "").split()
        sets.append({tuple(words[n : n + 3]) for n in range(max(1, len(words) - 2))})
    assert similarity(first, second) == len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_case_punctuation_and_spaces_do_not_count_but_symbols_and_numbers_do(
    tmp_path: Path,
) -> None:
    texts = [
        "What is the capital of France?",
        "what is the  capital of FRANCE",
        "What is 7 + 2 in decimal?",
        "What is 7 - 2 in decimal?",
        "What is 7 + 3 in decimal?",
    ]
    report = found(tmp_path, texts)
    assert (report.exact, report.near, report.near_groups) == (0, 1, [["i0", "i1"]])


def test_data_of_any_shape(tmp_path: Path) -> None:
    data = [
        {"q": "a b c d", "n": [1]},
        {"n": [1], "q": "a b c d"},
        {"q": "A b, c d", "n": [1]},
        None,
        "",
        5,
        5,
    ]
    report = found(tmp_path, data)
    assert report.exact_groups == [["i0", "i1"], ["i5", "i6"]]
    assert report.near_groups == [["i0", "i2"], ["i3", "i4"]]


def test_languages_without_spaces(tmp_path: Path) -> None:
    text = "日本の首都はどこですか、教えてください。とても知りたいです"
    assert found(tmp_path, [text, text.replace("。", "、"), "これは別の文章です"]).near == 1


def test_only_some_examples_are_shown_largest_first(tmp_path: Path) -> None:
    texts = ["x"] * 3 + ["y"] * 20 + ["z", "z"]
    report = found(tmp_path, texts, examples=2)
    assert report.exact == 2 + 19 + 1
    assert [len(group) for group in report.exact_groups] == [2, 2]
    assert report.exact_groups[0][0] == "i3"


def test_a_crowd_of_similar_texts_is_one_group(tmp_path: Path) -> None:
    rng = random.Random(0)
    words = rng.choices(WORDS, k=200)
    texts = [" ".join([*words, f"tail{number}"]) for number in range(300)]
    report = found(tmp_path, texts)
    assert (report.exact, report.near) == (0, 299)


def test_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, []) == Duplicates(
        items=0, exact=0, near=0, threshold=0.8, exact_groups=[], near_groups=[]
    )
