"""`assay verify`: what was stored follows from the rows, or is named; nobody is asked and nothing is written."""

import json
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import assay
from assay.analysis.verify.replay import NOT_LOGGED
from assay.analysis.verify.verify import Tally, Verified
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.experiment.trust import stored_config
from assay.errors import UserError
from tests.analysis.verify.lab import config_of, rows_of, run, save_rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, then one with another prompt, so that rows are set aside; and what people labelled."""
    folder = tmp_path_factory.mktemp("verified")
    run(folder, prompt_template="{{question}} ")
    out = run(folder)
    assert (out / "superseded" / "responses.jsonl").stat().st_size
    return out


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "out"))


def verified(out: Path, **options: Any) -> Verified:
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (found,) = assay.verify(out, **options)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before, (
        "verifying writes nothing"
    )
    return found


def part(found: Verified, name: str, what: str = "") -> Tally:
    return next(each for each in found.checked if each.name == name and what in ("", each.part))


def numbers(checked: Tally) -> tuple[int, int, int]:
    return checked.verified, checked.differ, checked.unverified


def edit(file: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    rows = rows_of(file)
    change(rows)
    save_rows(file, rows)


def test_a_run_is_verified_in_all_its_parts(out: Path) -> None:
    found = verified(out)
    assert found.ok, found
    assert not found.faults
    files = {path for path in out.rglob("*") if path.is_file()}
    assert numbers(part(found, "seals")) == (len(files), 0, 0), "every file of the folder is sealed"
    assert {".lock", "manifest.json", "calls.jsonl", "traces.jsonl", "answers.csv"} <= {
        path.name for path in files
    }
    for scorer in ("exact_match", "right", "careful"):
        assert numbers(part(found, scorer)) == (8, 0, 0)
    assert numbers(part(found, "pass@1")) == (3, 0, 0)
    assert numbers(part(found, "mean")) == (3, 0, 0)
    assert not found.differences


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_flipped_bit_is_found_and_its_file_named(made: Path, data: st.DataObject) -> None:
    files = sorted(path for path in made.rglob("*") if path.is_file())
    file = data.draw(st.sampled_from(files))
    before = file.read_bytes()
    bit = data.draw(st.integers(0, len(before) * 8 - 1))
    flipped = bytearray(before)
    flipped[bit // 8] ^= 1 << bit % 8
    try:
        file.write_bytes(flipped)
        (found,) = assay.verify(made)
    finally:
        file.write_bytes(before)
    assert not found.ok
    name = str(file.relative_to(made))
    assert name in {fault.file for fault in found.faults if fault.kind == "damaged"}
    assert part(found, "seals").differ == 1, "and no other file is"


def test_a_damaged_name_in_the_manifest_is_no_traceback(out: Path) -> None:
    """The parts of a plan, whose names everything else relies on."""
    file = out / "manifest.json"
    before = file.read_bytes()
    for match in re.finditer(rb'"(name|identity|params|type)":', before):
        flipped = bytearray(before)
        flipped[match.start(1)] ^= 1
        file.write_bytes(flipped)
        assert not verified(out).ok


def test_a_damaged_seal_says_nothing_about_its_file(out: Path) -> None:
    file = out / "manifest.json"
    before = file.read_bytes()
    places = [
        match.start(1) for match in re.finditer(rb'"checksums": ?{\s*"[^"]+": ?"([^"]+)', before)
    ]
    assert places
    for place in places:
        flipped = bytearray(before)
        flipped[place] ^= 1
        file.write_bytes(flipped)
        found = verified(out)
        assert not found.ok
        assert {fault.file for fault in found.faults if fault.kind == "damaged"} == {file.name}
        assert any("which is damaged itself" in fault.what for fault in found.faults)


def test_damage_is_named_with_block_and_lines(out: Path) -> None:
    file = out / "calls.jsonl"
    content = bytearray(file.read_bytes())
    content[200] ^= 4
    file.write_bytes(content)
    (fault,) = verified(out).faults
    assert fault.file == "calls.jsonl"
    assert fault.what.startswith("block 1 (bytes 0 to ")
    assert "lines 1 to " in fault.what


def test_a_file_that_is_gone_cut_or_has_grown_is_told(out: Path) -> None:
    (out / "traces.jsonl").unlink()
    config = out / "status.json"
    config.write_bytes(config.read_bytes()[:-5])
    with (out / "responses.jsonl").open("ab") as file:
        file.write((out / "responses.jsonl").read_bytes().splitlines(keepends=True)[0])
    told = {fault.file: fault for fault in verified(out).faults}
    assert told["traces.jsonl"].kind == "missing"
    assert told["status.json"].kind == "damaged"
    assert "were added after" in told["responses.jsonl"].what
    assert told["responses.jsonl"].kind == "damaged", "the run was complete"


def test_labels_that_people_add_later_are_not_sealed_and_no_damage(out: Path) -> None:
    (out / "labels.jsonl").write_text('{"item":"q1","label":1}\n')
    found = verified(out)
    assert found.ok
    assert [(fault.file, fault.kind) for fault in found.faults] == [("labels.jsonl", "unsealed")]
    assert part(found, "seals").unverified == 1


def test_a_table_that_is_exported_again_is_intact_and_one_that_was_edited_is_not(out: Path) -> None:
    (out / "answers.csv").write_text("mine\n")
    assert not verified(out).ok
    assay.export(out, table="evaluations", output=out / "answers.csv", force=True)
    assert verified(out).ok


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("score", 0.25),
        ("passed", False),
        ("outcome", "skipped"),
        ("label", "other"),
        ("detailed_results", {"a": 1}),
    ],
)
def test_a_changed_label_differs(out: Path, field: str, value: Any) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["scorer"] == "exact_match" and row["passed"])
        row[field] = value

    edit(out / "evaluation_results.jsonl", change)
    found = verified(out)
    assert not found.ok
    assert numbers(part(found, "exact_match")) == (7, 1, 0)
    assert numbers(part(found, "right")) == (8, 0, 0)
    difference = found.differences[0]
    assert difference.field.partition(".")[0] == field
    assert difference.where == "labels"


def test_a_last_bit_of_a_score_is_rounding_and_more_is_not(out: Path) -> None:
    for factor, differ in ((1 + 1e-13, 0), (1 + 1e-11, 1)):
        shutil.copy(out / "evaluation_results.jsonl", out / "kept")

        def change(rows: list[dict[str, Any]], factor: float = factor) -> None:
            row = next(row for row in rows if row["scorer"] == "careful")
            row["score"] *= factor

        edit(out / "evaluation_results.jsonl", change)
        (found,) = assay.verify(out)
        assert part(found, "careful").differ == differ
        shutil.move(out / "kept", out / "evaluation_results.jsonl")


def test_the_order_of_rows_does_not_matter(out: Path) -> None:
    edit(out / "evaluation_results.jsonl", lambda rows: rows.reverse())
    assert numbers(part(verified(out), "exact_match")) == (8, 0, 0)


def test_a_missing_and_a_repeated_and_an_invented_label_are_told(out: Path) -> None:
    edit(out / "evaluation_results.jsonl", lambda rows: rows.pop())
    assert sum(each.differ for each in verified(out).checked if each.part == "labels") == 1
    edit(out / "evaluation_results.jsonl", lambda rows: rows.extend(rows[:1]))
    assert sum(each.differ for each in verified(out).checked if each.part == "labels") == 2
    edit(out / "evaluation_results.jsonl", lambda rows: rows.append({**rows[0], "item_id": "q9"}))
    assert any(difference.place.startswith("q9") for difference in verified(out).differences)


def test_a_changed_metric_differs_where_and_how_it_says(out: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[0]["value"] += 1e-9
        rows[1]["ci_low"] = 0.0
        rows[2]["total_item_count"] = 5

    edit(out / "metrics.jsonl", change)
    found = verified(out)
    assert {(each.where, each.name, each.field) for each in found.differences} == {
        ("metrics", "pass@1", "value"),
        ("metrics", "pass@1", "ci_low"),
        ("metrics", "pass@1", "total_item_count"),
    }
    assert numbers(part(found, "pass@1")) == (0, 3, 0)


def test_judges_answer_from_the_log_and_a_call_that_is_not_in_it_cannot_be_verified(
    out: Path,
) -> None:
    calls = rows_of(out / "calls.jsonl")
    save_rows(
        out / "calls.jsonl",
        [call for call in calls if (call["owner"], call["item_id"]) != ("right", "q1")],
    )
    found = verified(out)
    assert numbers(part(found, "right")) == (6, 0, 2)
    assert part(found, "right").reasons == {NOT_LOGGED: 2}
    assert numbers(part(found, "careful")) == (8, 0, 0)
    assert "calls.jsonl" in {fault.file for fault in found.faults}


def test_a_damaged_log_of_calls_is_not_sealed_by_the_next_run(tmp_path: Path) -> None:
    out = run(tmp_path)
    file = out / "calls.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"seconds":', b'"sekonds":', 1))
    run(tmp_path, evaluation_methods=["exact_match"])
    assert "calls.jsonl" in {
        fault.file for fault in verified(out).faults if fault.kind == "damaged"
    }


def test_a_judges_answer_that_was_changed_changes_the_label(out: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for call in rows:
            if call["owner"] == "careful":
                call["completion"]["text"] += "!"

    edit(out / "calls.jsonl", change)
    assert numbers(part(verified(out), "careful")) == (0, 8, 0)


def test_nothing_reaches_the_network(tmp_path: Path) -> None:
    """A scorer that asks somebody by itself cannot be verified."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
import socket

def asks(item, response):
    with socket.create_connection(("127.0.0.1", {port}), timeout=5):
        return True
"""
        config = config_of(tmp_path, metrics=[], outputs=[])
        (tmp_path / "asks.py").write_text(code)
        method = {
            "name": "asks",
            "type": "custom",
            "path": str(tmp_path / "asks.py"),
            "function_name": "asks",
        }
        assay.run({**config, "evaluation_methods": [method]})
        server.settimeout(5)
        for _ in range(8):
            server.accept()[0].close()
        (found,) = assay.verify(tmp_path / "out")
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
    assert numbers(part(found, "asks")) == (0, 0, 8)
    assert "verifying uses no network" in next(iter(part(found, "asks").reasons))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        pass  # and afterwards the network is there again


def test_a_scorer_whose_code_changed_is_named_and_its_labels_compared(tmp_path: Path) -> None:
    out = run(tmp_path)
    code = tmp_path / "code.py"
    code.write_text(code.read_text() + "\n# a comment\n")
    found = verified(out)
    assert found.ok
    assert any("careful is not the scorer" in note for note in found.notes)
    code.write_text(code.read_text().replace("/ 100", "/ 50"))
    found = verified(out)
    assert numbers(part(found, "careful")) == (0, 8, 0)
    assert numbers(part(found, "exact_match")) == (8, 0, 0)


def test_a_scorer_that_cannot_be_had_cannot_be_verified(tmp_path: Path) -> None:
    out = run(tmp_path)
    (tmp_path / "code.py").write_text(
        "import nowhere_to_be_found\n" + (tmp_path / "code.py").read_text()
    )
    found = verified(out)
    assert numbers(part(found, "careful"))[2] == 8
    assert "nowhere_to_be_found" in " ".join(part(found, "careful").reasons)
    assert numbers(part(found, "exact_match")) == (8, 0, 0)


def test_labels_of_another_config_need_that_config(tmp_path: Path) -> None:
    config = config_of(tmp_path, outputs=[])
    assay.run(config)
    other = {**config, "evaluation_methods": ["contains"], "metrics": ["pass_rate"]}
    assay.evaluate(tmp_path / "out", other)
    found = verified(tmp_path / "out")
    assert numbers(part(found, "contains")) == (0, 0, 8)
    assert numbers(part(found, "pass_rate")) == (0, 0, 1)
    found = verified(tmp_path / "out", config=other)
    assert numbers(part(found, "contains")) == (8, 0, 0)
    assert numbers(part(found, "pass_rate")) == (1, 0, 0)


def test_labels_of_responses_elsewhere_are_verified(out: Path, tmp_path: Path) -> None:
    assay.evaluate(
        out,
        {"evaluation_methods": ["contains"], "metrics": ["mean"]},
        output_dir=str(tmp_path / "more"),
    )
    found = verified(tmp_path / "more")
    assert found.ok
    assert numbers(part(found, "contains")) == (8, 0, 0)
    assert numbers(part(found, "mean")) == (1, 0, 0)


def test_matches_are_verified_in_both_seats(tmp_path: Path) -> None:
    config = config_of(tmp_path, metrics=["win_rate"], outputs=[])
    config["models"].append({"name": "demo", "type": "demo", "skill": 0.5})
    method = {"name": "better", "type": "judge_pairwise", "params": {"model": "strict"}}
    assay.run({**config, "evaluation_methods": [method]})
    found = verified(tmp_path / "out")
    assert found.ok, found.differences
    assert part(found, "better").verified == 16
    assert part(found, "win_rate").verified


def test_a_partial_run_is_verified_as_far_as_it_is(tmp_path: Path) -> None:
    assay.run(config_of(tmp_path, outputs=[]), limit=2)
    found = verified(tmp_path / "out")
    assert found.ok, found.differences
    assert numbers(part(found, "right")) == (4, 0, 0)


def test_failures_are_compared_too(tmp_path: Path) -> None:
    config = config_of(tmp_path, outputs=[], metrics=["mean"])
    code = "def model(prompt):\n    raise ValueError('no')\n\ndef score(item, response):\n    return 1 / 0\n"
    (tmp_path / "bad.py").write_text(code)
    method = {
        "name": "bad",
        "type": "custom",
        "path": str(tmp_path / "bad.py"),
        "function_name": "score",
    }
    assay.run({**config, "evaluation_methods": ["exact_match", method]})
    found = verified(tmp_path / "out")
    assert found.ok, found
    assert numbers(part(found, "bad")) == (8, 0, 0)


def test_imported_labels_cannot_be_computed_again_and_their_seals_hold(tmp_path: Path) -> None:
    row = {
        "question_id": "0",
        "question": "Who?",
        "prediction": "I",
        "metrics": {"f1": 1.0},
        "metadata": {},
    }
    camp = {"agent_name": "a", "dataset_name": "nq", "num_examples": 1, "predictions": [row]}
    (tmp_path / "x_predictions.json").write_text(json.dumps(camp))
    assay.import_(tmp_path / "x_predictions.json", tmp_path / "out")
    found = verified(tmp_path / "out")
    assert found.ok
    (labels,) = [each for each in found.checked if each.part == "labels"]
    assert numbers(labels) == (0, 0, 1)
    assert "another program's scorers" in " ".join(labels.reasons)
    file = tmp_path / "out" / "responses.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"I"', b'"J"'))
    assert not verified(tmp_path / "out").ok


READER = """
from assay.foreign import ForeignCase, Headline, key_of
from assay.records import Evaluation, Response
from assay.registry import reader


class Found:
    dataset, rejected, planned, facts = "theirs", 0, None, {}

    def __init__(self, path):
        self.source = {"path": path.name}

    def cases(self):
        for n in range(4):
            key = key_of("theirs", n)
            answer = Response(item_id=f"q{n}", sample_id=f"q{n}_sample_0", model_name="m", response="x", key=key)
            label = Evaluation(item_id=f"q{n}", label="acc", scorer="acc", model_name="m", score=float(n % 2), key=key,
                               passed=bool(n % 2), responses=[key])
            yield ForeignCase({"id": f"q{n}", "data": {"question": "?"}}, answer, [label])

    def notes(self):
        return []

    def headlines(self):
        return [
            Headline(label="acc", metric="accuracy", value=0.5),
            Headline(label="acc", metric="own", value=3.0, reason="it is computed by a formula of its own"),
        ]


def theirs(path):
    return [Found(path)]
"""


def test_headlines_of_another_program_are_computed_again(tmp_path: Path) -> None:
    (tmp_path / "reading.py").write_text(READER)
    (tmp_path / "log.txt").write_text("theirs")
    assay.import_(
        tmp_path / "log.txt", tmp_path / "out", format_name=f"{tmp_path / 'reading.py'}:theirs"
    )
    found = verified(tmp_path / "out")
    (headlines,) = [each for each in found.checked if each.part == "headlines"]
    assert numbers(headlines) == (1, 0, 1)
    assert list(headlines.reasons) == ["it is computed by a formula of its own"]
    assert numbers(part(found, "seals"))[1:] == (0, 0)

    edit(
        tmp_path / "out" / "evaluation_results.jsonl",
        lambda rows: rows[0].update(score=1.0, passed=True),
    )
    found = verified(tmp_path / "out")
    assert not found.ok
    theirs = [each for each in found.differences if each.where == "headlines"]
    assert ("ours", 0.5, 0.75) in [(each.field, each.stored, each.computed) for each in theirs]


def test_folders_below_are_all_verified_and_other_places_are_an_error(
    out: Path, tmp_path: Path
) -> None:
    shutil.copytree(out, tmp_path / "more" / "a")
    shutil.copytree(out, tmp_path / "more" / "b")
    assert [Path(found.folder).name for found in assay.verify(tmp_path / "more")] == ["a", "b"]
    (found,) = assay.verify(out / "responses.jsonl")
    assert found.folder == str(out)
    with pytest.raises(UserError, match="there is no experiment"):
        assay.verify(Path(__file__).parent)
    with pytest.raises(UserError, match="there is no file or folder"):
        assay.verify(tmp_path / "none")


def test_a_foreign_folder_is_not_run_before_it_is_trusted(out: Path) -> None:
    config = out / "config.yaml"
    config.write_bytes(config.read_bytes() + b"# changed\n")
    with pytest.raises(UserError, match="not of your Assay's making"):
        stored_config(out, "evaluate")
    found = verified(out)
    assert [fault.file for fault in found.faults] == ["config.yaml"]
    assert "not of your Assay's making" in " ".join(
        next(each for each in found.checked if each.part == "labels").reasons
    )


def test_a_folder_of_an_earlier_assay_says_what_is_not_sealed(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["seal"]
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    found = verified(out)
    assert found.ok
    assert {"manifest.json", "calls.jsonl", "config.yaml"} <= {fault.file for fault in found.faults}
    assert all(fault.kind == "unsealed" for fault in found.faults)


def test_verdicts_that_earlier_versions_gave_to_scores_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They passed above 0; another verdict is a change."""
    with monkeypatch.context() as earlier:
        earlier.setattr(BoundScorer, "verdicts", True)
        out = run(tmp_path, evaluation_methods=["f1"], metrics=["mean"])
    found = numbers(part(verified(out), "f1", "labels"))
    assert found[0] > 0
    assert found[1:] == (0, 0)

    def turn(rows: list[dict[str, Any]]) -> None:
        rows[0]["passed"] = not rows[0]["passed"]

    edit(out / "evaluation_results.jsonl", turn)
    assert part(verified(out), "f1", "labels").differ == 1
