"""MixEval and MixEval-Hard: the protocol's data, prompts, parsers, judges, files and scores, on the ordinary engine.

`command.py`, `dataset.py`, `scorer.py` and `metric.py` are found by name; no other format is
known here."""
