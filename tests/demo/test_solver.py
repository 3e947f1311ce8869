import time

import pytest
from hypothesis import given, strategies as st

from assay.demo.arithmetic import evaluate
from assay.demo.questions import parse
from assay.demo.solver import UNABLE, WHAT_I_AM, chance, respond, solve

BANK = {
    "What is 2+2?": "4",
    "Solve the following problem: What is 17 * 23?": "391",
    "What is 12 plus 30?": "42",
    "What is twenty-one times three?": "63",
    "What is 15% of 80?": "12",
    "What is 15 percent of 80?": "12",
    "What is half of 30?": "15",
    "What is the sum of 3 and 5?": "8",
    "Subtract 3 from 10.": "7",
    "Compute (3 + 4) * 2 - 5": "9",
    "Calculate 2^10.": "1024",
    "What is 7 squared?": "49",
    "What is 10 / 4?": "2.5",
    "What is 1 / 3?": "0.3333",
    "What is 1,250 + 2.5?": "1252.5",
    "-5 + 3 = ?": "-2",
    "17 x 3": "51",
    "12 ÷ 4": "3",
    "What is the remainder when 17 is divided by 5?": "2",
    "Start with 8, subtract 3, add 10, double it. What is the result?": "30",
    "Ann has 5 apples and buys 3 more. How many apples does she have?": "8",
    "Tom has 12 pens. He gives away 4 and finds 2. How many pens does he have?": "10",
    "Which is larger, 17 or 23?": "23",
    "Which is larger: 0.9 or 0.11?": "0.9",
    "What is the smallest of 3, 9 and -4?": "-4",
    "Is 5 greater than 3?": "Yes",
    "Is 17 * 3 larger than 120?": "No",
    "Is 84 divisible by 7?": "Yes",
    "Is 85 divisible by 7?": "No",
    "Is 91 prime?": "No",
    "Is 8 even?": "Yes",
    "Sort these words alphabetically: pear, apple, fig": "apple, fig, pear",
    "Sort in descending order: 5, 3, 9": "9, 5, 3",
    "Sort the numbers 5, 3, 9 in ascending order": "3, 5, 9",
    "Reverse the word 'stressed'.": "desserts",
    "Spell cat backwards.": "tac",
    "Reverse the order of these words: one two three": "three, two, one",
    "How many times does the letter r appear in strawberry?": "3",
    "How many r's are in 'strawberry'?": "3",
    "How many letters are in the word banana?": "6",
    "How many vowels does the word education contain?": "5",
    "What is the capital of France?": "Paris",
    "What is the capital of the Netherlands?": "Amsterdam",
    "Paris is the capital of which country?": "France",
    "What is 2+2? A) 3 B) 4 C) 5": "B",
    "Which is larger?\nA) 3\nB) 5": "B",
    "Which city is the capital of Japan?\n(A) Kyoto\n(B) Tokyo\n(C) Osaka\nReply with the letter only.": "B",
}
GOLDEN = ["7291", "7291", "7291", "Riga", "Nairobi", "Riga", "a, b, c", "a, c, b", "b, a, c"]
seeds = st.integers(min_value=-(2**63), max_value=2**63)
skills = st.floats(min_value=0, max_value=1)


@pytest.mark.parametrize("prompt", BANK)
def test_full_skill_is_always_right(prompt: str) -> None:
    assert {solve(prompt, skill=1.0, seed=seed) for seed in range(20)} == {BANK[prompt]}


@pytest.mark.parametrize("prompt", BANK)
def test_no_skill_is_always_wrong_and_the_misses_are_plausible(prompt: str) -> None:
    misses = {solve(prompt, skill=0.0, seed=seed) for seed in range(20)}
    assert BANK[prompt] not in misses
    assert UNABLE not in misses


@given(st.sampled_from(sorted(BANK)), skills, seeds)
def test_equal_inputs_give_equal_answers(prompt: str, skill: float, seed: int) -> None:
    first = solve(prompt, skill=skill, seed=seed)
    parse.cache_clear()
    assert solve(prompt, skill=skill, seed=seed) == first


@given(st.sampled_from(sorted(BANK)), skills, skills, seeds)
def test_more_skill_is_right_wherever_less_skill_is(
    prompt: str, one: float, other: float, seed: int
) -> None:
    less, more = sorted((one, other))
    if solve(prompt, skill=less, seed=seed) == BANK[prompt]:
        assert solve(prompt, skill=more, seed=seed) == BANK[prompt]


def test_skill_sets_the_share_of_right_answers() -> None:
    def share(skill: float) -> float:
        right = [
            solve(p, skill=skill, seed=s) == answer for p, answer in BANK.items() for s in range(50)
        ]
        return sum(right) / len(right)

    assert share(0.3) < share(0.6) < share(0.9)
    assert 0.4 < share(0.6) < 0.85


def test_samples_differ_so_that_pass_at_k_means_something() -> None:
    assert len({solve("What is 317 * 23?", skill=0.6, seed=seed) for seed in range(30)}) > 2


def test_harder_questions_are_answered_right_less_often() -> None:
    easy, hard = parse("What is 2 + 3?"), parse("What is 8713 * 24 - 918 + 77?")
    assert easy is not None
    assert hard is not None
    assert chance(0.8, easy.difficulty) > 0.85 > 0.5 > chance(0.8, hard.difficulty)


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Q: What is 2+2?\nA: 4\n\nQ: What is 3+3?\nA:", "6"),
        ("Q: What is 2+2?\nA: 4\n\nQ: Who wrote Hamlet?\nA:", UNABLE),
        ("<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n", "4"),
        ("User: What is 5 + 6?\nAssistant:", "11"),
        ("What is 3+4? Answer in 1-2 sentences.", "7"),
        ("What is 3+4?\nAnswer with only the number, no explanation.", "7"),
        ("What is 1 + 1? What is 2 + 3?", "5"),
        ("What is 12 / 0?", UNABLE),
        ("Describe the sea in 2-3 words.", UNABLE),
        ("", UNABLE),
        ("What is 3 * 4? Explain your reasoning.", "3 * 4 = 12. The answer is 12."),
        ("You are a helpful assistant.\n\nWho are you?", WHAT_I_AM),
        ("Are you a language model?", WHAT_I_AM),
    ],
)
def test_the_last_question_counts(prompt: str, answer: str) -> None:
    assert solve(prompt, skill=1.0, seed=1) == answer


numbers = st.integers(min_value=0, max_value=9999)


@given(st.lists(st.tuples(st.sampled_from("+-*"), numbers), min_size=1, max_size=6), numbers)
def test_arithmetic_agrees_with_python(steps: list[tuple[str, int]], start: int) -> None:
    expression = f"{start}" + "".join(f" {operator} {value}" for operator, value in steps)
    result = evaluate(f"What is {expression}?")
    assert result is not None
    assert result.value == eval(expression)


@given(st.text(max_size=300), seeds)
def test_any_text_gets_an_answer(text: str, seed: int) -> None:
    assert isinstance(solve(text, skill=0.5, seed=seed), str)


LONG = ["capital of which " + "a " * 40_000, " " * 50_000, "how many letters in " + "in " * 20_000]


@pytest.mark.parametrize(
    "text", [*LONG, "What is " + "(" * 50_000, "9^" * 20_000 + "9?", "1-" * 30_000, "what? " * 9999]
)
def test_nasty_text_is_cheap(text: str) -> None:
    started = time.process_time()
    assert solve(text, skill=1.0, seed=0) == UNABLE
    assert time.process_time() - started < 2


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_json_mode() -> None:
    reply = respond(
        user("What is 4+4?"), {"response_format": {"type": "json_object"}}, skill=1.0, seed=0
    )
    assert reply.text == '{"answer":8}'


def test_json_schema_is_filled() -> None:
    schema = {
        "type": "object",
        "properties": {
            "answer": {"type": "integer"},
            "text": {"type": "string"},
            "sure": {"type": "boolean"},
            "kind": {"enum": ["word", "8"]},
            "steps": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        },
    }
    wanted = {
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    }
    reply = respond(user("What is 4+4?"), wanted, skill=1.0, seed=0)
    assert (
        reply.text == '{"answer":8,"text":"8","sure":false,"kind":"8","steps":[8,8],"maybe":null}'
    )


def test_tools_are_called_once() -> None:
    schema = {"type": "object", "properties": {"expression": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "calculator", "parameters": schema}}]
    messages = user("What is 4+4?")
    reply = respond(messages, {"tools": tools}, skill=1.0, seed=0)
    assert reply.tool_calls is not None
    assert reply.tool_calls[0]["function"] == {
        "name": "calculator",
        "arguments": '{"expression":"8"}',
    }
    after = [*messages, {"role": "assistant", "content": ""}, {"role": "tool", "content": "8"}]
    assert respond(after, {"tools": tools}, skill=1.0, seed=0) == ("8", None)


def test_answers_are_those_of_this_version() -> None:
    """Rows are keyed by VERSION: whoever changes these answers must raise it."""
    prompts = [
        "What is 317 * 23?",
        "What is the capital of Peru?",
        "Sort these words alphabetically: b, a, c",
    ]
    answers = [solve(prompt, skill=0.5, seed=seed) for prompt in prompts for seed in (1, 2, 3)]
    assert answers == GOLDEN
