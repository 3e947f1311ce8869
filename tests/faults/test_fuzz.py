"""Every fuzz target for a bounded number of cases; `make fuzz` runs many more."""

from __future__ import annotations

import pytest

from fuzz import targets

CASES = {"http": 20_000, "cli": 300, "scorers": 100}
ELSE = 2_000  # cases of a target that is not listed


@pytest.mark.slow
@pytest.mark.parametrize("name", targets())
def test_fuzz(name: str) -> None:
    """No case ends in an internal error, a hang or a wrong class of failure."""
    with targets()[name]() as attack:
        faults = {case: fault for case in range(CASES.get(name, ELSE)) if (fault := attack(case))}
    assert not faults
