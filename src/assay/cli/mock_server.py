"""`assay mock-server`: serve an OpenAI-compatible demo model on loopback."""

from typing import Any

import click

from assay import api
from assay.cli import verb

SHARE = click.FloatRange(0, 1)


def _fault(name: str, about: str) -> Any:
    return click.option(name, type=SHARE, default=0, help=about)


@verb("mock-server")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=1234,
    show_default=True,
    help="0: any free port.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the answers and the faults."
)
@click.option(
    "--skill", type=SHARE, default=0.8, show_default=True, help="How good the demo solver is."
)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0, show_default=True)
@click.option(
    "--token-ms",
    type=click.FloatRange(min=0),
    default=0,
    show_default=True,
    help="Between streamed pieces.",
)
@click.option(
    "--capacity",
    type=click.IntRange(min=0),
    default=0,
    help="Requests in flight before 429; 0: no limit.",
)
@_fault("--rate-429", "Share of requests refused as too many.")
@click.option(
    "--retry-after", type=click.FloatRange(min=0), help="Seconds that a 429 asks to wait."
)
@_fault("--rate-500", "Share of requests that fail.")
@_fault("--rate-drop", "Share of connections closed without an answer.")
@_fault("--rate-torn", "Share of answers that end half-way.")
@_fault("--rate-huge", "Share of answers of 200 MB.")
@_fault("--rate-garbage", "Share of streams with an event that is not JSON.")
@_fault("--rate-unfinished", "Share of streams that end in the middle.")
@_fault("--rate-error-event", "Share of streams that end with an error event.")
@click.option("--answers", help="A JSONL file of answers, or file.py:function.")
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--json", is_flag=True, expose_value=False, help="As it is: the address is printed as JSON."
)
def command(**options: Any) -> None:
    """Serve chat and text completions on 127.0.0.1; by default Assay's demo solver answers."""
    api.mock_server(**{name: value for name, value in options.items() if value is not None})
