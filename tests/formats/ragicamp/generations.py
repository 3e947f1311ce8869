"""Results in the shapes that RAGiCamp's own versions wrote: three questions, three answers, the spec's scores."""

import csv
import json
from pathlib import Path
from typing import Any

DATASET, AGENT, TIME = "natural_questions", "gemma_2b_baseline", "2025-10-30T15:30:45.123456"
QUESTIONS = [
    "when was the last time anyone was on the moon",
    "who wrote hamlet",
    "what is the capital of france",
]
ANSWERS = [["14 December 1972 UTC", "December 1972", "1972"], ["Shakespeare"], ["Paris"]]
SAID = ["December 1972 maybe", "I don't know", "Paris."]
EXACT, F1 = [0.0, 0.0, 1.0], [0.8, 0.0, 1.0]
COUNT = len(QUESTIONS)


def write(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))
    return path


def metrics(number: int) -> dict[str, float]:
    return {"exact_match": EXACT[number], "f1": F1[number]}


def overall() -> dict[str, float]:
    return {"exact_match": sum(EXACT) / COUNT, "f1": sum(F1) / COUNT}


def five_files(
    folder: Path, stem: str = "gemma2b_baseline_results", **results: Any
) -> dict[str, Path]:
    """The files by what follows the stem."""
    about = {"timestamp": TIME, "agent_name": AGENT, "dataset_name": DATASET, "num_examples": COUNT}
    flat = {
        **overall(),
        **{key: about[key] for key in ("num_examples", "agent_name", "dataset_name")},
        **results,
    }
    predictions = [
        {
            "id": f"nq_{n}", "question": QUESTIONS[n], "prediction": SAID[n], "expected_answer": ANSWERS[n][0],
            "all_acceptable_answers": ANSWERS[n], "references": ANSWERS[n], "metadata": {"tokens": n},
        }
        for n in range(COUNT)
    ]  # fmt: skip
    per_question = [
        {"question_index": n, "question": QUESTIONS[n], **metrics(n)} for n in range(COUNT)
    ]
    files = {
        ".json": write(folder, f"{stem}.json", {"results": flat, "predictions": predictions}),
        "_metrics.json": write(folder, f"{stem}_metrics.json", {**about, "metrics": overall()}),
        "_per_question.json": write(
            folder, f"{stem}_per_question.json", {**about, "per_question_metrics": per_question}
        ),
    }
    lines = [
        "=" * 70,
        "EVALUATION METRICS SUMMARY",
        "=" * 70,
        f"Timestamp: {TIME}",
        f"Agent: {AGENT}",
    ]
    lines += [f"Dataset: {DATASET}", f"Examples: {COUNT}", "", "Metrics:", "-" * 70]
    lines += [f"  {name:<30}: {value:.4f}" for name, value in overall().items()]
    files["_metrics.txt"] = folder / f"{stem}_metrics.txt"
    files["_metrics.txt"].write_text("\n".join(lines))
    files["_per_question.csv"] = folder / f"{stem}_per_question.csv"
    with files["_per_question.csv"].open("w", newline="") as file:
        table = csv.DictWriter(file, sorted(per_question[0]))
        table.writeheader()
        table.writerows(per_question)
    return files


def questions_file(folder: Path, count: int = COUNT) -> Path:
    questions = [
        {"id": f"nq_{n}", "question": QUESTIONS[n], "expected_answer": ANSWERS[n][0],
         "all_acceptable_answers": ANSWERS[n]}
        for n in range(count)
    ]  # fmt: skip
    return write(
        folder,
        f"{DATASET}_questions.json",
        {"dataset_name": DATASET, "num_questions": count, "questions": questions},
    )


def three_files(folder: Path, agent: str = AGENT, said: list[Any] = SAID) -> Path:
    questions_file(folder)
    head = {"agent_name": agent, "dataset_name": DATASET, "timestamp": TIME, "num_examples": COUNT}
    predictions = [
        {"question_id": f"nq_{n}", "question": QUESTIONS[n], "prediction": said[n], "metrics": metrics(n),
         "metadata": {"tokens": n}}
        for n in range(COUNT)
    ]  # fmt: skip
    write(folder, f"{agent}_summary.json", {**head, "overall_metrics": overall()})
    return write(folder, f"{agent}_predictions.json", {**head, "predictions": predictions})


# ---- forms of later versions, which are refused


def raw(folder: Path) -> Path:
    head = {"agent_name": AGENT, "dataset_name": DATASET, "timestamp": TIME}
    predictions = [{"question_id": "nq_0", "question": QUESTIONS[0], "prediction": SAID[0]}]
    return write(
        folder,
        f"{AGENT}_predictions_raw.json",
        {**head, "status": "predictions_only", "predictions": predictions},
    )


def later(folder: Path) -> Path:
    predictions = [
        {"id": "nq_0", "question": QUESTIONS[0], "prediction": SAID[0], "expected": ANSWERS[0]}
    ]
    flat = {**overall(), "num_examples": 1, "agent_name": AGENT, "dataset_name": DATASET}
    write(folder, "out_summary.json", flat)
    write(folder, "out_checkpoint.json", {"completed": 1, "predictions": predictions})
    return write(
        folder,
        "out.json",
        {"agent": AGENT, "dataset": DATASET, "timestamp": TIME, "predictions": predictions},
    )


def experiment(folder: Path, name: str = AGENT) -> Path:
    place = folder / name
    question = {"idx": 0, "question": QUESTIONS[0], "expected": ANSWERS[0]}
    write(place, "questions.json", {"experiment": name, "count": 1, "questions": [question]})
    predictions = [{**question, "prediction": SAID[0], "metrics": metrics(0)}]
    return write(place, "predictions.json", {"experiment": name, "predictions": predictions})
