"""`assay mock-server`: serve an OpenAI-compatible demo model on loopback."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import AMOUNT, NATURAL, PORT, POSITIVE, SHARE, flag, option


def _fault(name: str, about: str) -> Any:
    return option(name, about, type=SHARE, default=0)


@verb("mock-server")
@option("--port", "0: any free port.", type=PORT, default=1234, show_default=True)
@option("--seed", "Of the answers and the faults.", type=int, default=0, show_default=True)
@option("--skill", "How good the demo solver is.", type=SHARE, default=0.8, show_default=True)
@click.option("--latency-ms", type=AMOUNT, default=0, show_default=True)
@option("--token-ms", "Between streamed pieces.", type=AMOUNT, default=0, show_default=True)
@option("--capacity", "Requests in flight before 429; 0: no limit.", type=NATURAL, default=0)
@_fault("--rate-429", "Share of requests refused as too many.")
@option("--retry-after", "Seconds that a 429 asks to wait.", type=AMOUNT)
@_fault("--rate-500", "Share of requests that fail.")
@_fault("--rate-drop", "Share of connections closed without an answer.")
@_fault("--rate-torn", "Share of answers that end half-way.")
@_fault("--rate-huge", "Share of answers of 200 MB.")
@_fault("--rate-garbage", "Share of streams with an event that is not JSON.")
@_fault("--rate-unfinished", "Share of streams that end in the middle.")
@_fault("--rate-error-event", "Share of streams that end with an error event.")
@option("--answers", "A JSONL file of answers, or file.py:function.")
@click.option("--processes", type=POSITIVE, default=1, show_default=True)
@flag("--json", "As it is: the address is printed as JSON.", expose_value=False)
def command(**options: Any) -> None:
    """Serve chat and text completions on 127.0.0.1; by default Assay's demo solver answers."""
    api.mock_server(**{name: value for name, value in options.items() if value is not None})
