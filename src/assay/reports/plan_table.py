"""A plan as text."""

from assay.steps.survey import Survey
from assay.text.plain import plain


def plan_text(found: Survey) -> str:
    lines = [
        f"{found.items} items × {len(found.tasks)} tasks × {found.samples} samples, folder {found.folder}",
        f"  planned   {found.planned:>10,}  cells of the config",
        f"  selected  {found.selected:>10,}  by --limit, --model, --num-samples",
        f"  present   {found.present:>10,}  have their rows",
        f"  to run    {found.missing:>10,}  about {found.prompt_tokens:,} prompt tokens",
    ]
    if found.retried:
        lines.append(f"    again   {found.retried:>10,}  of them because they failed")
    if found.stale:
        lines.append(f"  set aside {found.stale:>10,}  rows that the plan no longer has")
    if found.returning:
        lines.append(f"  brought back {found.returning:>7,}  rows that had been set aside")
    lines += [f"  {task.cells:>8,} cells  {plain(task.name)}" for task in found.tasks]
    return "\n".join(lines)
