"""Rows of logs as columns: decoded in one way, joined by key or id, filtered and grouped."""
