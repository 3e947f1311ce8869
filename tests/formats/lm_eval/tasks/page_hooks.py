"""Pages as they are scored."""


def joined(docs):
    return docs.map(lambda doc: {"page": " ".join(doc["page"].split())})
