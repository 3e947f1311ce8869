"""The tools that an answer calls, compared with the calls that are expected."""

from collections.abc import Sequence
from typing import Any, Literal

from assay.errors import UserError
from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers.json_match import Comparison, compare
from assay.text.expected import NoExpectation, expectation
from assay.text.tool_calls import ToolCall, invalid_calls, read_call

Fits = list[list[bool]]


@scorer(reads="ground_truth", version=1)
def tool_call(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    match: Literal["exact", "subset"] = "exact",
    order: bool = False,
    arguments: Literal["exact", "subset", "ignore"] = "exact",
    tolerance: float = 0.0,
) -> Score:
    """The answer calls the expected tools with the expected arguments.

    Score: the share of the expected calls that the answer makes, each once; of all its calls, if these are more and
    `match` is `exact`. Passes if nothing is missing and, with `exact`, nothing is too much. A call is written as
    OpenAI, as Anthropic or as {name, arguments} has it; an empty list means that no tool may be called. What is missing
    and what is too much is in `detailed_results`, with the reason. An answer one of whose calls has arguments that are
    not a JSON object is unparsed.

    Parameters:
    expected: the field of the ground truth that has the calls; by default `tool_calls`, or a usual one
    match: `subset` lets the answer make further calls
    order: the calls must be made in the order in which they are expected
    arguments: `subset` lets a call have further arguments; `ignore` compares names only
    tolerance: the greatest difference of two numbers
    """
    wanted = _expected(item, expected)
    invalid = invalid_calls(response.tool_calls or [])
    if invalid:
        return Score(outcome="unparsed", error="; ".join(invalid))
    made = [read_call(call) for call in response.tool_calls or ()]
    fits = [[_fits(call, other, arguments, tolerance) for other in made] for call in wanted]
    pairs = _in_order(fits) if order else _in_any_order(fits)
    missing = [call for number, call in enumerate(wanted) if number not in pairs]
    surplus = [call for number, call in enumerate(made) if number not in pairs.values()]
    extra = surplus if match == "exact" else []
    total = max(len(wanted), len(made)) if match == "exact" else len(wanted)
    details: dict[str, Any] = {"expected": len(wanted), "made": len(made), "matched": len(pairs)}
    if missing or extra:
        details |= {
            "missing": _shown(missing),
            "unexpected": _shown(surplus),
            "reason": _reason(missing, extra, made, order),
        }
    return Score(passed=not missing and not extra, score=len(pairs) / total if total else 1.0, details=details)


def _expected(item: Item, field: str | None) -> list[ToolCall]:
    truth: Any = item.ground_truth
    fields: dict[str, Any] = truth if isinstance(truth, dict) else {}
    calls: Any = truth
    if (field or "tool_calls") in fields:
        calls = fields[field or "tool_calls"]
    elif truth is item.data or (not isinstance(truth, list) and not fields.keys() & {"name", "function"}):
        calls = expectation(item, field)
    read = [read_call(call) for call in (calls if isinstance(calls, list) else [calls])]
    problem = next((call.problem for call in read if call.problem), "")
    if problem:
        if all(not call.name for call in read):
            raise NoExpectation("the ground truth has no calls of tools; name its field with the parameter `expected`")
        raise UserError(f"an expected call cannot be read: {problem}", fix="write {name: …, arguments: {…}}")
    return read


def _fits(wanted: ToolCall, made: ToolCall, arguments: str, tolerance: float) -> bool:
    if wanted.name != made.name:
        return False
    comparison = Comparison()
    if arguments != "ignore":
        compare(wanted.arguments, made.arguments, comparison, arguments == "exact", tolerance)
    return not (comparison.missing or comparison.wrong or comparison.unexpected)


def _in_order(fits: Fits) -> dict[int, int]:
    """The longest common subsequence: expected call → call that was made."""
    rows, columns = len(fits), len(fits[0]) if fits else 0
    longest = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            taken = longest[i + 1][j + 1] + 1 if fits[i][j] else 0
            longest[i][j] = max(taken, longest[i + 1][j], longest[i][j + 1])
    pairs: dict[int, int] = {}
    i = j = 0
    while i < rows and j < columns:
        if fits[i][j] and longest[i][j] == longest[i + 1][j + 1] + 1:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _in_any_order(fits: Fits) -> dict[int, int]:
    """As many pairs as possible, each call in one: augmenting paths."""
    taken: dict[int, int] = {}

    def place(i: int, seen: set[int]) -> bool:
        fitting = [j for j, fit in enumerate(fits[i]) if fit and j not in seen]
        for j in sorted(fitting, key=taken.__contains__):  # free ones first: equal calls need no search
            seen.add(j)
            if j not in taken or place(taken[j], seen):
                taken[j] = i
                return True
        return False

    for i in range(len(fits)):
        place(i, set())
    return {i: j for j, i in taken.items()}


def _shown(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


def _reason(missing: Sequence[ToolCall], extra: Sequence[ToolCall], made: Sequence[ToolCall], order: bool) -> str:
    if missing and not made:
        return f"no tool was called; expected {missing[0].name}"
    if missing:
        same = [call for call in made if call.name == missing[0].name]
        if not same:
            return f"{missing[0].name} was not called"
        return f"{missing[0].name} was called with other arguments" + (", or in another order" if order else "")
    return f"{extra[0].name} was called, which nothing asks for"
