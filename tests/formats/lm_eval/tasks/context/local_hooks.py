"""Functions next to the tasks of this folder."""


def with_column_range(docs):
    return docs.map(lambda doc: {"range": f"0-{doc['number']}"})


def short_shots(docs):
    return docs.filter(lambda doc: len(doc["question"]) < 75).map(
        lambda doc: {"question": doc["question"].upper()}
    )
