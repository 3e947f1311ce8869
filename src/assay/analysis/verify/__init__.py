"""Whether a folder's numbers follow from its rows: seals, labels, metrics and headlines, computed again and compared.
Nobody is asked and nothing is written: what is not in the folder cannot be verified."""
