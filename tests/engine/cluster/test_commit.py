"""Which rows become one segment."""

from pathlib import Path

import pytest

from assay.engine.cluster.commit import CommittedLog, Committer
from assay.store.shared.objects import FolderObjects
from assay.store.shared.segments import Segments

GROUP, CHUNK = 64, 50
LINES = [b'"%0997d"\n' % number for number in range(8 * CHUNK)]


@pytest.mark.parametrize("name", ["responses.jsonl", "evaluation_results.jsonl"])
def test_labels_are_committed_in_larger_groups(tmp_path: Path, name: str) -> None:
    segments = Segments(FolderObjects(tmp_path / "root"), "log/", None)
    committer = Committer([segments], GROUP, seconds=60.0)
    log = CommittedLog(tmp_path / name, segments, committer)
    for start in range(0, len(LINES), CHUNK):
        log.append(b"".join(LINES[start : start + CHUNK]))
    committer.flush()
    committer.close()
    contents = [file.read_bytes() for file in sorted((tmp_path / "root" / "log").iterdir())]
    assert b"".join(contents) == b"".join(LINES)
    largest = max(content.count(b"\n") for content in contents)
    if name == "responses.jsonl":
        assert largest < GROUP + CHUNK
        assert log.path.read_bytes() == b"".join(LINES)
    else:
        assert largest == len(LINES)
        assert not log.path.exists()  # no step reads the labels that it made
