"""Results that lm-evaluation-harness left behind, as rows of ours. Nothing is scored here: values are read as they are,
and what was asked is taken from the log, not made again."""
