"""Scorers that misbehave, each in its own way; user files as a config names them."""

import asyncio
import math
import sys
import time
from typing import Any


def raises(item: Any, response: Any) -> Any:
    raise RuntimeError("the scorer broke\x1b[31m")


def exits(item: Any, response: Any) -> Any:
    sys.exit(3)


def hangs(item: Any, response: Any) -> Any:
    time.sleep(3600)


async def hangs_async(item: Any, response: Any) -> Any:
    await asyncio.sleep(3600)


def returns_text(item: Any, response: Any) -> Any:
    return "very good"


def returns_object(item: Any, response: Any) -> Any:
    return object()


def returns_nan(item: Any, response: Any) -> Any:
    return math.nan


def returns_infinity(item: Any, response: Any) -> Any:
    return {"score": math.inf}


def returns_none(item: Any, response: Any) -> Any:
    return None


def returns_empty(item: Any, response: Any) -> Any:
    return {}


def returns_wrong_types(item: Any, response: Any) -> Any:
    return {"passed": "yes", "score": "1"}


def labels_no_list(item: Any, response: Any) -> Any:
    return {"labels": {"passed": True}}


def one_label_is_bad(response: Any, ground_truth: Any) -> Any:
    return {"labels": [{"label": "a", "result": {"passed": True}}, {"label": "b", "result": 3}]}


def no_json_value(item: Any, response: Any) -> Any:
    return {"passed": True, "why": object()}


def huge_number(item: Any, response: Any) -> Any:
    return {"passed": True, "why": 10**400}


def lone_surrogate(item: Any, response: Any) -> Any:
    return {"passed": True, "why": "\ud800"}


def no_labels(response: Any, ground_truth: Any) -> Any:
    return {"labels": []}


def good(item: Any, response: Any) -> Any:
    return {"passed": True, "score": 0.5, "ratio": math.nan}
