"""Gemini, Bedrock and OpenAI's Responses API, round trip: what is sent, and what becomes of each kind of answer."""

import asyncio
import json
import shutil
import subprocess
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
from hypothesis import given, strategies as st

from assay.errors import CallError, LaneError, PermanentError, TransientError, UserError
from assay.interfaces import Completion, Request
from assay.models._failures import model_names
from assay.models._google_token import private_numbers, signature
from assay.models._responses import read_response
from assay.models.azure import azure
from assay.models.bedrock import bedrock, read_answer as read_bedrock
from assay.models.gemini import gemini, read_answer as read_gemini
from assay.models.openai import openai
from assay.models.vertex import vertex
from tests.models.fake_providers import Asked, Fake, faked

KEY = "key-0123456789-abcdef"
PNG = "data:image/png;base64,AAAA"
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds.",
        "parameters": {"type": "object", "required": ["q"]},
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Hi"},
            {"type": "image_url", "image_url": {"url": PNG}},
        ],
    },
    {"role": "assistant", "content": "Well", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
]
PARAMS = {
    "max_tokens": 9,
    "temperature": 0.5,
    "stop": "\n",
    "seed": 4,
    "num_samples": 3,
    "top_p": None,
    "tools": [SEARCH],
    "tool_choice": "required",
}
MAKE: dict[str, Callable[..., Any]] = {
    "gemini": lambda url, **more: gemini("m", endpoint=url, api_key=KEY, **more),
    "bedrock": lambda url, **more: bedrock(
        "m", endpoint=url, region="eu-west-1", api_key=KEY, **more
    ),
    "responses": lambda url, **more: openai(
        "m", endpoint=url, api="responses", api_key=KEY, **more
    ),
}
ENDS = {"gemini": ":generateContent", "bedrock": "/converse", "responses": "/responses"}


def exchange(
    kind: str, answer: Any, messages: list[Any] | None = None, params: Any = None, **more: Any
) -> tuple[Completion, Asked]:
    """The completion that an answer becomes, and what the server was asked."""
    fake = Fake({ENDS[kind]: answer})

    async def ask(url: str) -> Completion:
        made = MAKE[kind](url, **more)
        try:
            asked = messages or [{"role": "user", "content": "Hi"}]
            return await made.complete(Request(asked, params or {}, sample_index=2))
        finally:
            await made.close()

    with faked(fake) as url:
        completion = asyncio.run(ask(url))
    return completion, fake.asked[0]


# ---- what is sent


def test_gemini_is_sent_a_conversation() -> None:
    _, asked = exchange(
        "gemini", {"candidates": [{}]}, CHAT, PARAMS, extra_body={"safetySettings": []}
    )
    declared = {
        "name": "search",
        "description": "Finds.",
        "parametersJsonSchema": {"type": "object", "required": ["q"]},
    }
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    used = {"functionCall": {"name": "search", "args": {"q": "x"}}}
    result = {"functionResponse": {"name": "search", "response": {"result": "found"}}}
    assert asked.path == "/v1beta/models/m:generateContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.json == {
        "generationConfig": {
            "maxOutputTokens": 9,
            "temperature": 0.5,
            "stopSequences": ["\n"],
            "seed": 6,
        },
        "tools": [{"functionDeclarations": [declared]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "safetySettings": [],
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}, image]},
            {"role": "model", "parts": [{"text": "Well"}, used]},
            {"role": "user", "parts": [result]},
        ],
    }


def test_bedrock_is_sent_a_conversation() -> None:
    _, asked = exchange(
        "bedrock", CONVERSED, CHAT, {**PARAMS, "top_k": 5}, extra_body={"guardrailConfig": {}}
    )
    schema = {"json": {"type": "object", "required": ["q"]}}
    used = {"toolUse": {"toolUseId": "c1", "name": "search", "input": {"q": "x"}}}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"text": "found"}]}}
    assert asked.path == "/model/m/converse"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.json == {
        "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "stopSequences": ["\n"]},
        "additionalModelRequestFields": {"top_k": 5},
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "search", "description": "Finds.", "inputSchema": schema}}
            ],
            "toolChoice": {"any": {}},
        },
        "system": [{"text": "Be brief."}],
        "guardrailConfig": {},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "Hi"},
                    {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
                ],
            },
            {"role": "assistant", "content": [{"text": "Well"}, used]},
            {"role": "user", "content": [result]},
        ],
    }


def test_responses_are_sent_a_conversation() -> None:
    schema = {"name": "s", "schema": {"type": "object"}}
    form = {"type": "json_schema", "json_schema": schema}
    choice = {"type": "function", "function": {"name": "search"}}
    more = {
        "response_format": form,
        "reasoning_effort": "low",
        "tool_choice": choice,
        "stop": None,
        "logprobs": True,
    }
    _, asked = exchange("responses", {"output": []}, CHAT, {**PARAMS, **more, "top_logprobs": 2})
    assert asked.path == "/v1/responses"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.json == {
        "model": "m",
        "store": False,
        "max_output_tokens": 9,
        "temperature": 0.5,
        "tools": [{"type": "function", **SEARCH["function"]}],
        "tool_choice": {"type": "function", "name": "search"},
        "text": {"format": {"type": "json_schema", **schema}},
        "reasoning": {"effort": "low"},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        "input": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Hi"},
                    {"type": "input_image", "image_url": PNG},
                ],
            },
            {"role": "assistant", "content": "Well"},
            {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q":"x"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
        ],
    }


@pytest.mark.parametrize(
    ("model_name", "params", "config"),
    [
        (
            "gemini-2.5-flash",
            {"reasoning_effort": "low"},
            {"thinkingConfig": {"thinkingBudget": 1024}},
        ),
        ("gemini-3-pro", {"reasoning_effort": "low"}, {"thinkingConfig": {"thinkingLevel": "low"}}),
        ("g", {"logprobs": True, "top_logprobs": 3}, {"responseLogprobs": True, "logprobs": 3}),
        ("g", {"max_tokens": 0}, None),
        (
            "g",
            {"response_format": {"type": "json_object"}},
            {"responseMimeType": "application/json"},
        ),
        (
            "g",
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "object"}},
                }
            },
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
        ),
    ],
)
def test_parameters_of_gemini(model_name: str, params: Any, config: Any) -> None:
    _, asked = exchange("gemini", {"candidates": [{}]}, params=params, model_name=model_name)
    assert asked.json.get("generationConfig") == config


def test_media_of_gemini_and_bedrock() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    pdf = {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"},
    }
    _, asked = exchange("gemini", {"candidates": [{}]}, [{"role": "user", "content": [audio, pdf]}])
    assert asked.json["contents"][0]["parts"] == [
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "BBBB"}},
    ]
    _, asked = exchange("bedrock", CONVERSED, [{"role": "user", "content": [pdf]}])
    document = {"format": "pdf", "name": "document", "source": {"bytes": "BBBB"}}
    assert asked.json["messages"][0]["content"] == [{"document": document}]
    image = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
    for part, problem in ((image, "no media by address"), (audio, "no audio")):
        with pytest.raises(PermanentError, match=problem):
            asyncio.run(
                bedrock("m", region="x", api_key=KEY).complete(
                    Request([{"role": "user", "content": [part]}])
                )
            )


def test_a_broken_call_of_a_tool_can_be_talked_about() -> None:
    broken = {**CALL, "function": {"name": "search", "arguments": "{oh"}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [broken]}]
    _, asked = exchange("gemini", {"candidates": [{}]}, messages)
    assert asked.json["contents"][1]["parts"] == [
        {"functionCall": {"name": "search", "args": {"arguments": "{oh"}}}
    ]
    _, asked = exchange("bedrock", CONVERSED, messages)
    assert asked.json["messages"][1]["content"][0]["toolUse"]["input"] == {"arguments": "{oh"}


# ---- what comes back

CONVERSED = {"output": {"message": {"content": [{"text": "2"}]}}, "stopReason": "end_turn"}
USAGE = {
    "gemini": {
        "promptTokenCount": 9,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 16,
    },
    "bedrock": {"inputTokens": 4, "cacheReadInputTokens": 5, "outputTokens": 7, "totalTokens": 16},
    "responses": {"input_tokens": 9, "output_tokens": 7, "total_tokens": 16},
}


def candidate(*parts: Any, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": parts}, "finishReason": finish, **more}]}


def conversed(*blocks: Any, stop: str = "end_turn") -> dict[str, Any]:
    return {"output": {"message": {"content": blocks}}, "stopReason": stop}


def responded(*items: Any, **more: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "m-1", "output": items, "status": "completed", **more}


def said(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "content": parts}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (
            "gemini",
            {
                **candidate({"text": "hm", "thought": True}, {"text": "4"}),
                "usageMetadata": USAGE["gemini"],
            },
        ),
        (
            "bedrock",
            {
                **conversed({"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "4"}),
                "usage": USAGE["bedrock"],
            },
        ),
        (
            "responses",
            responded(
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                said({"type": "output_text", "text": "4"}),
                usage=USAGE["responses"],
            ),
        ),
    ],
)
def test_an_answer_with_its_thoughts_and_tokens(kind: str, answer: Any) -> None:
    got, _ = exchange(kind, answer)
    assert (got.text, got.reasoning, got.finish_reason, got.refused) == ("4", "hm", "stop", False)
    assert (got.prompt_tokens, got.completion_tokens, got.total_tokens) == (9, 7, 16)


@pytest.mark.parametrize(
    ("kind", "answer", "id"),
    [
        ("gemini", candidate({"functionCall": {"name": "search", "args": {"q": "x"}}}), "call_0"),
        (
            "bedrock",
            conversed(
                {"toolUse": {"toolUseId": "c1", "name": "search", "input": {"q": "x"}}},
                stop="tool_use",
            ),
            "c1",
        ),
        (
            "responses",
            responded(
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "search",
                    "arguments": '{"q":"x"}',
                }
            ),
            "c1",
        ),
    ],
)
def test_calls_of_tools(kind: str, answer: Any, id: str) -> None:
    got, _ = exchange(kind, answer)
    assert got.tool_calls == [{**CALL, "id": id}]
    assert got.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("kind", "answer", "finish", "refused"),
    [
        ("gemini", candidate({"text": "x"}, finish="MAX_TOKENS"), "length", False),
        ("gemini", candidate(finish="SAFETY"), "content_filter", True),
        (
            "gemini",
            {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
            "content_filter",
            True,
        ),
        ("gemini", candidate(finish="MALFORMED_FUNCTION_CALL"), "MALFORMED_FUNCTION_CALL", False),
        ("bedrock", conversed({"text": "x"}, stop="max_tokens"), "length", False),
        ("bedrock", conversed({"text": "no"}, stop="guardrail_intervened"), "content_filter", True),
        ("bedrock", conversed({"text": "no"}, stop="content_filtered"), "content_filter", True),
        ("responses", responded(said({"type": "refusal", "refusal": "no"})), "stop", True),
        (
            "responses",
            responded(incomplete_details={"reason": "max_output_tokens"}),
            "length",
            False,
        ),
        (
            "responses",
            responded(incomplete_details={"reason": "content_filter"}),
            "content_filter",
            True,
        ),
    ],
)
def test_why_an_answer_ended(kind: str, answer: Any, finish: str, refused: bool) -> None:
    got, _ = exchange(kind, answer)
    assert (got.finish_reason, got.refused) == (finish, refused)


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((429, {"error": {"message": "slow down"}}), TransientError),
        ((503, {"message": "overloaded"}), TransientError),
        ((403, {"message": f"not with {KEY}"}), LaneError),
        (
            (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}),
            LaneError,
        ),
        ((400, {"message": "The provided model identifier is invalid."}), PermanentError),
        ((400, {"error": {"message": "oh"}}), PermanentError),
        ((404, {"error": {"message": "no such model"}}), LaneError),
        ({"error": {"message": f"odd {KEY}"}}, TransientError),
        ([], TransientError),
    ],
)
def test_failures(kind: str, answer: Any, error: type[CallError]) -> None:
    with pytest.raises(CallError) as caught:
        exchange(kind, answer)
    assert type(caught.value) is error
    assert KEY not in str(caught.value)


def test_gemini_says_how_long_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    with pytest.raises(TransientError) as caught:
        exchange("gemini", (429, {"error": {"code": 429, "message": "quota", "details": details}}))
    assert (caught.value.retry_after, caught.value.overload) == (34.5, True)


def test_a_response_that_failed() -> None:
    with pytest.raises(TransientError, match="gave up: the model crashed"):
        exchange("responses", responded(status="failed", error={"message": "the model crashed"}))


def test_gemini_wants_its_signatures_back() -> None:
    signed = {"functionCall": {"name": "search", "args": {}}, "thoughtSignature": "c2ln"}
    got, _ = exchange("gemini", candidate(signed))
    _, asked = exchange(
        "gemini", candidate(), [{"role": "assistant", "tool_calls": got.tool_calls}]
    )
    assert asked.json["contents"][0]["parts"] == [signed]


def test_logprobs_have_one_shape() -> None:
    result = {
        "chosenCandidates": [
            {"token": "a", "logProbability": -0.5},
            {"token": "b", "logProbability": -1.0},
        ],
        "topCandidates": [
            {
                "candidates": [
                    {"token": "a", "logProbability": -0.5},
                    {"token": "c", "logProbability": -2},
                ]
            }
        ],
    }
    got, _ = exchange("gemini", candidate({"text": "ab"}, logprobsResult=result))
    tops = [{"token": "a", "logprob": -0.5}, {"token": "c", "logprob": -2}]
    assert got.logprobs == [
        {"token": "a", "logprob": -0.5, "top_logprobs": tops},
        {"token": "b", "logprob": -1.0, "top_logprobs": []},
    ]
    entry = {"token": "a", "logprob": -0.5, "top_logprobs": []}
    got, _ = exchange(
        "responses", responded(said({"type": "output_text", "text": "a", "logprobs": [entry]}))
    )
    assert got.logprobs == [entry]


def test_an_answer_that_repeats_the_key() -> None:
    for kind, answer in {
        "gemini": candidate({"text": f"it is {KEY}"}),
        "bedrock": conversed({"text": f"it is {KEY}"}),
        "responses": responded(said({"type": "output_text", "text": f"it is {KEY}"})),
    }.items():
        got, _ = exchange(kind, answer)
        assert (got.text, got.masked) == ("it is [secret]", True)


KEYS = (
    "candidates content parts text thought functionCall name args id finishReason logprobsResult chosenCandidates "
    "topCandidates promptFeedback blockReason usageMetadata promptTokenCount output message toolUse input usage "
    "reasoningContent reasoningText stopReason inputTokens type status call_id summary logprobs incomplete_details data"
)
WORDS = st.sampled_from(
    [
        "message",
        "function_call",
        "reasoning",
        "output_text",
        "refusal",
        "completed",
        "STOP",
        "tool_use",
        "x",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5)
    ),
    max_leaves=30,
)
SHAPES = st.one_of(
    TREES,
    TREES.map(
        lambda tree: {"candidates": [{"content": {"parts": [tree]}, "logprobsResult": tree}]}
    ),
    TREES.map(lambda tree: {"output": {"message": {"content": [tree]}}}),
    TREES.map(lambda tree: {"output": [{"type": "message", "content": [tree]}, tree]}),
    TREES.map(lambda tree: {"data": [{"id": tree}]}),
)


@given(SHAPES)
def test_whatever_a_server_sends_is_an_answer_or_an_error(sent: Any) -> None:
    body = json.dumps(sent).encode()
    for read in (read_gemini, read_bedrock, read_response, model_names):
        try:
            msgspec.json.encode(read(body))
        except TransientError:
            pass


def test_a_secret_that_signs_is_masked_too() -> None:
    secret = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
    fake = Fake({"/converse": conversed({"text": f"{secret} and gateway-0123456789"})})

    async def ask(url: str) -> Completion:
        made = bedrock(
            "m",
            endpoint=url,
            region="x",
            access_key_id="AKID",
            secret_access_key=secret,
            headers={"x-api-key": "gateway-0123456789"},
        )
        try:
            return await made.complete(Request([{"role": "user", "content": "Hi"}]))
        finally:
            await made.close()

    with faked(fake) as url:
        assert asyncio.run(ask(url)).text == "[secret] and [secret]"


def test_what_identifies_a_model() -> None:
    made = [MAKE[kind]("http://127.0.0.1:9").identity for kind in MAKE]
    made.append(azure("m", endpoint="x", api_key=KEY).identity)
    assert [identity["type"] for identity in made] == ["gemini", "bedrock", "openai", "azure"]
    assert KEY not in json.dumps([dict(identity) for identity in made])
    assert made[2]["api"] == "responses"


# ---- credentials


def test_bedrock_reads_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        "[profile lab]\nregion = eu-north-1\n[profile sso]\nsso_session = x\nregion = y\n"
    )
    (tmp_path / "credentials").write_text(
        "[lab]\naws_access_key_id = AKID\naws_secret_access_key = secret-0123\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    made: Any = bedrock("m", profile="lab")
    assert (
        made._transport.url == "https://bedrock-runtime.eu-north-1.amazonaws.com/model/m/converse"
    )
    headers = asyncio.run(made.own_headers("POST", made._transport.url, b""))
    assert "Credential=AKID/" in headers["authorization"]
    for profile, problem in {
        "sso": "the keys of the profile 'sso' come from a program",
        "other": "there is no profile 'other'",
        None: "AWS_ACCESS_KEY_ID is not set",
    }.items():
        with pytest.raises(UserError, match=problem):
            bedrock("m", profile=profile)
    with pytest.raises(UserError, match="AWS_REGION is not set"):
        bedrock("m", access_key_id="AKID", secret_access_key="secret-0123")


@pytest.fixture(scope="module")
def private_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a key")
    file = tmp_path_factory.mktemp("key") / "key.pem"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "RSA", "-out", str(file)],
        check=True,
        capture_output=True,
    )
    return file


def test_signatures_as_openssl_makes_them(private_key: Path) -> None:
    sign = ["openssl", "dgst", "-sha256", "-sign", str(private_key)]
    theirs = subprocess.run(sign, input=b"head.claims", check=True, capture_output=True).stdout
    assert signature(b"head.claims", private_key.read_text()) == theirs


@pytest.mark.parametrize("text", ["", "x", "-----BEGIN-----\nAAAA\n-----END-----", "MAA="])
def test_what_is_not_a_private_key(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        private_numbers(text)


def vertex_asked(file: Path, **answers: Any) -> tuple[Completion, list[Asked]]:
    """Two calls: the token is fetched once."""
    fake = Fake({"/token": {"access_token": "token-0123456789", "expires_in": 3600}, **answers})

    async def ask(url: str) -> Completion:
        content = json.loads(file.read_text())
        file.write_text(json.dumps({**content, "token_uri": f"{url}/token"}))
        made = vertex("m", endpoint=url, credentials=str(file), location="eu")
        try:
            await made.complete(Request([{"role": "user", "content": "Hi"}]))
            return await made.complete(Request([{"role": "user", "content": "Hi"}]))
        finally:
            await made.close()

    with faked(fake) as url:
        return asyncio.run(ask(url)), fake.asked


def test_vertex_with_a_service_account(tmp_path: Path, private_key: Path) -> None:
    file = tmp_path / "account.json"
    account = {
        "type": "service_account",
        "client_email": "me@x",
        "project_id": "p",
        "private_key_id": "k1",
    }
    file.write_text(json.dumps({**account, "private_key": private_key.read_text()}))
    got, asked = vertex_asked(
        file, **{":generateContent": candidate({"text": "it is token-0123456789"})}
    )
    assert [request.path.rpartition("/")[2] for request in asked] == [
        "token",
        "m:generateContent",
        "m:generateContent",
    ]
    assert asked[1].path == "/v1/projects/p/locations/eu/publishers/google/models/m:generateContent"
    assert asked[2].headers["authorization"] == "Bearer token-0123456789"
    assert got.text == "it is [secret]"
    form = parse_qs(asked[0].body.decode())
    head, claims, _ = form["assertion"][0].split(".")
    assert json.loads(urlsafe_b64decode(head + "==")) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    claimed = json.loads(urlsafe_b64decode(claims + "=="))
    assert claimed["exp"] - claimed["iat"] == 3600
    assert (claimed["iss"], claimed["aud"].endswith("/token")) == ("me@x", True)


def test_vertex_with_a_persons_login(tmp_path: Path) -> None:
    file = tmp_path / "login.json"
    login = {"client_id": "c", "client_secret": "s", "refresh_token": "r"}
    file.write_text(json.dumps({"type": "authorized_user", "quota_project_id": "q", **login}))
    _, asked = vertex_asked(file, **{":generateContent": candidate({"text": "2"})})
    form = {name: values[0] for name, values in parse_qs(asked[0].body.decode()).items()}
    assert form == {"grant_type": "refresh_token", **login}
    with pytest.raises(LaneError, match=r"no access token \(HTTP 400\): it expired"):
        vertex_asked(file, **{"/token": (400, {"error_description": "it expired"})})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "not a file of Google's credentials"),
        ('{"type": "external_account"}', "'external_account' cannot be used"),
        ('{"type": "service_account", "private_key": "x"}', "not an RSA key"),
        ('{"type": "authorized_user"}', "GOOGLE_CLOUD_PROJECT is not set"),
    ],
)
def test_credentials_that_cannot_be_used(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(content)
    with pytest.raises(UserError, match=problem):
        vertex("m", credentials=str(file))


def test_vertex_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match="needs credentials") as caught:
        vertex("m", project="p")
    assert "GOOGLE_OAUTH_ACCESS_TOKEN" in caught.value.fix
    with pytest.raises(UserError, match="cannot be read"):
        vertex("m", credentials=str(tmp_path / "none.json"))
