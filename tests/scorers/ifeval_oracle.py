"""Texts and instructions of our own, and what lm-evaluation-harness says about them.

`python -m tests.scorers.ifeval_oracle`, where `lm_eval`, `nltk` and `langdetect` can be imported, writes the verdicts
that are committed. NLTK's trained data are not needed: sentences are split by an untrained Punkt, on texts without
abbreviations; words by its rules, without splitting sentences first.
"""

import json
from pathlib import Path
from random import Random
from typing import Any

VERDICTS = Path(__file__).parent / "golden" / "instructions.json"
CASES = 2200
PIECES = (
    *(
        "the cat sat on the mat",
        "It is a fine day",
        "HELLO WORLD",
        "I'm here",
        "DON'T PANIC",
        "well-known",
        "a, b",
        "Yes!",
    ),
    *(
        "My answer is yes.",
        "Section 1",
        "SECTION 2",
        "Section3",
        "* point",
        "*",
        "- dash",
        "** bold **",
        "*mark*",
        "***",
    ),
    *(
        "**strong**",
        "******",
        "[name]",
        "[a] [b",
        "]",
        "<<a title>>",
        "<<>>",
        "<< >>",
        "<<<x>>>",
        "P.S. more",
        "p. s. it",
    ),
    *(
        "P.P.S also",
        "P. P. S x",
        '{"a": 1}',
        "```json",
        "```",
        '"quoted"',
        '"',
        "'word",
        "Any other questions?",
        "THE END.",
    ),
    *(
        "NASA and the USA",
        "one two three",
        "naïve café",
        "What? Really!",
        "3.5 apples",
        "etc",
        "keyword here",
        "Keyword",
    ),
    *(
        "",
        " ",
        "e",
        "EEE eee",
        "1. First",
        "OK",
        "CANNOT",
        "U-TURN",
        "A",
        "AND/OR",
        "x: Y",
        "(CAPS)",
        "word. next",
    ),
)
RELEVANT = {  # pieces that make a difference
    "keywords:existence": ("keyword cat e", "the day", "x mat HELLO", "Keyword", "is"),
    "length_constraints:nth_paragraph_first_word": (
        "\n\nThe end",
        "\n\n'It is\n\n",
        "word, then",
        "Yes! he",
        "hello\n\n",
        "\n\n",
    ),
    "detectable_content:number_placeholders": ("[name]", "[a] [b]", "[", "]", "[x\ny]", "[[z]]"),
    "detectable_content:postscript": (
        "P.S. more",
        "p. s. it",
        "P.P.S also",
        "P. P. S x",
        "PS: no",
        "more",
    ),
    "detectable_format:number_bullet_lists": (
        "\n* point",
        "\n*",
        "\n- dash",
        "\n  -",
        "\n** bold",
        "\n\n * x\n",
        "\n*\n* y",
        "* z",
    ),
    "detectable_format:constrained_response": (
        "My answer is yes.",
        "My answer is no.",
        "my answer is no.",
        "My answer is",
    ),
    "detectable_format:number_highlighted_sections": (
        "*mark*",
        "**strong**",
        "* *",
        "** **",
        "*",
        "*a\nb*",
        "***x***",
    ),
    "detectable_format:multiple_sections": (
        "Section 1",
        "Section2",
        "SECTION 3",
        "Section\n4",
        "Section x",
        "Sections 5",
    ),
    "detectable_format:json_format": (
        '{"a": 1}',
        "[1]",
        "NaN",
        "```json\n[1]\n```",
        "```Json 2```",
        "{",
        "'x'",
        "```\n3",
    ),
    "detectable_format:title": ("<<a title>>", "<<>>", "<< >>", "<<<x>>>", "<<a\nb>>", "<<", ">>"),
    "combination:two_responses": ("******", "one ****** two", "one", "***", "one ****** one"),
    "combination:repeat_prompt": PIECES[:10],
    "startend:end_checker": (
        "Any other questions?",
        "the end.",
        'The End."',
        "fine day ",
        "I'm here",
        "day.",
    ),
    "change_case:capital_word_frequency": (
        "HELLO WORLD",
        "DON'T",
        "I'm",
        "CANNOT",
        "U-TURN",
        "AND/OR",
        "A.",
        "JOHN's",
        "(B)",
        "C3",
        "'TIS",
    ),
    "length_constraints:number_sentences": (
        "Yes!",
        "What? Really!",
        "word. next",
        'He said "no." Then',
        "wait... what",
        "1. First",
        "3.5 is",
        "end.",
    ),
}
JOINS = ("\n", "\n", "\n\n", " ", " ", ". ", " *** ", "\n***\n", "\n******\n", ", ")
RELATIONS = ("less than", "at least")


def arguments(random: Random) -> dict[str, dict[str, Any]]:
    """Arguments for each instruction."""
    number, relation = random.randint(1, 3), random.choice(RELATIONS)
    word = random.choice(("keyword", "the", "cat", "HELLO", "is", "x"))
    return {
        "keywords:existence": {"keywords": [word, random.choice(("day", "e", "mat"))]},
        "keywords:frequency": {"keyword": word, "frequency": number, "relation": relation},
        "keywords:forbidden_words": {"forbidden_words": [word, "apples"]},
        "keywords:letter_frequency": {
            "letter": random.choice("aeX"),
            "let_frequency": number,
            "let_relation": relation,
        },
        "length_constraints:number_sentences": {"num_sentences": number, "relation": relation},
        "length_constraints:number_paragraphs": {"num_paragraphs": number},
        "length_constraints:number_words": {"num_words": 4 * number, "relation": relation},
        "length_constraints:nth_paragraph_first_word": {
            "num_paragraphs": number,
            "nth_paragraph": random.randint(1, number),
            "first_word": random.choice(("the", "It", "word", "yes", "hello")),
        },
        "detectable_content:number_placeholders": {"num_placeholders": number},
        "detectable_content:postscript": {
            "postscript_marker": random.choice(("P.S.", "P.P.S", "More"))
        },
        "detectable_format:number_bullet_lists": {"num_bullets": number},
        "detectable_format:constrained_response": {},
        "detectable_format:number_highlighted_sections": {"num_highlights": number},
        "detectable_format:multiple_sections": {
            "section_spliter": "Section",
            "num_sections": number,
        },
        "detectable_format:json_format": {},
        "detectable_format:title": {},
        "combination:two_responses": {},
        "combination:repeat_prompt": {"prompt_to_repeat": random.choice(PIECES[:10])},
        "startend:end_checker": {
            "end_phrase": random.choice(("Any other questions?", "the end.", "day", "here"))
        },
        "startend:quotation": {},
        "change_case:capital_word_frequency": {
            "capital_frequency": number,
            "capital_relation": relation,
        },
        "punctuation:no_comma": {},
    }


def cases() -> list[tuple[str, dict[str, Any], str]]:
    """An instruction, its arguments and a text each."""
    random = Random(19)
    made: list[tuple[str, dict[str, Any], str]] = []
    for number in range(CASES):
        given = arguments(random)
        name = [*given][number % len(given)]
        pieces = RELEVANT.get(name, PIECES) if random.random() < 0.8 else PIECES
        parts = random.choices(pieces, k=random.choice((1, 1, 2, 3, 4, 6)))
        text = parts[0] + "".join(random.choice(JOINS) + part for part in parts[1:])
        made.append((name, given[name], f'"{text}"' if random.random() < 0.1 else text))
    return made


def main() -> None:
    import nltk
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    nltk.data.find = lambda *_: "there"  # it would be downloaded otherwise
    from lm_eval.tasks.ifeval import instructions_util, utils

    words = nltk.word_tokenize
    nltk.word_tokenize = lambda text: words(text, preserve_line=True)
    instructions_util._get_sentence_tokenizer = PunktSentenceTokenizer
    verdicts: list[str] = []
    for name, given, text in cases():
        example = utils.InputExample(key=0, instruction_id_list=[name], prompt="", kwargs=[given])
        strict = utils.test_instruction_following_strict(example, text).follow_all_instructions
        loose = utils.test_instruction_following_loose(example, text).follow_all_instructions
        verdicts.append(f"{int(strict)}{int(loose)}")
    VERDICTS.write_text(json.dumps(verdicts).replace('", "', '","') + "\n")


if __name__ == "__main__":
    main()
