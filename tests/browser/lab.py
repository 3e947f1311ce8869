"""Experiments to look at, made by the engine itself: ordinary ones, one with every kind of failure, a hostile one."""

import json
import shutil
from pathlib import Path
from typing import Any

import assay
from assay.server import Options, running

ROOT = Path(__file__).parents[2]
PWN = "window.pwned=(window.pwned||0)+1"
PAYLOADS = [
    f"<script>{PWN}</script>",
    f"</script><script>{PWN}</script>",
    f"<img src=x onerror='{PWN}'>",
    f'"><svg onload="{PWN}">',
    f"<svg><script>{PWN}</script><animate onbegin='{PWN}' attributeName=x dur=1s></svg>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={PWN}&gt;'>",
    f"<iframe srcdoc='<script>parent.{PWN}</script>'></iframe>",
    f"[click](javascript:{PWN})",
    f"![x](javascript:{PWN}) ![y](http://127.0.0.1:9/leak.png) <http://127.0.0.1:9/>",
    f"[a](data:text/html;base64,PHNjcmlwdD5wYXJlbnQ{PWN})",
    f"$\\href{{javascript:{PWN}}}{{x}}$ $$\\includegraphics{{http://127.0.0.1:9/x.png}}$$",
    f"$$\\def\\a{{\\a\\a}}\\a$$ $\\style{{background:url(http://127.0.0.1:9/)}}{{x}}$ {PWN}",
    f"```html\n<script>{PWN}</script>\n```",
    f"<form action='javascript:{PWN}'><button autofocus onfocus='{PWN}'>",
    "<base href='http://127.0.0.1:9/'><link rel=stylesheet href='http://127.0.0.1:9/x.css'>",
    f"<meta http-equiv=refresh content='0;javascript:{PWN}'>",
    f"{{{{constructor.constructor('{PWN}')()}}}} ${{{PWN}}} <%={PWN}%>",
    "a\u202eevil\u202c b\u2066c\u2069 \x00\x07\x08\x1b[2J\x9b31m \ufeff\u200b\u200e \u2028 \ud83d\ude00 e\u0301\u0323"
    + "\u0301" * 200,
    "| a | b |\n|---|---|\n" + "| x | y |\n" * 300,
    "[" * 3000 + "*" * 3000 + "_" * 3000 + "`" * 3000,
    json.dumps({"__proto__": {"polluted": PWN}, "constructor": f"<b onmouseover={PWN}>"}),
]
LONG = 10_000_000  # characters of the longest answer
HOSTILE_MODEL = """
    import json
    from pathlib import Path

    PAYLOADS = json.loads((Path(__file__).parent / "payloads.json").read_text())

    def answer(prompt):
        number = int(prompt.rpartition("#")[2])
        if number == 3:
            return "long " * ({long} // 5)
        if number == 5:
            raise ValueError(PAYLOADS[0])
        return PAYLOADS[number % len(PAYLOADS)] + "\\n\\n" + PAYLOADS[(number * 7 + 1) % len(PAYLOADS)]

    def verdict(item, response, *, threshold=""):
        from assay.interfaces import Score
        number = int(item.data["question"].rpartition("#")[2])
        text = PAYLOADS[number % len(PAYLOADS)]
        judge = {{"model": text, "id": "0" * 16, "prompt": text}}
        details = {{"reason": text, text: text, "judge": judge, "raw": text}}
        if number % 7 == 2:
            return Score(outcome="unparsed", error=text, details=details)
        return Score(score=float(number % 2), passed=bool(number % 2), details=details)
"""
FAULTS = """
    def answer(request):
        question = request["messages"][-1]["content"]
        number = int(question.split()[2]) % 10
        if number == 1:
            return {"status": 400, "body": {"error": {"message": "the prompt is too long"}}}
        if number == 2:
            return {"choices": [{"message": {"role": "assistant", "content": "", "refusal": "I can't help with that"},
                                 "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 4}}
        if number == 3:
            return "I do not know any number."
        return None
"""

LABELLED = """
    from assay.interfaces import Score

    def every(item, response):
        return [Score(label=f"label {number:04}", score=float(number % 2)) for number in range(500)]
"""


def build(folder: Path) -> Path:
    """All experiments, each in a folder of its own below this one."""
    shutil.copytree(
        ROOT / "examples", folder / "sources", ignore=shutil.ignore_patterns("__pycache__")
    )
    labs = folder / "lab"
    assay.run(folder / "sources/demo/config.yaml", output_dir=str(labs / "demo"))
    assay.run(folder / "sources/judges/config.yaml", output_dir=str(labs / "judges"))
    assay.run(folder / "sources/judges/pairs.yaml", output_dir=str(labs / "pairs"))
    assay.calibrate(labs / "judges", folder / "sources/judges/labels.csv", label="panel")
    failures(folder, labs / "failures")
    hostile(folder, labs / "hostile")
    return labs


def failures(folder: Path, target: Path) -> None:
    """Answers that are errors, refusals, or hold no number; by a server of this machine."""
    _write(folder / "faults.py", FAULTS)
    rows = [
        {"id": f"sum-{n}", "data": {"question": f"What is {n} + 0?"}, "ground_truth": str(n)}
        for n in range(40)
    ]
    _write_rows(folder / "sums.jsonl", rows)
    with running(Options(answers=f"{folder / 'faults.py'}:answer")) as url:
        assay.run(
            {
                "name": "failures",
                "dataset": str(folder / "sums.jsonl"),
                "models": [
                    {
                        "name": "served",
                        "type": "openai",
                        "endpoint": url,
                        "api_key": "none",
                        "max_retries": 0,
                    }
                ],
                "prompt_template": "{{question}}",
                "evaluation_methods": ["numeric_match"],
                "metrics": [{"name": "pass_rate", "facets": ["model_name"]}],
                "output_dir": str(target),
            }
        )


def hostile(folder: Path, target: Path) -> None:
    """Scripts in every field that a stranger may fill."""
    _write(folder / "hostile.py", HOSTILE_MODEL.format(long=LONG))
    (folder / "payloads.json").write_text(json.dumps(PAYLOADS))
    rows = [
        {
            "id": f"{text[:150]}{number}",
            "data": {
                "question": f"{text} #{number}",
                text[:100] or "x": {text: [text, {"k": text}]},
            },
            "ground_truth": {"answer": text},
            "metadata": {"category": text[:80], text[:60]: text},
        }
        for number, text in enumerate(_utf8(text) for text in PAYLOADS * 2)
    ]
    _write_rows(folder / "hostile.jsonl", rows)
    code = str(folder / "hostile.py")
    names = [f"<img src=x onerror={PWN}>", "\u202etxet</title><script>" + PWN + "</script>"]
    assay.run(
        {
            "name": f"</title><script>{PWN}</script>",
            "dataset": str(folder / "hostile.jsonl"),
            "models": [
                {"name": name, "type": "python", "path": code, "function_name": "answer"}
                for name in names
            ],
            "prompt_templates": {
                f"<b onclick={PWN}>p</b>": "<script>" + PWN + "</script> {{question}}"
            },
            "evaluation_methods": [
                {
                    "name": f"<svg onload={PWN}>",
                    "type": "custom",
                    "path": code,
                    "function_name": "verdict",
                    "params": {"threshold": f"<script>{PWN}</script>"},
                }
            ],
            "metrics": [{"name": "pass_rate", "facets": ["model_name", "metadata.category"]}],
            "output_dir": str(target),
        }
    )
    labels = target / "labels.jsonl"
    given = [
        {
            "item": row["id"],
            "model": names[0],
            "label": number % 2,
            "annotator": text,
            "note": text,
            "tags": [text[:90]],
        }
        for number, (row, text) in enumerate(zip(rows, map(_utf8, PAYLOADS), strict=False))
    ]
    _write_rows(labels, [{"scorer": f"<svg onload={PWN}>", **label} for label in given])
    with (target / "responses.jsonl").open("ab") as file:
        file.write(b'{"item_id": "<script>\n\xff\xfe not json\n{"item_id": 3}\n{"half": ')


def many(folder: Path, rows: int) -> Path:
    """An experiment of this many responses, quickly: written as the engine writes them, then scored by it."""
    items = [
        {"id": f"i{n:06}", "data": {"question": f"What is {n} + 1?"}, "ground_truth": str(n + 1)}
        for n in range(rows)
    ]
    _write_rows(folder / "many.jsonl", items)
    assay.run(
        {
            "name": "many",
            "dataset": str(folder / "many.jsonl"),
            "models": [{"name": "demo", "type": "demo", "skill": 0.7}],
            "prompt_template": "{{question}}",
            "evaluation_methods": ["exact_match"],
            "metrics": ["pass_rate"],
            "output_dir": str(folder / "many"),
        }
    )
    return folder / "many"


def labelled(folder: Path, people: int) -> Path:
    """500 labels of each of 20 answers, and a file with this many labels of people."""
    _write(folder / "every.py", LABELLED)
    items = [
        {"id": f"q{n}", "data": {"question": f"What is {n} + 1?"}, "ground_truth": str(n + 1)}
        for n in range(20)
    ]
    _write_rows(folder / "labelled.jsonl", items)
    scorer = {
        "name": "every",
        "type": "custom",
        "path": str(folder / "every.py"),
        "function_name": "every",
    }
    assay.run(
        {
            "name": "labelled",
            "dataset": str(folder / "labelled.jsonl"),
            "models": [{"name": "demo", "type": "demo"}],
            "prompt_template": "{{question}}",
            "evaluation_methods": [scorer],
            "metrics": ["pass_rate"],
            "output_dir": str(folder / "lab/labelled"),
        }
    )
    given = [
        {
            "item": f"q{n % 20}",
            "model": "demo",
            "scorer": "label 0001",
            "label": n % 2,
            "annotator": f"a{n // 20}",
        }
        for n in range(people)
    ]
    _write_rows(folder / "lab/labelled/labels.jsonl", given)
    return folder / "lab"


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _write(path: Path, text: str) -> None:
    from textwrap import dedent

    path.write_text(dedent(text))


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
