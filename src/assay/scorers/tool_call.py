"""The tools that an answer calls, compared with the calls that are expected."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from assay.scorers._allowed_arguments import Rules, declared_arguments
from assay.scorers._parameters import unparsed_score
from assay.scorers.json_match import Comparison, compare
from assay.sdk import Item, JsonObject, Response, Score, UserError, as_list, as_object, scorer
from assay.text.answers import without_reasoning
from assay.text.expected import NoExpectation, expectation
from assay.text.tool_calls import ToolCall, invalid_calls, read_call, written_calls

Fits = list[list[bool]]


class Leniency(Struct, frozen=True):
    """How calls of benchmarks are written and compared.

    Parameters:
    allowed_values: an expected argument is a list of the values that it may have; "" among them means that it may be
      missing. The same holds inside objects
    loose_text: texts are equal if they differ in case, spaces and the signs , . / - _ * ^ only
    tools: the field of the ground truth that describes the tools; calls must then have the required arguments, each of
      the declared type or that of the expected values. A whole number is a float, but 2.0 is not an integer
    written: where the answer has no tool calls, read those in its text: Python (`[f(a=1), g()]`), which is parsed and
      never run, or JSON. A text that begins like calls but cannot be read is unparsed, prose makes no call
    """

    allowed_values: bool = False
    loose_text: bool = False
    tools: str | None = None
    written: bool = False

    def rules(self, item: Item, tolerance: float, further: bool) -> Rules | None:
        """None where calls are compared as JSON."""
        if not (self.allowed_values or self.loose_text or self.tools is not None):
            return None
        declared = (
            declared_arguments(expectation(item, self.tools)) if self.tools is not None else None
        )
        return Rules(self.allowed_values, self.loose_text, tolerance, further, declared)


@scorer(reads="ground_truth", params=Leniency, version=1)
def tool_call(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    match: Literal["exact", "subset"] = "exact",
    order: bool = False,
    arguments: Literal["exact", "subset", "ignore"] = "exact",
    tolerance: float = 0.0,
    **more: Any,
) -> Score:
    """The answer calls the expected tools with the expected arguments.

    Score: the share of the expected calls that the answer makes, each once; of all its calls, if these are more and
    `match` is `exact`. Passes if nothing is missing and, with `exact`, nothing is too much. A call is written as
    OpenAI, as Anthropic or as {name, arguments} has it; an empty list means that no tool may be called. What is missing
    and what is too much is in `detailed_results`, with the reason. An answer one of whose calls has arguments that are
    not a JSON object is unparsed.

    With `allowed_values`, `loose_text`, `tools` and `written` calls are compared like those of the Berkeley
    Function-Calling Leaderboard (Patil et al. 2025), whose expected calls `{tool: {argument: [value, …]}}` can be read.

    Parameters:
    expected: the field of the ground truth that has the calls; by default `tool_calls`, or a usual one
    match: `subset` lets the answer make further calls
    order: the calls must be made in the order in which they are expected
    arguments: `subset` lets a call have further arguments; `ignore` compares names only
    tolerance: the greatest difference of two numbers
    """
    leniency = Leniency(**more)
    wanted = _expected_calls(item, expected, leniency.allowed_values)
    try:
        made = _calls_of(response, leniency.written)
    except ValueError as error:
        return unparsed_score(error)
    rules = leniency.rules(item, tolerance, arguments == "subset")
    fits = [[_fits(call, other, arguments, tolerance, rules) for other in made] for call in wanted]
    pairs = _in_order(fits) if order else _in_any_order(fits)
    missing = [call for number, call in enumerate(wanted) if number not in pairs]
    surplus = [call for number, call in enumerate(made) if number not in pairs.values()]
    extra = surplus if match == "exact" else []
    total = max(len(wanted), len(made)) if match == "exact" else len(wanted)
    details: JsonObject = {"expected": len(wanted), "made": len(made), "matched": len(pairs)}
    if missing or extra:
        details |= {"missing": _call_details(missing), "unexpected": _call_details(surplus)}
        details["reason"] = _reason(missing, extra, made, order)
    return Score(
        passed=not missing and not extra,
        score=len(pairs) / total if total else 1.0,
        details=details,
    )


def _calls_of(response: Response, written: bool) -> list[ToolCall]:
    """The calls of an answer; ValueError if one of them cannot be read."""
    if written and not response.tool_calls:
        return written_calls(without_reasoning(response.response))
    invalid = invalid_calls(response.tool_calls or [])
    if invalid:
        raise ValueError("; ".join(invalid))
    return [read_call(call) for call in response.tool_calls or ()]


def _expected_calls(item: Item, field: str | None, by_name: bool) -> list[ToolCall]:
    truth: Any = item.ground_truth
    fields = as_object(truth)
    calls: Any = truth
    if (field or "tool_calls") in fields:
        calls = fields[field or "tool_calls"]
    elif truth is item.data or (
        not isinstance(truth, list)
        and not fields.keys() & {"name", "function"}
        and not (by_name and len(fields) == 1)
    ):
        calls = expectation(item, field)
    read = [_call_of(call) if by_name else read_call(call) for call in as_list(calls)]
    problem = next((call.problem for call in read if call.problem), "")
    if problem:
        if all(not call.name for call in read):
            raise NoExpectation(
                "the ground truth has no calls of tools; name its field with the parameter `expected`"
            )
        raise UserError(
            f"an expected call cannot be read: {problem}", fix="write {name: …, arguments: {…}}"
        )
    return read


def _call_of(call: Any) -> ToolCall:
    """A call in any form, {tool: arguments} too."""
    if isinstance(call, dict) and len(call) == 1 and "function" not in call:
        ((name, arguments),) = call.items()
        if isinstance(arguments, dict):
            return ToolCall(str(name), arguments)
    return read_call(call)


def _fits(
    wanted: ToolCall, made: ToolCall, arguments: str, tolerance: float, rules: Rules | None = None
) -> bool:
    if wanted.name != made.name:
        return False
    comparison = Comparison()
    if arguments != "ignore":
        if rules is not None:
            return rules.fits(wanted, made)
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
        # free ones first: equal calls need no search
        for j in sorted(fitting, key=taken.__contains__):
            seen.add(j)
            if j not in taken or place(taken[j], seen):
                taken[j] = i
                return True
        return False

    for i in range(len(fits)):
        place(i, set())
    return {i: j for j, i in taken.items()}


def _call_details(calls: Sequence[ToolCall]) -> list[JsonObject]:
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


def _reason(
    missing: Sequence[ToolCall], extra: Sequence[ToolCall], made: Sequence[ToolCall], order: bool
) -> str:
    if missing and not made:
        return f"no tool was called; expected {missing[0].name}"
    if missing:
        same = [call for call in made if call.name == missing[0].name]
        if not same:
            return f"{missing[0].name} was not called"
        return f"{missing[0].name} was called with other arguments" + (
            ", or in another order" if order else ""
        )
    return f"{extra[0].name} was called, which nothing asks for"
