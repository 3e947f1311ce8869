"""How judges write verdicts, as regular expressions. Every repetition is bounded, so that no text takes long."""

import re

# ---- how verdicts are announced

_AROUND = r"[\s*_`\"'“”„«»‘’(\[{<]{0,12}"
_NAMED = (
    r"verdict|judge?ment|decision|conclusion|assessment|evaluation|rating|score|grade|mark|points|winner|preference"
    r"|(?:better|preferred|stronger) (?:answer|response)|urteil|bewertung|punktzahl|fazit|jugement|note|veredicto"
    r"|puntuación|calificación|verdetto|punteggio|voto|giudizio|veredito|pontuação|nota|oordeel|beoordeling|cijfer"
    r"|вердикт|оценка|балл"
)
_ASKED = (
    r"answer|result|response|antwort|ergebnis|réponse|résultat|respuesta|resultado|risposta|resposta|antwoord|ответ"
)
_CJK = r"结论|判断|判定|评分|得分|分数|评价|答案|結論|評価|スコア|点数|裁定|答え|回答"
_IS = r"->|→|[-–—](?=\s)|(?:is|was|of|ist|est|es|è|é)(?=\s)"
CUE = re.compile(
    rf"(?<![^\W_])(?:(?:{_NAMED})(?:\s?[(\[][^()\[\]\n]{{0,30}}[)\]])?[\"'’`*_\s)\]]{{0,6}}(?:[:：=]|{_IS})"
    rf"|(?:{_ASKED})[\"'’`*_\s)\]]{{0,6}}[:：=])"
    rf"{_AROUND}|(?:{_CJK})[\s*_`\"]{{0,6}}[:：=是は为為]{_AROUND}",
    re.I,
)
BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,60})\]\]|\\boxed\s?\{([^{}\n]{1,60})\}")
UNSURE = re.compile(r"\b(?:whether|if|unclear|unsure|cannot (?:say|tell)|ob|falls)\b[^.\n]{0,60}\Z", re.I)
SO = re.compile(r"(?:so|thus|therefore|hence|overall|final(?:ly)?|in conclusion|conclusion|donc|daher)\W{1,3}", re.I)
SENTENCE = re.compile(r"(?<=[.?!])\s")
STATED = re.compile(
    r"\b(?:answer|response|solution|statement|claim|it|this|that)\s(?:is|was|are|seems|appears(?: to be)?|looks)"
    r"(?=\s|n['’]t)\s?"
    r"|\b(?:antwort|réponse|respuesta|risposta|resposta|antwoord|ответ)\s(?:(?:ist|est|es|è|é|is)\s)?",
    re.I,
)
GIVEN = re.compile(r"\b(?:rate|rated|give|gave|assign|award|deserves)\b[^.\n\d]{0,40}(?=[-−]?\d)", re.I)

# ---- the verdicts themselves

_NUMBER = (
    r"(?P<number>[-+−]?\d{1,6}(?:\.\d{1,20}|,\d{1,2})?)(?!\d)"
    r"(?:\s{0,2}(?:/|／|\(?out of|of|von|sur|de|di|van|из)\s{0,2}(?P<of>\d{1,6}(?:\.\d{1,6})?)(?!\d))?"
    r"(?P<other>\s{0,2}(?:%|percent|[-–—~]\s?\d|(?:to|or|bis|à)\s\d)|[.,/]\d|(?!pts?\b|points?\b)[A-Za-z])?"
)
NUMBER = re.compile(_NUMBER, re.I)
NUMBER_ANYWHERE = re.compile(rf"(?<![\w.,/]){_NUMBER}", re.I)
UNIT = re.compile(r"\)?\s?(?:stars?|points?|pts|punkte|points|puntos|punti|点|分|баллов)?[\s.!。*_`\"')\]]*\Z", re.I)
NOT = (
    r"(?:(?:is|was)\s)?(?:not|never|n['’]t|isn['’]t|wasn['’]t|nicht|(?:n['’]est\s)?pas|niet|não|non|no|не)"
    r"\s(?:es\s|è\s|é\s)?"
)
SURELY = r"(?:(?:clearly|definitely|absolutely|fully|completely|entirely|totally|indeed|certainly|really)\s)?"
END = (
    r"(?:的|です|だ|である|了)?(?=\s{0,4}(?:\Z|\n|[.,](?!\d)|[;:!。，、！；：)\]}\"'’”»*_`]|[-–—](?:\s|\Z))"
    r"|\s(?:the|it|this|that|because|since|as|is|wins|won|over|given|due|weil|denn|car|porque|perché)\b)"
)
OR = re.compile(r"[\s\"'`*)\]”]{0,6}(?:,|/|\||\bor\b|\boder\b|\bou\b|\bof\b|\bили\b|或)[\s\"'`*(\[“]{0,6}", re.I)
BETTER = re.compile(
    r"\s(?:(?:answer|response|one)\s)?(?:wins\b|(?:is|was|seems)\s(?:(?:the|clearly|much|slightly|far|a bit)\s)?"
    r"(?:better|best|stronger|superior|preferable|winner|more\s))",
    re.I,
)
MENTION = re.compile(r"(?<!是否)(?:不正确|不正確|不正解|正しくない|错误|錯誤|間違い|正确|正確|正解|正しい)(?!かどうか)")
EDGES = " \t\r\n*_`#>\"'“”"
REFUSAL = re.compile(
    r"\W{0,9}(?:(?:i['’]m |i am )?(?:very |so |really )?sorry\b|(?:unfortunately,? )?i (?:can['’]t|cannot|can not"
    r"|won['’]t|will not|must decline|decline|am unable|am not able|refuse)\b|i['’]m (?:unable|not able)\b|as an ai\b"
    r"|es tut mir leid|ich kann (?:das |dies |hier )?nicht|(?:je suis )?désolée?|je ne peux pas|lo siento|no puedo"
    r"|mi dispiace|non posso|desculpe|não posso|het spijt me|извините|抱歉|对不起|我不能|我无法|申し訳|すみません)",
    re.I,
)
