import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import AssayError, CallError, LaneError, PermanentError, TransientError, UserError
from assay.interfaces import Completion, Request
from assay.models._chat_answer import read_answer
from assay.models._failures import excerpt, retry_after
from assay.models._secrets import Secrets
from assay.models.openai import OpenAIModel, openai
from assay.registry import check_params, model

KEY = "sk-secret-0123456789"
Ask = Callable[..., Completion]


def failing(ask: Ask, url: str, name: str, **options: Any) -> AssayError:
    with pytest.raises(CallError) as caught:
        ask(openai("m", endpoint=url, **options), name)
    return caught.value


def test_chat_and_completions(honest: str, ask: Ask) -> None:
    for api in ("chat", "completions"):
        answer = ask(openai("m", endpoint=honest, api=api), "What is 17 * 23?")
        assert (answer.text, answer.finish_reason, answer.served_model) == ("391", "stop", "m")
        assert answer.served_fingerprint == "assay-demo-1"
        assert answer.prompt_tokens == 4
        assert answer.total_tokens == 5
        assert answer.response_id
        assert not answer.refused


def sent(ask: Ask, url: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The request as the server got it."""
    options = {key: more.pop(key) for key in ("model_name", "extra_body") if key in more}
    return json.loads(ask(openai("m", endpoint=url, **options), "echo", params=params, **more).text)


def test_parameters_are_sent_as_given(strange: str, ask: Ask) -> None:
    params = {
        "temperature": 0.5,
        "num_samples": 3,
        "think": True,
        "max_tokens": 0,
        "stop": ["\n"],
        "top_p": None,
    }
    got = sent(ask, strange, params, model_name="api-name", extra_body={"top_k": 5})
    assert got == {
        "model": "api-name",
        "messages": [{"role": "user", "content": "echo"}],
        "temperature": 0.5,
        "stop": ["\n"],
        "top_k": 5,
    }


def test_seed_is_sent_plus_the_sample_index(strange: str, ask: Ask) -> None:
    assert sent(ask, strange, {"seed": 40}, sample_index=2, seed=999)["seed"] == 42
    assert "seed" not in sent(ask, strange, {}, sample_index=2, seed=999)


def test_changed_parameters_change_the_body() -> None:
    model = openai("m")
    assert isinstance(model, OpenAIModel)
    params: dict[str, Any] = {"temperature": 0.5}
    first = model.body(Request([], params))
    params["temperature"] = 0.7
    assert json.loads(model.body(Request([], params)))["temperature"] == 0.7
    assert json.loads(first)["temperature"] == 0.5


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("html", "not JSON: <!DOCTYPE html> <html> [31m<body>"),
        ("empty", "it is empty"),
        ("array", "no choices: [1, 2]"),
        ("number", "no choices: 7"),
        ("half", 'not JSON: {"choices": [{"message"'),
        ("not-utf8", "not JSON"),
        ("no-choices", "no choices"),
        ("choices-null", "no choices"),
        ("choices-text", "no choices"),
        ("error-with-200", "no choices: upstream failed for [secret]"),
    ],
)
def test_answers_without_a_choice_are_worth_another_try(
    strange: str, ask: Ask, name: str, part: str
) -> None:
    error = failing(ask, strange, name, api_key=KEY)
    assert isinstance(error, TransientError)
    assert not error.unreachable
    assert part in error.what
    assert len(error.what) < 260
    assert error.what.isprintable()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("null-content", ""),
        ("no-message", ""),
        ("parts", "one\ntwo"),
        ("number-content", "42"),
        ("id-number", "ok"),
        ("refusal", "I will not."),
        ("filtered", ""),
        ("tools", ""),
        ("reasoning", "4"),
        ("think-text", "<think>two and two</think>4"),
        ("400-filter", ""),
    ],
)
def test_odd_answers_have_a_defined_text(strange: str, ask: Ask, name: str, text: str) -> None:
    answer = ask(openai("m", endpoint=strange), name)
    assert answer.text == text
    assert answer.refused == (name in ("refusal", "filtered", "400-filter"))
    assert bool(answer.tool_calls) == (name == "tools")


def test_reasoning_is_kept_apart(strange: str, ask: Ask) -> None:
    for name in ("reasoning", "reasoning-2"):
        assert ask(openai("m", endpoint=strange), name).reasoning == "two and two"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("usage-strings", (None, None, None)),
        ("usage-negative", (None, None, 3)),
        ("usage-floats", (None, 2, None)),
        ("usage-list", (None, None, None)),
    ],
)
def test_wrong_usage_is_unknown_usage(
    strange: str, ask: Ask, name: str, counts: tuple[int | None, ...]
) -> None:
    answer = ask(openai("m", endpoint=strange), name)
    assert answer.text == "ok"
    assert (answer.prompt_tokens, answer.completion_tokens, answer.total_tokens) == counts


@pytest.mark.parametrize(
    ("name", "overload", "wait"),
    [
        ("429", True, 7.0),
        ("429-ms", True, 1.5),
        ("429-date", True, 0.0),
        ("429-nonsense", True, None),
        ("503", True, 3.0),
        ("529", True, None),
        ("408", False, None),
        ("500", False, None),
        ("502-html", False, None),
    ],
)
def test_statuses_worth_another_try(
    strange: str, ask: Ask, name: str, overload: bool, wait: float | None
) -> None:
    error = failing(ask, strange, name)
    assert isinstance(error, TransientError)
    assert (error.overload, error.retry_after, error.unreachable) == (overload, wait, False)
    assert name[:3] in error.what
    assert error.what.isprintable()


@pytest.mark.parametrize(
    ("name", "kind", "part"),
    [
        ("400", PermanentError, "too long for the model (HTTP 400: context length exceeded)"),
        ("400-code", PermanentError, "too long for the model"),
        ("500-llama", PermanentError, "too long for the model"),
        ("422-detail", PermanentError, "temperature must be a number"),
        ("401", LaneError, "OPENAI_API_KEY"),
        ("403", LaneError, "OPENAI_API_KEY"),
        ("404", LaneError, "does not know the model 'm' (HTTP 404: no such model)"),
        ("404", LaneError, "valid: assay-demo"),
        ("400-model", LaneError, "valid: assay-demo"),
        ("429-quota", LaneError, "no credit"),
        ("301", LaneError, "https://elsewhere.example/v1"),
    ],
)
def test_statuses_that_stay(
    strange: str, ask: Ask, name: str, kind: type[CallError], part: str
) -> None:
    error = failing(ask, strange, name)
    assert type(error) is kind
    assert part in str(error)


def test_the_key_never_shows(strange: str, ask: Ask) -> None:
    error = failing(ask, strange, "401", api_key=f" {KEY}\n", headers={"X-Org": "org-secret-1"})
    assert KEY not in str(error) + repr(error)
    assert "[secret]" in str(error)
    model = openai("m", endpoint=f"http://user:{KEY}@127.0.0.1:9/v1", api_key=KEY)
    with pytest.raises(CallError) as caught:
        ask(model, "x")
    assert KEY not in str(caught.value) + repr(caught.value) + json.dumps(dict(model.identity))
    with pytest.raises(LaneError) as caught:
        ask(openai("m", api_key=f"{KEY}\nX: y"), "x")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "masked"),
    [(KEY, True), (f":{KEY}", True), (f"user:{KEY}", True), ("someone:password", False)],
)
def test_an_answer_repeats_no_user_of_an_address_but_words_stay(
    strange: str, ask: Ask, user: str, masked: bool
) -> None:
    url = strange.replace("://", f"://{user}@")
    answer = ask(
        openai("m", endpoint=url, extra_body={"note": f"the password of someone is {KEY}"}), "echo"
    )
    assert (KEY not in answer.text, answer.masked) == (masked, masked)
    assert "the password of someone is" in answer.text


def test_a_placeholder_is_not_masked() -> None:
    assert Secrets([KEY])
    assert not Secrets(["Bearer not-needed", "DUMMY", "dummy_api_key_for_local_model"])


def test_an_empty_key_sends_no_header() -> None:
    seen: list[bytes] = []

    async def go(key: str | None) -> None:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append((await reader.readuntil(b"\r\n\r\n")).lower())
            writer.close()

        server = await asyncio.start_server(one, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = openai("m", endpoint=f"http://127.0.0.1:{port}", api_key=key)
        with pytest.raises(TransientError):
            await model.complete(Request([{"role": "user", "content": "x"}]))
        await model.close()
        server.close()

    for key in (None, "", "  ", KEY):
        asyncio.run(go(key))
    assert [b"authorization" in head for head in seen] == [False, False, False, True]
    assert b"authorization: bearer " + KEY.encode() in seen[3]


def test_the_environment_key_goes_only_to_its_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    own, other = (
        openai("m", endpoint="https://api.openai.com/v1"),
        openai("m", endpoint="https://example.com/v1"),
    )
    assert isinstance(own, OpenAIModel)
    assert isinstance(other, OpenAIModel)
    assert own._transport._headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in other._transport._headers


def test_identity_is_what_could_change_an_answer() -> None:
    one = openai("m", endpoint="http://a/v1", api_key=KEY, headers={"X": "y"})
    assert one.identity == openai("m", endpoint="http://b:8/v1").identity
    assert one.identity == {
        "type": "openai",
        "name": "m",
        "model_name": "m",
        "api": "chat",
        "revision": None,
        "extra_body": {},
    }
    assert openai("m", revision="2").identity != one.identity


def test_extra_body_cannot_replace_the_messages() -> None:
    with pytest.raises(UserError, match="extra_body"):
        openai("m", extra_body={"messages": []})


def test_the_registry_finds_the_types() -> None:
    assert not any(name.startswith("_") for name in model.names())
    assert {"demo", "openai", "python", "replay"} <= set(model.names())
    assert model.get("openai") is openai
    assert check_params(openai, {"api": "chat"}) == {"api": "chat"}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    ["choices", "message", "content", "usage", "prompt_tokens", "refusal", "tool_calls", "id"]
)


@given(st.dictionaries(fields, json_values), st.dictionaries(fields, json_values))
def test_any_json_is_an_answer_or_a_transient_error(
    outer: dict[str, Any], inner: dict[str, Any]
) -> None:
    for content in (outer, {**outer, "choices": [{**inner, "message": inner}]}):
        with contextlib.suppress(TransientError):
            assert isinstance(read_answer(json.dumps(content).encode()), Completion)


@given(st.binary(max_size=300))
def test_an_excerpt_is_one_printable_line(body: bytes) -> None:
    assert excerpt(body).isprintable()
    assert len(excerpt(body)) <= 200


@given(st.text(max_size=30))
def test_any_retry_after_is_a_sane_wait_or_none(value: str) -> None:
    wait = retry_after({"retry-after": value})
    assert wait is None or 0 <= wait < 1e9
