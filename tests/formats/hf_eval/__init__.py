"""eval.yaml files. `inspect.json` has what Inspect's own scorers and solvers make of texts of ours."""
