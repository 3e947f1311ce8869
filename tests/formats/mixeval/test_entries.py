"""MixEval's data as items: where it is found, in which shapes, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay import reading
from assay.errors import ConfigError, UserError
from assay.formats.mixeval.dataset import benchmark_name, data_files, mixeval, stamp
from tests.formats.mixeval.folder import (
    VERSION,
    free_form,
    items,
    multiple_choice,
    numbered,
    write_data,
)

FREE = [free_form("2 + 3?", "5", "five", benchmark_name="GSM8k"), free_form("Who?", "Ada")]
MULTIPLE = [multiple_choice(), multiple_choice("Which is a tool?", 1, context="a shed")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_data(tmp_path, FREE, MULTIPLE)
    return tmp_path


# ---- where


def test_a_data_folder_a_version_s_folder_and_a_benchmark_s_folder(data: Path) -> None:
    expected = [item.id for item in items(data)]
    assert sorted(expected) == [
        "free-form/0",
        "free-form/1",
        "multiple-choice/0",
        "multiple-choice/1",
    ]
    assert [item.id for item in items(data / f"mixeval-{VERSION}")] == expected
    assert [item.id for item in items(data / f"mixeval-{VERSION}", version="")] == expected
    assert [
        item.id for item in items(data / f"mixeval-{VERSION}" / "mixeval", version="")
    ] == expected


@pytest.mark.parametrize("name", ["mixeval_hard", "mixeval-hard", "MixEval-Hard"])
def test_the_hard_folder_has_a_hyphen(data: Path, name: str) -> None:
    write_data(data, FREE[:1], MULTIPLE[:1], benchmark="mixeval_hard")
    assert benchmark_name(name) == "mixeval_hard"
    assert {item.metadata["benchmark"] for item in items(data, benchmark=name)} == {"mixeval_hard"}
    assert len(items(data, benchmark=name)) == 2


def test_unknown_benchmarks_and_versions_name_the_nearest(data: Path) -> None:
    with pytest.raises(UserError, match="unknown benchmark 'mixeval_easy'") as error:
        items(data, benchmark="mixeval_easy")
    assert "mixeval_hard" in error.value.fix
    with pytest.raises(UserError, match="'2024-08-12'") as error:
        items(data, version="2024-08-12")
    assert VERSION in error.value.fix
    with pytest.raises(UserError, match="another version"):
        items(data / f"mixeval-{VERSION}", version="2024-06-01")
    with pytest.raises(UserError, match="there is no folder"):
        items(data / "nowhere")


def test_both_files_are_needed(data: Path) -> None:
    data_files(str(data), VERSION, "mixeval")["multiple-choice"].unlink()
    with pytest.raises(UserError, match="there is no mixeval"):
        items(data)


# ---- items


def test_an_entry_as_an_item(data: Path) -> None:
    found = {item.id: item for item in items(data)}
    item = found["multiple-choice/1"]
    entry = {key: value for key, value in MULTIPLE[1].items() if key != "target"}
    assert {key: item.data[key] for key in entry} == entry
    assert item.data["formated_input"].startswith("a shed\nWhich is a tool?\nA. apple\nB. hammer\n")
    assert item.ground_truth == [1]
    assert item.metadata["benchmark_name"] == "MMLU"
    assert item.metadata["problem_type"] == "multiple-choice"
    assert found["free-form/0"].ground_truth == ["5", "five"]


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        (free_form(target="5"), ["5"]),
        (free_form(target="['5', 'it\\'s five']"), ["5", "it's five"]),
        (free_form(target='["5", "five"]'), ["5", "five"]),
        (free_form(target="[1, 2) is an interval"), ["[1, 2) is an interval"]),
        (multiple_choice(target=["1"]), [1]),
        (multiple_choice(target="1"), [1]),
        (multiple_choice(target="['1']"), [1]),
        (multiple_choice(target="[1]"), [1]),
        (multiple_choice(target=[1, 0]), [1, 0]),
        (multiple_choice(target="['1', '0']"), [1, 0]),
    ],
)
def test_targets_may_be_texts_as_on_the_hub(
    tmp_path: Path, entry: dict[str, Any], target: list[Any]
) -> None:
    kind = entry["problem_type"]
    write_data(
        tmp_path,
        [entry] if kind == "free-form" else FREE,
        [entry] if kind != "free-form" else MULTIPLE,
    )
    found = {item.id: item for item in items(tmp_path)}
    assert found[f"{kind}/0"].ground_truth == target


def test_the_kind_comes_from_the_file_not_from_the_entry(tmp_path: Path) -> None:
    write_data(
        tmp_path, [free_form(problem_type="other")], [multiple_choice(problem_type="single-choice")]
    )
    assert [item.metadata["problem_type"] for item in items(tmp_path)] == [
        "free-form",
        "multiple-choice",
    ]


def test_lists_and_lines_are_read_like_objects(tmp_path: Path) -> None:
    write_data(tmp_path, FREE, MULTIPLE)
    expected = items(tmp_path)
    with_ids = [{"id": key, **entry} for key, entry in numbered(FREE).items()]
    for free in (
        json.dumps(FREE),
        "\n".join(map(json.dumps, FREE)),
        json.dumps(with_ids),
        json.dumps(with_ids, indent=2),
    ):
        write_data(tmp_path, free, MULTIPLE)
        assert items(tmp_path) == expected


def test_ids_need_not_be_contiguous(tmp_path: Path) -> None:
    write_data(tmp_path, json.dumps({"7": FREE[0], "3": FREE[1]}), MULTIPLE)
    assert [
        item.id for item in items(tmp_path) if item.metadata["problem_type"] == "free-form"
    ] == [
        "free-form/7",
        "free-form/3",
    ]


def test_repeated_entries_are_items_of_one_content(tmp_path: Path) -> None:
    other = [
        multiple_choice("Which is a tool?"),
        multiple_choice(target=1),
        multiple_choice(context="x"),
        multiple_choice(benchmark_name="ARC"),
        multiple_choice(options=["hammer", "apple"]),
    ]
    write_data(tmp_path, [free_form()], [multiple_choice(), multiple_choice(more="kept"), *other])
    contents = {item.id: item.metadata["content"] for item in items(tmp_path)}
    assert contents["multiple-choice/0"] == contents["multiple-choice/1"]
    assert len(set(contents.values())) == 2 + len(other)


def test_rows_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `datasets` gives them: ints or texts as ids, null for what a split lacks, no ids at all."""
    asked: list[dict[str, Any]] = []
    splits = {
        "free_form": [
            {"id": 4, **free_form(), "options": None},
            {"id": "9", **free_form("Who?", "Ada")},
        ],
        "multiple_choice": [{"id": None, **multiple_choice()}, multiple_choice(target=1)],
    }

    def hf(name: str, **given: Any) -> Any:
        asked.append({"name": name, **given})
        return ((f"{name} row {n}", row) for n, row in enumerate(splits[given["split"]], 1))

    hf.__assay__ = {"stamp": lambda name, **given: {"revision": f"{name} {given['split']}"}}  # type: ignore[attr-defined]
    monkeypatch.setattr("assay.formats.mixeval.dataset.dataset.get", lambda name: {"hf": hf}[name])
    found = items("hf:MixEval/MixEval", benchmark="mixeval_hard")
    assert sorted(item.id for item in found) == [
        "free-form/4",
        "free-form/9",
        "multiple-choice/0",
        "multiple-choice/1",
    ]
    assert {(one["name"], one["subset"], one["revision"]) for one in asked} == {
        ("MixEval/MixEval", "MixEval_Hard", "")
    }
    list(mixeval("hf:MixEval/MixEval", version="main"))
    assert {(one["subset"], one["revision"]) for one in asked[2:]} == {("MixEval", "main")}
    assert "MixEval/MixEval multiple_choice" in str(stamp("hf:MixEval/MixEval", version=VERSION))


def test_a_changed_file_has_another_stamp(data: Path) -> None:
    first = stamp(str(data), version=VERSION)
    assert stamp(str(data), version=VERSION) == first
    write_data(data, FREE, [*MULTIPLE, multiple_choice("More?")])
    assert stamp(str(data), version=VERSION) != first


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": None}, "it has 0 options"),
        ({"options": []}, "it has 0 options"),
        ({"options": ["only"]}, "it has 1 option,"),
        ({"options": [str(n) for n in range(27)]}, "it has 27 options"),
        ({"target": [2]}, "none of its 2 options"),
        ({"target": [-1]}, "none of its 2 options"),
        ({"target": [2, 0]}, "none of its 2 options"),
        ({"target": []}, "a list with at least one answer"),
        ({"target": ["A"]}, "none of its 2 options"),
        ({"target": [True]}, "none of its 2 options"),
        ({"target": []}, "`target` must be a list"),
        ({"target": 0}, "`target` must be a list"),
        ({"prompt": None}, "no `prompt`"),
        ({"benchmark_name": 3}, "no `benchmark_name`"),
    ],
)
def test_entries_of_multiple_choice_that_cannot_be(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    write_data(tmp_path, FREE, [*MULTIPLE, {**multiple_choice(), **change}])
    with pytest.raises(ConfigError) as error:
        items(tmp_path)
    assert said in str(error.value)
    assert "'multiple-choice/2'" in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": [5]}, "must be texts"),
        ({"benchmark_name": "QuAc"}, "no prompt for QuAc"),
    ],
)
def test_entries_of_free_form_that_cannot_be(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    write_data(tmp_path, [{**free_form(), **change}], MULTIPLE)
    with pytest.raises(ConfigError, match="1 problem") as error:
        items(tmp_path)
    assert said in str(error.value)


def test_several_problems_at_once_but_not_thousands(tmp_path: Path) -> None:
    write_data(tmp_path, FREE, [multiple_choice(target=9)] * 3)
    with pytest.raises(ConfigError, match="3 problems"):
        items(tmp_path)
    write_data(tmp_path, FREE, [multiple_choice(target=9)] * 300)
    with pytest.raises(ConfigError, match="5 problems"):
        items(tmp_path)


@pytest.mark.parametrize("cut", [-1, -20, 30])
def test_half_a_file(tmp_path: Path, cut: int) -> None:
    write_data(tmp_path, json.dumps(numbered(FREE))[:cut], MULTIPLE)
    with pytest.raises(UserError, match="not whole JSON") as error:
        items(tmp_path)
    assert "free-form.json" in error.value.where


@pytest.mark.parametrize(
    "free", ['{"0": {', json.dumps(numbered([free_form(benchmark_name="QuAc")] * 9))]
)
def test_an_error_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: str
) -> None:
    write_data(tmp_path, free, MULTIPLE * 9)
    opened: list[Any] = []
    real = reading.opened
    monkeypatch.setattr(
        reading, "opened", lambda path, *how: opened.append(real(path, *how)) or opened[-1]
    )
    with pytest.raises(UserError) as error:
        items(tmp_path)
    assert error.value.__traceback__ is not None, "the frames of the readers are still there"
    assert opened
    assert all(file.closed for file in opened)


def test_an_entry_that_is_no_object(tmp_path: Path) -> None:
    write_data(tmp_path, json.dumps([FREE[0], "x"]), MULTIPLE)
    with pytest.raises(UserError, match="must be an object, found str"):
        items(tmp_path)


# ---- corrections


def corrected(data: Path, written: str) -> list[Any]:
    file = data / "corrections.json"
    file.write_text(written)
    return items(data, corrections=str(file))


@pytest.mark.parametrize("shape", ["list", "object", "lines"])
def test_entries_are_left_out_or_get_other_targets(data: Path, shape: str) -> None:
    changes = [{"id": "free-form/1", "exclude": True}, {"id": "multiple-choice/0", "target": [1]}]
    by_id = {
        str(change["id"]): {k: v for k, v in change.items() if k != "id"} for change in changes
    }
    written = {
        "list": json.dumps(changes),
        "object": json.dumps(by_id),
        "lines": "\n".join(map(json.dumps, changes)),
    }
    found = {item.id: item for item in corrected(data, written[shape])}
    assert set(found) == {"free-form/0", "multiple-choice/0", "multiple-choice/1"}
    assert found["multiple-choice/0"].ground_truth == [1]


def test_an_entry_that_cannot_be_can_be_left_out(tmp_path: Path) -> None:
    write_data(tmp_path, FREE, [*MULTIPLE, multiple_choice(options=["only"])])
    assert len(corrected(tmp_path, '[{"id": "multiple-choice/2", "exclude": true}]')) == 4


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('[{"id": "free-form/99", "exclude": true}]', "'free-form/99', which is not an entry"),
        ('[{"id": "12", "exclude": true}]', "needs an id such as free-form/12"),
        ('[{"exclude": true}]', "needs an id such as free-form/12"),
        ('[{"id": "free-form/1"}]', "changes nothing"),
        ('[{"id": "free-form/1"', "are not JSON"),
        ('[{"id": "multiple-choice/0", "target": [7]}]', "none of its 2 options"),
    ],
)
def test_corrections_that_are_wrong(data: Path, written: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        corrected(data, written)
    assert said in str(error.value)


def test_a_missing_corrections_file(data: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        items(data, corrections=str(data / "none.json"))
