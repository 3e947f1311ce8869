"""The protocol of docs/cluster.md against a model: machines that put, read, lose replies, freeze, crash and close in
any order that hypothesis finds, on a dictionary and on a folder; and a proof that they find the faults they are for."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from assay.errors import StoreError, UserError
from assay.records import Evaluation, Response
from assay.store.keyset import Seen
from assay.store.log import FileLog
from assay.store.shared.claims import Beat, Claims, Workers, lease_seconds, new_beat
from assay.store.shared.generations import Generation, begin, close, compact
from assay.store.shared.objects import Entry, FolderObjects, Objects
from assay.store.shared.segments import ClosedError, Segments, key_of, name_of

WORKERS, KEYS = 3, 12
LEASE = 30.0

Steps = list[str | Callable[[], None]]


class Memory(Objects):
    """A store that does what it must."""

    address = "memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def create(self, name: str, content: bytes) -> bool:
        return self.objects.setdefault(name, content) is content

    def read(self, name: str) -> bytes | None:
        return self.objects.get(name)

    def write(self, name: str, content: bytes) -> None:
        self.objects[name] = content

    def names(self, prefix: str) -> Iterator[Entry]:
        names = sorted(name for name in self.objects if name.startswith(prefix))
        return (
            Entry(name, len(self.objects[name]), str(hash(self.objects[name]))) for name in names
        )

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)


class Overwriting(Memory):
    """What `rclone serve s3` does."""

    def create(self, name: str, content: bytes) -> bool:
        self.objects[name] = content
        return True


class Line(Objects):
    """One worker's way to the store; `faults` are for its next operations, in order."""

    def __init__(self, store: Objects) -> None:
        self.store = store
        self.address = store.address
        self.faults: Steps = []
        self.late: list[tuple[str, bytes]] = []  # puts that are still on their way

    def create(self, name: str, content: bytes) -> bool:
        fault = self._fault()
        if fault == "refused":
            raise StoreError("503 SlowDown")
        if fault == "late":
            self.late.append((name, content))
            raise StoreError("no reply yet")
        made = self.store.create(name, content)
        if fault == "lost":
            raise StoreError("the reply was lost")
        # the client's own second attempt finds what its first one made
        return made and fault != "retried"

    def read(self, name: str) -> bytes | None:
        if self._fault() in ("refused", "lost", "late"):
            raise StoreError("503 SlowDown")
        return self.store.read(name)

    def write(self, name: str, content: bytes) -> None:
        self.store.write(name, content)

    def names(self, prefix: str) -> Iterator[Entry]:
        return self.store.names(prefix)

    def delete(self, name: str) -> None:
        self.store.delete(name)

    def _fault(self) -> str:
        fault = self.faults.pop(0) if self.faults else ""
        if not isinstance(fault, str):
            fault()  # the worker is frozen while others act
            return ""
        return fault


class Worker:
    """`waiting` is what it wants to commit and was not told about; it comes first in its next commit."""

    def __init__(self, name: str, line: Line, segments: type[Segments]) -> None:
        self.name = name
        self.line = line
        self.rows = segments(line, "rows/")
        self.calls = segments(line, "calls/", None)
        self.waiting: dict[Segments, list[bytes]] = {self.rows: [], self.calls: []}
        self.wanted: set[bytes] = set()


def lines_of(key: int, writer: str) -> list[bytes]:
    """The labels of one scorer call: one to three rows of one key, after fields that have a `key` as well."""
    count = key % 3 + 1
    rows = (
        Evaluation(
            item_id="q",
            detailed_results={"key": "trap"},
            metadata={"by": writer},
            key=f"{key:032x}",
            part=part,
        )
        for part in ((i, count) for i in range(count))
    )
    return [msgspec.json.encode(row) + b"\n" for row in rows]


FAULTS = st.sampled_from(["", "", "refused", "late", "lost", "retried"])
WORKER = st.integers(0, WORKERS - 1)
GROUP = st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=4, unique=True)
OTHERS = st.lists(
    st.tuples(st.integers(0, 3), WORKER, st.one_of(GROUP, GROUP, st.just(list[int]()))), max_size=2
)
"""Before operation i another worker commits, or closes."""


class SegmentMachine(RuleBasedStateMachine):
    """`told` is the model: what workers were told is committed, by key."""

    segments: ClassVar[type[Segments]] = Segments

    def __init__(self) -> None:
        super().__init__()
        self.objects = self.opened()
        self.told: dict[bytes, list[bytes]] = {}
        self.told_calls: set[bytes] = set()
        self.closed: list[bytes] | None = None
        self.count = 0
        self.workers = [self._worker(i) for i in range(WORKERS)]
        self.lost: list[Line] = []  # the ways of dead workers: their puts may still arrive

    def opened(self) -> Objects:
        """A store, empty."""
        return Memory()

    def _worker(self, number: int) -> Worker:
        self.count += 1
        return Worker(f"{number}.{self.count}", Line(self.objects), type(self).segments)

    @rule(number=WORKER)
    def crash(self, number: int) -> None:
        self.lost.append(self.workers[number].line)
        self.workers[number] = self._worker(number)

    @rule(number=WORKER, fault=FAULTS)
    def read(self, number: int, fault: str) -> None:
        worker = self.workers[number]
        worker.line.faults = [fault]
        try:
            for content in (*worker.rows.read(), *worker.calls.read()):
                assert content
                assert not set(content.splitlines(keepends=True)) & worker.wanted, (
                    "a worker was given its own rows"
                )
        except StoreError:
            pass

    @rule(number=WORKER, group=GROUP, faults=st.lists(FAULTS, max_size=3), others=OTHERS)
    def commit(
        self,
        number: int,
        group: list[int],
        faults: list[str],
        others: list[tuple[int, int, list[int]]],
    ) -> None:
        self._commit(number, group, self._steps(number, faults, others))

    def _steps(
        self, number: int, faults: list[str], others: list[tuple[int, int, list[int]]]
    ) -> Steps:
        steps: Steps = list(faults)
        for at, other, keys in others:
            if other != number:
                act = (
                    (lambda o=other, k=keys: self._commit(o, k, []))
                    if keys
                    else (lambda o=other: self._close(o, []))
                )
                steps.insert(at, act)
        return steps

    def _commit(self, number: int, group: list[int], steps: Steps) -> None:
        worker = self.workers[number]
        self.count += 1
        worker.line.faults = steps
        lines = [line for key in group for line in lines_of(key, f"{worker.name}.{self.count}")]
        calls = [b'{"call":"%s.%d"}\n' % (worker.name.encode(), self.count)]
        self._send(worker, worker.calls, calls)
        self._send(worker, worker.rows, lines)

    def _send(self, worker: Worker, segments: Segments, lines: list[bytes]) -> None:
        keys = (
            {key_of(line) for line in worker.waiting[segments]}
            if segments is worker.rows
            else set[bytes]()
        )
        waiting = worker.waiting[segments]
        waiting += [line for line in lines if key_of(line) not in keys]
        worker.wanted.update(waiting)
        try:
            done = segments.commit(b"".join(waiting)).splitlines(keepends=True)
        except ClosedError:
            waiting.clear()
            assert self._contents(segments.prefix)[-1] == b"", "an open log was said to be closed"
            return
        except StoreError:
            return
        waiting.clear()
        if segments is worker.calls:
            assert not self.told_calls & set(done)
            self.told_calls.update(done)
            return
        for key in dict.fromkeys(map(key_of, done)):
            assert key not in self.told, "two workers were told that they committed a key"
            self.told[key] = [line for line in done if key_of(line) == key]

    @rule(late=st.integers(0, 20))
    def deliver(self, late: int) -> None:
        """A put that was on its way arrives."""
        lines = [
            line for line in (*(worker.line for worker in self.workers), *self.lost) if line.late
        ]
        if lines:
            line = lines[late % len(lines)]
            self.objects.create(*line.late.pop(late % len(line.late)))

    @rule(
        number=WORKER, faults=st.lists(FAULTS, max_size=2), others=OTHERS, seldom=st.integers(0, 5)
    )
    def close(
        self, number: int, faults: list[str], others: list[tuple[int, int, list[int]]], seldom: int
    ) -> None:
        if not seldom:
            self._close(number, self._steps(number, faults, others))

    def _close(self, number: int, steps: Steps) -> None:
        worker = self.workers[number]
        worker.line.faults = steps
        try:
            worker.calls.close()
            worker.rows.close()
        except StoreError:
            return
        self.closed = self.closed or self._contents("rows/")

    def _contents(self, prefix: str) -> list[bytes]:
        contents: list[bytes] = []
        while (content := self.objects.read(name_of(prefix, len(contents)))) is not None:
            contents.append(content)
        return contents

    @invariant()
    def holds(self) -> None:
        contents = self._contents("rows/")
        assert len(contents) == len(list(self.objects.names("rows/"))), "a number was left out"
        rows: dict[bytes, list[bytes]] = {}
        for content in contents:
            segment: dict[bytes, list[bytes]] = {}
            for line in content.splitlines(keepends=True):
                segment.setdefault(msgspec.json.decode(line)["key"].encode(), []).append(line)
            assert not rows.keys() & segment.keys(), "a key is in two segments"
            rows |= segment
        for key, lines in rows.items():
            assert [msgspec.json.decode(line)["part"][0] for line in lines] == list(
                range(int(key, 16) % 3 + 1)
            )
        for key, lines in self.told.items():
            assert rows.get(key) == lines, "a committed row is not there, or is another one"
        calls = Counter(
            line
            for content in self._contents("calls/")
            for line in content.splitlines(keepends=True)
        )
        assert all(count == 1 for count in calls.values()), "a paid call is there twice"
        assert self.told_calls <= calls.keys()
        assert self.closed is None or contents == self.closed, "a closed log changed"

    def teardown(self) -> None:
        """Whatever happened, a new worker reads it all and makes it complete."""
        self.workers = [self._worker(0)]
        worker = self.workers[0]
        read = [key_of(line) for content in worker.rows.read() for line in content.splitlines()]
        assert self.told.keys() <= set(read)
        self._commit(0, list(range(KEYS)), [])
        self.holds()
        assert (
            self.closed is not None
            or worker.rows.closed
            or b"".join(self._contents("rows/")).count(b"\n") == 24
        )


class FolderMachine(SegmentMachine):
    def opened(self) -> Objects:
        self.folder = TemporaryDirectory()
        return FolderObjects(self.folder.name)

    def teardown(self) -> None:
        with self.folder:
            super().teardown()


class ClaimMachine(RuleBasedStateMachine):
    """Workers that claim, beat, freeze and end in virtual time. `beats` is the model: when each one spoke last."""

    claims: ClassVar[type[Claims]] = Claims
    shards = st.integers(0, 1)

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.objects = Memory()
        self.lines = [Line(self.objects) for _ in range(WORKERS)]
        watches = [
            Workers(line, "workers/", lease=LEASE, clock=lambda: self.now) for line in self.lines
        ]
        self.watching = [
            type(self).claims(line, "claims/", watch)
            for line, watch in zip(self.lines, watches, strict=True)
        ]
        self.beats = [
            Beat(worker=f"w{i}", pid=os.getpid(), place="elsewhere") for i in range(WORKERS)
        ]
        self.spoke = [0.0] * WORKERS
        for watch, beat in zip(watches, self.beats, strict=True):
            watch.beat(beat)
        self.contents: dict[str, bytes] = {}

    @rule(seconds=st.sampled_from([1.0, 10.0, 29.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(number=WORKER, ended=st.sampled_from([False, False, False, True]))
    def beat(self, number: int, ended: bool) -> None:
        self.beats[number].ended = ended
        self.watching[number].workers.beat(self.beats[number])
        self.spoke[number] = self.now

    @rule(number=WORKER, shard=shards, faults=st.lists(FAULTS, max_size=4))
    def take(self, number: int, shard: int, faults: list[str]) -> None:
        holder = self._last(shard)
        self.lines[number].faults = list(faults)
        try:
            taken = self.watching[number].take(shard, f"w{number}")
        except StoreError:
            taken = False
        self.lines[number].faults = []
        last = self._last(shard)
        assert not taken or last == f"w{number}", "who was told to have it is not the last in line"
        if last != holder and holder:
            before = int(holder[1:])
            silent = self.now - self.spoke[before] >= LEASE or self.beats[before].ended
            assert silent, "the shard of a living worker was taken"

    @rule(late=st.integers(0, 20))
    def deliver(self, late: int) -> None:
        lines = [line for line in self.lines if line.late]
        if lines:
            name, content = lines[late % len(lines)].late.pop()
            self.objects.create(name, content)

    def _last(self, shard: int) -> str:
        names = [entry.name for entry in self.objects.names(f"claims/{shard:05}/")]
        assert names == [f"claims/{shard:05}/{number:05}.json" for number in range(len(names))], (
            "a number is missing"
        )
        return msgspec.json.decode(self.objects.objects[names[-1]])["worker"] if names else ""

    @invariant()
    def stays(self) -> None:
        claims = {
            name: content
            for name, content in self.objects.objects.items()
            if name.startswith("claims/")
        }
        assert all(claims[name] == content for name, content in self.contents.items()), (
            "a claim changed its holder"
        )
        self.contents = claims


settled = settings(
    max_examples=200,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
SegmentMachine.TestCase.settings = settled
FolderMachine.TestCase.settings = settings(settled, max_examples=40)
ClaimMachine.TestCase.settings = settled
TestSegments = SegmentMachine.TestCase
TestFolder = FolderMachine.TestCase
TestClaims = ClaimMachine.TestCase


# ---- that the machines find what they are for


class OnOverwriting(SegmentMachine):
    def opened(self) -> Objects:
        return Overwriting()


class Blind(Segments):
    """Goes to the next number without looking at what another worker wrote."""

    def _take(self, content: bytes) -> bytes:
        own = super()._take(content)
        self._keys = Seen()
        return own


class Unsettled(Segments):
    """Reads on without knowing its own earlier attempt again."""

    def read(self) -> Iterator[bytes]:
        self._attempts = []
        return super().read()


class Forgetful(Segments):
    """Does not know its own earlier attempt again."""

    def commit(self, lines: bytes) -> bytes:
        self._attempts = []
        return super().commit(lines)


class Zombie(Segments):
    """Does not check whether the log is closed."""

    def _take(self, content: bytes) -> bytes:
        own = super()._take(content)
        self.closed = False
        return own


class Reopening(Segments):
    """Closes a log that is closed."""

    def close(self) -> None:
        self.closed = False
        super().close()


class Hasty(Segments):
    """Takes a lost reply for a refusal, and the number that it did not get for its own."""

    def _existing(self, number: int) -> bytes:
        return self._attempts[-1].content


def first_key(line: bytes) -> bytes:
    """The text behind the first `"key":"`, which may be that of the details."""
    start = line.find(b'"key":"') + 7
    return line[start : line.find(b'"', start)] if start > 6 else line


class Searching(Segments):
    def __init__(self, objects: Objects, prefix: str, key: Any = key_of) -> None:
        super().__init__(objects, prefix, key and first_key)


class Cutting(Segments):
    """Cuts a group between the labels of one call."""

    def commit(self, lines: bytes) -> bytes:
        end = lines.find(b"\n") + 1
        return super().commit(lines[:end]) + super().commit(lines[end:])


class Impatient(Claims):
    """Takes what it wants."""

    def take(self, shard: int, worker: str) -> bool:
        self.workers.lease = 0.0
        return super().take(shard, worker)


class Greedy(Claims):
    """Writes its claim over whatever is there."""

    def take(self, shard: int, worker: str) -> bool:
        if holder := self.holder(shard):
            self.objects.write(self._name(shard, 0), b'{"worker":"%s"}' % worker.encode())
        return bool(holder) or super().take(shard, worker)


BROKEN = [Blind, Unsettled, Forgetful, Zombie, Reopening, Hasty, Searching, Cutting]
finding = settings(
    settled, max_examples=400, derandomize=True, phases=[Phase.generate], print_blob=False
)


@pytest.mark.parametrize("broken", BROKEN)
def test_the_machine_finds_broken_segments(broken: type[Segments]) -> None:
    machine = type(broken.__name__, (SegmentMachine,), {"segments": broken})
    with pytest.raises((AssertionError, StoreError)):
        run_state_machine_as_test(machine, settings=finding)


def test_the_machine_finds_a_store_that_overwrites() -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(OnOverwriting, settings=finding)


@pytest.mark.parametrize("broken", [Impatient, Greedy])
def test_the_machine_finds_broken_claims(broken: type[Claims]) -> None:
    machine = type(broken.__name__, (ClaimMachine,), {"claims": broken})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=finding)


# ---- one by one


def test_the_key_is_the_rows_own() -> None:
    nested = {"key": "0" * 32, "row": {"key": "1" * 32, "task": "t", "part": [0, 1]}}
    response = Response(
        item_id="q", metadata=nested, response='"key":"' + "2" * 32 + '"', key="a" * 32
    )
    label = Evaluation(item_id="q", detailed_results=nested, metadata=nested, key="b" * 32)
    assert key_of(msgspec.json.encode(response)) == b"a" * 32
    assert key_of(msgspec.json.encode(label) + b"\n") == b"b" * 32
    assert key_of(b'{ "item_id": "q", "key": "k" }') == b"k"


@pytest.mark.parametrize(
    "line",
    [b"", b"garbage", b'{"item_id":"q","key":"abc","task":"t', b'{"key":""}', b"[1]", b"\xff"],
)
def test_a_line_without_a_key_stands_for_itself(line: bytes) -> None:
    assert key_of(line) == line


def test_a_torn_row_is_committed_again() -> None:
    objects, line = Memory(), lines_of(0, "a")[0]
    objects.create(name_of("rows/", 0), line[:-20])  # what readers leave out
    segments = Segments(objects, "rows/")
    list(segments.read())
    assert segments.commit(line) == line
    assert objects.read(name_of("rows/", 1)) == line


def test_a_row_without_its_line_feed_is_there() -> None:
    objects, line = Memory(), lines_of(0, "a")[0]
    objects.create(name_of("rows/", 0), line[:-1])  # what readers take for whole
    segments = Segments(objects, "rows/")
    list(segments.read())
    assert segments.commit(line) == b""


@pytest.mark.parametrize("lines", [b"{}", b"{}\n{}", b"{}\n\n{}"])
def test_only_whole_lines_are_committed(lines: bytes) -> None:
    objects = Memory()
    with pytest.raises(ValueError, match="whole lines"):
        Segments(objects, "rows/").commit(lines)
    assert not objects.objects


def test_a_store_that_denies_what_it_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Denying(Memory):
        def read(self, name: str) -> bytes | None:
            return None

    monkeypatch.setattr("time.sleep", lambda _: None)
    objects = Denying()
    objects.create(name_of("rows/", 0), b"{}\n")
    for act in (
        lambda: Segments(objects, "rows/").commit(b"[]\n"),
        Segments(objects, "rows/").close,
    ):
        with pytest.raises(StoreError, match="does not keep its promises"):
            act()


def test_two_workers_share_a_shard() -> None:
    """Both make every cell; each row is there once, and `contested` tells who came second."""
    objects = Memory()
    first, second = Segments(objects, "rows/"), Segments(objects, "rows/")
    for key in range(0, KEYS, 2):
        group = (key, key + 1)
        assert first.commit(b"".join(line for key in group for line in lines_of(key, "first")))
        assert not second.commit(
            b"".join(line for key in group for line in lines_of(key, "second"))
        )
    assert (first.contested, second.contested) == (False, True)
    assert b"second" not in b"".join(objects.objects.values())


def test_a_compaction_that_was_cut_short_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the new file and the end of the old segments: no row is lost, and none is twice."""
    objects, generation = FolderObjects(tmp_path), Generation(shards=2)
    begin(objects, generation)
    for stem in ("calls", "responses"):
        (tmp_path / f"{stem}.jsonl").write_bytes(lines_of(0, "before")[0])
        for shard in range(2):
            key = 3 * shard + (3 if stem == "calls" else 1)
            assert generation.segments(objects, stem, shard).commit(
                b"".join(lines_of(key, "worker"))
            )

    def killed(path: Path) -> None:
        next(path.rglob("*.jsonl")).unlink()
        raise KeyboardInterrupt

    close(objects, generation)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path, generation)
    rows = tmp_path / "responses.jsonl"
    # as for a plan with more samples
    rows.write_bytes(rows.read_bytes().replace(b'"by":"', b'"by":"another '))
    compact(tmp_path, generation)
    for stem in ("calls", "responses"):
        keys = [int(key_of(line), 16) for _, line in FileLog(tmp_path / f"{stem}.jsonl").scan()]
        assert sorted(keys) == ([0, 3, 6] if stem == "calls" else [0, 1, 1, 4, 4])


def test_threads_race_for_one_name_in_a_folder(tmp_path: Path) -> None:
    """Each name has one winner, whose bytes are there as a whole."""
    contents = [bytes([65 + i]) * 100_000 for i in range(4)]
    winners: list[tuple[str, bytes]] = []

    def race(content: bytes) -> None:
        objects = FolderObjects(tmp_path)
        winners.extend((f"d/{n}", content) for n in range(25) if objects.create(f"d/{n}", content))

    threads = [threading.Thread(target=race, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for name, _ in winners) == sorted(f"d/{n}" for n in range(25))
    assert all(FolderObjects(tmp_path).read(name) == content for name, content in winners)
    assert len(list((tmp_path / "d").iterdir())) == 25  # no temporary file is left


def test_a_file_system_without_links_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Any, target: Any) -> None:
        raise PermissionError(1, "Operation not permitted", str(source), None, str(target))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StoreError, match="no hard links"):
        FolderObjects(tmp_path).create("a", b"1")
    assert not list(tmp_path.iterdir())


def test_a_listing_of_a_folder_has_whole_objects_in_order(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    for name in ("b/2", "a", "b/1", "b/c/3"):
        objects.create(name, name.encode())
    (tmp_path / "b" / ".hidden").touch()
    assert [entry.name for entry in objects.names("b/")] == ["b/1", "b/2", "b/c/3"]
    assert not list(objects.names("missing/"))


def test_who_waits_looks_at_few_shards() -> None:
    objects = Memory()
    claims = Claims(objects, "claims/", Workers(objects, "workers/", lease=LEASE))
    for shard in range(100):
        assert shard == 50 or claims.take(shard, f"w{shard}")
    reads: list[str] = []
    objects.read = lambda name: reads.append(name)
    assert Claims(objects, "claims/", claims.workers).candidates(range(99, -1, -1)) == [
        50,
        *range(99, 83, -1),
    ]
    assert not reads


def test_a_worker_without_a_beat_has_a_lease_of_grace() -> None:
    now = [0.0]
    workers = Workers(Memory(), "workers/", lease=LEASE, clock=lambda: now[0])
    assert workers.is_alive("w")
    now[0] = LEASE + 1
    assert not workers.is_alive("w")


def test_what_cannot_be_read_is_nobodys() -> None:
    objects = Memory()
    objects.create("claims/00000/00000.json", b"torn")
    objects.write("workers/w.json", b"{torn")
    workers = Workers(objects, "workers/", lease=LEASE)
    assert workers.all() == []
    assert Claims(objects, "claims/", workers).take(0, "me")
    assert "claims/00000/00001.json" in objects.objects


def test_a_dead_process_of_this_machine_is_known_at_once() -> None:
    objects = Memory()
    workers = Workers(objects, "workers/", lease=LEASE)
    beat = new_beat("me")
    workers.beat(beat)
    assert workers.is_alive(beat.worker)
    beat.pid = 2**22 + 1  # beyond the largest
    workers.beat(beat)
    assert not workers.is_alive(beat.worker)


def test_the_lease_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_LEASE", "2.5")
    assert Workers(Memory(), "workers/").lease == 2.5
    for text in ("soon", "0", "nan", "-1", "1e9"):
        monkeypatch.setenv("ASSAY_LEASE", text)
        with pytest.raises(UserError, match="is not a lease"):
            lease_seconds()
    monkeypatch.delenv("ASSAY_LEASE")
    assert lease_seconds() == LEASE


def test_keys_are_small() -> None:
    """At most 40 bytes a key while the set grows; as Python's bytes they would be 150."""
    import tracemalloc

    segments = Segments(Memory(), "rows/", bytes)
    tracemalloc.start()
    for start in range(0, 100_000, 1000):
        segments._take(b"".join(b"%032x\n" % key for key in range(start, start + 1000)))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 4e6
    assert not segments.commit(b"%032x\n" % 99_999)
    assert segments.commit(b"%032x\n" % 100_000)
