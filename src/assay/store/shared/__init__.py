"""Rows that many processes write, on a folder or in a bucket: docs/cluster.md has the protocol. Nothing here knows what
a row means, except for its key."""
