"""API keys: in no file, no output, no error, whatever a server does with them."""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from assay.server import Options, running
from fuzz.secrets import PARTED, WAYS, made_up
from tests.cli.shell import Ended, Shell

pytestmark = pytest.mark.slow
KEY = "sk-proj-4f9a77c1d2e8b05593aa61"
HEADER = "tenant-91b7e2f0c4d84"
ECHOES = {
    "bad": '{"status": 400, "body": {"error": {"message": f"{said} may not do this"}}}',
    "failing": '{"status": 500, "body": f"<html>Bearer {said}</html>"}',
    "page": '{"body": f"<html>{said}</html>"}',
    "no-choices": '{"choices": [], "error": {"message": f"bad key {said}"}}',
    "long": '{"status": 400, "body": {"error": {"message": "x" * 990 + key}}}',
    "long-page": '{"body": "<html>" + "x" * 184 + key}',
    "refused": '{"status": 401, "body": {"error": {"message": f"Incorrect API key provided: {said}"}}}',
    "redirecting": '{"status": 302, "headers": {"location": f"http://127.0.0.1:9/?key={said}"}, "body": ""}',
}
STOPPING = ("refused", "redirecting")


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that repeats what it was sent as its key, in a way that the model's name chooses."""
    hook = tmp_path_factory.mktemp("echo") / "echo.py"
    ways = "".join(f"        {name!r}: {answer},\n" for name, answer in ECHOES.items())
    hook.write_text(
        f"key, tenant = {KEY!r}, {HEADER!r}\nsaid = f'{{key}} of {{tenant}}'\n\n"
        f"def answer(request):\n    return {{\n{ways}    }}[request['model']]\n"
    )
    with running(Options(answers=f"{hook}:answer")) as address:
        yield address


def secret_shell(folder: Path, url: str, models: Iterable[str]) -> Shell:
    shell = Shell(folder, url, items=2)
    shell.environ |= {"MY_KEY": KEY, "MY_TENANT": HEADER}
    hidden = {"api_key": "${MY_KEY}", "headers": {"x-tenant": "${MY_TENANT}"}}
    shell.config |= {
        "models": [shell.model(name, **hidden) for name in models],
        "max_retries": 0,
        "logging": {"level": "DEBUG", "file": str(shell.folder / "assay.log")},
    }
    return shell


def assert_silent(shell: Shell, results: list[Ended], least: int = 8) -> None:
    """No piece of that length of any secret is anywhere."""
    texts = {f"output {number}": result.said for number, result in enumerate(results)}
    texts |= {name: content.decode("utf-8", "replace") for name, content in shell.files().items()}
    pieces = [
        secret[at : at + least] for secret in (KEY, HEADER) for at in range(len(secret) - least + 1)
    ]
    found = {(name, piece) for name, text in texts.items() for piece in pieces if piece in text}
    assert not found


@pytest.mark.parametrize(
    "models",
    [
        ["bad", "failing", "page", "no-choices"],
        ["long", "long-page"],
        *([name] for name in STOPPING),
    ],
    ids="-".join,
)
def test_a_key_that_the_server_repeats_is_never_seen(
    tmp_path: Path, echo: str, models: list[str]
) -> None:
    shell = secret_shell(tmp_path, echo, models)
    results = [
        shell.run(),
        shell.run("--json", "--debug", "--retry-errors"),
        shell.call("plan", "CONFIG"),
    ]
    assert [result.code for result in results] == [1, 1, 0]
    assert len(shell.lines()) == (0 if models[0] in STOPPING else 2 * len(models))
    assert_silent(shell, results)


def test_a_key_that_is_used_is_in_no_file(tmp_path: Path, url: str) -> None:
    shell = secret_shell(tmp_path, url, ["good"])
    shell.folder.joinpath(".env").write_text("OTHER_TOKEN=irrelevant\n")
    results = [shell.run("--debug"), shell.call("validate", "CONFIG"), shell.run("--json")]
    assert [result.code for result in results] == [0, 0, 0]
    assert_silent(shell, results)
    assert "${MY_KEY}" in (shell.out / "config.yaml").read_text()


@pytest.mark.parametrize(
    "place",
    [
        lambda shell: shell.config["models"][0].update(api_key=KEY),
        lambda shell: shell.config["models"][0].update(headers={"authorization": f"Bearer {KEY}"}),
        lambda shell: shell.config["models"][0].update(endpoint=f"http://user:{KEY}@127.0.0.1:9"),
        lambda shell: shell.config.update(env_vars={"SOME_API_KEY": KEY}),
        lambda shell: shell.config.update(api_kye=KEY),
    ],
)
def test_a_key_written_into_the_config_is_refused_and_not_repeated(
    shell: Shell, place: Callable[[Shell], None]
) -> None:
    place(shell)
    with shell.counted() as calls:
        results = [shell.run(), shell.call("validate", "CONFIG"), shell.run("--json")]
    assert [result.code for result in results] == [2, 2, 2]
    assert calls["requests"] == 0
    assert not shell.out.exists()
    assert all(KEY not in result.said for result in results)
    assert "config.yaml:" in results[0].err


def test_a_key_on_the_command_line_is_refused_and_not_repeated(shell: Shell) -> None:
    for words in (
        ["--set", f"models.0.api_key={KEY}"],
        ["-m", f"openai:x@http://user:{KEY}@127.0.0.1:9"],
    ):
        result = shell.run(*words)
        assert result.code == 2
        assert KEY not in result.said


def test_a_key_that_is_not_set_is_told_before_any_call(shell: Shell) -> None:
    shell.config["models"][0]["api_key"] = "${NO_SUCH_KEY}"
    with shell.counted() as calls:
        result = shell.run()
    assert result.code == 2
    assert "${NO_SUCH_KEY} is not set" in result.err
    assert calls["requests"] == 0


# ---- servers that repeat keys in any way

PLACES: dict[str, str] = {
    "text": '{"choices": [{"message": {"content": said}}]}',
    "reasoning": '{"choices": [{"message": {"content": "4", "reasoning_content": said}}]}',
    "parts": '{"choices": [{"message": {"content": [{"text": said[:25]}, {"text": said[25:]}]}}]}',
    "tool": '{"choices": [{"message": {"tool_calls": [{"function": {"name": said, "arguments": said}}]}}]}',
    "tokens": '{"choices": [{"message": {"content": said}, "logprobs": {"content": [{"token": t} for t in said]}}]}',
    "fields": '{"choices": [{"message": {"content": "4"}, "finish_reason": said}], "id": said, "model": said}',
    "ascii": '{"body": json.dumps({"choices": [{"message": {"content": said}}]}).replace("s", "\\\\u0073").encode()}',
    "error": '{"status": 400, "body": {"error": {"message": said, "code": said}}}',
    "page": '{"status": 500, "body": f"<html>{said}</html>"}',
    "latin": '{"status": 500, "body": b"\\xe9" + said.encode()}',
    "not-json": '{"body": f"<html>{said}</html>"}',
    "cut": '{"status": 400, "body": {"error": {"message": "x" * 985 + said}}}',
    "refusing": '{"status": 401, "body": {"error": {"message": said}}}',
    "unknown": '{"status": 404, "body": {"error": {"message": said}}}',
    "redirect": '{"status": 302, "headers": {"location": f"http://user:{key}@127.0.0.1:9/?k={flat}"}, "body": ""}',
    "wait": '{"status": 500, "headers": {"retry-after": flat, "x-key": flat}, "body": said}',
}


@pytest.mark.parametrize("number", range(2))
def test_no_way_to_repeat_a_key_shows_it(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    keys = {name: made_up(chance) for name in WAYS}
    hook = tmp_path / "echo.py"
    said = {way: WAYS[way](key) for way, key in keys.items()}
    places = "".join(f"        {name!r}: lambda: {answer},\n" for name, answer in PLACES.items())
    hook.write_text(
        f"import json\nKEYS, SAID = {keys!r}, {said!r}\n\ndef answer(request):\n"
        "    place, _, way = request['model'].partition('/')\n"
        "    key, said = KEYS[way], f'before {SAID[way]} after'\n"
        "    flat = said.replace('\\n', '').replace('\\r', '')\n"
        f"    return {{\n{places}    }}[place]()\n"
    )
    with running(Options(answers=f"{hook}:answer")) as url:
        shell = Shell(tmp_path / "shell", url, items=1)
        shell.folder.mkdir()
        variables = {way: f"SECRET_{index}_KEY" for index, way in enumerate(WAYS)}
        shell.environ |= {variables[way]: key for way, key in keys.items()}
        as_key = {way: {"api_key": f"${{{variables[way]}}}"} for way in WAYS}
        as_header = {way: {"headers": {"x-tenant": f"${{{variables[way]}}}"}} for way in WAYS}
        pairs = [
            (place, way)
            for place in PLACES
            for way in WAYS
            if place in ("text", "error") or chance.random() < 0.2
        ]
        pairs = [(place, way) for place, way in pairs if place != "parts" or way in PARTED]
        models = [
            (f"{place}/{way}", chance.choice([as_key, as_header])[way]) for place, way in pairs
        ]
        shell.config |= {
            "models": [shell.model(name, **hidden) for name, hidden in models],
            "max_retries": 0,
            "logging": {"level": "DEBUG", "file": str(shell.folder / "assay.log")},
        }
        results = [
            shell.run("--debug"),
            shell.run("--json", "--retry-errors"),
            shell.call("plan", "CONFIG"),
        ]
    texts = {
        f"output {index}": result.said.encode() for index, result in enumerate(results)
    } | shell.files()
    seen = {
        (name, way, shown)
        for name, text in texts.items()
        for way, key in keys.items()
        for shown in {
            key,
            said[way],
            key.lower(),
            key.upper(),
            json.dumps(key)[1:-1],
            json.dumps(said[way])[1:-1],
        }
        if shown.lower().encode() in text.lower()
    }
    assert not seen
    letters = {
        name: re.sub(rb"[^a-z0-9]", b"", text.replace(b"\\n", b"").lower())
        for name, text in texts.items()
    }
    bare = {way: re.sub(r"[^a-z0-9]", "", key.lower()).encode() for way, key in keys.items()}
    assert not {
        (name, way) for name, text in letters.items() for way, key in bare.items() if key in text
    }
    rows = {row["model_name"]: row for row in shell.read()}
    answered = [
        name
        for name, _ in models
        if name.startswith(("text", "reas", "parts", "tool", "tokens", "fields", "ascii"))
    ]
    for name in answered:
        assert rows[name]["metadata"].get("masked"), name
        assert "[secret]" in json.dumps(rows[name])
    assert re.fullmatch(r"before \[secret\]=* after", rows["text/raw"]["response"])
    assert {
        row["outcome"] for name, row in rows.items() if name.startswith(("error", "page", "latin"))
    } == {"errored"}


ADDRESSES = [
    "http://user:{}@127.0.0.1:9",
    "http://{}@127.0.0.1:9",
    "https://user:{}/x@127.0.0.1:9/v1",
    "user:{}@127.0.0.1:9",
    "http://127.0.0.1:9/v1 http://u:{}@h",
    "HTTP://{}:@127.0.0.1:9",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("place", ["literal", "variable", "command", "model"])
def test_a_user_in_an_address_is_refused_and_not_repeated(
    shell: Shell, address: str, place: str
) -> None:
    address = address.format(KEY)
    words: list[str] = []
    if place == "literal":
        shell.config["models"][0]["endpoint"] = address
    elif place == "variable":
        shell.config["models"][0]["endpoint"] = "${MY_ADDRESS}"
        shell.environ["MY_ADDRESS"] = address
    elif place == "command":
        words = ["--set", f"models.0.endpoint={address}"]
    else:
        words = ["-m", f"openai:x@{address}"]
    result = shell.run(*words)
    assert result.code == 2
    assert KEY not in result.said
    assert not shell.out.exists()


def test_words_stay_words(tmp_path: Path) -> None:
    """A header that is not a key, and a key that is a mere word, are not masked in answers."""
    hook = tmp_path / "say.py"
    hook.write_text("def answer(request):\n    return 'we use ollama and application/json'\n")
    with running(Options(answers=f"{hook}:answer")) as url:
        shell = Shell(tmp_path, url, items=1)
        shell.environ["MY_KEY"] = "ollama"
        headers = {"accept": "application/json"}
        shell.config["models"] = [shell.model("m", api_key="${MY_KEY}", headers=headers)]
        assert shell.run().code == 0
    assert [row["response"] for row in shell.read()] == ["we use ollama and application/json"]
    assert "masked" not in shell.read()[0]["metadata"]
