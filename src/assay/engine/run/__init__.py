"""Tasks × items × samples → responses: the plan, existing rows, and the executor.

Scorers and metrics are not known here."""
