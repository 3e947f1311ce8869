"""What evaluation code names of the original's models: the types of its client and of a model, what an instruction and
its completion are, and the service's own client for tasks that are made with one.

The models themselves are not offered: a task may ask any client. Such calls are in no budget and in no log of calls.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from assay.errors import UserError
from assay.formats.intelligence_layer.types import Record, extra


class AlephAlphaClientProtocol(Protocol):
    """Requests and responses are those of the package aleph_alpha_client."""

    def complete(self, request: Any, model: str) -> Any: ...
    def get_version(self) -> str: ...
    def models(self) -> Sequence[Mapping[str, Any]]: ...
    def tokenize(self, request: Any, model: str) -> Any: ...
    def detokenize(self, request: Any, model: str) -> Any: ...
    def embed(self, request: Any, model: str) -> Any: ...
    def semantic_embed(self, request: Any, model: str) -> Any: ...
    def batch_semantic_embed(self, request: Any, model: str | None = None) -> Any: ...
    def evaluate(self, request: Any, model: str) -> Any: ...
    def explain(self, request: Any, model: str) -> Any: ...
    def tokenizer(self, model: str) -> Any: ...


class ControlModel(Protocol):
    """A model that follows instructions, for annotations."""

    name: str

    def to_instruct_prompt(
        self, instruction: str, input: str | None = None, response_prefix: str | None = None
    ) -> Any: ...
    def complete(self, input: Any, tracer: Any) -> Any: ...


@dataclass(kw_only=True)
class InstructInput(Record):
    instruction: str
    input: str | None = None
    response_prefix: str | None = None


@dataclass(kw_only=True)
class CompleteOutput(Record):
    """What a model wrote, and what it cost."""

    completion: str
    model_version: str = ""
    num_tokens_generated: int = 0
    num_tokens_prompt_total: int = 0

    @staticmethod
    def from_completion_response(response: Any) -> "CompleteOutput":
        return CompleteOutput(
            completion=response.completions[0].completion or "",
            model_version=response.model_version,
            num_tokens_generated=response.num_tokens_generated,
            num_tokens_prompt_total=response.num_tokens_prompt_total,
        )


class EnvironmentClient:
    """The client of the server at CLIENT_URL with the token AA_TOKEN, made when something is first asked of it."""

    @cached_property
    def _client(self) -> Any:
        missing = [name for name in ("AA_TOKEN", "CLIENT_URL") if not os.environ.get(name)]
        if missing:
            raise UserError(
                f"the task asks the service's client, and {' and '.join(missing)} is not set",
                fix="set AA_TOKEN and CLIENT_URL, or name what makes another client with --client",
            )
        what = "the service's client needs the package aleph-alpha-client"
        package = extra(
            "aleph_alpha_client",
            what,
            "pip install aleph-alpha-client, or name another with --client",
        )
        return package.Client(os.environ["AA_TOKEN"], host=os.environ["CLIENT_URL"])

    def __getattr__(self, name: str) -> Any:
        if name not in vars(
            AlephAlphaClientProtocol
        ):  # whoever looks whether it is a record does not ask the service
            raise AttributeError(name)
        return getattr(self._client, name)
