"""Takes the topic out of the model's answer."""

from sygra.core.graph.functions.node_processor import NodePostProcessorWithState
from sygra.core.graph.sygra_message import SygraMessage
from sygra.core.graph.sygra_state import SygraState
from tasks.eval.utils import parse_response_as_json


class GenerateTopicPostProcessor(NodePostProcessorWithState):
    """An answer without a topic is an empty one, hence wrong."""

    def apply(self, resp: SygraMessage, state: SygraState) -> SygraState:
        found = parse_response_as_json(resp.message.content) or {}
        state["predicted_topic"] = found.get("predicted_topic", "")
        return state
