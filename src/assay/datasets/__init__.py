"""Dataset formats: one short file each; the function of the same name yields (place, row) pairs. Choosing, renaming and
checking rows is not done here, but once for all formats, by the engine."""
