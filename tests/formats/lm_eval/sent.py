"""Requests as they are compared: by the hash of what they say, whatever the order of their keys."""

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

EOS = "</s>"  # the end of text among the stops depends on a tokenizer: it is left out


def sent(requests: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Hashes of generations, and of texts whose likelihood is asked."""
    generations: set[str] = set()
    texts: set[str] = set()
    for body in requests:
        if body.get("echo"):
            texts |= {body["prompt"]} if isinstance(body["prompt"], str) else {*body["prompt"]}
            continue
        stops = [stop for stop in body["stop"] if stop != EOS]
        own = {key: value for key, value in body.items() if key != "model"}
        generations.add(
            json.dumps(
                {**own, "stop": stops, "temperature": float(body["temperature"])}, sort_keys=True
            )
        )
    return {"generations": hashes(generations), "texts": hashes(texts)}


def hashes(texts: Iterable[str]) -> list[str]:
    return sorted(sha256(text.encode()).hexdigest()[:32] for text in texts)
