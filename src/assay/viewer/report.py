"""`assay report`: what `assay view` shows, in one file that needs no server: HTML, a PDF of it, or Markdown.

Equal rows give equal bytes: the date is that of the newest rows. Pages are compressed and written as they are made, so
that memory does not grow with the samples.
"""

import gzip
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations, islice, permutations
from pathlib import Path
from shlex import quote as shell_quoted
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import msgspec

from assay import reading
from assay.engine.experiment.trust import CONFIG
from assay.sdk import AssayError, JsonObject, UserError, nearest
from assay.store.ledger import write_named
from assay.viewer.document import asset, document
from assay.viewer.experiments import Experiments, experiments_below
from assay.viewer.pages import page
from assay.viewer.rows import carried

SAMPLES = 200
FORMATS = {".html": "html", ".pdf": "pdf", ".md": "markdown"}
_ROWS, _ITEMS = 2_000, 50  # in a chunk
_MOST_VALUES, _MOST_PAIRS = 4, 12
_FLIPS = 20  # a page of them in the app
_LONGEST_CONFIG = 100_000
_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)

Asked = tuple[str, JsonObject]


def report(
    paths: Sequence[str | Path] = (".",),
    output: str | Path = "report.html",
    *,
    format: str = "",
    samples: int | None = SAMPLES,
    title: str = "",
    force: bool = False,
) -> list[str]:
    """Write a report of the experiments below some paths; returns what there is to know about it. `format` is html,
    pdf or markdown, by default what the suffix says; `samples` is how many to carry (None: all), whole items, the
    hardest first."""
    file = Path(output)
    form = format or FORMATS.get(file.suffix.lower(), "")
    if form not in FORMATS.values():
        fix = nearest(format, FORMATS.values()) if format else f"name it {', '.join(FORMATS)}"
        raise UserError(f"a report cannot be written as {format or file.name!r}", fix=fix)
    experiments = experiments_below(paths)
    experiments.still = True
    if form == "markdown":
        from assay.viewer.markdown import write_markdown

        return write_markdown(experiments, file, title or _title(experiments), force=force)
    content = html(experiments, file, samples=samples, title=title)
    write_named(file, content if form == "html" else [_printed(content)], force=force)
    return list(_out_of_reach(experiments))


def html(
    experiments: Experiments, file: Path, *, samples: int | None, title: str
) -> Iterator[bytes]:
    """The report in pieces; `file` is what it will be called."""
    name = title or _title(experiments)
    return document(name, _pages(experiments, samples, name, file))


def _out_of_reach(experiments: Experiments) -> Iterator[str]:
    """The experiments whose rows may not or cannot be read: only what their metrics say is in the report."""
    for id in experiments.list():
        try:
            experiments.source(id)
        except AssayError as error:
            yield f"no samples of {id}: {error.what}"


def _title(experiments: Experiments) -> str:
    names = list(experiments.list())
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# ---- the pages that a report carries


def _pages(
    experiments: Experiments, samples: int | None, title: str, file: Path
) -> Iterator[tuple[str, bytes]]:
    """Keys and compressed content. Samples come first: the index that they need serves the other pages as well."""
    listed = experiments.list()
    details: dict[str, int] = {}
    rows = 0
    stream = carried(experiments, (), samples)
    while chunk := list(islice(stream, _ROWS)):
        yield f"rows/{rows // _ROWS}", _packed(chunk)
        rows += len(chunk)
        yield from _details(experiments, [row["item"] for row in chunk], details)
    board = msgspec.to_builtins(page(experiments, "leaderboard", {}))
    for name, query in asked(list(listed), board):
        yield f"{name}?{query_text(query)}", _packed(_page(experiments, name, query))
    pairs = compared(experiments, board)
    for (a, b), content in pairs.items():
        yield f"compare?{query_text({'a': a, 'b': b})}", _packed(content)
        # Of all items: the app would make them of those that are carried.
        flips = {"a": a, "b": b, "label": content["label"], "limit": _FLIPS, "offset": 0}
        yield f"flips?{query_text(flips)}", _packed(_page(experiments, "flips", flips))
    yield "rich.js", gzip.compress(asset("rich.js").encode(), mtime=0)
    about = {
        "title": title,
        **_origin(experiments, samples, file),
        "comparisons": [{"a": a, "b": b} for a, b in pairs],
        "rows": rows,
        "all": sum(entry.responses or entry.evaluations for entry in listed.values()),
        "chunks": -(-rows // _ROWS),
        "details": details,
    }
    yield "report", _packed(about)


def _origin(experiments: Experiments, samples: int | None, file: Path) -> JsonObject:
    """Return what a report was made of, and with which commands."""
    listed = experiments.list()
    options = f" --samples {'all' if samples is None else samples}"
    return {
        "made": _made(max(entry.updated for entry in listed.values())),
        "reproduce": reproduce(experiments, file, options),
        "config": [
            {"experiment": id, "yaml": config_text(Path(entry.folder))}
            for id, entry in listed.items()
        ],
    }


def _details(
    experiments: Experiments, items: list[str], chunks: dict[str, int]
) -> Iterator[tuple[str, bytes]]:
    """The pages of items that no chunk has yet; `chunks` learns where they are."""
    fresh = [item for item in dict.fromkeys(items) if item not in chunks]
    for start in range(0, len(fresh), _ITEMS):
        part = fresh[start : start + _ITEMS]
        number = max(chunks.values(), default=-1) + 1
        chunks |= dict.fromkeys(part, number)
        yield (
            f"details/{number}",
            _packed({item: _page(experiments, "sample", {"item": item}) for item in part}),
        )


def asked(experiments: Sequence[str], board: JsonObject) -> Iterator[Asked]:
    """What the views ask for when they are opened, experiments not chosen."""
    yield "experiments", {}
    yield "leaderboard", {}
    for id in experiments:
        yield "judges", {"experiment": id}
        yield "ranking", {"experiment": id}
    # Maps of many experiments would take long; the first is what one sees.
    sides = ["experiment", *board["facets"][:1]] if len(experiments) > 1 else board["facets"]
    for metric, label in dict.fromkeys((row["metric"], row["label"]) for row in board["rows"]):
        of = {"metric": metric, "label": label}
        yield "standing", of
        for name in ("intervals", "scatter", "heat"):
            yield "chart", {"name": name, **of}
        for rows, columns in permutations(sides, 2):
            yield "chart", {"name": "heat", "rows": rows, "columns": columns, **of}
    for label in dict.fromkeys(["", *(row["label"] for row in board["rows"])]):
        for name in ("scores", "pass_at_k"):
            yield "chart", {"name": name, "label": label}
    for name in ("latency", "tokens"):
        yield "chart", {"name": name}


def compared(experiments: Experiments, board: JsonObject) -> dict[tuple[str, str], JsonObject]:
    """The comparisons of a report, by their sides; what cannot be compared is left out."""
    pages: dict[tuple[str, str], JsonObject] = {}
    for a, b in islice(_pairs(experiments, board), _MOST_PAIRS):
        content = msgspec.to_builtins(_page(experiments, "compare", {"a": a, "b": b}))
        if content.get("comparison") is not None:
            pages[a, b] = content
    return pages


def _pairs(experiments: Experiments, board: JsonObject) -> Iterator[tuple[str, str]]:
    """Values of facets that have only a few, then the first experiment against the others."""
    first, *others = experiments.list()
    found: dict[str, dict[str, dict[str, None]]] = {id: {} for id in (first, *others)}
    for row in board["rows"]:
        for facet, value in row["facets"].items():
            found[row["experiment"]].setdefault(facet, {})[value] = None
    for id, facets in found.items():
        for facet, values in facets.items():
            if len(values) <= _MOST_VALUES:
                sides = (f"{id}::{facet}={value}" for value in values)
                yield from combinations(sides, 2)
    yield from ((first, other) for other in others)


def _page(experiments: Experiments, name: str, query: JsonObject) -> Any:
    """A page, or why there is none, which the app shows in its place."""
    try:
        return page(
            experiments, name, {key: [str(value)] for key, value in query.items() if value != ""}
        )
    except AssayError as error:
        return {"problem": {"what": error.what, "fix": error.fix}}


def query_text(query: JsonObject) -> str:
    """As `queryText` in web/src/source.ts writes it."""
    return "&".join(
        f"{_quoted(name)}={_quoted(str(query[name]))}"
        for name in sorted(query)
        if query[name] != ""
    )


def _quoted(text: str) -> str:
    return quote(text, safe="!'()*~-._")


def _packed(value: Any) -> bytes:
    return gzip.compress(msgspec.json.encode(value), mtime=0)


def _made(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def reproduce(experiments: Experiments, file: Path, options: str = "") -> list[str]:
    """Commands that make the report again, and that show more."""
    paths = " ".join(map(shell_quoted, experiments.names))
    return [f"assay report {paths} -o {shell_quoted(file.name)}{options}", f"assay view {paths}"]


def config_text(folder: Path) -> str:
    """The config that made an experiment; Assay writes no secrets into it."""
    try:
        return reading.content(folder / CONFIG)[:_LONGEST_CONFIG].decode("utf-8", "replace")
    except OSError:
        return ""


# ---- PDF


def _printed(content: Iterable[bytes]) -> bytes:
    """The document as a browser of this machine prints it."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        fix = f"install one ({_BROWSERS[0]}), or write a .html file and print it"
        raise UserError("there is no browser here that prints a PDF", fix=fix)
    with TemporaryDirectory(prefix="assay-") as place:
        page, printed = Path(place, "report.html"), Path(place, "report.pdf")
        with page.open("wb") as file:
            file.writelines(content)
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={place}/profile",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "--no-pdf-header-footer",
            "--virtual-time-budget=60000",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{browser} did not print the report within three minutes", fix="write a .html file"
            ) from None
        if not printed.is_file():
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [
                f"exit code {done.returncode}"
            ]
            raise UserError(
                f"{browser} did not print the report: {reason[0]}",
                fix="write a .html file and print it",
            )
        return printed.read_bytes()
