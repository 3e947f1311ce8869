"""Copies of a bucket's folder, with a folder in the bucket's place: what they have, what goes back, what is refused."""

import os
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import StoreError, UserError
from assay.records import Manifest, Segment
from assay.store.lock import FolderLock
from assay.store.shared.contents import MOST_FOREIGN
from assay.store.shared.objects import Entry, FolderObjects, open_objects
from assay.store.shared.probe import check
from assay.store.shared.replica import RECORD, Replica

SMALL = {"manifest.json", "metrics.json", "metrics.jsonl", "config.yaml", "status.json"}


class Counted(FolderObjects):
    """Counts what is fetched; `hidden` names are missing in listings, as in stale ones."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fetched: Counter[str] = Counter()
        self.hidden: set[str] = set()

    def fetch(self, name: str, path: Path) -> Entry | None:
        self.fetched[name] += 1
        return super().fetch(name, path)

    def names(self, prefix: str):
        return (entry for entry in super().names(prefix) if entry.name not in self.hidden)


def replica(tmp_path: Path, name: str = "copy") -> tuple[Counted, Replica]:
    bucket = Counted(tmp_path / "bucket")
    return bucket, Replica(bucket, tmp_path / name, tmp_path / "lock")


def files(folder: Path) -> dict[str, bytes]:
    every = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in every}


def fill(bucket: FolderObjects, prefix: str = "") -> None:
    contents = {
        "manifest.json": b"{}",
        "config.yaml": b"name: x",
        "responses.jsonl": b"{}\n",
        "generations/00001.json": b"{}",
        "generations/00002.json": b"{}",
        "responses.d/00001/00000/00000000.jsonl": b"old\n",
        "responses.d/00002/00000/00000000.jsonl": b"a\n",
        "responses.d/00002/00001/00000000.jsonl": b"b\n",
        "shards/00001/00000.json": b"old",
        "shards/00002/00000.json": b"{}",
        "claims/00002/00000/00000.json": b"{}",
        "workers/00002/w.json": b"{}",
    }
    for name, content in contents.items():
        bucket.write(prefix + name, content)


def test_a_copy_has_the_last_generation_and_no_claims(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    expected = {
        name for name in files(tmp_path / "bucket") if not name.startswith(("claims/", "workers/"))
    }
    expected -= {"responses.d/00001/00000/00000000.jsonl", "shards/00001/00000.json"}
    assert set(files(copy.folder)) == expected
    assert copy.folder.stat().st_mode & 0o777 == 0o700
    for name in expected:
        assert (
            os.stat(copy.folder / name).st_mtime_ns
            == os.stat(tmp_path / "bucket" / name).st_mtime_ns
        )


def test_an_object_is_fetched_once_and_again_when_it_changes(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    copy.update()
    assert set(bucket.fetched.values()) == {1}
    bucket.write("manifest.json", b"{ }")
    bucket.write("responses.d/00002/00000/00000001.jsonl", b"c\n")
    before = Counter(bucket.fetched)
    copy.update()
    assert bucket.fetched - before == {
        "manifest.json": 1,
        "responses.d/00002/00000/00000001.jsonl": 1,
    }


def test_a_new_generation_takes_the_place_of_the_old_one(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    bucket.write("generations/00003.json", b"{}")
    bucket.write("responses.d/00003/00000/00000000.jsonl", b"new\n")
    copy.update()
    segments = {name for name in files(copy.folder) if name.startswith("responses.d/")}
    assert segments == {"responses.d/00003/00000/00000000.jsonl"}


def test_a_list_of_experiments_fetches_small_files_only(tmp_path):
    bucket, copy = replica(tmp_path)
    for number in range(5):
        fill(bucket, f"team/run{number}/")
    copy.update(rows=False)
    assert {name.rpartition("/")[2] for name in bucket.fetched} <= SMALL
    assert len(bucket.fetched) == 10
    for name in list(files(tmp_path / "bucket")):
        if name.startswith("team/run3/"):
            bucket.delete(name)
    copy.update(rows=False)
    assert not (copy.folder / "team" / "run3").exists()
    assert (copy.folder / "team" / "run2" / "manifest.json").exists()


def test_a_list_leaves_rows_that_were_fetched_before(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    copy.update(rows=False)
    assert (copy.folder / "responses.jsonl").exists()


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "delete", "update"]),
            st.sampled_from(
                ["manifest.json", "responses.jsonl", "superseded/responses.jsonl", "labels.jsonl"]
            ),
            st.binary(max_size=3),
        ),
        max_size=12,
    )
)
def test_a_copy_is_what_is_in_the_bucket(steps):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        bucket, copy = replica(Path(folder))
        bucket.write("generations/00001.json", b"{}")
        for action, name, content in steps:
            if action == "write":
                bucket.write(name, content)
            elif action == "delete":
                bucket.delete(name)
            else:
                copy.update()
        copy.update()
        assert files(copy.folder) == files(Path(folder) / "bucket")


def test_changes_go_back_and_nothing_else_does(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    before = files(tmp_path / "bucket")
    (copy.folder / "metrics.jsonl").write_bytes(b"{}\n")
    (copy.folder / "manifest.json").write_bytes(b'{"new": 1}')
    (copy.folder / ".hidden").write_bytes(b"no")
    copy.push()
    after = files(tmp_path / "bucket")
    assert {name for name in after if after[name] != before.get(name)} == {
        "metrics.jsonl",
        "manifest.json",
    }
    assert not (tmp_path / "bucket" / ".hidden").exists()
    assert not (tmp_path / "bucket" / RECORD).exists()
    fetched = Counter(bucket.fetched)
    copy.update()
    assert bucket.fetched == fetched  # what was pushed is not fetched back


def test_what_somebody_else_changed_is_not_overwritten(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    (copy.folder / "metrics.jsonl").write_bytes(b"mine\n")
    (copy.folder / "manifest.json").write_bytes(b'{"mine": 1}')
    bucket.write("manifest.json", b'{"theirs": 1}')
    before = files(tmp_path / "bucket")
    with pytest.raises(StoreError, match="changed in the bucket since it was read"):
        copy.push()
    assert files(tmp_path / "bucket") == before  # not even the metrics, which nobody changed
    copy.update()
    assert (copy.folder / "manifest.json").read_bytes() == b'{"theirs": 1}'
    aside = list((copy.folder / ".set-aside").iterdir())
    assert [path.read_bytes() for path in aside] == [b'{"mine": 1}']


def test_what_was_not_pushed_is_kept_while_the_bucket_is_as_it_was(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    # and then the process was killed
    (copy.folder / "evaluation_results.jsonl").write_bytes(b"paid\n")
    copy.update()
    assert (copy.folder / "evaluation_results.jsonl").read_bytes() == b"paid\n"
    copy.push()
    assert bucket.read("evaluation_results.jsonl") == b"paid\n"


def test_labels_of_two_people_are_merged(tmp_path):
    bucket, mine = replica(tmp_path)
    theirs = Replica(bucket, tmp_path / "other", tmp_path / "lock")
    fill(bucket)
    bucket.write("labels.jsonl", b"first\n")
    mine.update()
    theirs.update()
    for copy, line in ((mine, b"mine\n"), (theirs, b"theirs\n")):
        with open(copy.folder / "labels.jsonl", "ab") as file:
            file.write(line)
        copy.push()
    assert bucket.read("labels.jsonl") == b"first\nmine\ntheirs\n"


def test_segments_that_were_replaced_go(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    (copy.folder / "responses.jsonl").write_bytes(b"all\n")
    (copy.folder / "responses.d/00002/00000/00000000.jsonl").unlink()
    copy.push()
    assert bucket.read("responses.jsonl") == b"all\n"
    assert bucket.read("responses.d/00002/00000/00000000.jsonl") is None
    assert bucket.read("responses.d/00002/00001/00000000.jsonl") == b"b\n"


def test_a_copy_that_is_written_to_is_left_alone(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    copy.update()
    bucket.write("responses.jsonl", b"newer\n")
    with FolderLock(copy.folder):
        copy.update()
        copy.update(rows=False)
        assert (copy.folder / "responses.jsonl").read_bytes() == b"{}\n"
    copy.update()
    assert (copy.folder / "responses.jsonl").read_bytes() == b"newer\n"


def test_segments_that_a_manifest_names_are_found_without_a_listing(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    name = "responses.d/00002/00001/00000000.jsonl"
    sealed = Manifest(kind="run", id="x", segments=[Segment(name=name, size=2, mtime_ns=5)])
    bucket.write("manifest.json", msgspec.json.encode({"run": sealed}))
    bucket.hidden = {name}
    content = bucket.read(name)
    entry = Entry(name, 2, "stamp", 5)
    # a bucket asks by name
    bucket.entry = lambda asked: entry if asked == name else FolderObjects.entry(bucket, asked)
    copy.update()
    assert (copy.folder / name).read_bytes() == content


def test_what_is_gone_from_a_folder_of_other_files_goes(tmp_path):
    bucket, copy = replica(tmp_path)
    for name in ("a.txt", "datasets/one/items.jsonl", "datasets/two/items.jsonl"):
        bucket.write(name, b"x")
    copy.update()
    bucket.delete("datasets/one/items.jsonl")
    copy.update()
    assert set(files(copy.folder)) == {"a.txt", "datasets/two/items.jsonl"}


def test_names_that_lead_out_of_the_folder_are_not_followed(tmp_path):
    bucket, copy = replica(tmp_path)
    fill(bucket)
    there = bucket.names("")
    bucket.names = lambda prefix: iter([*there, Entry("superseded/../../../evil", 1, "x")])  # type: ignore[method-assign]
    copy.update()
    assert not (tmp_path / "evil").exists()
    assert "superseded/../../../evil" not in bucket.fetched


def test_a_bucket_full_of_other_things_is_not_copied(tmp_path):
    bucket, copy = replica(tmp_path)
    entries = [Entry(f"{number}.bin", 1, "x") for number in range(MOST_FOREIGN + 1)]
    bucket.names = lambda prefix: iter(entries)  # type: ignore[method-assign]
    with pytest.raises(UserError, match=r"more than 10,000 objects"):
        copy.update()
    assert not bucket.fetched


def test_a_folder_keeps_its_promises(tmp_path):
    objects = open_objects(tmp_path / "shared", probe=True)
    assert list(objects.names("")) == []


def test_a_place_that_overwrites_is_refused(tmp_path):
    class Careless(FolderObjects):
        def create(self, name: str, content: bytes) -> bool:
            self.write(name, content)
            return True

    careless = Careless(tmp_path)
    with pytest.raises(StoreError, match="overwrites an object") as caught:
        check(careless)
    assert "ASSAY_SINGLE_WRITER=1" in caught.value.fix
    assert list(careless.names("")) == []


def test_buckets_need_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "assay.store.shared.cloud", raising=False)
    monkeypatch.delitem(sys.modules, "assay.store.shared.accounts", raising=False)
    with pytest.raises(StoreError, match="extra `cloud`") as caught:
        open_objects("s3://bucket/folder")
    assert caught.value.fix == "pip install 'assay-eval[cloud]'"
