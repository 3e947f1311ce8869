"""Code of strangers, run by two processes that are closed off: one has the answer, the other its tests. All but
`run.py` is imported inside the sandbox too, as a package of its own: it must not import Assay."""
