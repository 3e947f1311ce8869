"""Servers that the model tests talk to, and the shortest way to one completion."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.interfaces import Completion, Model, Request
from assay.server import Options, running

STRANGE = Path(__file__).parent / "strange_answers.py"


@pytest.fixture(scope="session")
def strange() -> Iterator[str]:
    """A server that answers each prompt with the strange answer of that name."""
    with running(Options(answers=f"{STRANGE}:answer")) as url:
        yield url


@pytest.fixture(scope="session")
def honest() -> Iterator[str]:
    with running(Options(skill=1.0)) as url:
        yield url


@pytest.fixture
def ask() -> Callable[..., Completion]:
    def ask(model: Model, text: str, **more: Any) -> Completion:
        """One completion in an event loop of its own; the model is closed afterwards."""

        async def go() -> Completion:
            try:
                return await model.complete(
                    Request(messages=[{"role": "user", "content": text}], **more)
                )
            finally:
                await model.close()

        return asyncio.run(go())

    return ask
