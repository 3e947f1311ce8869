"""Folders of one plan become one: rows and metrics of the whole, conflicts named, nothing lost when it is killed."""

import json
import multiprocessing
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import assay
from assay.engine.experiment.merging import merge as merging
from assay.errors import AssayError, LockedError, StoreError, UserError
from assay.records import Kind
from assay.store.keys import digest
from assay.store.lock import FolderLock
from assay.store.seal import seal
from assay.store.stores import FlatStore
from tests.support import Lab, without_times

FILES: dict[Kind, str] = {"run": "responses.jsonl", "evaluation": "evaluation_results.jsonl"}


def lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(folder / name)]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def part(whole: Path, folder: Path, keys: set[str], items: set[str] | None = None) -> Path:
    """A folder as a run of a part leaves it: these responses with their labels, and these items, or all."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(whole / "config.yaml", folder)
    chosen = [
        line
        for line in lines(whole / "items.jsonl")
        if items is None or json.loads(line)["id"] in items
    ]
    (folder / "items.jsonl").write_bytes(b"".join(line + b"\n" for line in chosen))
    store, source = FlatStore(folder), FlatStore(whole)
    for kind, name in FILES.items():
        kept = [
            line for line in lines(whole / name) if {json.loads(line)["key"], *_of(line)} & keys
        ]
        (folder / name).write_bytes(b"".join(line + b"\n" for line in kept))
        manifest = source.manifest(kind, source.id)
        assert manifest is not None
        present = len({json.loads(line)["key"] for line in kept})
        manifest.id, manifest.present, manifest.complete = store.id, present, kind == "evaluation"
        manifest.complete = manifest.complete or present == manifest.planned
        seal(manifest, store.log(kind, store.id))
        store.put_manifest(manifest)
    return folder


def _of(line: bytes) -> list[str]:
    return json.loads(line).get("responses") or []


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.config["metrics"].append({"name": "mean", "facets": ["model_name"]})
    lab.run()
    return lab


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merge")
    lab = Lab(folder, items=5)
    lab.config["models"].append(lab.model("other"))
    lab.run()
    return folder / "out"


def measured(folder: Path) -> list[dict[str, Any]]:
    return sorted(rows(folder, "metrics.jsonl"), key=json.dumps)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_overlapping_parts_make_the_whole(whole: Path, data: st.DataObject) -> None:
    keys = [row["key"] for row in rows(whole, "responses.jsonl")]
    count = data.draw(st.integers(2, 4))
    owners = [
        data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count)) for _ in keys
    ]
    order = data.draw(st.permutations(range(count)))
    room = whole.parent
    parts = [
        part(
            whole,
            room / f"part{at}",
            {key for key, own in zip(keys, owners, strict=True) if at in own},
        )
        for at in range(count)
    ]
    before = [content(folder) for folder in parts]
    shutil.rmtree(room / "merged", ignore_errors=True)
    merged = assay.merge([parts[at] for at in order], room / "merged")
    for name in FILES.values():
        assert sorted(lines(room / "merged" / name)) == sorted(lines(whole / name))
    assert measured(room / "merged") == measured(whole)
    assert (merged.responses, merged.planned, merged.partial, merged.decided) == (
        len(keys),
        len(keys),
        "",
        0,
    )
    # a response and its two labels
    assert merged.repeated == sum(len(own) - 1 for own in owners) * 3
    assert [content(folder) for folder in parts] == before


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_no_part_has_is_missing_and_the_next_run_makes_only_that(
    whole: Path, data: st.DataObject
) -> None:
    every = {row["key"]: row["item_id"] for row in rows(whole, "responses.jsonl")}
    room = whole.parent
    parts = [
        part(
            whole,
            room / f"part{at}",
            data.draw(st.sets(st.sampled_from(sorted(every)), min_size=1)),
        )
        for at in range(2)
    ]
    present = {row["key"] for folder in parts for row in rows(folder, "responses.jsonl")}
    shutil.rmtree(room / "merged", ignore_errors=True)
    merged = assay.merge(parts, room / "merged")
    assert (merged.responses, merged.planned) == (len(present), len(every))
    assert bool(merged.partial) == (len(present) < len(every))
    assert assay.plan(room / "merged" / "config.yaml").missing == len(every) - len(present)
    kept = set(lines(room / "merged" / "responses.jsonl"))
    assay.run(room / "merged" / "config.yaml")
    assert kept <= set(lines(room / "merged" / "responses.jsonl"))
    assert {row["key"] for row in rows(room / "merged", "responses.jsonl")} == set(every)
    for name in FILES.values():
        made, wanted = (
            sorted(json.dumps(without_times(row)) for row in rows(folder, name))
            for folder in (room / "merged", whole)
        )
        assert made == wanted


def shards(lab: Lab, *chosen: Sequence[int]) -> list[Path]:
    """Runs of the lab's config over some of its items."""
    every, folders = lab.rows, list[Path]()
    for number, items in enumerate(chosen):
        lab.rows = [every[at] for at in items]
        folder = lab.folder / f"shard{number}"
        lab.run(output_dir=str(folder))
        folders.append(folder)
    lab.rows = every
    return folders


def test_parts_of_the_items(lab: Lab) -> None:
    first, second = shards(lab, [0, 1], [2, 3])
    paid = lab.calls()
    merged = assay.merge([first, second], lab.folder / "all")
    assert (merged.items, merged.responses, merged.planned, merged.evaluations) == (4, 8, 8, 16)
    assert merged.parts[1].responses_taken == 4
    assert measured(lab.folder / "all") == measured(lab.folder / "out")
    whole = FlatStore(lab.folder / "out").manifest("run", "out")
    run = FlatStore(lab.folder / "all").manifest("run", "all")
    assert whole is not None
    assert run is not None
    assert run.digest == whole.digest  # what a run of the whole would have said
    assert run.metadata["usage"] == whole.metadata["usage"]
    assert run.metadata["merged"]["from"] == [str(first), str(second)]
    assert assay.status(lab.folder / "all")[0].state == "complete"
    assay.run(lab.folder / "all" / "config.yaml")
    assert lab.calls() == paid
    assert not (lab.folder / ".all.merging").exists()


def test_parts_of_the_models(lab: Lab) -> None:
    folders = [lab.folder / name for name in ("one", "two")]
    for folder, name in zip(folders, ("calculator", "other"), strict=True):
        lab.config["models"] = [lab.model(name)]
        lab.run(output_dir=str(folder))
    paid = lab.calls()
    merged = assay.merge(folders, lab.folder / "all")
    assert (merged.items, merged.responses, merged.planned) == (4, 16, 16)
    assert {
        row["metadata.model_id"]
        for row in measured(lab.folder / "all")
        if "metadata.model_id" in row
    } == {
        "calculator",
        "other",
    }
    assay.run(lab.folder / "all" / "config.yaml")
    assert lab.calls() == paid


def test_a_folder_and_its_copy_that_was_continued(lab: Lab) -> None:
    """Labels that were made again, of the same responses, are equal whatever the time."""
    copy = lab.folder / "copy"
    shutil.copytree(lab.folder / "out", copy)
    (copy / "evaluation_results.jsonl").unlink()
    assay.evaluate(copy)
    merged = assay.merge([lab.folder / "out", copy], lab.folder / "all")
    assert (merged.responses, merged.repeated, merged.decided) == (8, 24, 0)
    assert sorted(lines(lab.folder / "all" / "evaluation_results.jsonl")) == sorted(
        lines(lab.folder / "out" / "evaluation_results.jsonl")
    )


# ---- conflicts


def changed(folder: Path, name: str, at: int, **fields: Any) -> None:
    every = rows(folder, name)
    every[at] |= fields
    (folder / name).write_text(
        "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in every)
    )


def test_two_answers_to_one_cell_are_a_conflict(lab: Lab) -> None:
    first, second = shards(lab, [0, 1, 2], [2, 3])
    with pytest.raises(UserError, match="different rows for 2 keys") as caught:
        assay.merge([first, second], lab.folder / "all")
    place = r"calculator/plain, item 'q2', sample 0: {}/responses.jsonl, row \d and {}/responses.jsonl, row \d"
    assert re.search(place.format(first, second), str(caught.value))
    assert "--prefer" in str(caught.value.fix)
    assert not (lab.folder / "all").exists()


@pytest.mark.parametrize(
    ("prefer", "order", "winner"),
    [("first", (0, 1), 0), ("first", (1, 0), 1), ("newest", (0, 1), 1), ("newest", (1, 0), 1)],
)
def test_preferring_one(lab: Lab, prefer: Any, order: tuple[int, int], winner: int) -> None:
    folders = shards(lab, [0, 1, 2], [2, 3])
    changed(folders[1], "responses.jsonl", 0, response="forty-two")
    assay.evaluate(folders[1])
    merged = assay.merge([folders[at] for at in order], lab.folder / "all", prefer=prefer)
    assert merged.decided == 2
    by_key = {
        row["key"]: row
        for row in rows(folders[winner], "responses.jsonl")
        if row["item_id"] == "q2"
    }
    made = {
        row["key"]: row
        for row in rows(lab.folder / "all", "responses.jsonl")
        if row["item_id"] == "q2"
    }
    assert made == by_key
    labels = [
        row
        for row in rows(lab.folder / "all", "evaluation_results.jsonl")
        if row["item_id"] == "q2"
    ]
    wanted = [
        row for row in rows(folders[winner], "evaluation_results.jsonl") if row["item_id"] == "q2"
    ]
    # a label goes with its response
    assert sorted(map(json.dumps, labels)) == sorted(map(json.dumps, wanted))
    paid = lab.calls()
    assay.run(lab.folder / "all" / "config.yaml")
    assert lab.calls() == paid


def test_a_failure_that_would_be_tried_again_yields(lab: Lab) -> None:
    folders = shards(lab, [0, 1], [1, 2])
    failed = {"outcome": "errored", "error": "timeout", "error_kind": "transient", "response": ""}
    for at, row in enumerate(rows(folders[0], "responses.jsonl")):
        if row["item_id"] == "q1":
            changed(folders[0], "responses.jsonl", at, **failed)
    merged = assay.merge(folders, lab.folder / "all")
    assert (merged.responses, merged.decided) == (6, 0)
    assert all(row["outcome"] == "ok" for row in rows(lab.folder / "all", "responses.jsonl"))


def test_labels_that_differ(lab: Lab) -> None:
    copy = lab.folder / "copy"
    shutil.copytree(lab.folder / "out", copy)
    changed(copy, "evaluation_results.jsonl", 3, score=0.0, passed=False)
    with pytest.raises(
        UserError,
        match=r"(exact_match|contains), item 'q\d', sample \d: .*evaluation_results.jsonl, row 4",
    ):
        assay.merge([lab.folder / "out", copy], lab.folder / "all")
    merged = assay.merge([copy, lab.folder / "out"], lab.folder / "all", prefer="first")
    assert merged.decided == 1
    assert (
        sum(row["score"] == 0 for row in rows(lab.folder / "all", "evaluation_results.jsonl")) == 1
    )


def test_one_id_and_two_items(lab: Lab) -> None:
    (first,) = shards(lab, [0, 1])
    lab.rows[1]["ground_truth"] = {"answer": "something else"}
    folder = lab.folder / "second"
    lab.rows = lab.rows[1:]
    lab.run(output_dir=str(folder))
    with pytest.raises(UserError, match="two different items 'q1'") as caught:
        assay.merge([first, folder], lab.folder / "all", prefer="first")
    assert "items.jsonl, line" in str(caught.value.where)
    assert not (lab.folder / "all").exists()


def another_parameter(config: dict[str, Any]) -> None:
    config["evaluation_methods"][1]["params"] = {"case_sensitive": True}


PLANS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "prompt": (
        lambda c: c.update(prompt_templates={"plain": "Say: what is {{question}}?"}),
        "prompts.plain.text",
    ),
    "prompts": (
        lambda c: c["prompt_templates"].update(more="What is {{question}}?!"),
        "prompts.more",
    ),
    "sampling": (
        lambda c: c["sample_params"].update(temperature=0.9),
        "sample_params.temperature: 0.5 in out, 0.9",
    ),
    "samples": (
        lambda c: c["sample_params"].update(num_samples=3),
        "num_samples: 2 in out, 3 in second",
    ),
    "scorer": (lambda c: c["evaluation_methods"].pop(), "evaluation_methods.contains"),
    "scorer's parameter": (another_parameter, "evaluation_methods.contains.params"),
    "metrics": (lambda c: c["metrics"].pop(), "metrics.mean"),
    "seed": (lambda c: c.update(seed=7), "seed: 0 in out, 7 in second"),
}


@pytest.mark.parametrize("name", PLANS)
def test_another_plan_is_refused_and_named(lab: Lab, name: str) -> None:
    change, said = PLANS[name]
    change(lab.config)
    lab.run(output_dir=str(lab.folder / "second"))
    with pytest.raises(UserError, match="not parts of one plan") as caught:
        assay.merge([lab.folder / "out", lab.folder / "second"], lab.folder / "all", prefer="first")
    assert said in str(caught.value)
    assert not (lab.folder / "all").exists()


def test_a_task_of_the_same_name_with_other_code(lab: Lab) -> None:
    lab.write(
        "model.py",
        (lab.folder / "model.py").read_text()
        + "\n# another\n\ndef calculator(prompt):\n    return '1'\n",
    )
    lab.run(output_dir=str(lab.folder / "second"))
    with pytest.raises(UserError, match=r"task calculator/plain\.model"):
        assay.merge([lab.folder / "out", lab.folder / "second"], lab.folder / "all")


# ---- the target, and being killed


def test_the_target_is_never_replaced(lab: Lab) -> None:
    folders = shards(lab, [0, 1], [2, 3])
    target = lab.folder / "all"
    assert assay.merge(folders, target).new
    made = content(target)
    again = assay.merge(folders, target)
    assert not again.new
    assert (again.responses, again.evaluations, again.metrics) == (8, 16, 4)
    assert content(target) == made
    with pytest.raises(UserError, match="is not what this merge makes"):
        assay.merge(folders[::-1], target)
    changed(target, "responses.jsonl", 0, response="edited")
    with pytest.raises(UserError, match="is not what this merge makes"):
        assay.merge(folders, target)
    for other in (lab.folder / "out", lab.folder / "model.py"):
        with pytest.raises(UserError, match="is not what this merge makes"):
            assay.merge(folders, other)
    (lab.folder / "empty").mkdir()
    assert assay.merge(folders, lab.folder / "empty").new


def test_killed_at_any_moment(lab: Lab) -> None:
    """The process ends, without any cleaning up, when it is about to sync or rename for the n-th time."""
    folders = shards(lab, [0, 1, 2], [3])
    before = [content(folder) for folder in folders]
    target = lab.folder / "all"
    moment = -1
    while moment < 99:
        moment += 1
        process = multiprocessing.get_context("fork").Process(
            target=_merge_until, args=(folders, target, moment)
        )
        process.start()
        process.join()
        assert process.exitcode in (0, 9)
        assert [content(folder) for folder in folders] == before
        if target.exists():  # then it is whole
            assert measured(target) == measured(lab.folder / "out")
        assay.merge(folders, target)
        assert measured(target) == measured(lab.folder / "out")
        assert not (lab.folder / ".all.merging" / "all").exists()
        if process.exitcode == 0:
            break
        shutil.rmtree(target)
    assert 15 < moment < 99


def _merge_until(folders: list[Path], target: Path, moment: int) -> None:
    left = [moment]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def ending(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return call(*arguments)

        return ending

    os.replace, os.fsync = counted(os.replace), counted(os.fsync)
    assay.merge(folders, target)
    os._exit(0)


def test_one_merge_at_a_time(lab: Lab) -> None:
    folders = shards(lab, [0, 1], [2, 3])
    with FolderLock(lab.folder / ".all.merging"), pytest.raises(LockedError):
        assay.merge(folders, lab.folder / "all")


def test_a_source_that_changes_meanwhile(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = shards(lab, [0, 1], [2, 3])
    write = merging.MergedFolder.write

    def and_change(self: Any, merged: Any) -> None:
        write(self, merged)
        with (folders[0] / "responses.jsonl").open("ab") as file:
            file.write(lines(folders[1] / "responses.jsonl")[0] + b"\n")

    monkeypatch.setattr(merging.MergedFolder, "write", and_change)
    with pytest.raises(StoreError, match="has changed while it was merged"):
        assay.merge(folders, lab.folder / "all")
    assert not (lab.folder / "all").exists()


# ---- what else is in a folder


def test_damaged_rows_are_left_out_and_made_again(lab: Lab) -> None:
    folders = shards(lab, [0, 1], [2, 3])
    file = folders[0] / "responses.jsonl"
    damaged = bytearray(file.read_bytes())
    damaged[3] ^= 1
    file.write_bytes(damaged)
    merged = assay.merge(folders, lab.folder / "all")
    assert merged.responses < 8
    assert merged.partial
    assert any("damaged" in note for note in merged.notes)
    assay.run(lab.folder / "all" / "config.yaml")
    assert len(rows(lab.folder / "all", "responses.jsonl")) == 8


def test_calls_and_people_s_labels_come_along(lab: Lab) -> None:
    folders = shards(lab, [0, 1], [1, 2])
    for number, folder in enumerate(folders):
        calls = [
            {
                "key": digest("call", b"%d" % at).hex(),
                "item_id": f"q{at}",
                "owner": "judge",
                "model_name": "m",
                "timestamp": float(number),
            }
            | {"completion": {"text": f"{number}", "prompt_tokens": 3, "total_tokens": 3}}
            for at in (number, number + 1)
        ]
        (folder / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls))
        (folder / "labels.jsonl").write_text('{"a": 1}\n' + f'{{"b": {number}}}\n')
    wanted: dict[Any, list[str]] = {"first": ["0", "0", "1"], "newest": ["0", "1", "1"]}
    for prefer, kept in wanted.items():
        target = lab.folder / prefer
        assay.merge(folders, target, prefer=prefer)
        calls = sorted(rows(target, "calls.jsonl"), key=lambda call: call["item_id"])
        assert [call["completion"]["text"] for call in calls] == kept
        assert rows(target, "labels.jsonl") == [{"a": 1}, {"b": 0}, {"b": 1}]


def test_what_cannot_be_merged(lab: Lab) -> None:
    out = lab.folder / "out"
    for paths, said in (
        ([out], "nothing to merge"),
        ([out, out], "given twice"),
        ([out, lab.folder / "none"], "no file or folder"),
        ([out, out / "responses.jsonl"], "given twice"),
        ([out, lab.folder / "items.jsonl"], "no responses of an experiment"),
    ):
        with pytest.raises(AssayError, match=said):
            assay.merge(paths, lab.folder / "all")
    assert not (lab.folder / "all").exists()


def test_a_stranger_s_config_does_not_become_the_users_word(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = shards(lab, [0, 1], [2, 3])
    code = lab.write("metric.py", "def mine(rows):\n    raise SystemExit('this ran')\n")
    for folder in folders:
        config = (
            (folder / "config.yaml")
            .read_text()
            .replace(
                "metrics:\n",
                f"metrics:\n- name: mine\n  type: custom\n  path: {code}\n  function_name: mine\n",
                1,
            )
        )
        (folder / "config.yaml").write_text(config)
    merged = assay.merge(folders, lab.folder / "all")
    assert any(
        "there are no metrics: this folder is not of your Assay's making" in note
        for note in merged.notes
    )
    with pytest.raises(UserError, match="not of your Assay's making"):
        assay.aggregate(lab.folder / "all")


def test_rows_in_segments_as_workers_leave_them(lab: Lab) -> None:
    folders = shards(lab, [0, 1], [2, 3])
    for name in FILES.values():
        file = folders[1] / name
        (folders[1] / file.stem).with_suffix(".d").mkdir()
        every = lines(file)
        file.write_bytes(b"".join(line + b"\n" for line in every[:1]))
        segment = (folders[1] / file.stem).with_suffix(".d") / "1.jsonl"
        segment.write_bytes(b"".join(line + b"\n" for line in every[1:]))
    before = content(folders[1])
    merged = assay.merge(folders, lab.folder / "all")
    assert (merged.responses, merged.evaluations, merged.partial) == (8, 16, "")
    assert measured(lab.folder / "all") == measured(lab.folder / "out")
    assert content(folders[1]) == before


def test_answers_that_have_not_met(lab: Lab) -> None:
    """Where models were shared out, scorers that look at answers of several have more to do."""
    folders = [lab.folder / name for name in ("one", "two")]
    for folder, name in zip(folders, ("calculator", "other"), strict=True):
        lab.config["models"] = [lab.model(name)]
        lab.run(output_dir=str(folder))
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["evaluation"]["plan"]["scorers"][0]["player"] = "model_name"
        (folder / "manifest.json").write_text(json.dumps(manifest))
    merged = assay.merge(folders, lab.folder / "all")
    assert any("have not met" in note for note in merged.notes)
    assert merged.partial == "32 evaluations, unfinished"


def test_imported_folders(tmp_path: Path) -> None:
    examples = Path(__file__).parents[3] / "examples" / "new_output_structure"
    folders = [tmp_path / "one", tmp_path / "two"]
    imported, _ = (assay.import_(examples, folder)[0] for folder in folders)
    merged = assay.merge(folders, tmp_path / "all")
    assert (merged.items, merged.responses) == (imported.items, sum(imported.responses.values()))
    assert (merged.planned, merged.partial, merged.decided) == (merged.responses, "", 0)
    assert merged.metrics
    diff = assay.diff(folders[0], tmp_path / "all")
    assert (diff.plan, diff.config) == (None, None)  # an import has no settings of its own
    assert diff.answers is not None
    assert diff.answers.changed == 0


def test_a_folder_that_is_run_by_assay_and_an_imported_one(lab: Lab) -> None:
    examples = Path(__file__).parents[3] / "examples" / "new_output_structure"
    assay.import_(examples, lab.folder / "imported")
    with pytest.raises(UserError, match="responses: run by Assay in out, imported in imported"):
        assay.merge([lab.folder / "out", lab.folder / "imported"], lab.folder / "all")
