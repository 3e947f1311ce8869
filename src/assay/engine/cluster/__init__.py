"""One plan, many processes: docs/cluster.md."""
