"""Runs of tasks over datasets, their outputs and where these are kept."""
