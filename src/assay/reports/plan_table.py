"""A plan as text."""

from assay.engine.calls.prices import price_list
from assay.engine.experiment.plan import Plan
from assay.reports.money import cost_text
from assay.text.plain import plain


def plan_text(found: Plan) -> str:
    lines = [
        f"{found.items} items × {len(found.tasks)} tasks × {found.samples} samples, folder {found.folder}",
        f"  planned   {found.planned:>10,}  cells of the config",
        f"  selected  {found.selected:>10,}  by --limit, --model, --num-samples",
        f"  present   {found.present:>10,}  have their rows",
        f"  to run    {found.missing:>10,}  about {found.prompt_tokens:,} + {found.answer_tokens:,} tokens",
        f"  cost      {_usd(found):>10}  {_usd_note(found)}".rstrip(),
        f"  time      {_time(found):>10}  {_time_note(found)}".rstrip(),
    ]
    if found.retried:
        lines.append(f"    again   {found.retried:>10,}  of them because they failed")
    if found.stale:
        lines.append(f"  set aside {found.stale:>10,}  rows that the plan no longer has")
    if found.returning:
        lines.append(f"  brought back {found.returning:>7,}  rows that had been set aside")
    lines += [f"  {task.cells:>8,} cells  {plain(task.name)}" for task in found.tasks]
    return "\n".join(lines)


def _usd(found: Plan) -> str:
    return "unknown" if found.usd is None else cost_text(found.usd, 0)


def _usd_note(found: Plan) -> str:
    if found.usd is None:
        return "a price is missing: add `price:` to the model"
    return f"list prices are of {price_list()['as_of']}; a config's own win" if found.usd else ""


def _time(found: Plan) -> str:
    if found.seconds is None:
        return "unknown"
    return f"{found.seconds:,.0f} s" if found.seconds < 120 else f"{found.seconds / 60:,.0f} min"


def _time_note(found: Plan) -> str:
    return (
        "no earlier run tells the rate" if found.seconds is None else "at the last run's rate and the limits per minute"
    )
