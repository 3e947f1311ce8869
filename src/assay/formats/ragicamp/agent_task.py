"""RAGiCamp's agents as a task of the engine: whatever has a `name` and answers questions.

`answer(question)` may be async; one that is not runs in a thread, so that others continue meanwhile. What an agent raises
is its answer's error, never the end.
"""

import inspect
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from assay.errors import PermanentError, UserError
from assay.formats.ragicamp.state import state_of
from assay.interfaces import Answer, Context, Work
from assay.records import Item
from assay.store.keys import canonical, digest
from assay.text.template import question, variables

UNKNOWN = "unknown"
ASYNC_CONCURRENCY = 16
_TEXTS = ("answer", "text", "prediction", "response")
OURS = ("model_id", "prompt_template", "finish_reason", "response_id")


def name_of(thing: Any) -> str:
    """The name of an agent or a dataset."""
    return str(getattr(thing, "name", None) or UNKNOWN)


class AgentTask:
    """`concurrency` is how many calls the agent gets at a time."""

    def __init__(self, agent: Any, *, max_concurrency: int | None = None) -> None:
        self._answer = getattr(agent, "answer", None)
        if not callable(self._answer):
            fix = "an agent has a `name` and `answer(question)`"
            raise UserError(f"{type(agent).__name__} answers no questions", where="agent", fix=fix)
        if max_concurrency is not None and max_concurrency < 1:
            what = f"max_concurrency must be at least 1, got {max_concurrency}"
            raise UserError(what, where="max_concurrency")
        self._is_async = inspect.iscoroutinefunction(self._answer)
        # An agent that is not async may not be safe to call from several threads: it has to be asked for.
        self.concurrency = max_concurrency or (ASYNC_CONCURRENCY if self._is_async else 1)
        self.name = self.model_name = name_of(agent)
        self.lane = ""
        self.facets: Mapping[str, Any] = {"model_id": self.name}
        self.identity: Mapping[str, Any] = {"agent": self.name, "state": state_of(agent)}
        self._code = digest("ragicamp-agent", canonical(self.identity))

    def prepare(self, item: Item) -> Work:
        asked = question(variables(item))
        return Work(digest("question", self._code, asked.encode()), asked, prompt=asked)

    async def run(self, work: Work, context: Context) -> Answer:
        if self._is_async:
            return answer_of(await cast("Any", self._answer)(work.payload))
        result = await context.thread(lambda: cast("Any", self._answer)(work.payload))
        return answer_of(await result if inspect.isawaitable(result) else result)


def answer_of(found: Any) -> Answer:
    """Text, an object or a dict with the text and perhaps `metadata`; anything else is an error."""
    if isinstance(found, str):
        return Answer(text=found)
    if isinstance(found, (int, float)):
        return Answer(text=str(found))
    fields = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None
    parts = {
        name: (fields.get(name) if fields is not None else getattr(found, name, None))
        for name in _TEXTS
    }
    text = next((value for value in parts.values() if isinstance(value, (str, int, float))), None)
    if text is None:
        known = " or ".join(_TEXTS[:2])
        raise PermanentError(
            f"an answer is text, or has a text as `{known}`; found {type(found).__name__}"
        )
    given = fields.get("metadata") if fields is not None else getattr(found, "metadata", None)
    return Answer(text=str(text), metadata=_metadata(given))


def _metadata(given: Any) -> dict[str, Any]:
    """What the agent says about its answer, as JSON; names that our rows use for themselves begin with `agent_`."""
    if not given:
        return {}
    try:
        plain = msgspec.to_builtins(given, str_keys=True, enc_hook=_plain)
        fields = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"metadata": plain}
        return msgspec.json.decode(
            msgspec.json.encode(
                {f"agent_{key}" if key in OURS else key: value for key, value in fields.items()}
            )
        )
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PermanentError(f"the answer's metadata cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """Objects of any class by their attributes, such as retrieved documents."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return dict(vars(value)) if hasattr(value, "__dict__") else str(value)
