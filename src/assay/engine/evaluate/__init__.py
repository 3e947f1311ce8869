"""Responses → labels: scorers bound to their parameters, their cases, matches, people's verdicts, and the executor.

Metrics are not known here."""
