"""The executors: bind a config's names to plug-ins, run tasks, evaluate responses, aggregate evaluations."""
