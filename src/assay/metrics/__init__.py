"""Metrics: one file each, `(group, *, parameters) -> Values`. The engine adds counts, policy, bounds and interval."""
