"""What reads the answers: which scorers the flags ask for, and under which names their scores are shown."""

from collections.abc import Mapping
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.judge_prompts import original_prompts
from assay.formats.mixeval.metric import SCORE
from assay.registry import nearest

COMPATIBLE = "rule-compat"
RULES = (COMPATIBLE, "rule")
JUDGE = "judge"
JUDGED = ("judged-compat", "judged")
_ALIASES = {"model": JUDGE}  # the original's word
_SCORERS = {FREE_FORM: "freeform", MULTIPLE_CHOICE: "choice"}
_ORIGINAL_LIMIT = 999


class Choice(msgspec.Struct, kw_only=True):
    """The flags that choose parsers and describe the judge, which is named by the model that it is."""

    parser: str = ""
    free_form_parser: str = ""
    multi_choice_parser: str = ""
    judge: str = ""
    judge_prompts: str = ""
    trim_base: bool = False
    judged: bool = False


class Parsers(msgspec.Struct, kw_only=True):
    """`methods` go into a config; `shown` has, for each name in the table, the scorers of the two kinds."""

    methods: list[dict[str, Any]]
    shown: dict[str, tuple[str, str]]

    def metrics(self, *, from_files: bool) -> list[dict[str, Any]]:
        """The config's metrics: a score for each name in the table. Responses `from_files` count in their order."""
        types = {method["name"]: str(method["type"]) for method in self.methods}
        made: list[dict[str, Any]] = []
        for name, (first, second) in self.shown.items():
            own = all(types[scorer].startswith("mixeval.") for scorer in (first, second))
            draw = name.endswith(COMPATIBLE)
            params: dict[str, Any] = {"draw": draw}
            if from_files and (draw or name not in RULES):  # a sum of ones is the same in any order
                params["order"] = "responses"
            labels: dict[str, Any] = {"include": [name]}
            if not own or first != second:  # a user's scorer may name its labels as it likes
                labels = {"include": [first, second] if own else ["*"], "together": name}
                params |= {"free_form": first, "multiple_choice": second}
            made.append({"name": "score", "type": SCORE, "facets": ["model_name"], "labels": labels, "params": params})
        return made


def parsers_of(choice: Choice) -> Parsers:
    """Without any choice both rule parsers, behind the judge if there is one; a kind without a choice of its own has
    that of `--parser`, or `rule`. The first is the one whose scores `score.json` has."""
    if choice.judged:
        return _judged(choice)
    if not (choice.parser or choice.free_form_parser or choice.multi_choice_parser):
        pairs = [(name, name) for name in ([JUDGE] if choice.judge else []) + list(RULES)]
    else:
        usual = choice.parser or "rule"
        pairs = [(choice.free_form_parser or usual, choice.multi_choice_parser or usual)]
    prompts = original_prompts(choice.judge_prompts) if choice.judge_prompts else {}
    methods: dict[str, dict[str, Any]] = {}
    shown: dict[str, tuple[str, str]] = {}
    for pair in dict.fromkeys(pairs):
        first, second = (_ALIASES.get(name, name) for name in pair)
        made = [
            _method(first, FREE_FORM, choice, prompts, alone=first == second),
            _method(second, MULTIPLE_CHOICE, choice, prompts, alone=first == second),
        ]
        methods |= {one["name"]: one for one in made}
        names = [_label(name, prompts) for name in (first, second)]
        shown[names[0] if first == second else "+".join(names)] = (made[0]["name"], made[1]["name"])
    return Parsers(methods=list(methods.values()), shown=shown)


def _judged(choice: Choice) -> Parsers:
    """Verdicts of judge files: those that they hold, and what their texts say when they are read again."""
    given = [choice.parser, choice.free_form_parser, choice.multi_choice_parser, choice.judge, choice.judge_prompts]
    if any(given):
        raise UserError(
            "--judged takes verdicts from files and asks no judge", fix="leave out the parsers and the judge"
        )
    methods = [{"name": name, "type": "mixeval.judged", "params": {"reading": name}} for name in JUDGED]
    return Parsers(methods=methods, shown={name: (name, name) for name in JUDGED})


def _label(parser: str, prompts: Mapping[str, str]) -> str:
    if parser == JUDGE:
        return f"{JUDGE}-compat" if prompts else JUDGE
    return parser.rpartition(":")[2]


def _method(parser: str, kind: str, choice: Choice, prompts: Mapping[str, str], *, alone: bool) -> dict[str, Any]:
    """The evaluation method of one kind; `alone` if the other kind has the same parser."""
    if parser == JUDGE:
        return _judge(kind, choice, prompts)
    if parser in RULES:
        scorer = "answer" if alone else _SCORERS[kind]
        return {
            "name": parser,
            "type": f"mixeval.{scorer}",
            "params": {"parser": parser, "trim_base": choice.trim_base},
        }
    if ":" not in parser and "." not in parser:
        raise UserError(
            f"unknown parser {parser!r}", fix=f"{nearest(parser, [*RULES, JUDGE])}; or write file.py:function"
        )
    path, _, function = parser.rpartition(":")
    if path:
        return {"name": function, "type": "custom", "path": path, "function_name": function}
    return {"name": parser, "type": parser}


def _judge(kind: str, choice: Choice, prompts: Mapping[str, str]) -> dict[str, Any]:
    if not choice.judge:
        raise UserError("which model judges?", fix="name it with --judge, such as --judge NAME@URL")
    params: dict[str, Any] = {"model": choice.judge, "trim_base": choice.trim_base}
    if prompts:
        params |= {"prompt": prompts[kind], "temperature": None, "params": {"max_tokens": _ORIGINAL_LIMIT}}
    name = f"{_label(JUDGE, prompts)}_{_SCORERS[kind]}"
    return {"name": name, "type": f"mixeval.judge_{_SCORERS[kind]}", "params": params}
