"""A hook in a folder below the file that names it."""


def text(doc):
    return f"<{doc['who']}> {doc['question']}"
