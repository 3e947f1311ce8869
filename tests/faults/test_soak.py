"""A short soak; `make soak` takes longer."""

import pytest

from tools.soak import soak


@pytest.mark.slow
def test_soak() -> None:
    figures, faults = soak(minutes=0.25, seed=20261116)
    assert not faults
    assert figures["experiments"] >= 1
    assert figures["rows lost"] == figures["rows twice"] == 0
