"""API keys: in no file, no output, no error, whatever a server does with them."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from assay.server import Options, running
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
    pieces = [secret[at : at + least] for secret in (KEY, HEADER) for at in range(len(secret) - least + 1)]
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
def test_a_key_that_the_server_repeats_is_never_seen(tmp_path: Path, echo: str, models: list[str]) -> None:
    shell = secret_shell(tmp_path, echo, models)
    results = [shell.run(), shell.run("--json", "--debug", "--retry-errors"), shell.call("plan", "CONFIG")]
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
    for words in (["--set", f"models.0.api_key={KEY}"], ["-m", f"openai:x@http://user:{KEY}@127.0.0.1:9"]):
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
