"""One subject each."""


def _only(subject):
    return lambda docs: docs.filter(lambda doc: doc["subject"] == subject)


animals, plants, stones = map(_only, ("animals", "plants", "stones"))
