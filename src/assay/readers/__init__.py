"""Readers: what `assay import` and `assay convert` take beside the formats of other tools, one short file each.

    reader    (path, *, ...) -> list of Foreign, one for each experiment; empty: nothing there is of this kind

`foreign.py` describes what a reader gives; those of a format are in its `reader.py`.
"""
