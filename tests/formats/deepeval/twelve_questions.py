import json
import sys
import urllib.request
from pathlib import Path

from deepeval import evaluate
from deepeval.evaluate import DisplayConfig, ErrorConfig
from deepeval.metrics import BaseMetric, PatternMatchMetric
from deepeval.test_case import LLMTestCase


def ask(address, model, question):
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(f"{address}/chat/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as reply:
            message = json.load(reply)["choices"][0]["message"]
        return message["content"] or message["refusal"] or ""
    except OSError:
        return None


class Contains(BaseMetric):
    threshold = 1.0
    __name__ = "Contains"

    def measure(self, test_case, *args, **kwargs):
        if not test_case.actual_output:
            raise ValueError("there is no answer")
        self.score = float(test_case.expected_output in test_case.actual_output)
        self.success = self.score >= self.threshold
        self.reason = (
            "the expected text is in the answer" if self.success else "it is not in the answer"
        )
        return self.score

    async def a_measure(self, test_case, *args, **kwargs):
        return self.measure(test_case)

    def is_successful(self):
        return self.success


if __name__ == "__main__":
    address, model, folder = sys.argv[1:]
    cases = [
        LLMTestCase(
            name=row["id"],
            input=row["question"],
            actual_output=ask(address, model, row["question"]),
            expected_output=row["answer"],
        )
        for row in json.loads(Path("questions.json").read_text())
    ]
    evaluate(
        cases,
        [Contains(), PatternMatchMetric(pattern=r"The answer is .*\.")],
        hyperparameters={"model": model, "temperature": 0},
        identifier=f"sums with {model}",
        error_config=ErrorConfig(ignore_errors=True),
        display_config=DisplayConfig(results_folder=folder),
    )
