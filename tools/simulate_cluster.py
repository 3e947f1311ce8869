"""A thousand workers and 10⁸ cells in virtual time: what the protocol of docs/cluster.md costs.

    python -m tools.simulate_cluster [--workers 1000] [--cells 100000000] [--group 256] [--seed 0]

Segments, Claims and Workers are the real ones, and each of their operations on the store is made, one by one, on a
dictionary that counts them and charges the latency of S3. Rows are counts: one line stands for a whole group. Workers
die, freeze beyond their lease and thaw; the store is slow at times, refuses, and loses replies. What one row costs in
CPU time is measured beside it, with groups of real rows.
"""

import argparse
import heapq
import random
import sys
import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from statistics import median

import msgspec

from assay.records import Response
from assay.store.shared.claims import LEASE, Beat, Claims, Workers
from assay.store.shared.objects import Entry, Objects
from assay.store.shared.segments import Segments

SHARDS_PER_WORKER = 4
# rows a second of a worker, and its calls on their way: one takes a second
RATE, IN_FLIGHT = (300.0, 300)
# mean seconds until a worker dies or freezes; until it is started again
DEATH, FREEZE, RESTART = (3_000.0, 6_000.0, 20.0)
FINISHED, CLAIMS, NEXT_GENERATION = "shards/0/", "claims/0/", "generations/00001.json"
LATENCY = {"put": 0.030, "get": 0.015, "list": 0.060}  # seconds, S3 Standard within its region
# shares of operations: 20 times slower, 503, done but the reply is lost
SLOW, REFUSED, LOST = (0.01, 0.005, 0.001)
PRICES = {  # dollars for 1,000 operations: puts and lists, gets. List prices of 2025, before discounts.
    "S3 Standard, us-east-1": (0.005, 0.0004),
    "GCS Standard, one region": (0.005, 0.0004),
    "Azure Blob, hot, LRS": (0.0065, 0.0005),
}


class Counting(Objects):
    """A dictionary that counts, and adds up the time that its operations would take."""

    address = "simulated"

    def __init__(self, draw: random.Random) -> None:
        self.objects: dict[str, bytes] = {}
        self.counts: Counter[str] = Counter()
        self.elapsed = 0.0
        self._draw = draw
        self._listings: dict[str, list[Entry]] = {FINISHED: [], CLAIMS: []}

    def create(self, name: str, content: bytes) -> bool:
        made = name not in self.objects
        if made:
            self._put(name, content)
        lost = self._charge("put") < LOST
        self.counts["lost replies"] += lost
        return made and not lost

    def read(self, name: str) -> bytes | None:
        self._charge("get")
        return self.objects.get(name)

    def write(self, name: str, content: bytes) -> None:
        self._charge("put")
        self._put(name, content)

    def names(self, prefix: str) -> Iterator[Entry]:
        entries = self._listings[prefix]
        for _ in range(len(entries) // 1000 + 1):
            self._charge("list")
        return iter(entries)

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)

    def _put(self, name: str, content: bytes) -> None:
        listing = self._listings.get(name[: name.find("/0/") + 3])
        if listing is not None and name not in self.objects:
            insort(listing, Entry(name, 0, ""), key=attrgetter("name"))
        self.objects[name] = content

    def _charge(self, kind: str) -> float:
        chance = self._draw.random()
        self.counts[kind] += 1
        if chance > 1 - REFUSED:  # the client tries again after a while
            self.counts[kind] += 1
            self.counts["refused"] += 1
            self.elapsed += 0.5
        self.elapsed += LATENCY[kind] * (20 if 0.5 < chance < 0.5 + SLOW else 1)
        return chance


class Cluster:
    """The shards, the workers and the time."""

    def __init__(self, workers: int, cells: int, group: int, seed: int) -> None:
        self.draw = random.Random(seed)
        self.store = Counting(self.draw)
        self.cells, self.group, self.size = cells, group, workers
        self.shards = max(1, min(SHARDS_PER_WORKER * workers, cells // group))
        self.unfinished = set(range(self.shards))
        self.now = 0.0
        self.figures: Counter[str] = Counter()
        self.paid = 0
        self.orphans: dict[int, float] = {}  # shards of workers that died, and when
        self.waits: list[float] = []  # until such a shard was taken over
        self.watched: list[
            float
        ] = []  # the part of it in which the worker that took it had nothing else to do
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def run(self) -> None:
        for index in range(self.size):
            self.after(self.draw.uniform(0, 5), self._starter(index))
        while self._events and self.unfinished:
            self.now, _, act = heapq.heappop(self._events)
            act()

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, act))

    def restart(self, index: int) -> None:
        self.after(RESTART, self._starter(index))

    def _starter(self, index: int) -> Callable[[], None]:
        return lambda: Worker(self, index).start()

    def rows_of(self, shard: int) -> int:
        return self.cells // self.shards + (shard < self.cells % self.shards)

    def groups_of(self, shard: int) -> int:
        return -(-self.rows_of(shard) // self.group)

    def rows_in(self, shard: int, number: int) -> int:
        return min(self.group, self.rows_of(shard) - number * self.group)

    def line(self, shard: int, number: int, worker: str) -> bytes:
        return b'{"key":"%016x%016x","by":"%s"}\n' % (shard, number, worker.encode())


class Worker:
    """Claims a shard, makes its missing groups, commits each, and takes the next shard. As in engine/cluster."""

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.cluster, self.index = cluster, index
        store = cluster.store
        cluster.figures["workers started"] += 1
        self.beat = Beat(worker=f"w{index}-{cluster.figures['workers started']}", place="elsewhere")
        self.workers = Workers(store, "workers/0/", lease=LEASE, clock=lambda: cluster.now)
        self.claims = Claims(store, CLAIMS, self.workers)
        self.own = range(index, cluster.shards, cluster.size)
        self.shard: int | None = None
        self.missing: list[int] = []
        self.begun = 0.0  # when the group under way was
        self.thaws = 0.0
        self.dead = False
        self.seen: dict[str, bytes | None] = {}
        self.pause = 0.5
        self.idle = cluster.now

    def start(self) -> None:
        draw = self.cluster.draw
        self._beat()
        self.cluster.after(draw.expovariate(1 / DEATH), self._die)
        self.cluster.after(draw.expovariate(1 / FREEZE), self._freeze)
        self._next()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """After the store's time and these seconds; a frozen worker acts when it thaws, a dead one never."""

        def alive() -> None:
            if not self.dead:
                wait = self.thaws - self.cluster.now
                act() if wait <= 0 else self.cluster.after(wait, alive)

        elapsed, self.cluster.store.elapsed = self.cluster.store.elapsed, 0.0
        self.cluster.after(seconds + elapsed, alive)

    def _beat(self) -> None:
        self.workers.beat(self.beat)
        self.cluster.store.read(NEXT_GENERATION)
        if self.shard is not None and self.claims.holder(self.shard) != self.beat.worker:
            self._leave()
        self._later(LEASE / 3, self._beat)

    def _next(self) -> None:
        cluster = self.cluster
        cluster.store.names(FINISHED)
        left = [shard for shard in self.own if shard in cluster.unfinished]
        start = self.index * SHARDS_PER_WORKER
        left += [
            s
            for s in (*range(start, cluster.shards), *range(start))
            if s in cluster.unfinished and s not in left
        ]
        candidates = self.claims.candidates(left)
        for shard in candidates:
            if self.claims.take(shard, self.beat.worker):
                self._begin(shard)
                return
        if self._all_beat(candidates):
            self.beat.ended = self.dead = True
            self.workers.beat(self.beat)
            return
        self.pause = min(1.5 * self.pause, LEASE / 3)
        self._later(self.pause, self._next)

    def _all_beat(self, shards: Sequence[int]) -> bool:
        """Whether the holders of the shards have spoken since this worker began to wait."""
        holders = {self.claims.holder(shard) for shard in shards}
        beats = {holder: self.cluster.store.read(f"workers/0/{holder}.json") for holder in holders}
        return all(beat != self.seen.setdefault(holder, beat) for holder, beat in beats.items())

    def _begin(self, shard: int) -> None:
        cluster = self.cluster
        if (died := cluster.orphans.pop(shard, None)) is not None:
            cluster.waits.append(cluster.now - died)
            cluster.watched.append(cluster.now - max(died, self.idle))
        self.shard, self.segments = shard, Segments(cluster.store, f"responses.d/0/{shard:05}/")
        done = {
            int(line[24:40], 16)
            for content in self.segments.read()
            for line in content.splitlines()
        }
        self.missing = [number for number in range(cluster.groups_of(shard)) if number not in done]
        self.missing.reverse()
        self.pause, self.seen = 0.5, {}
        self.begun = cluster.now + cluster.store.elapsed
        self._later(self._seconds(), self._commit)

    def _seconds(self) -> float:
        return (
            self.cluster.rows_in(self.shard or 0, self.missing[-1]) / RATE if self.missing else 0.0
        )

    def _commit(self) -> None:
        cluster, shard = self.cluster, self.shard
        if shard is not None and self.missing:
            number = self.missing.pop()
            cluster.paid += cluster.rows_in(shard, number)
            self.segments.commit(cluster.line(shard, number, self.beat.worker))
            if self.segments.contested:
                cluster.figures["commits fenced"] += 1
                self._leave()
        if self.shard is not None and not self.missing:
            cluster.store.create(f"{FINISHED}{shard:05}.json", b"{}")
            cluster.unfinished.discard(self.shard)
            self.shard, self.idle = None, cluster.now
        if self.shard is None:
            self._later(0.0, self._next)
            return
        self.begun = cluster.now
        took, cluster.store.elapsed = cluster.store.elapsed, 0.0  # the next group is made meanwhile
        self._later(max(self._seconds(), took), self._commit)

    def _leave(self) -> None:
        """What was made since the last commit, and is on its way, was paid for nothing."""
        cluster = self.cluster
        made = min(
            cluster.group,
            int(RATE * max(0.0, min(cluster.now, self.thaws or cluster.now) - self.begun)),
        )
        rest = sum(cluster.rows_in(self.shard or 0, number) for number in self.missing)
        cluster.paid += min(rest, made + IN_FLIGHT)
        self.shard, self.idle = None, cluster.now

    def _die(self) -> None:
        if self.dead:
            return
        self.dead = True
        self.cluster.figures["deaths"] += 1
        if self.shard is not None:
            self.cluster.orphans[self.shard] = self.cluster.now
            self._leave()
        self.cluster.restart(self.index)

    def _freeze(self) -> None:
        if not self.dead and self.shard is not None:
            self.cluster.figures["freezes"] += 1
            self.thaws = self.cluster.now + self.cluster.draw.uniform(1.2, 4) * LEASE


def check(cluster: Cluster) -> None:
    """Every group of every shard is in one segment, by a walk over the store itself."""
    keys: Counter[bytes] = Counter()
    for name, content in cluster.store.objects.items():
        if name.startswith("responses.d/"):
            keys.update(line[8:40] for line in content.splitlines())
    expected = sum(cluster.groups_of(shard) for shard in range(cluster.shards))
    assert len(keys) == expected, f"{len(keys)} of {expected} groups"
    assert max(keys.values()) == 1, "a group is there twice"
    assert not cluster.unfinished


def seconds_per_row(group: int, rows: int = 20_000) -> float:
    """CPU time of committing real rows, without the network."""
    store = Counting(random.Random(0))
    row = Response(
        item_id="q",
        prompt="p" * 400,
        response="r" * 400,
        messages=[{"role": "user", "content": "p" * 400}],
    )
    lines: list[bytes] = []
    for number in range(rows):
        row.key = f"{number * 0x9E3779B97F4A7C15 % 2**128:032x}"
        lines.append(msgspec.json.encode(row) + b"\n")
    segments = Segments(store, "responses.d/0/00000/")
    start = time.process_time()
    for at in range(0, rows, group):
        segments.commit(b"".join(lines[at : at + group]))
    return (time.process_time() - start) / rows


def costs(cluster: Cluster) -> list[str]:
    """Dollars for all operations, and one reader of all segments; operations beside the commits as in this run."""
    counts, cells = cluster.store.counts, cluster.cells
    commits = cells / cluster.group
    puts, gets = (counts["put"] + counts["list"] - commits) / cells, counts["get"] / cells
    lines = [
        f"{'store':26} {'rows':>12} "
        + " ".join(f"{f'group {group}':>12}" for group in (64, 256, 1000))
    ]
    for store, (put, get) in PRICES.items():
        for rows in (10**6, 10**8):
            bills = [
                ((rows / group + puts * rows) * put + (rows / group + gets * rows) * get) / 1000
                for group in (64, 256, 1000)
            ]
            lines.append(
                f"{store:26} {rows:12,} " + " ".join(f"{f'${bill:,.2f}':>12}" for bill in bills)
            )
    return lines


def report(cluster: Cluster, seconds: float) -> list[str]:
    counts, figures, extra = cluster.store.counts, cluster.figures, cluster.paid - cluster.cells
    events = figures["deaths"] + figures["freezes"]
    waits = sorted(cluster.waits) or [0.0]
    busy = cluster.cells / (RATE * cluster.size)
    return [
        f"{cluster.size:,} workers, {cluster.cells:,} cells in {cluster.shards:,} shards, groups of {cluster.group}: "
        f"{cluster.now:,.0f} s of virtual time ({busy:,.0f} s if nothing went wrong), {seconds:.0f} s of CPU time",
        f"{figures['deaths']} deaths, {figures['freezes']} freezes beyond the lease, {figures['commits fenced']} "
        f"commits fenced, {counts['refused']:,} operations refused, {counts['lost replies']:,} replies lost",
        f"every row once; {extra:,} cells paid again ({extra / cluster.cells:.3%}), {extra / max(1, events):,.0f} for "
        f"each death or freeze; at most {cluster.group} + {IN_FLIGHT} in flight, and as many of who took over",
        f"{counts['put']:,} puts, {counts['get']:,} gets, {counts['list']:,} lists: "
        f"{(counts['put'] + counts['get'] + counts['list']) * cluster.group / cluster.cells:.2f} for each group",
        f"a dead worker's shard was taken over after {median(waits):.0f} s (median; {waits[-1]:.0f} s at most): "
        f"others finish their own first; by a waiting worker within {max(cluster.watched, default=0.0):.0f} s "
        f"(the lease is {LEASE:.0f} s)",
        f"{1e6 * seconds_per_row(cluster.group):.1f} µs of CPU time a row for committing",
        *costs(cluster),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.simulate_cluster", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--cells", type=int, default=10**8)
    parser.add_argument("--group", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.process_time()
    cluster = Cluster(arguments.workers, arguments.cells, arguments.group, arguments.seed)
    cluster.run()
    check(cluster)
    print("\n".join(report(cluster, time.process_time() - start)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
