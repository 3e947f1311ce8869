"""Dataset formats: one short file each; the function of the same name yields (place, row) pairs."""
