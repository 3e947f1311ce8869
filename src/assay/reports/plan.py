"""A plan: how many cells there are, how many would run, and what that may cost."""

import msgspec

from assay.engine.experiment.models import price_list
from assay.engine.experiment.plan import Plan
from assay.reports.sheet import Line, Sheet, Table, columns_of, cost_text


def view(plan: Plan) -> Sheet:
    rows = [
        ["planned", f"{plan.planned:,}", "cells of the config"],
        ["selected", f"{plan.selected:,}", "by --limit, --model, --num-samples"],
        ["present", f"{plan.present:,}", "have their rows"],
        ["to run", f"{plan.missing:,}", f"about {plan.prompt_tokens:,} + {plan.answer_tokens:,} tokens"],
        ["cost", "unknown" if plan.usd is None else cost_text(plan.usd, 0), _price_note(plan)],
        ["time", _time(plan.seconds), _time_note(plan)],
    ]
    more = [
        ("  again", plan.retried, "of them because they failed"),
        ("set aside", plan.stale, "rows that the plan no longer has"),
        ("brought back", plan.returning, "rows that had been set aside"),
    ]
    rows += [[what, f"{number:,}", meaning] for what, number, meaning in more if number]
    tasks = [[f"{task.cells:,} cells", task.name] for task in plan.tasks]
    title = f"{plan.items} items × {len(plan.tasks)} tasks × {plan.samples} samples, folder {plan.folder}"
    exact = {name: value for name, value in msgspec.structs.asdict(plan).items() if name != "tasks"}
    facts = Table(columns_of("<what", "number", "<meaning"), rows, compact=True, heads=False, depth=1)
    facts = facts._replace(data=(["what", "value"], [list(pair) for pair in exact.items()]))
    cells = Table(columns_of("cells", "<task"), tasks, compact=True, heads=False, depth=1)
    return Sheet(parts=[Line(title, wraps=False), facts, cells])


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
