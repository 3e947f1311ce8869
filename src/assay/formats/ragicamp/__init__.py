"""RAGiCamp's metrics, evaluator and files, all five generations of them, and nothing else. `scorer.py`, `dataset.py`,
`reader.py` and `writer.py` are found by name."""
