"""Statistics as pure functions on arrays: no rows, no files, no configuration."""
