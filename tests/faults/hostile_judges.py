"""Judges that cannot be trusted, by the name of the model that is asked: for `--answers hostile_judges.py:answer`.

The model `answerer` gives the answer that the question dictates: hostile answers to judge.
"""

from typing import Any

from assay.text.fences import fence, fenced_in, mark_in
from assay.text.messages import messages_text

FIXED = {
    "always-first": '{"reason": "It stands first.", "verdict": "first"}',
    "always-five": "Score: 5/5",
    "refuses": "I'm sorry, but I can't help with that.",
    "german": "Die Antwort nennt die falsche Stadt.\n\nUrteil: nein",
    "japanese": "答えは正しくない。",
    "six-of-five": '{"reason": "More than perfect!", "verdict": 6}',
    "of-ten": "Score: 8/10",
    "flood": "All work and no play makes a dull judge. " * 2500,
    "flood-with-verdict": "All work and no play makes a dull judge. " * 2500
    + '\n{"reason": "late", "verdict": "no"}',
    "undecided": '{"reason": "yes, and no", "verdict": "yes or no"}',
}


def answer(request: dict[str, Any]) -> Any:
    name, text = request["model"], messages_text(request["messages"])
    if name == "answerer":
        return text.partition("SAY: ")[2]
    if name.startswith("echo"):
        judged = fenced_in(text)["answer"]
        return fence("answer", judged, mark_in(text)) if name == "echo-with-tags" else judged
    if name == "filtered":
        return {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    if name == "broken":
        return failure("this model is out of order")
    if name == "no-schemas":
        return (
            failure("response_format is not supported")
            if "response_format" in request
            else '{"verdict": "yes"}'
        )
    if name == "honest":
        right = "4" in fenced_in(text).get("answer", "").split()
        return f'{{"reason": "I looked for a 4.", "verdict": "{"yes" if right else "no"}"}}'
    return FIXED.get(name)


def failure(message: str) -> dict[str, Any]:
    return {"status": 400, "body": {"error": {"message": message, "code": None}}}
