"""Functions that the tasks name."""

import random
import re

import datasets
import numpy as np


def question(doc):
    return f"[{doc['kind']}] {doc['question']} ="


def answer(doc):
    return f"{doc['number']}"


def lettered(doc):
    options = "\n".join(
        f"{letter}. {text}" for letter, text in zip("ABCD", doc["choices"], strict=False)
    )
    return f"{doc['question']}\n{options}\nAnswer:"


def reversed_choices(doc):
    return doc["choices"][::-1]


def reversed_label(doc):
    return len(doc["choices"]) - 1 - doc["label"]


def letters(doc):
    return ["A", "B", "C", "D"]


def only_easy(docs):
    return docs.filter(lambda doc: doc["kind"] == "easy")


def with_prompt(docs):
    def change(doc):
        return {"prompt": f"{doc['who']} asks: {doc['question']}", "gold": doc["answer"]}

    return docs.map(change)


def shuffled_choices(docs):
    def change(doc):
        order = list(range(len(doc["choices"])))
        random.shuffle(order)
        doc["choices"] = [doc["choices"][place] for place in order]
        doc["label"] = order.index(doc["label"])
        return doc

    return docs.map(change)


def numpy_choices(docs):
    def change(doc):
        place = int(np.random.randint(4))
        doc["choices"] = doc["choices"][place:] + doc["choices"][:place]
        doc["label"] = (doc["label"] - place) % 4
        return doc

    return docs.map(change)


def last_five(docs):
    return docs.select(range(len(docs) - 5, len(docs)))


def renamed(docs):
    return docs.rename_column("question", "q").remove_columns(["steps"])


def numbered(docs):
    return docs.add_column("place", list(range(len(docs))))


def exploded(docs):
    rows = []
    for doc in docs:
        for place, choice in enumerate(doc["choices"][:2]):
            rows.append(
                {"text": f"{doc['question']} {choice}?", "label": int(place == doc["label"])}
            )
    return datasets.Dataset.from_list(rows)


def broken_docs(docs):
    raise RuntimeError("the documents are broken")


def shots():
    return [
        {
            "question": f"Is {number} a number? (hint: yes)",
            "answer": "yes",
            "number": 1,
            "kind": "easy",
            "who": "Zoe",
        }
        for number in range(1, 8)
    ]


def word_overlap(references, predictions, **kwargs):
    gold, found = set(references[0].lower().split()), set(predictions[0].lower().split())
    return len(gold & found) / max(len(gold | found), 1)


def near(references, predictions, tolerance=0, **kwargs):
    numbers = re.findall(r"\d+", predictions[0])
    return float(bool(numbers) and abs(int(numbers[-1]) - int(references[0])) <= tolerance)


def as_pair(pair):
    gold, found = pair
    return float(str(gold) in str(found))


def two_values(references, predictions):
    return {"length": len(predictions[0]), "digits": sum(sign.isdigit() for sign in predictions[0])}


def both(items):
    return [items[0], items[-1]]


def spread(items):
    return max(items) - min(items)


def plain_mean(items):
    return sum(items) / len(items)


def scored(doc, results):
    text = results[0]
    values = {"right": float(doc["answer"] in text), "size": len(text)}
    if doc["kind"] == "hard":
        values["hard_right"] = values["right"]
    return values


def scored_choices(doc, results):
    likelihoods = [value for value, _ in results]
    best = likelihoods.index(max(likelihoods))
    return {"hit": int(best == doc["label"]), "margin": max(likelihoods) - sorted(likelihoods)[-2]}


def scored_pairs(doc, results):
    ((value, greedy),) = results
    return {"ll": value, "weighted": (value, len(doc["text"])), "greedy": int(greedy)}


def scored_page(doc, results):
    (value,) = results
    return {"nats": -value, "bits": (value, len(doc["page"].encode()))}


def scored_questions(doc, results):
    likelihoods = [value for value, _ in results]
    return {"acc_all": (likelihoods[1] > likelihoods[0], doc)}


def scored_with_gaps(doc, results):
    text = results[0]
    digits = re.findall(r"\d+", text)
    return {"first": float(digits[0]) if digits else float("nan"), "middle": float(len(text))}


def scored_repeats(doc, results):
    texts = results[0]
    return {"share": sum(doc["answer"] in text for text in texts) / len(texts), "count": len(texts)}


def last_words(responses, docs):
    return [[(text.split() or ["none"])[-1].strip(".") for text in texts] for texts in responses]


def with_doc(responses, docs):
    return [
        [doc["answer"] if doc["answer"] in text else "[none]" for text in texts]
        for texts, doc in zip(responses, docs, strict=True)
    ]


def two_splits(rows=4, **kwargs):
    """`kwargs` has the metadata of the task and of the run."""

    def docs(word, count):
        return datasets.Dataset.from_list(
            [
                {
                    "q": f"{word} {place} of {kwargs.get('flavour')}? (hint: {place})",
                    "a": str(place),
                }
                for place in range(count)
            ]
        )

    return {"train": docs("Train", rows + 3), "test": docs("Test", rows)}
