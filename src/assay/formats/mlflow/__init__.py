"""Evaluations of MLflow: tables of `mlflow.models.evaluate`, traces with assessments of `mlflow.genai.evaluate`.
They are only read, from files and SQLite databases; no tracking server is asked."""
