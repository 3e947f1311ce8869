"""Makes the work directories in `logs/` by really running evalscope 1.14.1:

    .venv/peers/evalscope/bin/python tests/formats/evalscope/make_logs.py [FOLDER]

`large` and `tiny` are what the page shows, `repeated` has every sample twice, `metrics` has two datasets and a metric
that cannot be computed. The report as a page and the log are left out.
"""

# ruff: noqa: E402

import json
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

import peers
import yaml
from evalscope import TaskConfig, run_task
from evaluation import evaluate

LOGS = Path(*sys.argv[1:2] or [HERE / "logs"]).absolute()
KEPT = ("predictions", "reviews", "reports", "configs")


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def several_metrics(url: str) -> None:
    """Two datasets; BLEU needs a download, which there is not."""
    asked = [
        {"query": row["question"], "response": f"The answer is {row['answer']}."}
        for row in peers.QUESTIONS
    ]
    write_rows(Path("open/first.jsonl"), asked[:3])
    write_rows(Path("open/last.jsonl"), asked[8:11])
    Path("choice").mkdir()
    Path("choice/default_val.csv").write_text(
        "id,question,A,B,answer\n1,What is 2 + 3?,5,6,A\n2,What is 7 + 8?,1,15,B\n"
    )
    chosen = {
        "general_qa": {
            "local_path": "open",
            "subset_list": ["first", "last"],
            "prompt_template": "{question}",
        },
        "general_mcq": {
            "local_path": "choice",
            "subset_list": ["default"],
            "prompt_template": "{question}\n{choices}\nSay one of {letters}.",
        },
    }
    run_task(
        TaskConfig(
            model="large",
            api_url=url,
            api_key="sk-not-a-real-one",
            eval_type="openai_api",
            datasets=[*chosen],
            dataset_args=chosen,
            ignore_errors=True,
            work_dir="metrics",
        )
    )


def copied(name: str) -> None:
    """The files of the one run in a work directory, under its name, without places on this machine."""
    run = next(Path(name).iterdir())
    for file in sorted(run.rglob("*")):
        place = file.relative_to(run)
        if not file.is_file() or place.parts[0] not in KEPT or file.suffix == ".html":
            continue
        text = file.read_text()
        if file.suffix == ".yaml":
            config = {
                key: value for key, value in yaml.safe_load(text).items() if key != "dataset_dir"
            }
            text = yaml.safe_dump(
                {**config, "api_url": "http://127.0.0.1:8123/v1", "work_dir": name}
            )
        if place.parts[0] == "reviews":
            rows = [json.loads(line) for line in text.splitlines()]
            for row in rows:
                errors = row["sample_score"]["score"]["metadata"].get("metric_errors", {})
                errors.update(dict.fromkeys(errors, "LookupError: a resource is missing"))
            text = "".join(json.dumps(row) + "\n" for row in rows)
        if place.parts[0] == "reports":
            report = json.loads(text)
            report["dataset_description"] = ""
            report["perf_metrics"] = {"summary": report["perf_metrics"]["summary"]}
            text = json.dumps(report, indent=1) + "\n"
        target = LOGS / name / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def main() -> None:
    shutil.rmtree(LOGS, ignore_errors=True)
    server = peers.serve()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        write_rows(Path("data/sums.jsonl"), peers.QUESTIONS[:10])
        write_rows(Path("data/capitals.jsonl"), peers.QUESTIONS[10:])
        for model in peers.WRONG:
            evaluate(Path("data"), url, model, Path(model))
        write_rows(Path("few/sums.jsonl"), peers.QUESTIONS[6:10])
        write_rows(Path("few/capitals.jsonl"), peers.QUESTIONS[10:])
        evaluate(Path("few"), url, "tiny", Path("repeated"), repeats=2)
        several_metrics(url)
        for name in (*peers.WRONG, "repeated", "metrics"):
            copied(name)


main()
