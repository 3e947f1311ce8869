"""tools/simulate_cluster.py at a small size, with many failures: what it reports is what its store holds."""

import pytest

from tools import simulate_cluster
from tools.simulate_cluster import IN_FLIGHT, Cluster, check, report


@pytest.mark.parametrize("seed", range(5))
def test_a_small_cluster_that_fails_often(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate_cluster, "DEATH", 120.0)
    monkeypatch.setattr(simulate_cluster, "FREEZE", 120.0)
    cluster = Cluster(workers=12, cells=500_000, group=100, seed=seed)
    cluster.run()
    check(cluster)
    segments = [name for name in cluster.store.objects if name.startswith("responses.d/")]
    assert len(segments) == 48 * 105  # shards of 10,416 or 10,417 rows
    events = cluster.figures["deaths"] + cluster.figures["freezes"]
    assert events >= 10
    assert 0 < cluster.paid - cluster.cells <= events * 2 * (100 + IN_FLIGHT)
    assert f"{cluster.paid - cluster.cells:,} cells paid again" in report(cluster, 0.0)[2]


def test_without_failures_nothing_is_paid_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEATH", "FREEZE"):
        monkeypatch.setattr(simulate_cluster, name, 1e12)
    cluster = Cluster(workers=5, cells=40_000, group=100, seed=0)
    cluster.run()
    check(cluster)
    assert cluster.paid == 40_000
    assert cluster.figures == {"workers started": 5}


def test_the_check_finds_what_is_missing_or_there_twice() -> None:
    cluster = Cluster(workers=2, cells=20_000, group=100, seed=0)
    cluster.run()
    first = next(name for name in cluster.store.objects if name.startswith("responses.d/"))
    twice = cluster.store.objects[first]
    cluster.store.objects["responses.d/0/00000/99999999.jsonl"] = twice
    with pytest.raises(AssertionError, match="twice"):
        check(cluster)
    del cluster.store.objects[first], cluster.store.objects["responses.d/0/00000/99999999.jsonl"]
    with pytest.raises(AssertionError, match="of 200 groups"):
        check(cluster)
