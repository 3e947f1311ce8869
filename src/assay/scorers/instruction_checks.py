"""Whether an answer keeps to instructions that a program can check."""

from typing import Any, cast

from assay.scorers._instructions import follows
from assay.scorers._languages import Detector, require_langdetect
from assay.scorers._parameters import field_of
from assay.sdk import Item, JsonMapping, JsonObject, Response, Score, scorer
from assay.text.answers import without_reasoning


def check(params: JsonMapping, where: str) -> None:
    if params.get("detector") == "langdetect":
        require_langdetect(where)


@scorer(reads="item", check=check, version=1)
def instruction_checks(
    item: Item,
    response: Response,
    *,
    instructions: str = "instruction_id_list",
    arguments: str = "kwargs",
    detector: Detector = "words",
    strip_reasoning: bool = True,
) -> list[Score]:
    """The answer follows the item's instructions ("at least 300 words", "no commas"), as in IFEval (Zhou et al. 2023).

    The item names the instructions by the 25 ids of IFEval, and has an object of arguments for each. There are four
    labels: `.prompt_strict` passes if the answer follows all of them, `.instruction_strict` scores the share that it
    follows. For `.prompt_loose` and `.instruction_loose` it is enough that an instruction is followed without the first
    line, the last line, both, or the asterisks of the answer. The mean of the prompt labels and the
    [corpus_score](metric-reference.md#corpus_score) of the instruction labels (all instructions of all answers that are
    followed, divided by all) are the four numbers of the paper. `detailed_results.followed` says which.

    Keywords are texts, not patterns. Sentences are counted without NLTK's trained model: abbreviations that are not
    usual may differ. The language is told by script and frequent words, for 36 languages; `detector: langdetect` is
    the paper's way (`pip install 'assay-eval[languages]'`), which differs on short texts. A text
    without a language is in every one.

    Parameters:
    instructions: the field of the item that has the ids
    arguments: the field of the item that has the arguments, in the same order
    detector: what tells the language of an answer
    strip_reasoning: look only at what follows `</think>`
    """
    ids = _field(item, instructions)
    given = _field(item, arguments)
    if not ids or len(ids) != len(given):
        raise LookupError(
            f"the item needs instructions in {instructions!r}, and as many objects in {arguments!r}"
        )
    text = without_reasoning(response.response) if strip_reasoning else response.response
    wanted = [
        (str(name), cast("JsonObject", each or {})) for name, each in zip(ids, given, strict=True)
    ]
    strict = [follows(text, name, each, detector) for name, each in wanted]
    versions = _loose(text)
    loose = [
        kept or any(follows(version, name, each, detector) for version in versions)
        for kept, (name, each) in zip(strict, wanted, strict=True)
    ]
    names = [name for name, _ in wanted]
    return [*_scores("strict", names, strict), *_scores("loose", names, loose)]


def _scores(kind: str, names: list[str], followed: list[bool]) -> list[Score]:
    count = sum(followed)
    counted = {
        "measure": "instructions",
        "options": {},
        "references": 1,
        "counts": [count, len(followed)],
    }
    details = {"followed": dict(zip(names, followed, strict=True)), "corpus": counted}
    passed = count == len(followed)
    return [
        Score(label=f".prompt_{kind}", passed=passed, score=float(passed)),
        Score(
            label=f".instruction_{kind}",
            passed=passed,
            score=count / len(followed),
            details=details,
        ),
    ]


def _loose(text: str) -> list[str]:
    """Return what else counts as the answer: without its first line, its last line, both; each
    without asterisks."""
    lines = text.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    return [*cut, *(version.replace("*", "") for version in (text, *cut))]


def _field(item: Item, name: str) -> list[Any]:
    found = field_of(item, name, list)
    if found is None:
        raise LookupError(f"the item has no list {name!r}")
    return found
