"""Makes groups.jsonl: groups of our own with random numbers of tasks, aggregated by lm-evaluation-harness (0.4.13)."""

import json
import random
from pathlib import Path

from lm_eval.api.group import Group
from lm_eval.api.task import Task


class Leaf(Task):
    def __init__(self, name):
        self.name = name

    task_name = property(lambda self: self.name)
    has_training_docs = has_validation_docs = has_test_docs = construct_requests = doc_to_target = (
        None
    )
    doc_to_text = process_results = aggregation = higher_is_better = None


def numbers(rnd):
    size = rnd.randint(2, 40)
    made = {"sample_len": size}
    for metric in ("acc", "acc_norm", "f1"):
        for pipeline in ("none", "strict"):
            if rnd.random() < 0.8:
                made[f"{metric},{pipeline}"] = rnd.random()
                made[f"{metric}_stderr,{pipeline}"] = (
                    "N/A" if rnd.random() < 0.05 else rnd.random() / 9
                )
    return made


def group(rnd, name, depth):
    members = []
    for number in range(rnd.randint(1, 4)):
        inner = f"{name}.{number}"
        members.append(group(rnd, inner, depth - 1) if depth and rnd.random() < 0.4 else inner)
    entries = [
        {
            "metric": rnd.choice(["acc", "acc_norm", "f1"]),
            **(
                {"weight_by_size": rnd.choice([True, False, "truez"])} if rnd.random() < 0.7 else {}
            ),
            **(
                {"filter_list": rnd.choice(["none", ["strict", "none"]])}
                if rnd.random() < 0.5
                else {}
            ),
        }
        for _ in range(rnd.randint(0, 2))
    ]
    return {"name": name, "members": members, "aggregate": entries}


def theirs(tree):
    made = Group.from_config(
        {"group": tree["name"], "aggregate_metric_list": tree["aggregate"] or None}
    )
    for member in tree["members"]:
        made.add(Leaf(member) if isinstance(member, str) else theirs(member))
    return made


def main():
    rnd, cases = random.Random(19), []
    for number in range(15):
        tree = group(rnd, f"g{number}", 2)
        made = theirs(tree)
        tasks = {
            task.task_name: numbers(rnd) for task in made.get_all_tasks() if rnd.random() < 0.95
        }
        results = {each.name: each.aggregate(tasks) for each in [made, *made.get_all_groups()]}
        for result in results.values():
            for key in ("alias", "name", "sample_count"):
                result.pop(key, None)
        cases.append({"tree": tree, "tasks": tasks, "groups": results})
    text = "".join(json.dumps(case, default=float) + "\n" for case in cases)
    Path(__file__).with_name("groups.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
