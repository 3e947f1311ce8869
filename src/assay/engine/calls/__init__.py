"""Calling models: the context that tasks and scorers are given, lanes with limits, budgets, prices, the log.

Nothing here knows what a response, a label or a metric is."""
