"""Foreign files and names ⇄ ours: a folder for each format, found by its name. A format owns its command, reader,
writer and aliases; it may import everything below, but no other format, and nothing imports it."""
