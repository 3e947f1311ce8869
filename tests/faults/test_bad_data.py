"""Datasets and templates with something wrong: found before any call, with the place and the way out."""

import pytest

from tests.cli.shell import Ended, Shell, question

pytestmark = pytest.mark.slow
STRANGE_IDS = [
    "a/b/c",
    "../../x",
    "/etc/passwd",
    "..",
    ".",
    "...hidden",
    "C:\\windows\\x",
    "“quoted” 'and' \"more\"",
    "日本語 ünïcödé 🙂",
    "new\nline",
    "tab\tand\x1b[2Jescape",
    "null\x00byte",
    "$(touch owned)",
    "{{7*7}}",
    "[red]x[/red]",
    "%s%n",
    "x" * 10_000,
    " ",
]


def refused(shell: Shell, *words: str) -> Ended:
    """The run is refused as the user's mistake, before the server got anything and anything was stored as a row."""
    with shell.counted() as calls:
        result = shell.run(*words)
    assert result.code == 2, result.said
    assert calls["requests"] == 0
    assert shell.lines() == []
    return result


def test_a_given_id_that_repeats_is_refused_with_both_places(shell: Shell) -> None:
    shell.rows = [question(0), question(1), question(2), question(1)]
    said = refused(shell).err
    assert "two items have the id 'q1'" in said
    assert f"{shell.folder / 'items.jsonl'}:2 and {shell.folder / 'items.jsonl'}:4" in said


@pytest.mark.parametrize(
    ("name", "text", "place", "said"),
    [
        ("bad.jsonl", '{"question": "1"}\n\n{"question": \n', ":3", "not JSON"),
        ("bad.jsonl", '{"question": "1"}\n[1, 2]\n', ":2", "expected an object, found list"),
        (
            "bad.jsonl",
            '{"question": "1", "id": {"a": 1}}\n',
            ":1",
            "an id must be text or a number",
        ),
        ("bad.json", '[{"question": "1"}, 7]', " [1]", "expected an object, found int"),
        ("bad.json", '{"rows": []}', "", "expected a list"),
        ("bad.csv", "question,answer\n1,2\n1,2,3\n", ":3", "1 more fields than the header has"),
        ("empty.jsonl", "", "", "the dataset has no items"),
        ("empty.json", "[]", "", "the dataset has no items"),
        ("empty.csv", "question,answer\n", "", "the dataset has no items"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(
    shell: Shell, name: str, text: str, place: str, said: str
) -> None:
    shell.write(name, text)
    shell.config["dataset"] = name
    message = refused(shell).err
    assert said in message
    if not said.endswith("no items"):
        assert f"{shell.folder / name}{place}" in message


def test_a_bad_dataset_does_not_touch_the_rows_that_are_there(shell: Shell) -> None:
    assert shell.run().code == 0
    before = {
        name: text
        for name, text in shell.files().items()
        if name.startswith("out/") and name.endswith("l")
    }
    shell.rows[2] = {"id": "q1"}
    assert shell.run().code == 2
    after = shell.files()
    assert {name: after[name] for name in before if name != "out/config.yaml"} == {
        name: text for name, text in before.items() if name != "out/config.yaml"
    }


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("What is {{qestion}}?", "did you mean 'question'?"),
        ("{% if data.nothing.here %}{{question}}{% endif %}", "nothing"),
        ("{{ question.__class__.__mro__ }}", "unsafe"),
        ("{{ 1 // 0 }}", "zero"),
    ],
)
def test_a_template_that_cannot_be_rendered_is_found_before_any_call(
    shell: Shell, template: str, said: str
) -> None:
    shell.config["prompt_template"] = template
    message = refused(shell).err
    assert "item 'q0'" in message
    assert f"{shell.folder / 'items.jsonl'}:1" in message
    assert said in message


def test_a_field_that_one_late_item_lacks_is_found_before_any_call(shell: Shell) -> None:
    shell.rows.append(
        {"id": "late", "data": {"questoin": "1 + 1"}, "ground_truth": {"answer": "2"}}
    )
    message = refused(shell).err
    assert "item 'late'" in message
    assert "did you mean 'questoin'?" in message
    assert "items.jsonl:5" in message


def test_strange_ids_stay_ids(shell: Shell) -> None:
    """Whatever an id looks like, it is never a path, a template, markup or a command."""
    shell.rows = [{**question(number), "id": id} for number, id in enumerate(STRANGE_IDS)]
    shell.config["metrics"] = [{"name": "pass_rate", "facets": ["item_id"]}]
    outside = shell.folder.parent
    before = {path for path in outside.rglob("*") if shell.folder not in path.parents}
    result = shell.run("--json")
    assert result.code == 0
    shown = shell.run("--no-progress")
    assert shown.code == 0
    assert "\x1b[2J" not in shown.said
    assert "[red]x[/red]" in shown.out
    for name in ("responses.jsonl", "evaluation_results.jsonl"):
        assert sorted(row["item_id"] for row in shell.read(name)) == sorted(STRANGE_IDS)
    assert {path for path in outside.rglob("*") if shell.folder not in path.parents} == before
    assert not (shell.folder / "owned").exists()
    assert all(row["value"] == 1.0 for row in result.result["metrics"])


def test_model_answers_that_are_no_text_are_rows(shell: Shell) -> None:
    shell.write(
        "models.py",
        """
        def surrogate(prompt): return "\\ud800 broken"
        def number(prompt): return 7
        def nothing(prompt): return None
        def leaves(prompt): raise SystemExit(3)
        def control(prompt): return "\\x1b[2J\\x07\\x00"
        """,
    )
    names = ("surrogate", "number", "nothing", "leaves", "control")
    shell.config["models"] = [f"models.py:{name}" for name in names]
    result = shell.run()
    assert result.code == 1
    assert "\x1b[2J" not in result.said
    assert len(shell.keys()) == len(shell.lines()) == 20
    rows = {row["model_name"]: row for row in shell.read()}
    assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(
        names, "errored"
    ) | {"control": "ok"}
    assert "cannot be written as JSON" in rows["surrogate"]["error"]
    assert "SystemExit: 3" in rows["leaves"]["error"]
    assert rows["control"]["response"] == "\x1b[2J\x07\x00"
