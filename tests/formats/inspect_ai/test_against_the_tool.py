"""What an import reads of a log is what inspect_ai's own reader finds in it, in both forms of a log."""

import json
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.formats.inspect_ai.archive import Archive
from tests.formats.inspect_ai.lab import LOGS, imported, rows
from tests.formats.installed import needed

WHOLE = ["large.eval", "letters.eval", "tiny.eval", "tools.eval", "failed.eval"]
READ = """
import json, sys
from inspect_ai.log import read_eval_log, write_eval_log
log = read_eval_log(sys.argv[1], resolve_attachments=True)
write_eval_log(read_eval_log(sys.argv[1]), sys.argv[2])
rows = {}
for sample in log.samples:
    usage = sample.model_usage.get(log.eval.model) or sample.output.usage
    rows[f"{sample.id}/{sample.epoch - 1}"] = {
        "said": sample.output.completion,
        "texts": [message.text for message in sample.messages],
        "tokens": usage.total_tokens if usage else None,
        "failed": sample.error.message if sample.error else None,
        "scores": {name: score.value for name, score in (sample.scores or {}).items()},
        "target": sample.target,
        "events": len(sample.events),
    }
print(json.dumps(rows))
"""


def text(content: Any) -> str:
    """A message's text as inspect_ai joins it."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if part.get("type") == "text"]
    return "".join(part["text"] for part in parts)


def told(folder: Path) -> dict[str, dict[str, Any]]:
    """The same of our rows; a value for each label."""
    targets = {row["id"]: row["ground_truth"] for row in rows(folder, "items.jsonl")}
    events = {row["key"]: len(row["spans"][0]["events"]) for row in rows(folder, "traces.jsonl")}
    scores: dict[str, dict[str, Any]] = {}
    for row in rows(folder, "evaluation_results.jsonl"):
        if row["detailed_results"] or row["outcome"] == "scored":
            scores.setdefault(row["responses"][0], {})[row["label"]] = row["value"]
    return {
        f"{row['item_id']}/{row['sample_index']}": {
            "said": row["response"],
            "texts": [text(message["content"]) for message in row["messages"]],
            "tokens": row["total_tokens"],
            "failed": row["error"] if row["outcome"] == "errored" else None,
            "scores": scores.get(row["key"], {}),
            "target": targets[row["item_id"]],
            "events": events.get(row["key"], 0),
        }
        for row in rows(folder, "responses.jsonl")
    }


def flat(scores: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in scores.items():
        inner = (
            value
            if isinstance(value, dict)
            else dict(enumerate(value))
            if isinstance(value, list)
            else {"": value}
        )
        found |= {f"{name}.{key}" if key != "" else name: each for key, each in inner.items()}
    # NaN is no value
    return {name: None if value != value else value for name, value in found.items()}


@pytest.mark.peers
@pytest.mark.parametrize("name", WHOLE)
def test_rows_are_what_inspect_ai_reads(tmp_path: Path, name: str) -> None:
    other = tmp_path / "log.json"
    command = [str(needed("inspect_ai")), "-c", READ, str(LOGS / name), str(other)]
    expected = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    )
    for place, source in enumerate((LOGS / name, other)):
        imported(source, tmp_path / str(place))
        found = told(tmp_path / str(place))
        assert found.keys() == expected.keys()
        for key, theirs in expected.items():
            ours = found[key]
            assert ours["scores"] == flat(theirs["scores"])
            for field in ("said", "tokens", "failed", "target", "events"):
                assert ours[field] == theirs[field], (key, field)
            assert theirs["texts"][: len(ours["texts"])] == ours["texts"]
            assert len(theirs["texts"]) - len(ours["texts"]) in (0, 1)


NAMES = st.text(
    st.characters(exclude_characters="\x00/\\", exclude_categories=["Cs"]), min_size=1, max_size=9
)


def place_of(member: zipfile.ZipInfo) -> tuple[int, ...]:
    sizes = member.compress_size, member.file_size
    return (member.header_offset, *sizes, member.CRC, member.compress_type)


def places_of(members: Iterable[zipfile.ZipInfo]) -> dict[str, tuple[int, ...]]:
    return {member.filename: place_of(member) for member in members}


def members_of(path: Path) -> dict[str, tuple[int, ...]] | None:
    """As zipfile finds them; None if it finds none."""
    try:
        with zipfile.ZipFile(path) as file:
            return places_of(file.infolist())
    except zipfile.BadZipFile:
        return None


@given(
    st.dictionaries(NAMES, st.binary(max_size=40), max_size=5),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
def test_the_directory_is_as_zipfile_reads_it(
    tmp_path_factory: Any, content: dict[str, bytes], before: bytes, comment: bytes
) -> None:
    path = tmp_path_factory.mktemp("zip") / "log.eval"
    path.write_bytes(before)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            file.writestr(name, data)
        file.comment = comment
    archive = Archive(path)
    assert places_of(archive.members.values()) == members_of(path)
    assert not archive.torn
    with archive:
        assert {name: archive.read(member) for name, member in archive.members.items()} == content


@pytest.mark.parametrize("place", range(-22, 0))
def test_a_directory_that_lies_is_read_as_zipfile_does(tmp_path: Path, place: int) -> None:
    damaged = bytearray((LOGS / "tools.eval").read_bytes())
    damaged[place] ^= 1
    path = tmp_path / "log.eval"
    path.write_bytes(damaged)
    archive, expected = Archive(path), members_of(path)
    found = places_of(archive.members.values())
    assert archive.torn if expected is None else found == expected
