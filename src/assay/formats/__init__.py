"""Foreign files and names ⇄ ours, a folder each. A format is a leaf: it may use everything, nothing imports it, and
formats do not know one another; the registry finds `command.py`, `reader.py`, `writer.py`, `scorer.py` … by name."""
