"""The reference pages are what docstrings and signatures say."""

from pathlib import Path

import pytest

from assay import registry
from assay.parameters import described
from tools.plugin_docs import page, section

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {path.name.removesuffix("-reference.md"): path for path in DOCS.glob("*-reference.md")}


@pytest.mark.parametrize("kind", PAGES)
def test_the_committed_page_is_the_generated_one(kind: str) -> None:
    assert PAGES[kind].read_text() == page(kind), f"run `python -m tools.plugin_docs {kind}`"


@pytest.mark.parametrize("kind", PAGES)
def test_every_parameter_is_explained_and_none_is_invented(kind: str) -> None:
    known: registry.Registry = getattr(registry, kind)
    for name in known.names():
        function = known.get(name)
        if function.__module__.startswith(f"{known.package}."):
            assert set(described(function.__doc__)[1]) == set(registry.parameters(function)) - {
                "context"
            }, name


def test_scorers_have_a_page() -> None:
    assert "scorer" in PAGES


def test_a_section() -> None:
    def sample(
        item: object, *, size: int = 3, kind: str | None = None, flag: bool = False, need: float
    ) -> None:
        """Does it.

        More | about it.

        Parameters:
        size: how large,
          in all
        need: what it needs
        """

    assert section(sample).splitlines() == [
        "## sample",
        "",
        "Does it.",
        "",
        "More | about it.",
        "",
        "| parameter | type | default | meaning |",
        "|---|---|---|---|",
        "| `size` | `whole number` | `3` | how large, in all |",
        "| `kind` | `text or null` | `null` |  |",
        "| `flag` | `true or false` | `false` |  |",
        "| `need` | `number` | required | what it needs |",
    ]
