"""Tasks of lm-evaluation-harness: their YAML files are run as they are, with the harness's prompts and numbers. Nothing
is asked or stored here: documents become the engine's items, answers the harness's values; none of its code is run."""
