from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def sums():
    questions = json_dataset(
        "questions.jsonl", FieldSpec(id="id", input="question", target="answer")
    )
    return Task(dataset=questions, solver=generate(), scorer=includes(), epochs=2)
