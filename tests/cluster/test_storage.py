"""Object stores for real: what is promised, what is refused, what is tried again, and that no message has a secret."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.errors import AssayError, StoreError, UserError
from assay.store.shared.objects import Objects, open_objects
from assay.store.shared.segments import Segments
from tests.cluster import servers
from tests.cluster.servers import BUCKET, READER, READER_SECRET, SECRET, Faulty, StoreServer

pytestmark = pytest.mark.cluster
ROOT = f"s3://{BUCKET}"


@pytest.fixture(scope="module")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with servers.seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture
def s3(seaweed: StoreServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StoreServer:
    use(monkeypatch, seaweed.environ)
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    return seaweed


def use(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)


def check_contract(objects: Objects, tmp_path: Path) -> None:
    """What every store must do, whatever it is called."""
    assert objects.create("a/one", b"1")
    assert not objects.create("a/one", b"2")
    assert objects.read("a/one") == b"1"
    assert objects.read("a/none") is None
    objects.write("b", b"x" * 100_000)
    objects.write("a/two", b"22")
    assert [(entry.name, entry.size) for entry in objects.names("")] == [
        ("a/one", 1),
        ("a/two", 2),
        ("b", 100_000),
    ]
    assert [entry.name for entry in objects.names("a/")] == ["a/one", "a/two"]
    direct, folders = objects.level("")
    assert [entry.name for entry in direct] == ["b"]
    # SeaweedFS keeps empty folders
    assert [folder for folder in folders if folder != ".probe/"] == ["a/"]
    assert list(objects.read_many(["b", "none", "a/two"])) == [b"x" * 100_000, None, b"22"]
    file = tmp_path / "file"
    file.write_bytes(b"first")
    os.utime(file, ns=(5, 1_700_000_000_123_456_789))
    stamp = objects.swap("whole", file, None)
    file.write_bytes(b"second")
    assert objects.swap("whole", file, None) is None
    assert objects.read("whole") == b"first"
    assert objects.fetch("whole", tmp_path / "copy") is not None
    assert (tmp_path / "copy").stat().st_mtime_ns == 1_700_000_000_123_456_789
    newer = objects.swap("whole", file, stamp)
    assert newer is not None
    assert newer != stamp
    entry = objects.entry("whole")
    assert entry is not None
    assert entry.stamp == newer  # what a put says is what a listing says
    file.write_bytes(b"third")
    assert objects.swap("whole", file, stamp) is None
    assert objects.read("whole") == b"second"
    for entry in list(objects.names("")):
        objects.delete(entry.name)
    objects.delete("a/one")
    assert list(objects.names("")) == []


def test_seaweed_keeps_the_contract(s3, tmp_path):
    check_contract(open_objects(f"{ROOT}/contract", probe=True), tmp_path)


def test_moto_keeps_the_contract(tmp_path, monkeypatch):
    with servers.moto(tmp_path / "moto") as server:
        use(monkeypatch, server.environ)
        check_contract(open_objects(f"{ROOT}/contract", probe=True), tmp_path)


def test_memory_keeps_the_contract(tmp_path):
    check_contract(open_objects("memory://contract/x", probe=True), tmp_path)
    open_objects("memory://contract/x").write("kept", b"1")
    assert open_objects("memory://contract/x").read("kept") == b"1"
    assert open_objects("memory://other/x").read("kept") is None


def test_azure_keeps_the_contract(tmp_path, monkeypatch):
    try:
        servers.program("azurite-blob")
    except servers.MissingError as missing:  # it comes from npm, which not every machine has
        pytest.skip(str(missing))
    with servers.azurite(tmp_path / "azurite") as server:
        use(monkeypatch, server.environ)
        check_contract(open_objects(f"az://{BUCKET}/contract", probe=True), tmp_path)


def test_of_many_that_create_one_wins(s3):
    stores = [open_objects(f"{ROOT}/race") for _ in range(6)]
    keys = [f"{number:03}" for number in range(40)]
    barrier = threading.Barrier(len(stores))

    def create(worker: int) -> list[str]:
        barrier.wait()
        return [key for key in keys if stores[worker].create(key, str(worker).encode())]

    with ThreadPoolExecutor(len(stores)) as pool:
        won = list(pool.map(create, range(len(stores))))
    assert sorted(key for mine in won for key in mine) == keys
    for worker, mine in enumerate(won):
        assert all(stores[0].read(key) == str(worker).encode() for key in mine)


def test_a_store_that_overwrites_is_refused_unless_one_writer_was_asked_for(tmp_path, monkeypatch):
    with servers.rclone(tmp_path / "rclone") as server:
        use(monkeypatch, server.environ)
        with pytest.raises(
            StoreError, match="overwrites an object that it was asked to create"
        ) as caught:
            open_objects(f"{ROOT}/x", probe=True)
        assert "ASSAY_SINGLE_WRITER=1" in caught.value.fix
        monkeypatch.setenv("ASSAY_SINGLE_WRITER", "1")
        objects = open_objects(f"{ROOT}/x", probe=True)
        assert objects.create("a", b"1")
        assert not objects.create("a", b"2")
        assert objects.read("a") == b"1"


# ---- faults


def test_rows_are_committed_once_through_a_store_that_misbehaves(s3, monkeypatch):
    """Three writers share a log while replies are lost, requests are throttled, cut, reset and delayed."""
    plan = Faulty(s3.url, share=0.3)
    with servers.faulty(plan) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        keys = [f"{number:032}" for number in range(240)]

        def work(worker: int) -> list[bytes]:
            segments = Segments(open_objects(f"{ROOT}/faults"), "log/")
            lines = [b'{"key":"%s","by":%d}\n' % (key.encode(), worker) for key in keys]
            mine: list[bytes] = []
            for start in range(0, len(lines), 8):
                list(segments.read())
                mine += segments.commit(b"".join(lines[start : start + 8])).splitlines(
                    keepends=True
                )
            return mine

        with ThreadPoolExecutor(3) as pool:
            committed = list(pool.map(work, range(3)))
        read = b"".join(Segments(open_objects(f"{ROOT}/faults"), "log/").read())
    rows = read.splitlines(keepends=True)
    assert sorted(json.loads(row)["key"] for row in rows) == keys
    assert sorted(line for mine in committed for line in mine) == sorted(rows)
    assert (
        min(
            plan.counts[fault]
            for fault in ("slow_down", "lost_reply", "cut", "delay", "reset", "conflict")
        )
        > 1
    )


def test_files_come_whole_through_a_store_that_cuts_them(s3, monkeypatch, tmp_path):
    content = os.urandom(3_000_000)
    open_objects(f"{ROOT}/cut").write("big", content)
    plan = Faulty(s3.url, ["cut"], share=0.6)
    with servers.faulty(plan) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        objects = open_objects(f"{ROOT}/cut")
        for number in range(4):
            assert objects.fetch("big", tmp_path / str(number)) is not None
            assert (tmp_path / str(number)).read_bytes() == content
            assert objects.read("big") == content
    assert plan.counts["cut"] > 2


def test_a_swap_whose_reply_was_lost_has_succeeded(s3, monkeypatch, tmp_path):
    plan = Faulty(s3.url, ["lost_reply"], share=0.5)
    file = tmp_path / "file"
    with servers.faulty(plan) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        objects = open_objects(f"{ROOT}/lost")
        stamp = None
        for number in range(10):
            file.write_bytes(b"%d" % number)
            stamp = objects.swap("whole", file, stamp)
            assert stamp is not None
            assert objects.read("whole") == b"%d" % number
    assert plan.counts["lost_reply"] > 2


def test_a_store_that_is_restarted_is_waited_for(s3):
    objects = open_objects(f"{ROOT}/restart", probe=True)
    assert objects.create("before", b"1")
    s3.kill()
    timer = threading.Timer(1.0, s3.start)
    timer.start()
    try:
        assert objects.create("after", b"2")
    finally:
        timer.join()
    assert (objects.read("before"), objects.read("after")) == (b"1", b"2")


# ---- what is refused


def message(*secrets: str, address: str = f"{ROOT}/x") -> str:
    with pytest.raises(AssayError) as caught:
        open_objects(address, probe=True)
    text = str(caught.value)
    assert "http://" not in text
    assert not [
        secret
        for secret in (SECRET, READER_SECRET, "Signature=", "X-Amz", *secrets)
        if secret in text
    ]
    return text


def test_no_credentials(s3, monkeypatch, tmp_path):
    use(
        monkeypatch,
        {"AWS_ENDPOINT_URL": s3.url, "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)},
    )
    text = message()
    assert "there are no credentials" in text
    assert "AWS_PROFILE" in text


def test_wrong_credentials(s3, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    assert "does not accept these credentials (403 SignatureDoesNotMatch)" in message(
        "another-secret"
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "NOBODY")
    assert "does not accept these credentials (403 InvalidAccessKeyId)" in message("another-secret")


def test_a_bucket_that_is_only_to_be_read(s3, monkeypatch):
    open_objects(f"{ROOT}/readonly").write("a", b"1")
    use(monkeypatch, servers.s3_environ(s3.url, READER, READER_SECRET))
    assert open_objects(f"{ROOT}/readonly").read("a") == b"1"
    assert "may not do this here (403 AccessDenied)" in message()


def test_a_bucket_that_does_not_exist(s3, monkeypatch):
    use(monkeypatch, servers.s3_environ(s3.url, READER, READER_SECRET))  # a writer would make it
    with pytest.raises(StoreError, match="there is no bucket 'nosuchbucket'"):
        open_objects("s3://nosuchbucket/x").read("a")


def test_an_endpoint_that_nobody_listens_at(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{servers.free_port()}")
    assert "the store cannot be reached" in message()


@pytest.mark.parametrize(
    "address", ["s3://", "s3:///x", "s3://b/../c", "gs://b//c", f"s3://KEY:{SECRET}@bucket/x"]
)
def test_bad_addresses(address):
    with pytest.raises(UserError, match="is not an address") as caught:
        open_objects(address)
    assert SECRET not in str(caught.value)


def test_profiles_are_read(s3, monkeypatch, tmp_path):
    key, secret = s3.environ["AWS_ACCESS_KEY_ID"], s3.environ["AWS_SECRET_ACCESS_KEY"]
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        f"[team]\naws_access_key_id={key}\naws_secret_access_key={secret}\n"
    )
    config = f"[profile team]\nregion = us-east-1\nendpoint_url = {s3.url}\n[profile sso]\nsso_session = x\n"
    (tmp_path / ".aws/config").write_text(config)
    use(
        monkeypatch,
        {"AWS_PROFILE": "team", "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"},
    )
    assert open_objects(f"{ROOT}/profile", probe=True).create("a", b"1")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert "there is no profile 'nobody'" in message(secret)
    monkeypatch.setenv("AWS_PROFILE", "sso")
    assert "export-credentials" in message(secret)
