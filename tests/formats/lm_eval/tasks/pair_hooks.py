"""A sentence whose blank has two fillings: the context differs, the continuation is the same."""


def number(doc):
    return int(doc["answer"]) - 1


def beginnings(doc):
    start = doc["sentence"].index("_")
    return [doc["sentence"][:start] + doc[name] for name in ("option1", "option2")]
