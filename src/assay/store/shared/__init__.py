"""Rows that many processes write, on a folder or in a bucket: docs/cluster.md has the protocol."""
