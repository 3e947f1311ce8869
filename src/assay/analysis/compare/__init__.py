"""Are two results different, and is a result good enough? Values only; reports turn them into text."""
