"""Metrics: one file each, `(group, *, parameters) -> Values`. Counts, policy, bounds and interval are not made here:
the engine adds them to every metric."""
