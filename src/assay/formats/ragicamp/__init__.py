"""RAGiCamp's metrics, evaluator and files: `scorer.py`, `dataset.py`, `reader.py` and `writer.py` are found by name.
What they compute is not here: rows, scores and numbers are the engine's."""
