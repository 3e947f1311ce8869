"""Tasks: what turns an item into a response. One short file each; a task writes no row and reaches models only through
its context."""
