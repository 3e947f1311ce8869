"""What a run of a task folder found, for a person: counts, the reports' numbers, and the most frequent errors."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from assay.reports.look import plain_table
from assay.text.plain import plain

_SHOWN_ERRORS = 3
_LONGEST_ERROR = 300


def report_view(result: Any) -> Iterator[Any]:
    """The parts to print; `result` has `total`, `failed`, `errors` and `processed`."""
    for processed in result.processed:
        if processed.error is not None:
            yield Text(f"{plain(processed.name)} failed: {plain(processed.error)}", style="red")
        elif processed.report is not None:
            yield from _report(processed.name, processed.report)
    done = result.total - result.failed
    failed = f", {result.failed:,} failed" if result.failed else ""
    yield Text(f"records: {result.total:,}, {done:,} done{failed}", style="yellow" if result.failed else "")
    for text, count in list(result.errors.items())[:_SHOWN_ERRORS]:
        yield Text(f"  {count:,} × {plain(text)[:_LONGEST_ERROR]}", style="yellow")
    if len(result.errors) > _SHOWN_ERRORS:
        yield Text(f"  … and {len(result.errors) - _SHOWN_ERRORS} other errors")


def _report(name: str, report: Mapping[str, Any]) -> Iterator[Any]:
    summary = report["evaluation_summary"]
    table = plain_table(title_justify="left")
    table.add_column("result", no_wrap=True)
    table.add_column("number", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    for key, payload in report["results"].items():
        for number, value in _numbers(payload):
            table.add_row(Text(plain(str(key))), Text(plain(number)), value)
    counts = ", ".join(f"{key} {summary[key]:,}" for key in ("total_records", "scored", "failed") if key in summary)
    yield Text(f"{plain(name)}: {summary.get('status')}, {counts}")
    if table.row_count:
        yield table
    problems = summary.get("errors") or ({"": summary["error"]} if summary.get("error") else {})
    for key, text in problems.items():
        yield Text(f"{plain(str(key))}: {plain(str(text))}".lstrip(": "), style="red")


def _numbers(payload: Any) -> Iterator[tuple[str, str]]:
    """The numbers of a result by name; those of single classes stay in the file."""
    if not isinstance(payload, Mapping):
        payload = {"": payload}
    for name, value in payload.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(name), f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
