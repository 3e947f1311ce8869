"""Rows of logs as columns: decoded in one way, joined by key or id, filtered and grouped. No row
is kept, and nothing of what rows mean is known here."""
