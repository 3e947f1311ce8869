"""`eval.yaml` of Hugging Face dataset repositories: tasks made of a closed list of solvers and scorers, as the Hub and
Inspect define them. Nothing of Inspect runs here: a task becomes an ordinary config."""
