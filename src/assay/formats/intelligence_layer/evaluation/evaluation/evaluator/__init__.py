"""Evaluators and the logics that they call."""
