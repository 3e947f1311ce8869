"""The small evaluation of `docs/evalscope.md`; run with evalscope's own Python by `make_logs.py`."""

import re
from pathlib import Path
from typing import Any

from evalscope import TaskConfig, run_task
from evalscope.api.benchmark import BenchmarkMeta, DefaultDataAdapter
from evalscope.api.dataset import Sample
from evalscope.api.registry import register_benchmark


@register_benchmark(
    BenchmarkMeta(
        name="sums",
        pretty_name="Sums",
        description="Sums and capitals.",
        dataset_id="sums",
        subset_list=["sums", "capitals"],
        metric_list=["acc"],
        prompt_template="{question}",
    )
)
class Sums(DefaultDataAdapter):
    def load_from_disk(self, **kwargs: Any) -> Any:
        return super().load_from_disk(use_local_loader=True)

    def record_to_sample(self, record: dict[str, Any]) -> Sample:
        return Sample(
            input=record["question"], target=record["answer"], metadata={"id": record["id"]}
        )

    def extract_answer(self, prediction: str, task_state: Any) -> str:
        found = re.search(r"is (\w+)\.", prediction)
        return found[1] if found else ""


def evaluate(data: Path, url: str, model: str, folder: Path, repeats: int = 1) -> dict[str, Any]:
    return run_task(
        TaskConfig(
            model=model,
            api_url=url,
            api_key="none",
            eval_type="openai_api",
            datasets=["sums"],
            dataset_args={"sums": {"dataset_id": str(data)}},
            repeats=repeats,
            ignore_errors=True,
            work_dir=str(folder),
        )
    )
