"""One small evaluation for every other tool: twelve questions of our own, and a server that answers them the same way
every time, with planned faults. Standard library only: the tools' own Pythons run it, to make the logs in
`tests/formats/<tool>/logs`.

    python tests/formats/peers.py 8123        serves until it is ended
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUESTIONS = [
    {
        "id": f"sum-{first}-{second}",
        "question": f"What is {first} + {second}?",
        "answer": str(first + second),
    }
    for first, second in [
        (2, 3),
        (7, 8),
        (12, 30),
        (9, 9),
        (14, 6),
        (21, 21),
        (5, 50),
        (33, 9),
        (40, 2),
        (8, 13),
    ]
] + [
    {"id": "capital-france", "question": "What is the capital of France?", "answer": "Paris"},
    {"id": "capital-peru", "question": "What is the capital of Peru?", "answer": "Lima"},
]
# by model: answered wrongly
WRONG = {"large": {"9 + 9"}, "tiny": {"9 + 9", "12 + 30", "21 + 21", "Peru"}}
# refusal, length, HTTP 400, HTTP 500
REFUSED, CUT_OFF, REJECTED, BROKEN = ("14 + 6", "5 + 50", "33 + 9", "40 + 2")


def answer(model: str, text: str) -> str:
    """What a model says to a text that holds the whole question."""
    entry = next((row for row in reversed(QUESTIONS) if row["question"][8:-1] in text), None)
    if entry is None:
        return "I do not know."
    wrong = any(part in text for part in WRONG.get(model, ()))
    return "The answer is 0." if wrong else f"The answer is {entry['answer']}."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = body.get("messages") or [{"content": body.get("prompt")}]
        text = json.dumps(messages[-1]["content"], ensure_ascii=False)
        if self.faults and REJECTED in text:
            error = {
                "message": "the prompt was rejected",
                "type": "invalid_request_error",
                "code": "invalid_prompt",
            }
            self._send(400, {"error": error})
        elif self.faults and BROKEN in text:
            self._send(
                500, {"error": {"message": "planned failure", "type": "server_error", "code": None}}
            )
        else:
            self._send(200, self._completion(body, text))

    def do_GET(self) -> None:
        self._send(
            200, {"object": "list", "data": [{"id": name, "object": "model"} for name in WRONG]}
        )

    def _completion(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        said, reason, refusal = answer(body["model"], text), "stop", None
        if self.faults and REFUSED in text:
            said, refusal = "", "I cannot help with that."
        if self.faults and CUT_OFF in text:
            said, reason = "", "length"
        message = {"role": "assistant", "content": said or None, "refusal": refusal}
        usage = {"prompt_tokens": len(text.split()), "completion_tokens": len(said.split())}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "finish_reason": reason, "logprobs": None}
        choice |= {"message": message} if "messages" in body else {"text": said}
        kind = "chat.completion" if "messages" in body else "text_completion"
        head = {
            "id": "answer-1",
            "object": kind,
            "created": 1_760_000_000,
            "model": f"{body['model']}-2026",
        }
        return {**head, "choices": [choice], "usage": usage}

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve(port: int = 0, *, faults: bool = True) -> ThreadingHTTPServer:
    """A server on loopback, answering in threads; its address is `server_address`."""
    handler = type("Planned", (Handler,), {"faults": faults})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    serve(int(sys.argv[1])) and threading.Event().wait()
