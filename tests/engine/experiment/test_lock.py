"""A lock holds all that determines a config's numbers; a locked run is what it says, or none."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.experiment import locks as packages
from assay.engine.experiment.locks import Locked, drift, read_lock
from assay.errors import RunFailed, UserError
from assay.server import Options, running
from tests.analysis.verify.lab import CODE, config_of


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return config_of(tmp_path)


@pytest.fixture
def file(tmp_path: Path, config: dict[str, Any]) -> Path:
    return save(tmp_path / "config.yaml", config)


def save(file: Path, config: dict[str, Any]) -> Path:
    file.write_text(json.dumps(config))
    return file


def lock(file: Path) -> Locked:
    return assay.lock(file)


def places(file: Path, **options: Any) -> set[str]:
    """What a locked run says has drifted; an empty set if it runs."""
    try:
        assay.run(file, locked=True, **options)
    except UserError as error:
        first, *lines = error.what.split("\n  - ")
        return (
            {line.partition(":")[0] for line in lines}
            if "nothing was run" in first
            else {str(error)}
        )
    return set()


def test_it_names_all_that_determines_the_numbers(file: Path, tmp_path: Path) -> None:
    values = lock(file).lock
    assert values == read_lock(tmp_path / "config.yaml.lock")
    assert values["dataset"]["items"] == 4
    assert re.fullmatch("[0-9a-f]{32}", values["dataset"]["hash"])
    assert [model["name"] for model in values["models"]] == ["small", "strict"]
    assert {model["served"] for model in values["models"]} == {"unknown"}
    assert [scorer["name"] for scorer in values["scorers"]] == ["exact_match", "right", "careful"]
    assert values["scorers"][0]["code"] == "exact_match@1"
    assert values["scorers"][2]["code"].startswith("careful#"), "the bytes of its file"
    assert list(values["scorers"][1]["judges"]) == ["strict"]
    assert [metric["name"] for metric in values["metrics"]] == ["pass@1", "mean"]
    assert {"assay", "python", "numpy", "msgspec", "jinja2"} <= set(values["packages"])
    assert (values["seed"], values["samples"]) == (0, 2)
    assert values["prices_as_of"]


def test_it_holds_no_place_of_this_machine_and_no_secret(
    config: dict[str, Any], tmp_path: Path
) -> None:
    model = {
        "name": "hosted",
        "model_name": "gpt",
        "endpoint": "http://127.0.0.1:9/v1",
        "api_key": "${KEY}",
        "headers": {"X-Own": "${PW}"},
    }
    config["models"].append(model)
    file = save(tmp_path / "config.yaml", config)
    assay.lock(file)  # a key that is not set is not needed
    text = (tmp_path / "config.yaml.lock").read_text()
    assert str(tmp_path) not in text
    assert "KEY" not in text
    assert "PW" not in text
    assert "id: gpt" in text


def test_locking_again_changes_no_byte(file: Path, tmp_path: Path) -> None:
    assert lock(file).state == "written"
    before = (tmp_path / "config.yaml.lock").stat()
    assert lock(file).state == "unchanged"
    after = (tmp_path / "config.yaml.lock").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    elsewhere = tmp_path / "copy"
    elsewhere.mkdir()
    for name in ("config.yaml", "items.jsonl", "code.py"):
        text = (tmp_path / name).read_text().replace(str(tmp_path), str(elsewhere))
        (elsewhere / name).write_text(text)
    lock(elsewhere / "config.yaml")
    assert (elsewhere / "config.yaml.lock").read_bytes() == (
        tmp_path / "config.yaml.lock"
    ).read_bytes()


def test_a_locked_run_runs_and_locks_what_servers_report(file: Path, tmp_path: Path) -> None:
    lock(file)
    assert places(file) == set()
    values = read_lock(tmp_path / "config.yaml.lock")
    assert values["models"][1]["served"] == {"models": ["assay-demo"], "fingerprints": []}
    text = (tmp_path / "config.yaml.lock").read_bytes()
    assert lock(file).state == "unchanged"
    assert places(file) == set()
    for path in (tmp_path / "out").iterdir():
        if path.is_file():
            path.unlink()
    assert lock(file).state == "unchanged", "what is known of servers stays known"
    assert (tmp_path / "config.yaml.lock").read_bytes() == text


Edit = Callable[[dict[str, Any], Path], Any]
ITEM = '{"id": "q0", "question": "What is 0 + 1?", "answer": "1"}\n'
EDITS: dict[str, tuple[Edit, set[str]]] = {
    "items": (lambda c, f: (f / "items.jsonl").write_text(ITEM), {"dataset.hash", "dataset.items"}),
    "limit": (lambda c, f: c.update(limit=2), {"dataset.hash", "dataset.items", "dataset.limit"}),
    "prompt": (lambda c, f: c.update(prompt_template="{{question}}!"), {"prompts.prompt 1.hash"}),
    "model": (
        lambda c, f: c["models"][1].update(skill=0.5),
        {"models.strict.settings.skill", "models.strict.hash"},
    ),
    "sampling": (
        lambda c, f: c.update(sample_params={"temperature": 0.3}),
        {"models.small.sampling.temperature"},
    ),
    "price": (
        lambda c, f: c["models"][0].update(price={"input": 1, "output": 2}),
        {"models.small.price.input"},
    ),
    "samples": (lambda c, f: c.update(num_samples=3), {"samples"}),
    "seed": (lambda c, f: c.update(seed=7), {"seed"}),
    "scorer": (lambda c, f: c["evaluation_methods"].append("contains"), {"scorers.contains.hash"}),
    "judge": (
        lambda c, f: c["evaluation_methods"][1]["params"].update(tries=1),
        {"scorers.right.params.tries"},
    ),
    "code": (lambda c, f: (f / "code.py").write_text(CODE + "\n"), {"scorers.careful.code"}),
    "metric": (lambda c, f: c["metrics"].pop(), {"metrics.mean.type"}),
    "level": (lambda c, f: c.update(ci_level=0.9), {"metrics.mean.level"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_drift_is_refused_before_anything_is_spent_and_named(
    edit: str, config: dict[str, Any], file: Path, tmp_path: Path
) -> None:
    lock(file)
    before = (tmp_path / "config.yaml.lock").read_bytes()
    change, expected = EDITS[edit]
    change(config, tmp_path)
    save(file, config)
    assert expected <= places(file)
    assert not (tmp_path / "out").exists(), "nothing was run"
    assert (tmp_path / "config.yaml.lock").read_bytes() == before
    assert lock(file).state == "changed"
    assert places(file) == set()


def test_what_changes_no_number_is_no_drift(config: dict[str, Any], file: Path) -> None:
    lock(file)
    config |= {"max_concurrency": 3, "timeout": 20, "max_retries": 1, "logging": {"level": "INFO"}}
    config["outputs"] = []
    save(file, config)
    assert places(file) == set()


def test_drift_says_old_and_new(config: dict[str, Any], file: Path) -> None:
    lock(file)
    save(file, {**config, "seed": 7})
    with pytest.raises(UserError, match="seed: 0 is now 7") as caught:
        assay.run(file, locked=True)
    assert caught.value.fix.endswith(f"assay lock {file}")
    assert [(each.place, each.locked, each.now) for each in drift({"a": {"b": 1}}, {"c": 2})] == [
        ("a.b", 1, None),
        ("c", None, 2),
    ]


def test_another_version_of_a_package_is_drift(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock(file)
    own = packages.version
    monkeypatch.setattr(packages, "version", lambda name: "0.0.1" if name == "numpy" else own(name))
    assert places(file) == {"packages.numpy"}


def test_packages_are_those_that_take_part(tmp_path: Path, config: dict[str, Any]) -> None:
    (tmp_path / "more.py").write_text(
        "def score(item, response):\n    import click\n    return True\n"
    )
    method = {
        "name": "more",
        "type": "custom",
        "path": str(tmp_path / "more.py"),
        "function_name": "score",
    }
    config["evaluation_methods"].append(method)
    found = assay.lock(save(tmp_path / "config.yaml", config)).lock["packages"]
    assert "click" in found
    assert "pytest" not in found


@pytest.mark.parametrize("options", [{"limit": 1}, {"num_samples": 1}, {"models": ["small"]}])
def test_a_locked_run_does_all_that_is_locked(file: Path, options: dict[str, Any]) -> None:
    lock(file)
    with pytest.raises(UserError, match="does less"):
        assay.run(file, locked=True, **options)


def test_a_lock_of_another_config_or_dataset_is_told(
    config: dict[str, Any], file: Path, tmp_path: Path
) -> None:
    lock(file)
    other = save(tmp_path / "other.yaml", {**config, "name": "other"})
    with pytest.raises(UserError, match="this is the lock of 'lab', and the config is 'other'"):
        assay.run(other, locked=str(tmp_path / "config.yaml.lock"))
    with pytest.raises(UserError, match="there is no lock") as caught:
        assay.run(other, locked=True)
    assert caught.value.fix == "write one: assay lock other.yaml"
    (tmp_path / "items.jsonl").write_text('{"id": "x", "question": "Who is 1 ?"}\n')
    with pytest.raises(UserError, match="another dataset"):
        assay.run(file, locked=True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("seed: 0", "seed: 1", 1), "damaged"),
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: text.replace("assay_lock: 1", "assay_lock: 2"), "version 2"),
        (lambda text: "dependencies:\n- something: else\n", "not a lock"),
        (lambda text: "\xff\xfe", "lock"),
    ],
)
def test_what_is_no_sound_lock_is_refused_and_never_replaced(
    file: Path, tmp_path: Path, damage: Callable[[str], str], message: str
) -> None:
    lock(file)
    place = tmp_path / "config.yaml.lock"
    theirs = damage(place.read_text())
    place.write_text(theirs, encoding="latin-1")
    for call in (lambda: lock(file), lambda: assay.run(file, locked=True)):
        with pytest.raises(UserError, match=message) as caught:
            call()
        assert str(place) in caught.value.where
    assert place.read_text(encoding="latin-1") == theirs
    assert not (tmp_path / "out").exists()


def test_a_config_without_a_file_needs_a_name_for_its_lock(
    config: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="where the lock"):
        assay.lock(config)
    assert assay.lock(config, output=tmp_path / "own.lock").state == "written"
    assert assay.run(config, locked=str(tmp_path / "own.lock")).metrics


def test_a_server_that_reports_something_else_fails_the_run_and_its_rows_are_kept(
    tmp_path: Path,
) -> None:
    with running(Options()) as url:
        model = {"name": "served", "model_name": "first", "endpoint": url}
        config = config_of(tmp_path, outputs=[], evaluation_methods=["exact_match"])
        file = save(tmp_path / "config.yaml", {**config, "models": [model]})
        assay.lock(file)
        assay.run(file, locked=True)
        served = read_lock(tmp_path / "config.yaml.lock")["models"][0]["served"]
        assert served["models"] == ["first"]
        rows = (tmp_path / "out" / "responses.jsonl").read_bytes()
        other = rows.replace(b'"served_model":"first"', b'"served_model":"later"', 1)
        assert other != rows
        (tmp_path / "out" / "responses.jsonl").write_bytes(other)
        (tmp_path / "out" / "manifest.json").unlink()
        with pytest.raises(RunFailed, match="models first is now later") as caught:
            assay.run(file, locked=True)
        assert caught.value.exit_code == 1
        assert (tmp_path / "out" / "responses.jsonl").read_bytes() == other
        assert assay.lock(file).state == "changed"
        assert assay.run(file, locked=True).metrics
