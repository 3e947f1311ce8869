"""Experiments whose judges are functions, stored as real judges store theirs: for tests of labelling."""

from pathlib import Path
from typing import Any

from tests.support import Lab

PANEL = """
    from assay.interfaces import Score

    def details(model):
        return {"judge": {"model": model, "id": "0" * 16, "prompt": "p" * 12}}

    def correct(item, response):
        number = int(item.id[1:])
        strict, kind = float(number % 4 > 0), float(number % 8 > 1)
        if number == 3:
            return Score(outcome="unparsed", error="unreadable", details={"raw": "?", **details("kind")})
        both = {"judge": {"models": ["kind", "strict"], "id": "1" * 16}}
        return [
            Score(label="correct.kind", score=kind, details=details("kind")),
            Score(label="correct.strict", score=strict, details=details("strict")),
            Score(label="correct", score=(strict + kind) / 2, passed=strict + kind > 1,
                  details={"votes": {"kind": kind, "strict": strict}, "rule": "majority", **both}),
        ]

    def graded(item, response, *, criterion="", criteria=None, scale=None):
        grade = int(item.id[1:]) % 5 + 1
        return Score(score=(grade - 1) / 4, passed=grade >= 4, details={"grade": grade, **details("kind")})

    def better(item, first, second):
        winner = "tie" if item.id == "q0" else "first" if item.id == "q1" or first.model_name == "one" else "second"
        score = {"first": 1.0, "second": 0.0, "tie": 0.5}[winner]
        return Score(score=score, details={"verdict": winner, **details("kind")})
"""


def judged(
    folder: Path, scorer: str = "correct", items: int = 40, samples: int = 1, **config: Any
) -> Lab:
    """An experiment that ran: `correct` is a panel of two, `graded` has a scale from 1 to 5, `better` is a match of the
    models one and two."""
    lab = Lab(folder, items)
    lab.write("judges.py", PANEL)
    method = {
        "name": scorer,
        "type": "custom",
        "path": str(folder / "judges.py"),
        "function_name": scorer,
    }
    lab.config |= {
        "evaluation_methods": [method],
        "metrics": ["pass_rate"],
        "models": [lab.model("calculator-7b")],
    }
    lab.config["sample_params"] = {"temperature": 0.5, "num_samples": samples}
    if scorer == "better":
        lab.config["models"] = [lab.model("one"), lab.model("two")]
    lab.config |= config
    lab.run()
    return lab
