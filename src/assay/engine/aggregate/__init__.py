"""Labels → numbers: metrics bound to their parameters, rows as columns, joins, groups, and the executor.

Reads rows only; nothing here calls a model."""
