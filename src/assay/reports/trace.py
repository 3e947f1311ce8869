"""A trace: one item with all that followed from it, as an indented tree. Long texts are cut, with their length."""

from collections.abc import Iterable
from typing import Any

from assay.analysis.look.trace import Match, Sample, Trace
from assay.records import JsonObject, find, values_by_key
from assay.reports.sheet import Line, Sheet, json_text
from assay.text.messages import content_text

LONGEST = 600


class _Tree:
    def __init__(self, full: bool) -> None:
        self.full = full
        self.lines: list[Line] = []

    def add(self, depth: int, name: str, value: Any = "") -> None:
        text = json_text(value)
        if not self.full and len(text) > LONGEST:
            text = f"{text[:LONGEST]}… ({len(text):,} characters)"
        below = f"\n  {' ' * len(name)}"
        line = f"{name}{':' if text else ''} {text.replace(chr(10), below)}".rstrip()
        self.lines.append(
            Line(line, depth=depth, wraps=not self.full, hang=min(len(line), len(name) + 2))
        )


def view(trace: Trace, full: bool = False) -> Sheet:
    """`full`: nothing is cut or wrapped."""
    tree = _Tree(full)
    tree.add(0, f"item {trace.item_id}")
    for name, value in (trace.item or {}).items():
        if name != "id":
            tree.add(1, name, value)
    shared = {sample.response.get("task") for sample in trace.samples}
    for sample in trace.samples:
        _add_sample(tree, sample)
    for match in trace.matches:
        _add_match(tree, match)
    owners = values_by_key((str(call.get("owner")), call) for call in trace.calls)
    for owner, calls in owners.items():
        whose = "" if owner in shared else " (scorer)"
        tree.add(1, f"calls of {owner}{whose}", f"{len(calls)}, all samples")
        for call in calls:
            _add_call(tree, call)
    if not trace.samples:
        tree.add(1, "no response yet")
    return Sheet(tree.lines)


def _add_sample(tree: _Tree, sample: Sample) -> None:
    row = sample.response
    name = row.get("task") or row.get("model_name")
    tree.add(1, f"{name}, sample {row.get('sample_index', 0)}", _facts(row))
    prompt = {"role": "user", "content": row.get("prompt") or ""}
    _add_messages(tree, 2, row.get("messages") or [prompt])
    for span in sample.spans:
        tree.add(2, f"step {span.get('name', '')}" if isinstance(span, dict) else "step", span)
    if row.get("reasoning"):
        tree.add(2, "reasoning", row["reasoning"])
    output = row.get("output")
    tree.add(2, "response", row.get("response") or "–" if output is None else output)
    _add_tool_calls(tree, 2, row.get("tool_calls"))
    if row.get("error"):
        tree.add(2, f"error ({row.get('error_kind')})", row["error"])
    for evaluation in sample.evaluations:
        _add_evaluation(tree, evaluation)


def _add_match(tree: _Tree, match: Match) -> None:
    """The winner in each order of the seats, and of both together: where the orders disagree it is
    a tie."""
    first, second = match.players
    winners = [_winner(row, first, second) for row in match.evaluations]
    whole = winners[0] if len(set(winners)) == 1 else f"tie: {' and '.join(winners)}"
    tree.add(1, f"match {match.label}, sample {match.sample_index}: {first} vs {second}", whole)
    for row, word in zip(match.evaluations, winners, strict=True):
        tree.add(2, f"{second if row.get('seat') else first} first", word)
        _add_why(tree, row)


def _winner(row: JsonObject, first: str, second: str) -> str:
    payoff = row.get("score")
    if row.get("outcome", "scored") != "scored" or payoff is None:
        return str(row.get("outcome", "no verdict"))
    return "tie" if payoff == 0.5 else f"{first if payoff > 0.5 else second} wins"


def _add_evaluation(tree: _Tree, row: JsonObject) -> None:
    outcome = row.get("outcome", "scored")
    typed = row.get("value")
    none = "no verdict" if typed is None else "scored"
    verdict = {True: "passed", False: "failed"}.get(row.get("passed"), none)  # type: ignore[arg-type]
    score = f", score {row['score']:g}" if row.get("score") is not None else ""
    shown = verdict + score if outcome == "scored" else outcome
    tree.add(2, f"label {row.get('label') or row.get('scorer')}", shown)
    if typed is not None:
        tree.add(3, "value", typed)
    _add_why(tree, row)


def _add_why(tree: _Tree, row: JsonObject) -> None:
    if row.get("error"):
        tree.add(3, "error", row["error"])
    details = dict(row.get("detailed_results") or {})
    if reason := details.pop("reason", None):
        tree.add(3, "reason", reason)
    if details:
        tree.add(3, "details", details)
    for metric in row["metrics"]:
        group = ", ".join(f"{facet}={metric.get(facet)}" for facet in metric.get("facets") or ())
        value = "null" if metric.get("value") is None else f"{metric['value']:.4g}"
        tree.add(3, f"in {metric.get('metric_name')}", f"{value}{f' ({group})' if group else ''}")


def _add_call(tree: _Tree, call: JsonObject) -> None:
    step = f" {call['step']}" if call.get("step") else ""
    tree.add(2, f"call{step} to {call.get('model_name')}")
    _add_messages(tree, 3, call.get("messages") or ())
    completion = call.get("completion") or {}
    tree.add(3, "answer", completion.get("text") or "–")
    _add_tool_calls(tree, 3, completion.get("tool_calls"))


def _add_messages(tree: _Tree, depth: int, messages: Iterable[JsonObject]) -> None:
    for message in messages:
        of = f" {message['tool_call_id']}" if message.get("tool_call_id") else ""
        tree.add(depth, f"{message.get('role')}{of}", _content(message.get("content")))
        _add_tool_calls(tree, depth, message.get("tool_calls"))


def _add_tool_calls(tree: _Tree, depth: int, calls: Any) -> None:
    """Add what a turn asks tools for: OpenAI's form, or whatever else stands there as it is."""
    for call in calls if isinstance(calls, list) else [calls] if calls else []:
        asked = call.get("function") if isinstance(call, dict) else None
        if isinstance(asked, dict):
            words = [str(word) for word in (asked.get("name"), call.get("id")) if word]
            tree.add(depth + 1, " ".join(["calls", *words]), asked.get("arguments"))
        else:
            tree.add(depth + 1, "calls", call)


def _facts(row: JsonObject) -> str:
    facts = [str(row.get("outcome", "ok")), f"{row.get('inference_time') or 0:.3g} s"]
    if isinstance(first := find(row, "metadata.stream.ttft"), float):
        facts.append(f"first token after {first:.3g} s")
    if row.get("total_tokens") is not None:
        facts.append(f"{row['total_tokens']:,} tokens")
    if row.get("cost") is not None:
        facts.append(f"${row['cost']:.4g}")
    return ", ".join(facts)


def _content(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    images = [part for part in parts if not isinstance(part, dict) or part.get("type") != "text"]
    return "\n".join([content_text(content), *map(json_text, images)]) or "–"
