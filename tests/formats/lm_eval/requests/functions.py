"""Functions that the cases name by `!function`."""

import random
from typing import Any

import numpy as np


def text(doc: Any) -> Any:
    return f"Asked: {doc['q']}"


def target(doc: Any) -> Any:
    return doc["a"].upper()


def choices(doc: Any) -> Any:
    return [option.lower() for option in doc["options"]]


def shuffled(dataset: Any) -> Any:
    def options(doc: Any) -> Any:
        order = list(doc["options"])
        random.shuffle(order)
        return {"order": order, "number": int(np.random.randint(1000))}

    return dataset.map(options)


kept = random.Random(42)
kept_by_numpy = np.random.default_rng(7)


def drifting(dataset: Any) -> Any:
    def number(doc: Any) -> Any:
        return {"number": kept.randint(0, 10**6), "other": int(kept_by_numpy.integers(1000))}

    return dataset.map(number)


def longer(dataset: Any) -> Any:
    return dataset.filter(lambda doc: len(doc["q"]) > 12).map(lambda doc: {"q": doc["q"] + "!"})


def shots() -> Any:
    return [
        {"q": "one?", "a": "1", "options": ["1", "2"], "label": 0},
        {"q": "two?", "a": "2", "options": ["1", "2"], "label": 1},
    ]


def random_text(doc: Any) -> Any:
    return f"{doc['q']} {random.randint(0, 10**6)}"


def changing(doc: Any) -> Any:
    doc["q"] = doc["q"] + "?"
    return doc["q"]


def custom(rows: int = 3, **metadata: Any) -> Any:
    import datasets

    docs = [
        {"q": f"custom {number}", "a": str(number), "options": ["x", "y"], "label": 1}
        for number in range(rows)
    ]
    return {"test": datasets.Dataset.from_list(docs)}


def fails_for_q1(doc: Any) -> Any:
    if doc["q"] == "q1":
        raise ValueError("cannot be read")
    return doc["q"]


def fails(dataset: Any) -> Any:
    raise KeyError("column")


def nothing(dataset: Any) -> Any:
    return None


def fails_always(**_: Any) -> Any:
    raise OSError("no disk")


class FailingSampler:
    def __init__(self, docs: Any, rnd: Any = None) -> None:
        pass

    def set_rnd(self, seed: Any) -> None:
        pass

    def sample(self, n: int, eval_doc: Any = None) -> Any:
        raise AssertionError("no examples")
