"""Evaluations of MLflow: tables of `mlflow.models.evaluate`, traces with assessments of `mlflow.genai.evaluate`, metrics.
They are only read, from files and SQLite databases; no tracking server is asked."""
