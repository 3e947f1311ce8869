"""Reports of pydantic-evals, as `to_json(report)` writes them. They are only read: no evaluator of it runs here."""
