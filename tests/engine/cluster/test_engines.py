"""What starts workers: the printed files, run as a scheduler would, and Ray without a cluster."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import assay
from assay.config import RayConfig, load
from assay.engine.cluster.engines.ray import connect, fitting
from assay.engine.cluster.engines.scripts import script
from assay.errors import ConfigError, UserError
from assay.server import Options, running
from tests.support import Lab, wait_for

EXAMPLES = Path(__file__).parents[3] / "examples" / "cluster"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with `assay`, and an `scontrol` that writes down what it is asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {
        "assay": f'exec {sys.executable} -m assay "$@"',
        "scontrol": f'echo "$@" >> {tmp_path / "scontrol.txt"}',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(Options(skill=1.0, latency_ms=150)) as address:
        yield address


@pytest.fixture
def root(tmp_path: Path, url: str) -> Path:
    """A plan without workers, the model of which needs a key."""
    lab = Lab(tmp_path, items=16)
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    lab.config |= {
        "models": [
            {"name": "mock", "endpoint": url, "api_key": "${MOCK_API_KEY}", "max_concurrency": 2}
        ],
        "output_dir": str(tmp_path / "root"),
    }
    os.environ["MOCK_API_KEY"] = "never-to-be-printed"
    try:
        assay.run(lab.config, workers=0)
    finally:
        del os.environ["MOCK_API_KEY"]
    return tmp_path / "root"


def container(text: str) -> dict[str, Any]:
    return yaml.safe_load(text)["spec"]["template"]["spec"]["containers"][0]


def test_the_kubernetes_job(root: Path) -> None:
    text = script(str(root), "k8s", 5)
    job = yaml.safe_load(text)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == (
        "batch/v1",
        "Job",
        "assay-root",
    )
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 5, 5)
    # Both of these demand that a failed pod is not started again in its place.
    assert {"backoffLimitPerIndex", "podFailurePolicy"} <= spec.keys()
    assert pod["restartPolicy"] == "Never"
    actions = [
        (rule["action"], rule.get("onExitCodes", {}).get("values"))
        for rule in spec["podFailurePolicy"]["rules"]
    ]
    assert actions == [("FailJob", [2, 5]), ("Ignore", [75]), ("Ignore", None)]
    names = {rule["onExitCodes"]["containerName"] for rule in spec["podFailurePolicy"]["rules"][:2]}
    assert names == {worker["name"] for worker in pod["containers"]} == {"worker"}
    (variable,) = pod["containers"][0]["env"]
    assert variable == {
        "name": "MOCK_API_KEY",
        "valueFrom": {"secretKeyRef": {"name": "assay", "key": "MOCK_API_KEY"}},
    }
    assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == str(root)
    assert pod["volumes"][0]["name"] == pod["containers"][0]["volumeMounts"][0]["name"]
    assert "never-to-be-printed" not in text


def test_the_command_of_a_pod_drains_and_goes_on(root: Path, environ: dict[str, str]) -> None:
    worker = container(script(str(root), "k8s", 2))
    command = [*worker["command"], *worker["args"]]
    environ |= {"JOB_COMPLETION_INDEX": "1", "MOCK_API_KEY": "sesame"}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as first:
        wait_for(lambda: list(root.glob("responses.d/0/*/*.jsonl")), 60)
        first.send_signal(signal.SIGTERM)  # `exec`: the shell is gone, the worker gets the signal
        assert "the same command resumes" in first.communicate(timeout=60)[1]
    assert first.returncode == 75
    assert not (root / "metrics.jsonl").exists()
    again = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr.count("error:")) == (0, 0)
    assert (root / "metrics.jsonl").exists()


def test_a_pod_without_its_secret_is_a_mistake(root: Path, environ: dict[str, str]) -> None:
    worker = container(script(str(root), "k8s", 2))
    environ |= {"JOB_COMPLETION_INDEX": "0"}
    done = subprocess.run(
        [*worker["command"], *worker["args"]], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "${MOCK_API_KEY} is not set" in done.stderr


def test_the_array_script_requeues_what_was_drained(
    root: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "job.sh"
    file.write_text(script(str(root), "slurm", 2))
    environ |= {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_JOB_ID": "17", "MOCK_API_KEY": "sesame"}
    with subprocess.Popen(["bash", str(file)], env=environ, stderr=subprocess.DEVNULL) as batch:
        wait_for(lambda: list(root.glob("responses.d/0/*/*.jsonl")), 60)
        batch.send_signal(signal.SIGTERM)
        assert batch.wait(60) == 75
    assert (tmp_path / "scontrol.txt").read_text() == "requeue 17_2\n"
    assert (
        subprocess.run(["bash", str(file)], env=environ, capture_output=True, timeout=60).returncode
        == 0
    )
    assert (root / "metrics.jsonl").exists()


def test_the_pods_of_the_example(environ: dict[str, str], tmp_path: Path) -> None:
    """The files of the ConfigMap, and the command of each index in turn."""
    files, job = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text())
    (worker,) = job["spec"]["template"]["spec"]["containers"]
    for name, text in files["data"].items():
        (tmp_path / name).write_text(text)
    for index in range(job["spec"]["completions"]):
        environ |= {"JOB_COMPLETION_INDEX": str(index), "ROOT": str(tmp_path / "root")}
        command = [*worker["command"], *worker["args"]]
        done = subprocess.run(
            command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
    assert len((tmp_path / "root" / "metrics.jsonl").read_text().splitlines()) == 1
    assert (
        job["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
        == files["metadata"]["name"]
    )


def test_directives_of_the_array_script(root: Path) -> None:
    lines = script(str(root), "slurm", 7).splitlines()
    words = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    assert {"--array=1-7", "--requeue", "--signal=B:TERM@60"} <= set(words)
    assert any("MOCK_API_KEY" in line for line in lines if line.startswith("#"))


def test_how_many_workers_fit() -> None:
    assert fitting(RayConfig(), {"CPU": 6.0}) == 6
    assert fitting(RayConfig(cpus=4, gpus=2), {"CPU": 64.0, "GPU": 8.0}) == 4
    assert fitting(RayConfig(gpus=0.5), {"CPU": 64.0, "GPU": 3.0}) == 6
    assert fitting(RayConfig(gpus=1), {"CPU": 64.0}) == 1  # it may grow
    assert fitting(RayConfig(cpus=0, resources={"site": 1}), {"site": 3.0}) == 3


def test_without_ray_the_line_that_installs_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError) as caught:
        connect(RayConfig())
    assert caught.value.fix == "pip install 'assay-eval[ray]'"


@pytest.mark.parametrize("on", ["ray", {"ray": None}, {"ray": {}}])
def test_short_forms(on: Any, lab: Lab) -> None:
    config = load({**lab.config, "on": on}, need="gate")
    assert config.on is not None
    assert config.on.ray == RayConfig()


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("dask", "unknown key 'dask'"),
        ({"ray": {"worker": 2}}, "did you mean 'workers'"),
        ({"ray": {"workers": 0}}, "of at least 1"),
        ({"ray": {"gpus": -1}}, "of at least 0"),
    ],
)
def test_what_cannot_be_meant_is_named(on: Any, message: str, lab: Lab) -> None:
    with pytest.raises(ConfigError, match=message):
        load({**lab.config, "on": on}, need="gate")


@pytest.mark.parametrize("shard", ["17/16", "0/4", "3", "a/b", "-1/4", "1/0"])
def test_shards_that_do_not_exist(shard: str, lab: Lab) -> None:
    from assay.cli import main

    with pytest.raises(SystemExit) as caught:
        main(["run", "config.yaml", "--shard", shard])
    assert caught.value.code == 2
