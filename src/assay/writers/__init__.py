"""Writers: the formats of `assay export`, one short file each.

    writer    (export, *, ...) -> None

`export` (analysis/look/export.py) has the chosen table's rows and columns, the other tables, and the place to write to.
"""
