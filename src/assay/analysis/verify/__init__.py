"""Whether a folder's numbers follow from its rows: seals, labels and metrics, computed again and compared."""
