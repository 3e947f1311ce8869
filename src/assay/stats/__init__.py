"""Statistics as pure functions on arrays. No rows, no files, no configuration."""
