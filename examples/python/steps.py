"""The three steps by themselves, in memory: a plain prompt against a function that asks twice."""

import assay
from assay.interfaces import Context
from assay.records import Item

QUESTIONS = [
    {"id": "sum", "data": {"question": "What is 17 + 25?"}, "ground_truth": "42"},
    {"id": "product", "data": {"question": "What is 16 * 17?"}, "ground_truth": "272"},
    {
        "id": "capital",
        "data": {"question": "What is the capital of Japan?"},
        "ground_truth": "Tokyo",
    },
]


async def agreed(item: Item, context: Context) -> str:
    """Ask until two answers in a row agree, four times at most."""
    ask = [{"role": "user", "content": item.data["question"]}]
    answer = (await context.complete(ask)).text
    for _ in range(3):
        again = (await context.complete(ask)).text
        if again == answer:
            break
        answer = again
    return answer


def main() -> None:
    store = (
        assay.MemoryStore()
    )  # assay.FlatStore(folder) keeps everything, and goes on where it stopped
    dataset = assay.DatasetRepository(store).create(QUESTIONS, name="questions")

    small = assay.model.get("demo")("small", skill=0.4)
    prompt = assay.prompt.get("jinja")("{{question}}", name="plain")
    tasks = [
        assay.prompt_task(prompt, small, samples=20),
        assay.function_task(agreed, lane="small"),
    ]
    run = assay.Runner(store, models={"small": small}).run(dataset.id, tasks, samples=20)

    scorer = assay.bind_scorer(assay.scorer.get("exact_match"))
    evaluation = assay.Evaluator(store).evaluate([run.id], [scorer])

    metric = assay.bind_metric(name="pass@1", type="pass_at_k", facets=["model_name"])
    for row in assay.Aggregator(store).aggregate([evaluation.id], [metric]):
        print(f"{row['model_name']:8} {row['value']:.3f} of {row['total_sample_count']} samples")


if __name__ == "__main__":
    main()
