"""RAGiCamp's metrics, evaluator and files, and nothing else. `scorer.py`, `dataset.py`, `reader.py` and `writer.py` are
found by name."""
