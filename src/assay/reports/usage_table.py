"""What the models of a run used: responses, tokens, dollars."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from assay.reports.look import plain_table
from assay.reports.metrics_table import cell
from assay.reports.money import cost_text


def usage_table(usage: Mapping[str, Mapping[str, Any]]) -> Table:
    """One line per model; a price that is unknown is said to be, never shown as 0."""
    table = plain_table()
    table.add_column("model", overflow="fold")
    for name in ("responses", "errors", "tokens in", "tokens out", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for model, used in usage.items():
        errors = f"[yellow]{used['errors']:,}[/yellow]" if used["errors"] else "0"
        tokens = (f"{used['prompt_tokens']:,}", f"{used['completion_tokens']:,}")
        answered = used["responses"] > used["errors"]
        cost = cost_text(used["cost"], used["unpriced"]) if answered else "–"
        table.add_row(cell(model), f"{used['responses']:,}", errors, *tokens, cost)
    return table
