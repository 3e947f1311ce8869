"""A dozen events of tools/soak_cluster.py on real processes and a real S3 server; `make soak-cluster` has more."""

import pytest

from tools.soak_cluster import KINDS, soak

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(("place", "events"), [("folder", 8), ("s3", 4)])
def test_nothing_is_lost_and_nothing_is_twice(place: str, events: int) -> None:
    figures, faults = soak(events=1, seed=5, on=place, each=events)
    assert not faults
    assert (figures["rows lost"], figures["rows twice"]) == (0, 0)
    assert figures["calls paid again"] <= figures["calls that might have been"]
    assert sum(figures[kind] for kind in KINDS) >= events // 2
