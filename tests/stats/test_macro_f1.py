"""The mean F1 of weighted cells, against scikit-learn on the cases that the weights stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from assay.stats.classification import NONE, macro_f1s

cells = st.lists(
    st.tuples(st.integers(0, 3), st.integers(NONE, 3)), min_size=1, max_size=8, unique=True
)


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of classes that were never predicted
@settings(deadline=None, max_examples=60)
@given(cells, st.data())
def test_weights_stand_for_cases(given_cells: list[tuple[int, int]], data: st.DataObject) -> None:
    true, said = (np.array([cell[side] for cell in given_cells]) for side in range(2))
    some = st.lists(st.integers(0, 3), min_size=len(true), max_size=len(true)).filter(any)
    weights = np.array(data.draw(st.lists(some, min_size=1, max_size=4)))
    expected = []
    for row in weights:
        actual, predicted = np.repeat(true, row), np.repeat(said, row)
        labels = sorted({*actual.tolist(), *predicted.tolist()} - {NONE})
        expected.append(
            f1_score(actual, predicted, labels=labels, average="macro", zero_division=0)
        )
    assert macro_f1s(true, said, weights).tolist() == pytest.approx(expected)
