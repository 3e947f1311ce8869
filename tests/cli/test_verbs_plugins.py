"""`assay list`, `show`, `schema`, `completion` and `--version`: what they say, and that they import little."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from assay import registry
from assay.analysis.look.plugins import kinds, summary
from assay.cli import COMMANDS, group
from assay.config.providers import providers
from assay.errors import AssayError
from tests.models.fake_providers import Fake, faked


def said(*words: str) -> str:
    result: Result = CliRunner(env={"COLUMNS": "200"}).invoke(
        group, list(words), catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.output


def refused(*words: str) -> str:
    with pytest.raises(AssayError) as caught:
        CliRunner().invoke(group, list(words), catch_exceptions=False)
    return str(caught.value)


@pytest.mark.parametrize("kind", kinds())
def test_a_kind_lists_every_plug_in_with_its_first_line(kind: str) -> None:
    lines = said("list", kind).splitlines()
    assert [line.split()[0] for line in lines] == kinds()[kind].names()
    assert all(len(line.split()) > 2 for line in lines)
    assert said("list", f"{kind}s").splitlines() == lines


def test_all_kinds_and_json() -> None:
    everything = said("list")
    assert all(f"{kind}\n" in everything for kind in kinds())
    rows = [json.loads(line) for line in said("list", "metric", "--json").splitlines()]
    assert {"mean", "pass_at_k"} <= {row["name"] for row in rows}
    assert all(Path(row["origin"].rpartition(":")[0]).is_file() for row in rows)


def test_an_unknown_kind() -> None:
    assert "did you mean 'scorer'?" in refused("list", "scorrer")


def test_registered_ones_and_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(item: Any, response: Any, *, strict: bool = True) -> bool:
        """My own judgement."""
        return strict

    good = EntryPoint("theirs", "json:dumps", "assay.scorers")
    bad = EntryPoint("broken", "no_such_module:f", "assay.scorers")
    monkeypatch.setattr(registry, "_entry_points", lambda group: {"theirs": good, "broken": bad})
    monkeypatch.setitem(registry.scorer._found, "mine", mine)
    lines = dict(line.split(None, 1) for line in said("list", "scorer").splitlines())
    assert lines["mine"] == "My own judgement."
    assert lines["theirs"].startswith("Serialize")
    assert lines["broken"].startswith("cannot be loaded: ModuleNotFoundError")
    assert "strict  bool, default True" in said("show", "mine")


def test_show_has_signature_parameters_docs_and_origin() -> None:
    shown = said("show", "exact_match")
    assert shown.startswith("exact_match (scorer)\n")
    assert "The answer equals one of the accepted answers." in shown
    assert "(item: Item, response: Response, *, …) -> Score" in shown
    assert "case_sensitive" in shown
    assert "scorers/exact_match.py:" in shown


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in kinds() for name in kinds()[kind].names()]
)
def test_show_tells_what_the_function_has(kind: str, name: str) -> None:
    """The description is read from the source; it must agree with the function itself."""
    (row,) = [
        json.loads(line) for line in said("show", name, "--kind", kind, "--json").splitlines()
    ]
    try:
        function = kinds()[kind].get(name)
    except ImportError:
        pytest.skip("an extra is not installed")
    assert [each["name"] for each in row["parameters"]] == list(registry.parameters(function))
    assert row["doc"]
    assert summary(kinds()[kind], name) == (row["doc"].splitlines()[0], row["origin"])


def test_a_name_of_two_kinds_is_shown_twice() -> None:
    assert said("show", "jsonl").startswith("jsonl (dataset)")
    both = [kind for kind in kinds() if "function" in kinds()[kind].names()]
    assert said("show", "function").count("\nsignature\n") == len(both) == 2
    assert said("show", "function", "--kind", "task").count("\nsignature\n") == 1


def test_show_a_function_of_a_file_without_running_it(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(
        'raise SystemExit\ndef score(item, response, *, k: int = 3):\n    """Mine."""\n'
    )
    shown = said("show", f"{file}:score")
    assert "Mine." in shown
    assert "k  int, default 3" in shown


def test_an_unknown_name() -> None:
    assert "did you mean 'exact_match'?" in refused("show", "exact_macth")


def test_the_schema_goes_to_a_file(tmp_path: Path) -> None:
    said("schema", "--output", str(tmp_path / "s.json"))
    assert json.loads((tmp_path / "s.json").read_text()) == json.loads(said("schema"))


def test_version_names_what_matters() -> None:
    lines = said("--version").splitlines()
    assert lines[0].startswith("assay ")
    assert all(
        word in said("--version")
        for word in ("python", "platform", "msgspec", "numpy", "pyreqwest")
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    script = Path(sys.executable).with_name("assay")
    asked = {**os.environ, "_ASSAY_COMPLETE": f"{shell}_source"}
    out = subprocess.run([script], capture_output=True, text=True, check=True, env=asked).stdout
    assert "_ASSAY_COMPLETE" in out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("assay pl", {"plan"}),
        ("assay ", set(COMMANDS)),
        ("assay list sco", {"scorer"}),
        ("assay show exact_m", {"exact_match"}),
        ("assay init --example few", {"few-shot"}),
        ("assay schema --out", {"--output"}),
    ],
)
def test_what_is_completed(line: str, expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from click.shell_completion import BashComplete

    words = line.split(" ")
    found = BashComplete(group, {}, "assay", "_ASSAY_COMPLETE").get_completions(
        words[1:-1], words[-1]
    )
    assert {item.value for item in found} == expected


@pytest.mark.parametrize(
    "words",
    [
        ["list", "scorer"],
        ["show", "pass_at_k"],
        ["ls", "."],
        ["init", "--list"],
        ["schema"],
        ["--version"],
        *([name, "--help"] for name in COMMANDS),
    ],
)
def test_a_verb_that_needs_no_engine_imports_none(words: list[str], tmp_path: Path) -> None:
    code = f"import sys; from assay.cli import main\ntry: main({words!r})\nexcept SystemExit: print(sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    ).stdout
    heavy = {"numpy", "jinja2", "rich", "pyreqwest", "duckdb", "asyncio"}
    assert {name for name in heavy if f"'{name}'" in out.splitlines()[-1]} == set()


def test_providers_and_their_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for provider in providers().values():
        for name in (*provider.key, "AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS"):
            monkeypatch.delenv(name, raising=False)
    lines = said("list", "providers").splitlines()
    assert [line.split()[0] for line in lines[1:]] == [*providers()]
    assert {line.split()[-1] for line in lines[1:]} == {"no", "needed"}
    monkeypatch.setenv("GROQ_API_KEY", "key-0123456789")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID-0123456789")
    (tmp_path / ".env").write_text("GOOGLE_API_KEY=key-0123456789\n")
    shown = said("list", "providers")
    assert [line.split()[0] for line in shown.splitlines()[1:4]] == ["google", "bedrock", "groq"]
    assert "GOOGLE_API_KEY" in shown.splitlines()[1]
    entries = [json.loads(line) for line in said("list", "provider", "--json").splitlines()]
    assert {entry["name"] for entry in entries if entry["is_set"]} == {"google", "bedrock", "groq"}
    assert "0123456789" not in shown + json.dumps(entries)


def test_the_models_that_a_server_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "/v1/models": {"data": [{"id": "b"}, {"id": "a\u001b[31m"}]},
        "/v1beta/models": {"models": [{"name": "models/gemini-2.5-pro"}]},
        "/foundation-models": {"modelSummaries": [{"modelId": "org.m-v1:0"}]},
    }
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-0123456789")
    with faked(fake := Fake(pages)) as url:
        assert said("list", "models", url).split() == ["model", "a", "[31m", "b"]
        assert said("list", "models", f"anthropic@{url}").split() == ["model", "a", "[31m", "b"]
        assert said("list", "models", f"gemini@{url}").split() == ["model", "gemini-2.5-pro"]
        row = {"name": "org.m-v1:0", "input": None, "output": None, "context": None}
        assert json.loads(said("list", "model", f"bedrock@{url}", "--json")) == row
    paths = ["/v1/models", "/v1/models?limit=1000", "/v1beta/models?pageSize=1000"]
    assert [asked.path for asked in fake.asked] == [
        *paths,
        "/foundation-models?byOutputModality=TEXT",
    ]
    assert fake.asked[3].headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"data": []}, "the server has no models at all"),
        ({"data": [{}]}, "not a list of models"),
        ([1], "not a list of models"),
        ((401, {}), "the server refused the API key"),
    ],
)
def test_servers_that_tell_no_models(answer: Any, problem: str) -> None:
    with faked(Fake({"/models": answer})) as url:
        assert problem in refused("list", "models", url)


def test_providers_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    assert "GROQ_API_KEY is not set" in refused("list", "models", "groq")
    assert "did you mean 'mistral'?" in refused("list", "models", "mistrall")
    assert "has no server that could be asked" in refused("list", "models", "demo")
    assert "assay list models groq" in refused("list", "scorers", "groq")
