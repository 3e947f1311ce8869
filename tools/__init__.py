"""Programs for those who work on Assay. Nothing here is installed with it."""
