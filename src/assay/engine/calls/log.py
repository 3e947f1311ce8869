"""The log of paid calls inside tasks and scorers: a call that is in it is never made again.

Each owner (a task's or a scorer's row) has its own calls: equal prompts of two owners stay two samples.
"""

import msgspec
import numpy as np

from assay.sdk import Completion, JsonObject, Log, Message, short
from assay.store.table.columns import Table
from assay.store.table.join import Lookup


class PaidCall(msgspec.Struct, kw_only=True):
    """A row of `calls.jsonl`."""

    key: str
    item_id: str = ""
    owner: str = ""
    step: str = ""
    ordinal: int = 0
    model_name: str = ""
    messages: list[Message] = []
    params: JsonObject = {}
    completion: Completion = msgspec.field(default_factory=Completion)
    seconds: float = 0.0
    timestamp: float = 0.0


class CallLog:
    """Opened once for a step; holds 16 bytes for each call that an earlier run made."""

    def __init__(self, log: Log) -> None:
        self._log = log
        calls = Table([log], {"key": "key"})  # a call of which the line is torn is made again
        self._places = Lookup(calls["key"], calls.position)
        self._decode = msgspec.json.Decoder(PaidCall).decode
        self._encode = msgspec.json.Encoder().encode

    def find(self, key: str) -> Completion | None:
        begin, end = self._places.ranges(np.uint64(short(key)))
        for position in self._places.order[begin:end].tolist():
            try:
                call = self._decode(self._log.read(position))
            except msgspec.DecodeError:
                return None
            if call.key == key:
                return call.completion
        return None

    def add(self, call: PaidCall) -> None:
        self._log.append(self._encode(call) + b"\n")
