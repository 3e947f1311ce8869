"""What a judge's verdict may be (words of a small vocabulary, or a number of a scale), and how judges write it.

The vocabularies hold what judges write for a verdict, in the languages where it can mean nothing else there. In
the patterns every repetition is bounded, so that no text takes long.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.records import JsonObject


@dataclass(frozen=True, eq=False)
class Words:
    """A verdict in words: the score of each, what may be written for it, and what "not" makes of it."""

    described: str
    scores: Mapping[str, float]
    phrases: Mapping[str, str]
    negated: Mapping[str, str] = field(default_factory=dict[str, str])

    def score(self, verdict: str | float) -> float:
        return self.scores[str(verdict)]

    def schema(self) -> JsonObject:
        return {"type": "string", "enum": list(self.scores)}


class Range(NamedTuple):
    """A verdict that is a number from `low` to `high`; `whole` if a judge is asked for a whole one."""

    low: float
    high: float
    whole: bool = True

    @property
    def described(self) -> str:
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}"

    def score(self, verdict: str | float) -> float:
        return (float(verdict) - self.low) / (self.high - self.low)

    def schema(self) -> JsonObject:
        if not self.whole:
            return {"type": "number"}
        grades = list(range(int(self.low), int(self.high) + 1))
        return (
            {"type": "integer", "enum": grades}
            if len(grades) <= _MOST_LISTED
            else {"type": "integer"}
        )


Scale = Words | Range

_MOST_LISTED = 20

_YES = (
    "yes|yep|yeah|true|pass|passed|passes|valid|1|1.0|ja|jawohl|wahr|oui|vrai|sí|si|sì|verdadero|vero|sim|verdadeiro|waar"
    "|да|истина|是|是的|对|對|はい|예|네|tak|evet|✓|✔|✅"
)
_NO = (
    "no|nope|false|fail|failed|fails|invalid|0|0.0|nein|unwahr|non|faux|falso|não|nao|nee|onwaar|нет|ложь"
    "|否|不|不是|不对|不對|いいえ|아니요|아니오|nie|hayır|✗|✘|❌"
)
_RIGHT = (
    "correct|right|accurate|richtig|korrekt|correcte|exact|exacte|correcto|correcta|corretto|corretta|giusto|correto|correta"
    "|juist|goed|верно|правильно|верный|правильный|正确|正確|正解|正しい|맞음|correctly answered"
)
_WRONG = (
    "incorrect|wrong|inaccurate|falsch|inkorrekt|unrichtig|incorrecte|inexact|incorrecto|incorrecta|equivocado|scorretto"
    "|sbagliato|sbagliata|errato|errata|incorreto|incorreta|errado|errada|onjuist|fout|неверно|неправильно|неверный"
    "|неправильный|错误|錯誤|不正确|不正確|不正解|間違い|誤り|正しくない|틀림"
)
_PARTLY = (
    "partly|partial|partially|partly correct|partially correct|partially right|partly right|mostly correct"
    "|somewhat correct|half correct|incomplete|not fully correct|not entirely correct|not completely correct|0.5|½"
    "|teilweise|teilweise richtig|teilweise korrekt|partiellement correct|parcialmente correcto|parzialmente corretto"
    "|parcialmente correto|gedeeltelijk juist|частично верно|частично правильно|部分正确|部分正確|部分的に正しい"
)


def _phrases(**written: str) -> dict[str, str]:
    return {
        phrase: verdict for verdict, phrases in written.items() for phrase in phrases.split("|")
    }


YES_NO = Words(
    '"yes" or "no"',
    {"yes": 1.0, "no": 0.0},
    _phrases(yes=f"{_YES}|{_RIGHT}", no=f"{_NO}|{_WRONG}"),
    {"yes": "no"},
)
CORRECTNESS = Words(
    '"correct" or "incorrect"',
    {"correct": 1.0, "incorrect": 0.0},
    _phrases(correct=f"{_YES}|{_RIGHT}", incorrect=f"{_NO}|{_WRONG}"),
    {"correct": "incorrect"},
)
TERNARY = Words(
    '"correct", "partly" or "incorrect"',
    {"correct": 1.0, "partly": 0.5, "incorrect": 0.0},
    _phrases(correct=f"{_YES}|{_RIGHT}", partly=_PARTLY, incorrect=f"{_NO}|{_WRONG}"),
    {"correct": "incorrect"},
)
FRACTION = Range(0.0, 1.0, whole=False)


def _side(*marks: str) -> str:
    named = ("answer", "response", "assistant", "model", "option", "candidate")
    return "|".join([*marks, *(f"{name} {mark}" for name in named for mark in marks)])


PREFERENCE = Words(
    '"first", "second" or "tie"',
    {"first": 1.0, "second": 0.0, "tie": 0.5},
    _phrases(
        first=_side("first", "a", "1", "one")
        + "|the first|first answer|the first answer|first response|the first response|the first one|a>b|a>>b"
        "|erste|die erste|premier|première|la première|primero|primera|la primera|primo|prima|primeira|eerste"
        "|первый|первая|第一个|第一個|最初|1つ目",
        second=_side("second", "b", "2", "two")
        + "|the second|second answer|the second answer|second response|the second response|the second one|b>a|b>>a"
        "|zweite|die zweite|second|deuxième|la deuxième|segundo|segunda|la segunda|secondo|seconda|tweede"
        "|второй|вторая|第二个|第二個|2つ目",
        tie="tie|a tie|tied|draw|a draw|equal|equally good|equally bad|both|both equal|neither|same|the same|a=b|c"
        "|unentschieden|gleich|gleich gut|égalité|empate|pareggio|gelijk|gelijkspel|ничья|равны"
        "|平局|一样|引き分け|同じ",
    ),
)


# ---- how verdicts are announced

_AROUND = r"[\s*_`\"'“”„«»‘’(\[{<]{0,12}"
_NAMED = (
    r"verdict|judge?ment|decision|conclusion|assessment|evaluation|rating|score|grade|mark|points|winner|preference"
    r"|(?:better|preferred|stronger) (?:answer|response)|urteil|bewertung|punktzahl|fazit|jugement|note|veredicto"
    r"|puntuación|calificación|verdetto|punteggio|voto|giudizio|veredito|pontuação|nota|oordeel|beoordeling|cijfer"
    r"|вердикт|оценка|балл"
)
_ASKED = r"answer|result|response|antwort|ergebnis|réponse|résultat|respuesta|resultado|risposta|resposta|antwoord|ответ"
_CJK = r"结论|判断|判定|评分|得分|分数|评价|答案|結論|評価|スコア|点数|裁定|答え|回答"
_IS = r"->|→|[-–—](?=\s)|(?:is|was|of|ist|est|es|è|é)(?=\s)"
CUE = re.compile(
    rf"(?<![^\W_])(?:(?:{_NAMED})(?:\s?[(\[][^()\[\]\n]{{0,30}}[)\]])?[\"'’`*_\s)\]]{{0,6}}(?:[:：=]|{_IS})"
    rf"|(?:{_ASKED})[\"'’`*_\s)\]]{{0,6}}[:：=])"
    rf"{_AROUND}|(?:{_CJK})[\s*_`\"]{{0,6}}[:：=是は为為]{_AROUND}",
    re.I,
)
BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,60})\]\]|\\boxed\s?\{([^{}\n]{1,60})\}")
UNSURE = re.compile(
    r"\b(?:whether|if|unclear|unsure|cannot (?:say|tell)|ob|falls)\b[^.\n]{0,60}\Z", re.I
)
SO = re.compile(
    r"(?:so|thus|therefore|hence|overall|final(?:ly)?|in conclusion|conclusion|donc|daher)\W{1,3}",
    re.I,
)
SENTENCE = re.compile(r"(?<=[.?!])\s")
STATED = re.compile(
    r"\b(?:answer|response|solution|statement|claim|it|this|that)\s(?:is|was|are|seems|appears(?: to be)?|looks)"
    r"(?=\s|n['’]t)\s?"
    r"|\b(?:antwort|réponse|respuesta|risposta|resposta|antwoord|ответ)\s(?:(?:ist|est|es|è|é|is)\s)?",
    re.I,
)
GIVEN = re.compile(
    r"\b(?:rate|rated|give|gave|assign|award|deserves)\b[^.\n\d]{0,40}(?=[-−]?\d)", re.I
)

# ---- the verdicts themselves

_NUMBER = (
    r"(?P<number>[-+−]?\d{1,6}(?:\.\d{1,20}|,\d{1,2})?)(?!\d)"
    r"(?:\s{0,2}(?:/|／|\(?out of|of|von|sur|de|di|van|из)\s{0,2}(?P<of>\d{1,6}(?:\.\d{1,6})?)(?!\d))?"
    r"(?P<other>\s{0,2}(?:%|percent|[-–—~]\s?\d|(?:to|or|bis|à)\s\d)|[.,/]\d|(?!pts?\b|points?\b)[A-Za-z])?"
)
NUMBER = re.compile(_NUMBER, re.I)
NUMBER_ANYWHERE = re.compile(rf"(?<![\w.,/]){_NUMBER}", re.I)
UNIT = re.compile(
    r"\)?\s?(?:stars?|points?|pts|punkte|points|puntos|punti|点|分|баллов)?[\s.!。*_`\"')\]]*\Z",
    re.I,
)
NOT = (
    r"(?:(?:is|was)\s)?(?:not|never|n['’]t|isn['’]t|wasn['’]t|nicht|(?:n['’]est\s)?pas|niet|não|non|no|не)"
    r"\s(?:es\s|è\s|é\s)?"
)
SURELY = r"(?:(?:clearly|definitely|absolutely|fully|completely|entirely|totally|indeed|certainly|really)\s)?"
END = (
    r"(?:的|です|だ|である|了)?(?=\s{0,4}(?:\Z|\n|[.,](?!\d)|[;:!。，、！；：)\]}\"'’”»*_`]|[-–—](?:\s|\Z))"
    r"|\s(?:the|it|this|that|because|since|as|is|wins|won|over|given|due|weil|denn|car|porque|perché)\b)"
)
OR = re.compile(
    r"[\s\"'`*)\]”]{0,6}(?:,|/|\||\bor\b|\boder\b|\bou\b|\bof\b|\bили\b|或)[\s\"'`*(\[“]{0,6}", re.I
)
BETTER = re.compile(
    r"\s(?:(?:answer|response|one)\s)?(?:wins\b|(?:is|was|seems)\s(?:(?:the|clearly|much|slightly|far|a bit)\s)?"
    r"(?:better|best|stronger|superior|preferable|winner|more\s))",
    re.I,
)
MENTION = re.compile(
    r"(?<!是否)(?:不正确|不正確|不正解|正しくない|错误|錯誤|間違い|正确|正確|正解|正しい)(?!かどうか)"
)
EDGES = " \t\r\n*_`#>\"'“”"
REFUSAL = re.compile(
    r"\W{0,9}(?:(?:i['’]m |i am )?(?:very |so |really )?sorry\b|(?:unfortunately,? )?i (?:can['’]t|cannot|can not"
    r"|won['’]t|will not|must decline|decline|am unable|am not able|refuse)\b|i['’]m (?:unable|not able)\b|as an ai\b"
    r"|es tut mir leid|ich kann (?:das |dies |hier )?nicht|(?:je suis )?désolée?|je ne peux pas|lo siento|no puedo"
    r"|mi dispiace|non posso|desculpe|não posso|het spijt me|извините|抱歉|对不起|我不能|我无法|申し訳|すみません)",
    re.I,
)
