"""The events of a sample that we write, made of the sample itself: without any, `inspect view` shows no transcript."""

from typing import Any

Row = dict[str, Any]
MADE = b'[{"event":"info","source":"assay",'  # how they begin, by which the reader leaves them out
_SAID = "Made by Assay of an experiment's rows: the model's answer and its scores."
_NEVER = "1970-01-01T00:00:00+00:00"


def events_of(sample: Row, model: str) -> list[Row]:
    """The model's answer, or the error, and each score."""
    began, ended = sample["started_at"] or _NEVER, sample["completed_at"] or _NEVER
    events = [{"event": "info", "source": "assay", "data": _SAID, "timestamp": began}]
    if sample["output"]["choices"]:
        call: Row = {
            "model": model,
            "input": sample["messages"][:-1],
            "output": sample["output"],
            "completed": ended,
        }
        fixed = {
            "tools": [],
            "tool_choice": "none",
            "config": {},
            "working_time": sample["working_time"],
        }
        events.append({"event": "model", "timestamp": began, **call, **fixed})
    if "error" in sample:
        events.append({"event": "error", "timestamp": ended, "error": sample["error"]})
    for name, score in sample["scores"].items():
        given = {"score": score, "scorer": name, "target": sample["target"], "intermediate": False}
        for kind, more in (
            ("span_begin", {"type": "scorer", "name": name}),
            ("score", given),
            ("span_end", {}),
        ):
            events.append({"event": kind, "timestamp": ended, "id": name, "span_id": name, **more})
    return [
        {**event, "uuid": f"{number}", "working_start": 0.0} for number, event in enumerate(events)
    ]
