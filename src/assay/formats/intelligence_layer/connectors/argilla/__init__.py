"""Labelling by people: an Argilla server, or files."""
