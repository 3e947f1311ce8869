"""Tasks: what turns an item into a response. One short file each."""
