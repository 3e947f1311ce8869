"""A plan: how many cells there are, how many would run, and what that may cost."""

import msgspec

from assay.engine.experiment.models import price_list
from assay.engine.experiment.plan import CallPlan, Plan
from assay.reports.money import cost_text
from assay.reports.sheet import Column, Line, Sheet, Table


def view(plan: Plan) -> Sheet:
    rows = [
        ["planned", f"{plan.planned:,}", "cells of the config"],
        ["selected", f"{plan.selected:,}", "by --limit, --model, --num-samples"],
        ["present", f"{plan.present:,}", "have their rows"],
        ["to run", f"{plan.missing:,}", f"about {plan.prompt_tokens:,} + {plan.answer_tokens:,} tokens"],
        ["cost", "unknown" if plan.usd is None else cost_text(plan.usd, 0), _price_note(plan)],
        ["time", _time(plan.seconds), _time_note(plan)],
    ]
    if plan.retried:
        rows.append(["  again", f"{plan.retried:,}", "of them because they failed"])
    if plan.stale:
        rows.append(["set aside", f"{plan.stale:,}", "rows that the plan no longer has"])
    if plan.returning:
        rows.append(["brought back", f"{plan.returning:,}", "rows that had been set aside"])
    columns = [Column("what", text=True), Column("number"), Column("meaning", text=True)]
    tasks = [[f"{task.cells:,} cells", task.name] for task in plan.tasks]
    title = f"{plan.items} items × {len(plan.tasks)} tasks × {plan.samples} samples, folder {plan.folder}"
    exact = {name: value for name, value in msgspec.structs.asdict(plan).items() if name not in ("tasks", "calls")}
    return Sheet(
        parts=[
            Line(title, wraps=False),
            Table(
                columns=columns,
                rows=rows,
                compact=True,
                heads=False,
                depth=1,
                data=(["what", "value"], [list(pair) for pair in exact.items()]),
            ),
            Table(columns=[Column("cells"), Column("task", text=True)], rows=tasks, compact=True, heads=False, depth=1),
            *(Line(_call(call), depth=1) for call in plan.calls),
            *(Line(f"warning: {warning}", "open") for warning in plan.warnings),
        ]
    )


def _call(call: CallPlan) -> str:
    if call.calls is None:
        return f"{call.owner} asks models by itself: no earlier run tells how often"
    tokens = f"about {call.prompt_tokens:,} + {call.answer_tokens:,} tokens"
    return f"{call.calls:,} calls to {call.model} for {call.owner}, {tokens}"


def _price_note(plan: Plan) -> str:
    if plan.usd is None:
        return "a price is missing: add `price:` to the model"
    return f"list prices are of {price_list()['as_of']}; a config's own win" if plan.usd else ""


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


def _time_note(plan: Plan) -> str:
    if plan.seconds is None:
        return "no earlier run tells the rate"
    return "at the last run's rate and the limits per minute"
