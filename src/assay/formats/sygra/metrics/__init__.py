"""Unit metrics (one record) and aggregator metrics (all records) under the names, parameters and payloads of SyGra."""
