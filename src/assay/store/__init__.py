"""Rows on disk and in memory: keys, logs, stores, locks, and the four repositories. What rows mean is not
known here."""
