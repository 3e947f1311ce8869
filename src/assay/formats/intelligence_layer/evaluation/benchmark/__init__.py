"""A dataset with the logics that belong to it, to be executed with one task after another."""
