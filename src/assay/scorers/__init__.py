"""Scorers: what turns a response into labels. One short file each; what they share is in `assay.text`. A scorer reads
no file and writes no row; it reaches models only through its context."""
