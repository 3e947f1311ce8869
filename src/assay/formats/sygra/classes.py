"""What task helpers import: the classes that they inherit from, and `sygra.utils.constants`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.graph.messages import SygraMessage, SygraState
from assay.formats.sygra.graph.output import OutputGenerator
from assay.text.answers import without_reasoning


class NodePreProcessor(ABC):
    """Prepares the state before an llm node."""

    @abstractmethod
    def apply(self, state: SygraState) -> SygraState: ...


class NodePostProcessor(ABC):
    """Turns the answer of an llm node into changes of the state."""

    @abstractmethod
    def apply(self, resp: SygraMessage) -> Any: ...


class NodePostProcessorWithState(ABC):
    """Like NodePostProcessor, and it is given the state."""

    @abstractmethod
    def apply(self, resp: SygraMessage, state: SygraState) -> Any: ...


class LambdaFunction(ABC):
    """A lambda node; the first argument is the node's own mapping."""

    @staticmethod
    @abstractmethod
    def apply(lambda_node_dict: dict[str, Any], state: SygraState) -> Any: ...


class AsyncLambdaFunction(ABC):
    @staticmethod
    @abstractmethod
    async def apply(lambda_node_dict: dict[str, Any], state: SygraState) -> Any: ...


class EdgeCondition(ABC):
    """Names the branch that a conditional edge takes."""

    @staticmethod
    @abstractmethod
    def apply(state: SygraState) -> str: ...


class GraphPostProcessor(ABC):
    """Looks at all output records after the run; what it returns becomes a file of its own."""

    @abstractmethod
    def process(self, data: Sequence[dict[str, Any]], metadata: dict[str, Any]) -> Any: ...


class ModelPostProcessor(ABC):
    """Changes the text of every answer of a model."""

    @abstractmethod
    def apply(self, completion: str) -> str: ...


class RemoveThinkData(ModelPostProcessor):
    """The answer without the reasoning before it."""

    def apply(self, completion: str) -> str:
        return without_reasoning(completion)


class BaseOutputGenerator(OutputGenerator):
    """Makes the fields of an output map that name a `transform`, or all of the record."""


class BaseTaskExecutor:
    """Only a name to import: a task is run by Assay's engine, whatever its folder defines as executor."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        raise UserError(
            f"{type(self).__name__} cannot be run: Assay's own engine executes the graph",
            fix="run the task with `assay sygra --task …`, or assay.formats.sygra.run(…)",
        )


class DefaultTaskExecutor(BaseTaskExecutor):
    pass


SYGRA_START = "__start__"
SYGRA_END = "__end__"
START = "START"
END = "END"
BACKEND = "langgraph"
ERROR_PREFIX = "###SERVER_ERROR###"
GRAPH_OUTPUT_KEY = "output_keys"
CHAT_CONVERSATION_MULTITURN = "multiturn"
CHAT_CONVERSATION_SINGLETURN = "singleturn"
VAR_CHAT_HISTORY = "__chat_history__"
LIST_SEPARATOR = "|"
