"""Scorers: what turns a response into labels. One short file each; what they share is in `assay.text`."""
