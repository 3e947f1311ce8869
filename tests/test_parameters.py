"""Groups of parameters: described once, part of every signature that shares them."""

import inspect
from typing import Any, Literal

import msgspec
import pytest

from assay.errors import UserError
from assay.parameters import described
from assay.registry import Registry, check_params, parameters


class Shared(msgspec.Struct):
    """What both have.

    Parameters:
    size: how large,
      in all
    rule: what decides
    depth: how deep
    """

    size: int = 3
    rule: Literal["most", "all"] = "most"


class More(Shared):
    """Parameters:
    depth: how deep it goes
    """

    depth: int = 1


def made(group: type) -> Any:
    plug_ins = Registry("scorer", "")

    @plug_ins(params=group)
    def sample(item: object, *, rule: Literal["all"] = "all", **more: Any) -> dict[str, Any]:
        """Does it.

        Parameters:
        rule: mine
        """
        return {"rule": rule, **msgspec.structs.asdict(group(**more))}

    return sample


def test_fields_take_the_place_of_further_keywords() -> None:
    assert {name: p.default for name, p in parameters(made(Shared)).items()} == {
        "rule": "all",
        "size": 3,
    }
    assert list(inspect.signature(made(More)).parameters) == ["item", "rule", "size", "depth"]


def test_types_are_checked_and_unknown_names_refused() -> None:
    assert check_params(made(Shared), {"size": 4}) == {"size": 4}
    for params, what in (
        ({"size": "x"}, "sample.size"),
        ({"rule": "most"}, "sample.rule"),
        ({"sizes": 1}, "no parameter 'sizes'"),
    ):
        with pytest.raises(UserError, match=what):
            check_params(made(Shared), params)


def test_own_words_win_over_those_of_the_group_and_a_subclass_over_its_parent() -> None:
    text, meanings = described(made(More).__doc__)
    assert text == "Does it."
    assert meanings == {"rule": "mine", "size": "how large, in all", "depth": "how deep it goes"}


def test_a_group_that_only_describes_leaves_the_signature_alone() -> None:
    plug_ins = Registry("scorer", "")

    @plug_ins(params=Shared)
    def plain(item: object, *, size: float = 0.5) -> float:
        """Does it."""
        return size

    assert check_params(plain, {"size": 2}) == {"size": 2.0}
    assert described(plain.__doc__) == ("Does it.", {"size": "how large, in all"})
    assert plain(None) == 0.5
