"""The Intelligence Layer's evaluation library by its own names, over Assay's engine and rows.

`intelligence_layer.core` and `intelligence_layer.evaluation` are
`assay.formats.intelligence_layer.core` and `assay.formats.intelligence_layer.evaluation`, and so
are the modules below them: existing code moves by changing the import's root.
`evaluation.run.file_run_repository` is a module of the table in `names.py`, not a file: its names
are looked up in the file that the table gives when they are asked for. A name that is not offered
is an ImportError with the reason.
"""
