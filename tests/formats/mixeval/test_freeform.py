"""Whether an answer gives an accepted answer: right, wrong, and neither."""

import time
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.formats.mixeval.freeform.answers import holds_answer

STEPS = (
    "Let's think step by step. Anna has 12 baskets with 4 apples each, which makes 48 apples. She gives 9 to Paris, "
    "who lives in London, and buys 3 more on 5 May 2011. Some would say yes, others no. It is true that apples are "
    "cheap, and the green ones from Lisbon cost 2 dollars. We must not forget Rome.\n\n"
)

RIGHT: list[tuple[str, list[str]]] = [
    # names and phrases
    ("Paris", ["Paris"]),
    ("paris.", ["Paris"]),
    ("**Paris**", ["Paris"]),
    ("It is Paris.", ["Paris"]),
    ("Paris is the capital of France.", ["Paris"]),
    ("The capital of France is called *Paris*, which lies on the Seine.", ["Paris"]),
    ('The answer is "Paris".', ["Paris"]),
    ("<think>Is it Rome?</think>Paris", ["Paris"]),
    ("A manometer measures pressure.", ["Manometric unit", "Pressure"]),
    ("The Hague, Netherlands", ["Hague"]),
    ("The Beatles", ["Beatles"]),
    ("Beatles", ["The Beatles"]),
    ("It was Sir Isaac Newton.", ["Isaac Newton"]),
    ("Isaac Newton", ["Sir Isaac Newton"]),
    ("Bogota", ["Bogotá"]),
    ("BOGOTÁ!", ["Bogota"]),
    ("Søren Kierkegaard", ["Soren Kierkegaard"]),
    ("The Women’s Institute", ["Women's Institute"]),
    ("Simon and Garfunkel", ["Simon & Garfunkel"]),
    ("Tata bought the Jaguar and Land Rover brands.", ["Jaguar Land Rover"]),
    ("Motel Six", ["Motel 6"]),
    ("Spider-Man", ["spider man"]),
    ("Mercury", ["Mercury (planet)"]),
    ("The I stands for Innovation.", ["(Department For Business,) Innovation (And Skills)"]),
    ("It is Lyon, not Paris.", ["Lyon"]),
    ("It is not Paris but Lyon.", ["Lyon"]),
    ("Not only Paris but also Lyon", ["Paris"]),
    ("I do not know for sure, but I think it is Paris.", ["Paris"]),
    (
        'NEET means "Not in Education, Employment or Training", said of the young.',
        ["Not in Education Employment"],
    ),
    ("Instagram.\n\nFacebook acquired it in April 2012 for $1 billion.", ["Instagram"]),
    (STEPS + "So the answer is Lyon.", ["Lyon"]),
    (STEPS + "The final answer is:\n\n**Lyon**", ["Lyon"]),
    (STEPS + "Therefore, she lives in Lyon.", ["Lyon"]),
    (STEPS + "She lives in Lyon.", ["Lyon"]),
    ("Lyon.\n\n" + STEPS, ["Lyon"]),
    (r"Rome? No: $\boxed{\text{Lyon}}$", ["Lyon"]),
    ("The letter U was added.", ["U"]),
    ("It was none other than Elvis Presley.", ["Elvis Presley"]),
    ("He did not win. Paris did.", ["Paris"]),
    (
        "There are more churches and chapels (over 80) than priests (about 45).",
        ["churches and chapels"],
    ),
    ("#### Answer\n\nParis\n\n#### Explanation\n\nIt is the capital.", ["Paris"]),
    # numbers
    ("34", ["34"]),
    ("34.", ["34"]),
    ("34.0", ["34"]),
    ("The longest was **34 yards**.", ["34"]),
    ("34", ["34 yards"]),
    ("34 yd", ["34 yards"]),
    ("It is a 34-yard field goal", ["34 yards"]),
    ("1,234 people", ["1234"]),
    ("1234", ["1,234"]),
    ("1/2", ["0.5"]),
    ("0.5", ["1/2"]),
    (r"\frac{1}{2}", ["0.5"]),
    ("1.2 million", ["1200000"]),
    ("seven", ["7"]),
    ("7", ["Seven"]),
    ("There were twenty-one of them.", ["21"]),
    ("One", ["1"]),
    ("Three groups: Russians, Ukrainians, and Georgians.", ["3"]),
    ("50 percent", ["50%"]),
    ("0.5", ["50%"]),
    ("50%", ["50"]),
    ("$5", ["5 dollars"]),
    ("5 dollars", ["$5"]),
    ("-5", ["-5"]),
    ("5 + 7 = 12", ["12"]),
    ("The answer is 5 + 7 = 12.", ["12"]),
    ("The answer is 12 (5 of them red).", ["12"]),
    ("12 apples. She bought 5 and picked 7, so she saved 3 dollars.", ["12"]),
    ("911 was established as the emergency number in 1968.", ["911"]),
    ("911 was established as the emergency number in 1968.", ["1968"]),
    ("It is not 5 but 7.", ["7"]),
    ("They won 3 games, **27 points** in all.", ["27"]),
    ("**Step 1** is to add 20 and 7, which gives **27**.", ["27"]),
    ("27 points were scored in the 2nd half of 2010.", ["27"]),
    (STEPS + "#### 42", ["42"]),
    (STEPS + "48 - 9 + 3 = 42", ["42"]),
    (STEPS + "So she has 42 apples left.", ["42"]),
    (STEPS + r"Hence $\boxed{42}$", ["42"]),
    # dates
    ("July 4, 1776", ["July 4, 1776"]),
    ("4 July 1776", ["July 4, 1776"]),
    ("It was signed on 1776-07-04.", ["July 4, 1776"]),
    ("On the 4th of July, 1776", ["4 July 1776"]),
    ("Thursday, July 4, 1776", ["July 4, 1776"]),
    ("7/14/1789", ["14 July 1789"]),
    ("July 4, 1776", ["1776"]),
    ("It happened on July 4, 1776, in Philadelphia.", ["July 1776"]),
    # lists
    ("apples, pears and plums", ["apples, pears, plums"]),
    ("plums, apples, pears", ["apples, pears, plums"]),
    ("Minerva and Athena", ["Athena and Minerva"]),
    ("1. kiwi\n2. apple\n3. banana", ["kiwi apple banana"]),
    ("Sorted: apple, banana, cherry, date", ["apple banana cherry date"]),
    (STEPS + "The answer is:\n- pears\n- apples", ["apples, pears"]),
    # yes and no
    ("Yes", ["yes"]),
    ("No.", ["No"]),
    ("No, it is not.", ["No"]),
    ("**Yes**, because she can.", ["Yes"]),
    ("True", ["True"]),
    (STEPS + "So the answer is no.", ["No"]),
    (STEPS + "Therefore, the statement is false.", ["False"]),
    (STEPS + "\nYes", ["yes"]),
    ("The argument is not valid.", ["invalid"]),
    ("The argument is invalid.", ["invalid"]),
    # letters
    ("The answer is (B).", ["(B)"]),
    ("(B) Friday", ["(B)"]),
    ("B", ["(B)"]),
    # formulas
    (r"The answer is $\boxed{x^2 + 1}$.", ["x^2+1"]),
    (r"$\left( 1, 2 \right)$", ["(1,2)"]),
    (r"\boxed{\dfrac{3}{4}}", [r"\frac{3}{4}"]),
    (r"\boxed{0.75}", [r"\frac{3}{4}"]),
    ("$42$", ["42 km"]),
    ("x^{2}", ["x^2"]),
    ("50 Cent sold 30 million copies.", ["50 Cent"]),
    (r"So $y = 2\sqrt{3}$.", [r"2\sqrt{3}"]),
    ("] ) >", ["] ) >"]),
    ("We have to close ( and [. So the answer is: ] )", ["] )"]),
]

WRONG: list[tuple[str, list[str]]] = [
    ("Rome", ["Paris"]),
    ("Parisian", ["Paris"]),
    ("Rupert Murdoch joined the board.", ["James Murdoch"]),
    ("It is not Paris.", ["Paris"]),
    ("It isn't Paris.", ["Paris"]),
    ("It is not Paris but Lyon.", ["Paris"]),
    ("It is Lyon rather than Paris.", ["Paris"]),
    ("Neither Paris nor Lyon", ["Paris"]),
    ("Paris is big, but the answer is Lyon.", ["Paris"]),
    (STEPS + "So the answer is Lyon.", ["Lisbon"]),
    (STEPS + r"\boxed{Lyon}", ["Paris"]),
    ("It was not written by Mozart.", ["Mozart"]),
    ("There are more churches (over 80) than priests (about 45).", ["priests"]),
    ("35", ["34"]),
    ("34 feet", ["34 yards"]),
    ("5 miles", ["5 km"]),
    ("0.5%", ["50%"]),
    ("134", ["34"]),
    ("3.45", ["345"]),
    ("Many.", ["34"]),
    ("the 1990s", ["1990"]),
    ("It is not 5 but 7.", ["5"]),
    ("The answer is 12.", ["5"]),
    (STEPS + "So she has 42 apples left.", ["48"]),
    (STEPS + "#### 42", ["12"]),
    ("July 5, 1776", ["July 4, 1776"]),
    ("1776", ["July 4, 1776"]),
    ("July 4, 1777", ["1776"]),
    ("apples and pears", ["apples, pears, plums"]),
    ("banana, apple, cherry, date", ["apple banana cherry date"]),
    ("banana, apple, cherry, date", ["apple, banana, cherry, date"]),
    ("kiwi apple", ["kiwi apple banana"]),
    ("No", ["Yes"]),
    ("Yes, he did.", ["no"]),
    (STEPS + "So the answer is no.", ["Yes"]),
    ("The argument is not valid.", ["valid"]),
    ("The answer is (C).", ["(B)"]),
    ("The answer is: ) )", ["] )"]),
    ("The answer is: ] ] )", ["] )"]),
    (r"\boxed{12}", ["(1,2)"]),
    ("12", ["(1,2)"]),
    ("5", ["-5"]),
    ("It is -5 km.", ["5 km"]),
    (r"$\frac{31}{4}$", [r"\frac{3}{14}"]),
    (r"\boxed{x^2 - 1}", ["x^2+1"]),
]

NEITHER: list[tuple[str, list[str]]] = [
    ("", ["Paris"]),
    (" \n", ["Paris"]),
    ("...", ["Paris"]),
    ("<think>It must be Paris", ["Paris"]),
    ("I don't know.", ["Paris"]),
    ("I'm sorry, I cannot answer that.", ["No"]),
    ("The passage does not mention whether Blair wrote it.", ["Blair"]),
    ("The text does not say how many of the 12 there were, so I am unable to answer.", ["12"]),
    ("I am only a small model and cannot answer that.", ["Paris"]),
    ("Paris or Lyon", ["Paris"]),
    (
        "It is either Paris or the old city of Lyon, as far as anybody in this town can tell.",
        ["Paris"],
    ),
    ("3 or 4", ["3"]),
    ("1958, then 1959", ["1958"]),
    ("between 5 and 7", ["5"]),
    ("unknown", ["No"]),
    ("No one knows.", ["No"]),
    ("Yes and no.", ["Yes"]),
    ("Perhaps.", ["Yes"]),
    ("from July 4, 1776 to July 9, 1777", ["July 4, 1776"]),
    ("It could be A or B.", ["(B)"]),
    ("4/7/1776", ["July 4, 1776"]),
    (STEPS + "She lives in Lyon.", ["Lisbon"]),
]


@pytest.mark.parametrize(("text", "accepted"), RIGHT)
def test_right(text: str, accepted: list[str]) -> None:
    assert holds_answer(text, accepted) is True


@pytest.mark.parametrize(("text", "accepted"), WRONG)
def test_wrong(text: str, accepted: list[str]) -> None:
    assert holds_answer(text, accepted) is False


@pytest.mark.parametrize(("text", "accepted"), NEITHER)
def test_neither(text: str, accepted: list[str]) -> None:
    assert holds_answer(text, accepted) is None


def test_one_right_alias_is_enough_and_one_doubt_is_a_doubt() -> None:
    assert holds_answer("Paris", ["Lyon", "Paris"]) is True
    assert holds_answer("Paris or Lyon", ["Nantes", "Paris"]) is None
    assert holds_answer("Rome", ["Lyon", "Paris"]) is False


# ---- properties

WORDS = ["Ada", "Berlin", "Crane", "Dover", "Émile", "Farouk", "Gdańsk", "Hue", "Ivory", "Juno"]
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
NUMBERS = st.integers(-10_000, 10_000).map(str) | st.integers(1000, 10**9).map("{:,}".format)
DECIMALS = st.decimals(-1000, 1000, places=2).map(str)
UNITS = st.tuples(NUMBERS, st.sampled_from(["km", "miles", "dollars", "percent", "people"])).map(
    " ".join
)
DATES = st.dates().map(lambda date: f"{date:%B} {date.day}, {date.year:04d}")
LISTS = st.lists(NAMES, min_size=2, max_size=4).map(", ".join)
TARGETS = st.one_of(
    NAMES,
    NUMBERS,
    DECIMALS,
    UNITS,
    DATES,
    LISTS,
    st.sampled_from(["yes", "No", "True", "(B)", "invalid", r"x^2+1"]),
)
CLOTHES = [
    "{}",
    "{}.",
    "**{}**",
    '"{}"',
    "The answer is {}.",
    "**Answer:** {}",
    "the answer is **{}**",
    "<think>Hm</think>{}",
]


@given(TARGETS)
@settings(deadline=None)
def test_the_accepted_answer_is_right(target: str) -> None:
    assert holds_answer(target, [target]) is True


@given(st.text(max_size=60).filter(lambda text: any(map(str.isalnum, text)) and "<" not in text))
@settings(deadline=None)
def test_any_accepted_answer_is_right_word_by_word(target: str) -> None:
    assert holds_answer(target, [target]) is True


@given(TARGETS, TARGETS, st.sampled_from(CLOTHES))
@settings(max_examples=300, deadline=None)
def test_what_is_around_an_answer_changes_nothing(answer: str, target: str, clothes: str) -> None:
    bare = holds_answer(answer, [target])
    assert holds_answer(clothes.format(answer), [target]) is bare


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=3))
@settings(deadline=None)
def test_any_text_can_be_read(text: str, accepted: list[str]) -> None:
    assert holds_answer(text, accepted) in (True, False, None)


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
@settings(deadline=None)
def test_numbers_are_equal_as_numbers(first: int, second: int) -> None:
    assert holds_answer(f"It is {first:,}", [str(second)]) is (first == second)


@given(st.dates(), st.dates())
@settings(deadline=None)
def test_dates_are_equal_as_dates(first: date, second: date) -> None:
    asked = f"{second:%d %B} {second.year:04d}"
    assert holds_answer(f"It was on {first.isoformat()}.", [asked]) is (first == second)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "so " * 33_000,
        "1," * 50_000,
        "not " * 25_000,
        "(" * 100_000,
        "**" * 50_000,
        " " * 100_000 + "x",
        "the answer is " * 7_000,
        "therefore, " * 9_000,
        "I do not know " * 7_000,
        r"\boxed{" * 14_000,
        "Paris or " * 11_000,
        "12 July " * 12_000,
        "\n" * 100_000 + "x",
    ],
)
@pytest.mark.parametrize(
    "accepted", [["Paris"], ["12"], ["July 12, 1990"], ["No"], ["(B)"], ["x^2"], ["a, b"]]
)
def test_no_text_takes_long(text: str, accepted: list[str]) -> None:
    begin = time.process_time()
    holds_answer(text, accepted)
    assert time.process_time() - begin < 1.0
