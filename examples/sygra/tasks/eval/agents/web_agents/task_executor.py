"""A step of a web agent with retries: ask for an action, judge it, ask again with what went wrong."""

import json
from typing import Any

from sygra.core.eval.metrics.unit_metrics.action_within_bbox import ActionWithinBboxMetric
from sygra.core.eval.metrics.unit_metrics.exact_match import ExactMatchMetric
from sygra.core.eval.metrics.unit_metrics.scroll_direction import ScrollDirectionMetric
from sygra.core.eval.metrics.unit_metrics.typed_value_match import TypedValueMatchMetric
from sygra.core.graph.functions.edge_condition import EdgeCondition
from sygra.core.graph.functions.lambda_function import LambdaFunction
from sygra.core.graph.functions.node_processor import NodePostProcessorWithState, NodePreProcessor
from sygra.core.graph.graph_postprocessor import GraphPostProcessor
from sygra.core.graph.sygra_message import SygraMessage
from sygra.core.graph.sygra_state import SygraState
from sygra.logger.logger_config import logger
from sygra.utils import constants, utils

HISTORY = constants.VAR_CHAT_HISTORY
TOOL_NAMES = {"type": "typing"}
STEP_METRICS = {
    "click": ActionWithinBboxMetric,
    "typing": TypedValueMatchMetric,
    "scroll": ScrollDirectionMetric,
}


def called(tool_calls: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The tool's name as the golden answers have it, and its arguments."""
    function = tool_calls[0]["function"]
    name = function["name"].removesuffix("_tool")
    arguments = function["arguments"]
    return TOOL_NAMES.get(name, name), json.loads(arguments) if isinstance(
        arguments, str
    ) else arguments


class FetchNextActionPreProcessor(NodePreProcessor):
    """Shows the screenshot and, after a failed attempt, what the attempt was."""

    def apply(self, state: SygraState) -> SygraState:
        image = state["current_tool_result"]["content"][0]["image"]
        state["current_screenshot"] = (
            f"data:image/{image['format']};base64,{image['source']['bytes']}"
        )
        state[HISTORY] = list(state["chat_history"])
        retries = utils.get_graph_properties(utils.current_task).get("retry_chat_injection", {})
        previous = f"retry_{state['curr_retries'] - 1}"
        judged = state.get("step_match", {}).get(previous)
        if retries.get("required") == "yes" and judged is not None and not judged["correct"]:
            response = state["model_responses"][previous]
            state["original_current_user_text"] = (
                state["original_current_user_text"] or state["current_user_text"]
            )
            state["chat_history"] = [
                *state["chat_history"],
                {"role": "user", "content": state["current_user_text"]},
                {
                    "role": "assistant",
                    "content": response["text"] or "No text.",
                    "tool_calls": response["tool_calls"],
                },
                *(
                    {
                        "role": "tool",
                        "tool_call_id": call["id"],
                        "content": "The action did not help.",
                    }
                    for call in response["tool_calls"]
                ),
            ]
            state[HISTORY] = list(state["chat_history"])
            if retries.get("retry_prompt_injection") == "yes":
                text = f"Attempt {state['curr_retries'] + 1}: the last action was wrong. Look again and choose another."
                state["current_user_text"] = text
        return state


class FetchNextActionPostProcessor(NodePostProcessorWithState):
    """Keeps what the model said and called, attempt by attempt."""

    def apply(self, resp: SygraMessage, state: SygraState) -> SygraState:
        attempt = {"text": resp.message.content, "tool_calls": state.get("tool_calls") or []}
        state["model_responses"] = {
            **(state.get("model_responses") or {}),
            f"retry_{state['curr_retries']}": attempt,
        }
        return state


class InlineEvaluationLambda(LambdaFunction):
    """Judges the attempt: the tool by its name, the step by what the tool was called with.

    A step can only be right if the tool is: an attempt without a call, or with another tool, is a wrong one.
    """

    @staticmethod
    def apply(lambda_node_dict: dict[str, Any], state: SygraState) -> SygraState:
        retry = f"retry_{state['curr_retries']}"
        calls = state["model_responses"][retry]["tool_calls"]
        tool, arguments = called(calls) if calls else ("none", {})
        golden_tool = state["golden_response"]["tool"]
        golden = {**state["golden_response"]["properties"], "tool": golden_tool}
        predicted = {**arguments, "tool": tool}
        tool_match = ExactMatchMetric(key="tool").evaluate(
            [{"tool": golden_tool}], [{"tool": tool}]
        )[0]
        step_match = tool_match
        if tool_match.correct and tool in STEP_METRICS:
            step_match = STEP_METRICS[tool]().evaluate([golden], [predicted])[0]
        state["tool_match"] = {**(state.get("tool_match") or {}), retry: tool_match.to_dict()}
        state["step_match"] = {**(state.get("step_match") or {}), retry: step_match.to_dict()}
        return state


class RetryFlow(LambdaFunction):
    """Goes on until all attempts are made, right or wrong."""

    @staticmethod
    def apply(lambda_node_dict: dict[str, Any], state: SygraState) -> SygraState:
        state["curr_retries"] += 1
        state["should_continue"] = state["curr_retries"] < state["max_retries"]
        return state


class ShouldContinueCondition(EdgeCondition):
    @staticmethod
    def apply(state: SygraState) -> str:
        logger.debug("%s: %d attempts", state["id"], state["curr_retries"])
        return "fetch_next_action_tools" if state["should_continue"] else constants.SYGRA_END


class Flatten(GraphPostProcessor):
    """One row for each attempt."""

    def process(self, data: list[dict[str, Any]], metadata: dict[str, Any]) -> list[dict[str, Any]]:
        rows = []
        for record in data:
            if record.get("error"):
                rows.append(
                    {
                        "id": record["id"],
                        "error": record["error"],
                        "tool_match": None,
                        "step_match": None,
                    }
                )
                continue
            base = {
                key: record[key]
                for key in ("id", "mission_id", "turn", "mission", "golden_response")
            }
            rows += [
                {
                    **base,
                    "retry_id": retry,
                    "model_response": response,
                    "tool_match": record["tool_match"].get(retry),
                    "step_match": record["step_match"].get(retry),
                }
                for retry, response in record["model_responses"].items()
            ]
        return rows
