"""A deepeval run that uses what a test run can hold: tools, passages, a judge, conversations, unnamed and repeated
cases, a metric that fails and one that does not decide."""

import sys

from deepeval import evaluate
from deepeval.evaluate import DisplayConfig, ErrorConfig
from deepeval.metrics import (
    ConversationalGEval,
    ExactMatchMetric,
    FaithfulnessMetric,
    GEval,
    ToolCorrectnessMetric,
)
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import (
    ConversationalTestCase,
    LLMTestCase,
    MultiTurnParams,
    SingleTurnParams,
    ToolCall,
    Turn,
)


class Judge(DeepEvalBaseLLM):
    """Says the same every time; for some metrics that is not what they need."""

    def load_model(self):
        return self

    def generate(self, prompt, *args, **kwargs):
        return '{"score": 8, "reason": "It says what was expected.", "steps": ["Read both."]}'

    async def a_generate(self, prompt, *args, **kwargs):
        return self.generate(prompt)

    def get_model_name(self):
        return "planned-judge"


def single(folder):
    asked = ToolCall(
        name="add", input_parameters={"first": 2, "second": 3}, output="5", description="adds"
    )
    answered = {"input": "What is 2 + 3?", "expected_output": "5"}
    cases = [
        LLMTestCase(
            **answered,
            actual_output="5",
            tools_called=[asked],
            expected_tools=[ToolCall(name="add")],
            retrieval_context=["2 + 3 = 5", "3 + 2 = 5"],
            context=["Sums of small numbers."],
            token_cost=0.0015,
            input_token_count=7,
            output_token_count=1,
            completion_time=0.25,
            tags=["sums", "easy"],
            comments="looked at by hand",
            metadata={"kind": "sum"},
        ),
        LLMTestCase(
            **answered, actual_output="6", tools_called=[], expected_tools=[ToolCall(name="add")]
        ),
        LLMTestCase(
            input="What is the capital of Peru?", expected_output="Lima", actual_output="Lima"
        ),
    ]
    judged = [SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT]
    metrics = [
        ExactMatchMetric(),
        GEval(
            name="Correct",
            evaluation_steps=["Compare."],
            evaluation_params=judged,
            model=Judge(),
            threshold=0.7,
        ),
        GEval(
            name="Correct",
            evaluation_steps=["Compare again."],
            evaluation_params=judged,
            model=Judge(),
            flaky=True,
        ),
        ToolCorrectnessMetric(model=Judge()),
        FaithfulnessMetric(model=Judge()),
    ]
    run(cases, metrics, folder, "tools and passages")


def several_turns(folder):
    cases = [
        ConversationalTestCase(
            scenario="A traveller wants to know a capital.",
            expected_outcome="The capital is named.",
            user_description="in a hurry",
            turns=[
                Turn(role="user", content="What is the capital of France?"),
                Turn(
                    role="assistant",
                    content="Paris.",
                    retrieval_context=["Paris is the capital of France."],
                ),
                Turn(role="user", content="Thanks. And of Peru?"),
                Turn(role="assistant", content="Lima.", tools_called=[ToolCall(name="look_up")]),
            ],
        ),
        ConversationalTestCase(turns=[Turn(role="user", content="Hello?")]),
    ]
    params = [MultiTurnParams.CONTENT]
    metric = ConversationalGEval(
        name="Helpful", evaluation_steps=["Read."], evaluation_params=params, model=Judge()
    )
    run(cases, [metric], folder, "conversations")


def run(cases, metrics, folder, name):
    errors = ErrorConfig(ignore_errors=True)
    evaluate(
        cases,
        metrics,
        identifier=name,
        error_config=errors,
        display_config=DisplayConfig(results_folder=folder),
    )


if __name__ == "__main__":
    single(sys.argv[1])
    several_turns(sys.argv[1])
