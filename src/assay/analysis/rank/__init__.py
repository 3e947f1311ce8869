"""Who is better, from matches or labels. Values only; reports turn them into text."""
