"""One limit and one budget for all workers of a run: who holds which part of them. Nothing here decides whether a row
counts."""
