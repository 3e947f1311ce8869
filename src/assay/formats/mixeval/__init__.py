"""MixEval and MixEval-Hard: the protocol's data, prompts, parsers, judges, files and scores, on the ordinary engine.

Nothing of another benchmark is here. `command.py`, `dataset.py`, `scorer.py` and `metric.py` are found by name.
"""
