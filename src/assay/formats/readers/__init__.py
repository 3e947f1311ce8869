"""Readers: the formats of `assay import`, one short file each.

    reader    (path, *, ...) -> list of Foreign

An empty list says that the path holds nothing of the format. `Foreign` is in formats/importing.py.
"""
