"""Takes the answer out of what the model wrote."""

from sygra.core.graph.functions.node_processor import NodePostProcessorWithState
from sygra.core.graph.sygra_message import SygraMessage
from sygra.core.graph.sygra_state import SygraState
from tasks.eval.utils import parse_response_as_json


class GenerateAnswerPostProcessor(NodePostProcessorWithState):
    def apply(self, resp: SygraMessage, state: SygraState) -> SygraState:
        found = parse_response_as_json(resp.message.content) or {}
        state["predicted_answer"] = found.get("predicted_answer", "")
        return state
