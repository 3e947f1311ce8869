"""The small evaluation of `docs/mlflow.md`; run with MLflow's own Python by `make_logs.py`."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import mlflow
import pandas as pd
from mlflow.metrics import MetricValue, latency, make_metric


def ask(url: str, model: str, question: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    request = Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]["content"] or ""
    except HTTPError as error:
        return f"error: {error}"


def right(predictions: pd.Series, targets: pd.Series) -> MetricValue:
    scores = [
        float(f"is {target}." in said) for said, target in zip(predictions, targets, strict=True)
    ]
    return MetricValue(scores=scores, justifications=["compared with the answer"] * len(scores))


def evaluate(questions: list[dict[str, str]], url: str, model: str) -> Any:
    metric = make_metric(eval_fn=right, greater_is_better=True, name="right", version="v1")
    mlflow.set_experiment("sums")
    with mlflow.start_run(run_name=model):
        mlflow.log_param("model", model)
        return mlflow.models.evaluate(
            lambda rows: [ask(url, model, question) for question in rows["question"]],
            data=pd.DataFrame(questions),
            targets="answer",
            extra_metrics=[metric, latency()],
        )
