"""Examples, datasets and where they are kept."""
