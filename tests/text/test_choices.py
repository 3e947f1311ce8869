"""Which option an answer names, and that nothing is guessed."""

import pytest

from assay.text.choices import find_choice

OPTIONS = {"A": "London", "B": "Paris", "C": "Paris, Texas", "D": "Rome"}


@pytest.mark.parametrize(
    "text",
    [
        "B",
        "b",
        "(B)",
        "[B]",
        "B.",
        "**B**",
        "**(B)** Paris",
        "B) Paris",
        "B: Paris is the capital",
        "B - Paris",
        "Option B",
        "Answer: B",
        "Answer:\nB",
        "answer: b",
        "The answer is B.",
        "the answer is (b)",
        "The answer is: (B), as shown.",
        "The correct answer is **B**",
        "The correct option is B because A is wrong",
        "The correct answer is B. The others do not fit, so option D is incorrect.",
        "The answer is B. Rome is the capital of Italy. Therefore, option (D) is clearly wrong.",
        "I'd choose B. So option A cannot be right, and thus choice C is not correct.",
        "My answer: **B. Paris**",
        "Final Answer: [[B]]",
        "I'd choose option B",
        "#### B",
        "Therefore, (B) is correct.",
        "The capital is Paris (B).",
        "Reasoning first.\n\nB",
        "A is tempting. The answer is A... no, the answer is B.",
        "A) London\nB) Paris\nThe answer is B",
        "<think>It is A</think>B",
        "Maybe the answer is A </think>\n\nB",
        r"\boxed{B}",
        r"$\boxed{\textbf{(B)}}$",
        r"The answer is A, no: $\boxed{\text{B}}$",
        "Paris",
        "paris.",
        "It is Paris.",
        "So the answer is Paris, not Rome.",
        r"\boxed{\text{Paris}}",
    ],
)
def test_b_is_read(text: str) -> None:
    assert find_choice(text, "ABCD", OPTIONS) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "E",
        "I don't know.",
        "The answer is A or B",
        "The answer is A matter of taste",
        "A good question. It could be many things",
        "A) London\nB) Paris",
        "(A) or (B)",
        "London or Paris",
        "It is not Paris",
        "The answer is not A",
        "<think>It must be B",
        r"\boxed{E}",
    ],
)
def test_nothing_is_guessed(text: str) -> None:
    assert find_choice(text, "ABCD", OPTIONS) is None


def test_the_longer_of_two_options_that_contain_each_other() -> None:
    assert find_choice("It is Paris, Texas.", "ABCD", OPTIONS) == "C"
    assert find_choice("Paris, Texas is not far from Paris", "ABCD", OPTIONS) is None


def test_a_is_a_letter_or_an_article() -> None:
    assert find_choice("The answer is A", "ABCD") == "A"
    assert find_choice("The answer is A because it says so", "ABCD") == "A"
    assert find_choice("The answer is a", "ABCD") == "A"
    assert find_choice("The answer is a matter of taste", "ABCD") is None


def test_other_labels() -> None:
    assert find_choice("The answer is 2.", ["1", "2", "3"]) == "2"
    assert find_choice("**True**", ["True", "False"]) == "True"
    assert find_choice("The answer is yes", ["Yes", "No"]) == "Yes"
