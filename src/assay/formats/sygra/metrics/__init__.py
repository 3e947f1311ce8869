"""Unit metrics (one record) and aggregator metrics (all records) under the names, parameters and payloads of SyGra, the
scorers and metrics of the engine that are views of them, and the report.

Nothing here knows of graphs, task folders or files: `scoring.py` puts the metrics of a run together.
"""
