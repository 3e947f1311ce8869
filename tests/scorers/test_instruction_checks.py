"""IFEval's instructions against the verdicts of lm-evaluation-harness, and by hand where it needs data or packages."""

import json
import time
from random import Random
from typing import Any

import pytest

from assay.engine.evaluate.bind import bind_scorer
from assay.errors import UserError
from assay.interfaces import Score
from assay.metrics.corpus_score import CORPUS, corpus_score
from assay.records import Item, Response
from assay.scorers._instructions import INSTRUCTIONS, follows
from assay.scorers._languages import LANGUAGES, language_of
from assay.scorers._words import capital_words, sentences
from assay.scorers.instruction_checks import instruction_checks
from tests.metrics.rows import group
from tests.support import Lab

from .ifeval_oracle import VERDICTS, arguments, cases

IN_A_LANGUAGE = {
    "language:response_language",
    "change_case:english_capital",
    "change_case:english_lowercase",
}
SENTENCES = {
    "en": "The cat is on the table and it is not for you.",
    "es": "El gato está en la mesa y no es para los niños que viven con una familia.",
    "pt": "O gato está na mesa e não é para as crianças que moram com uma família do Brasil.",
    "fr": "Le chat est sur la table et il n'est pas pour les enfants qui sont dans la maison.",
    "de": "Die Katze ist auf dem Tisch und sie ist nicht für die Kinder, mit denen ich spiele.",
    "it": "Il gatto è sul tavolo e non è per i bambini che sono con la famiglia della casa.",
    "nl": "De kat zit op de tafel en het is niet voor de kinderen van een ander gezin.",
    "sv": "Katten är på bordet och det är inte för barnen som är med en annan familj.",
    "pl": "Kot jest na stole i nie jest dla dzieci, ale to się zmieni, jak oni wrócą do domu.",
    "vi": "Con mèo ở trên bàn và nó không phải là của những người trong gia đình này.",
    "fi": "Kissa on pöydällä ja se ei ole lapsille, mutta hän sanoi että kaikki oli hyvin.",
    "sw": "Paka yuko juu ya meza na chakula hicho si kwa watoto wa familia hii katika nyumba.",
    "tr": "Kedi masanın üzerinde ve bu yemek çocuklar için değil, çok daha büyük bir aile için.",
    "id": "Kucing itu ada di atas meja dan makanan ini tidak untuk anak-anak yang dari rumah itu.",
    "ru": "Кошка лежит на столе, и это не для детей, которые живут с семьёй, но они не знают.",
    "bg": "Котката е на масата и това не е за децата, които са от семейството, но ще се върнат.",
    "uk": "Кішка лежить на столі, і це не для дітей, які живуть з родиною, але вони не знають, що є.",
    "ar": "القطة على الطاولة وهذا الطعام ليس من أجل الأطفال الذين كانوا في البيت مع العائلة.",
    "fa": "گربه روی میز است و این غذا برای بچه‌ها نیست که در خانه با خانواده از شهر هستند.",
    "ur": "بلی میز پر ہے اور یہ کھانا ان بچوں کے لیے نہیں ہے جو گھر میں خاندان سے ہیں۔",
    "hi": "बिल्ली मेज़ पर है और यह खाना उन बच्चों के लिए नहीं है जो घर में परिवार से हैं।",
    "mr": "मांजर टेबलावर आहे आणि हे जेवण त्या मुलांसाठी नाही जे घरी होते, ते या गावात आहेत.",
    "ne": "बिरालो टेबुलमा छ र यो खाना बच्चाहरूको लागि होइन भने उनीहरू पनि घरमा छन्।",
    "ko": "고양이가 탁자 위에 있습니다.",
    "ja": "猫はテーブルの上にいます。",
    "th": "แมวอยู่บนโต๊ะ",
    "bn": "বিড়ালটি টেবিলের উপর আছে।",
    "pa": "ਬਿੱਲੀ ਮੇਜ਼ ਉੱਤੇ ਹੈ।",
    "gu": "બિલાડી ટેબલ પર છે.",
    "ta": "பூனை மேசையில் இருக்கிறது.",
    "te": "పిల్లి బల్ల మీద ఉంది.",
    "kn": "ಬೆಕ್ಕು ಮೇಜಿನ ಮೇಲಿದೆ.",
    "ml": "പൂച്ച മേശപ്പുറത്താണ്.",
    "he": "החתול על השולחן.",
    "el": "Η γάτα είναι στο τραπέζι.",
    "zh": "猫在桌子上。",
}


def scored(text: str, *instructions: tuple[str, dict[str, Any]], **params: Any) -> dict[str, Score]:
    data = {
        "instruction_id_list": [name for name, _ in instructions],
        "kwargs": [given for _, given in instructions],
    }
    made = instruction_checks(
        Item(id="i", data=data), Response(item_id="i", response=text), **params
    )
    return {score.label: score for score in made}


def test_verdicts_are_those_of_the_harness() -> None:
    verdicts = json.loads(VERDICTS.read_text())
    names = {name for name, _, _ in cases()}
    assert names == {*INSTRUCTIONS} - IN_A_LANGUAGE
    assert len(INSTRUCTIONS) == 25
    for (name, given, text), verdict in zip(cases(), verdicts, strict=True):
        made = scored(text, (name, {**given, "another": None}))
        found = (
            f"{int(bool(made['.prompt_strict'].passed))}{int(bool(made['.prompt_loose'].passed))}"
        )
        assert found == verdict, (name, given, text)


def test_all_instructions_of_a_prompt() -> None:
    text = "Sure, here it is:\n*hello world*"
    made = scored(
        text,
        ("punctuation:no_comma", {}),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 1}),
    )
    assert {label: (score.passed, score.score) for label, score in made.items()} == {
        ".prompt_strict": (False, 0.0),
        ".instruction_strict": (False, 0.5),
        ".prompt_loose": (True, 1.0),
        ".instruction_loose": (True, 1.0),
    }
    strict = made[".instruction_strict"].details
    assert strict["followed"] == {
        "punctuation:no_comma": False,
        "detectable_format:number_highlighted_sections": True,
    }
    more = scored("a, b", ("punctuation:no_comma", {})).get(".instruction_strict")
    assert more is not None
    total = corpus_score(
        group([0.5], [0.0], columns={CORPUS: [strict["corpus"], more.details["corpus"]]})
    )
    assert total.value == pytest.approx(1 / 3)


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_languages(language: str) -> None:
    assert SENTENCES.keys() == LANGUAGES
    assert language_of(SENTENCES[language]) == language
    assert follows(SENTENCES[language], "language:response_language", {"language": language})
    assert follows(SENTENCES[language], "language:response_language", {"language": "en"}) is (
        language == "en"
    )


def test_the_package_agrees_on_whole_sentences() -> None:
    pytest.importorskip("langdetect")
    differ = [name for name in SENTENCES if language_of(SENTENCES[name], "langdetect") != name]
    assert differ == ["zh"]  # which has two codes there


def test_case_and_language() -> None:
    shouted, quiet = SENTENCES["en"].upper(), SENTENCES["en"].lower()
    for name, text in (("english_capital", shouted), ("english_lowercase", quiet)):
        assert [follows(each, f"change_case:{name}", {}) for each in (shouted, quiet)] == [
            text == shouted,
            text == quiet,
        ]
    assert not follows(SENTENCES["de"].lower(), "change_case:english_lowercase", {})
    assert follows("42.", "language:response_language", {"language": "kn"})
    assert not follows("", "language:response_language", {"language": "kn"})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("One", 1),
        ("One. Two! Three? Four", 4),
        ('He said "stop." Then he left.', 2),
        ("Dr. Smith met Mr. J. Jones at 5 p.m. in the U.S. today. They talked.", 2),
        ("It costs 3.50 euros. Cheap!", 2),
        ("Wait... what? No... Yes.", 3),
        ("See www.example.com for more. Thanks.", 2),
        ("A list:\n1. First\n2. Second", 3),
        ("so it goes. lower case begins. it counts.", 3),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert sentences(text) == count


def test_words_in_capitals() -> None:
    text = "NASA's U-TURN: I DON'T say (OK), AND/OR cannot. CANNOT! O'Neill A.M. B2B 42"
    assert capital_words(text) == len(
        ["NASA", "U-TURN", "I", "DO", "N'T", "OK", "AND/OR", "CAN", "NOT", "A.M", "B2B"]
    )


def test_what_is_wrong_with_an_item() -> None:
    for name, given, problem in [
        ("keywords:existance", {}, "did you mean 'keywords:existence'"),
        ("keywords:existence", {}, "the arguments of keywords:existence do not fit"),
        (
            "keywords:frequency",
            {"keyword": "a", "frequency": 1, "relation": "more"},
            "neither `less than`",
        ),
        ("language:response_language", {"language": "eo"}, "does not know the language 'eo'"),
    ]:
        with pytest.raises(LookupError, match=problem):
            scored("text", (name, given))
    with pytest.raises(LookupError, match="the item needs instructions"):
        scored("text")
    with pytest.raises(LookupError, match="no list 'kwargs'"):
        instruction_checks(Item(id="i", data={"instruction_id_list": ["x"]}), Response(item_id="i"))


def test_a_missing_package_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.scorers._languages.find_spec", lambda name: None)
    with pytest.raises(UserError, match="langdetect") as refused:
        bind_scorer(instruction_checks, params={"detector": "langdetect"})
    assert "pip install 'assay-eval[languages]'" in str(refused.value)


def test_a_whole_run(lab: Lab) -> None:
    for number, row in enumerate(lab.rows):
        row["data"] |= {
            "instruction_id_list": ["punctuation:no_comma", "keywords:existence"][: 1 + number % 2],
            "kwargs": [{"keywords": None}, {"keywords": ["zebra"]}][: 1 + number % 2],
        }
    lab.config["sample_params"] = {"num_samples": 1}
    lab.config["evaluation_methods"] = [{"name": "ifeval", "type": "instruction_checks"}]
    lab.config["metrics"] = [
        {"name": "mean", "labels": {"include": ["ifeval.prompt_*"]}},
        {"name": "corpus_score", "labels": {"include": ["ifeval.instruction_*"]}},
    ]
    lab.run()
    values = {row["label"]: row["value"] for row in lab.read("metrics.jsonl")}
    assert values == pytest.approx(
        {
            "ifeval.prompt_strict": 0.5,
            "ifeval.prompt_loose": 0.5,
            "ifeval.instruction_strict": 4 / 6,
            "ifeval.instruction_loose": 4 / 6,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [".", "[", "<<", "*", "* ", "\n", "\n*", " ", "A", "a.", "'", "Section 1", "P.", '"', "…x"],
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    given = (
        arguments(Random(1))
        | {name: {} for name in IN_A_LANGUAGE}
        | {"language:response_language": {"language": "en"}}
    )
    for name, each in given.items():
        begin = time.process_time()
        scored(text, (name, each))
        assert time.process_time() - begin < 2.0, name
