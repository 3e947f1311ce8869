"""A model with several addresses: `url` is a list in `models.yaml`, or holds `|` in its variable."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.interfaces import Completion, Model, Request


class Balanced:
    """Asks the address with the fewest calls in flight. The addresses are not part of what it is."""

    keeps_time = True

    def __init__(self, name: str, parts: Sequence[Model]) -> None:
        self.name = name
        self.identity: Mapping[str, Any] = parts[0].identity
        self._parts = parts
        self._in_flight = [0] * len(parts)

    async def complete(self, request: Request) -> Completion:
        place = self._in_flight.index(min(self._in_flight))
        self._in_flight[place] += 1
        try:
            return await self._parts[place].complete(request)
        finally:
            self._in_flight[place] -= 1

    async def close(self) -> None:
        for part in self._parts:
            await part.close()
