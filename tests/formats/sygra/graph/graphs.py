"""Graphs under test: helpers by dotted name, a model that answers as told, and the engine around them."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import assay
from assay.errors import UserError
from assay.formats.sygra.graph import GraphTask, ModelUse
from assay.interfaces import Completion, Message, Model, Request
from assay.models.python import python
from assay.records import Response

Answering = Callable[[list[Message]], Any]
START_TO = {"from": "START", "to": "ask"}


def node(kind: str, **config: Any) -> dict[str, Any]:
    return {"node_type": kind, **config}


def llm(text: Any = "{question}", **config: Any) -> dict[str, Any]:
    prompt = text if isinstance(text, list) else [{"user": text}]
    return node(
        "llm", **{"model": {"name": "m"}, "prompt": prompt, "output_keys": "answer", **config}
    )


def chain(nodes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The nodes one after the other; `more` are further sections."""
    names = ["START", *nodes, "END"]
    edges = [{"from": first, "to": second} for first, second in pairwise(names)]
    return {"graph_config": {"nodes": dict(nodes), "edges": edges}, **more}


def mapped(*names: str) -> dict[str, Any]:
    return {"output_config": {"output_map": {name: {"from": name} for name in names}}}


class Bench:
    """Binds graphs to helpers and a model, and runs them on the real engine. `asked` holds what the model got."""

    def __init__(
        self, helpers: Mapping[str, Any] | None = None, answer: Answering | None = None
    ) -> None:
        self.helpers = dict(helpers or {})
        self.answer = answer or (lambda messages: f"<{messages[-1]['content']}>")
        self.asked: list[Request] = []
        self.models: dict[str, Model] = {
            name: python(name, function=self._reply) for name in ("m", "other")
        }
        self.store = assay.MemoryStore()
        self.runs = 0

    async def _reply(self, request: Request) -> Any:
        self.asked.append(request)
        answer = self.answer(request.messages)
        return answer if isinstance(answer, Completion) else str(answer)

    def load(self, dotted: str, where: str) -> Any:
        if dotted not in self.helpers:
            raise UserError(f"{dotted!r} cannot be imported", where=where)
        return self.helpers[dotted]

    def task(self, source: Mapping[str, Any], **options: Any) -> GraphTask:
        uses = {
            name: ModelUse(name, identity=model.identity) for name, model in self.models.items()
        }
        return GraphTask(source, **{"name": "g", "load": self.load, "models": uses, **options})

    def run(
        self, source: Mapping[str, Any], *records: dict[str, Any], **options: Any
    ) -> list[Response]:
        """The rows, in the order of the records."""
        return self.run_task(self.task(source, **options), *records)

    def run_task(
        self, task: GraphTask, *records: dict[str, Any], samples: int = 1, seed: int = 0
    ) -> list[Response]:
        self.runs += 1
        id = f"d{self.runs}"
        rows = [
            {"id": record.get("id", f"r{n}"), "data": record} for n, record in enumerate(records)
        ]
        assay.DatasetRepository(self.store).create(rows, name=id, id=id)
        runner = assay.Runner(self.store, models=self.models, seed=seed)
        runner.run(id, [task], samples, id=id)
        found = {
            (row.item_id, row.sample_index): row
            for row in assay.RunRepository(self.store).responses(id)
        }
        return [found[row["id"], sample] for row in rows for sample in range(samples)]

    def output(self, source: Mapping[str, Any], **record: Any) -> Any:
        """The output record of one record, which has to succeed."""
        (row,) = self.run(source, record)
        assert row.error is None, row.error
        return row.output

    def error(self, source: Mapping[str, Any], **record: Any) -> str:
        (row,) = self.run(source, record)
        assert row.error is not None
        assert row.output is None
        return row.error

    def sent(self) -> list[list[Message]]:
        return [request.messages for request in self.asked]


class Quiet:
    """A context for a single task run: no engine, no threads."""

    item_id, sample_index, seed = "i", 0, 7

    def __init__(self) -> None:
        self.threads = 0

    async def thread(self, call: Callable[[], Any]) -> Any:
        self.threads += 1
        return await asyncio.to_thread(call)
