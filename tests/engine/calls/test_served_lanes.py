"""Models that start their own server, and models that are recorded, through the whole engine."""

import asyncio
import sys
from pathlib import Path

import pytest

import assay
from assay import registry
from assay.errors import ConfigError, RunFailed
from assay.models.vllm import vllm
from assay.server import Options, running
from tests.support import Lab

SERVER = f"{sys.executable} -m assay.server --port {{port}}"


def test_servers_of_our_own_run_one_after_another(lab: Lab) -> None:
    lab.config["models"] = [
        {"name": "first", "type": "vllm", "command": SERVER, "start_timeout": 30},
        {"name": "second", "type": "llama.cpp", "command": SERVER, "start_timeout": 30},
        lab.model("calculator"),
    ]
    assert lab.run().ran == 24
    ends: dict[str, list[float]] = {}
    for row in lab.read("responses.jsonl"):
        assert row["outcome"] == "ok"
        ends.setdefault(row["model_name"], []).append(row["timestamp"])
    assert max(ends["calculator"]) <= min(ends["first"])
    assert max(ends["first"]) <= min(ends["second"])


def test_a_server_that_does_not_start_stops_its_lane_only(lab: Lab) -> None:
    broken = f"{sys.executable} -c 'import sys; sys.exit(\"no weights here, port {{port}}\")'"
    lab.config["models"] = [
        {"name": "broken", "type": "vllm", "command": broken, "start_timeout": 30},
        lab.model("calculator"),
    ]
    with pytest.raises(RunFailed) as caught:
        lab.run()
    assert "no weights here" in str(caught.value)
    assert {row["model_name"] for row in lab.read("responses.jsonl")} == {"calculator"}


def test_a_recorded_model_is_played_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = lab.folder / "new" / "tape.jsonl"
    with running(Options()) as url:
        inner = {"type": "openai", "endpoint": url, "api_key": "${TAPE_KEY}"}
        lab.config["models"] = [{"name": "taped", "type": "record", "path": str(tape), "of": inner}]
        with pytest.raises(ConfigError, match="TAPE_KEY"):
            lab.run()
        monkeypatch.setenv("TAPE_KEY", "sk-tape-secret-123456")
        assert lab.run().ran == 8
    assert not any(
        b"sk-tape" in path.read_bytes() for path in lab.folder.rglob("*") if path.is_file()
    )
    first = {row["item_id"]: row["response"] for row in lab.read("responses.jsonl")}
    lab.config["models"] = [{"name": "played", "type": "replay", "path": str(tape)}]
    assert lab.run().ran == 8
    assert {row["item_id"]: row["response"] for row in lab.read("responses.jsonl")} == first


def test_a_helper_model_is_not_run_by_itself(lab: Lab) -> None:
    lab.config["models"].append(lab.model("helping", helper=True))
    assert lab.run().ran == 8
    assert "helping" in assay.experiment(lab.config).bind_tasks()[0]


def test_the_only_server_is_kept_over_several_runs(tmp_path: Path) -> None:
    """As a worker of a cluster does, shard by shard: a large model is loaded once."""
    log = tmp_path / "server.log"
    model = vllm("served", command=SERVER, log=str(log))
    prompt = registry.prompt.get("jinja")("{{question}}")
    task = registry.task.get("prompt")(prompt, model, params={}, samples=1, timeout=30)

    async def go(keep: bool) -> int:
        log.unlink(missing_ok=True)
        for shard in range(3):
            store = assay.FlatStore(tmp_path / f"{keep}{shard}")
            assay.DatasetRepository(store).create(
                [{"id": "q", "question": "What is 2 + 2?"}], name="d", id="d"
            )
            runner = assay.Runner(store, models={"served": model}, keep_server=keep)
            assert (await runner.run_async("d", [task])).complete
        await model.close()
        return log.read_text().count('{"url"')

    assert (asyncio.run(go(True)), asyncio.run(go(False))) == (1, 3)
