"""Pictures of graphs."""

import xml.etree.ElementTree as ElementTree
from typing import Any

from assay.formats.sygra.graph import GraphTask
from assay.formats.sygra.graph.draw import arrows, mermaid, svg
from tests.formats.sygra.graph.graphs import Bench, llm, node

SVG = "{http://www.w3.org/2000/svg}"


def drawn(names: list[str], *more: Any) -> GraphTask:
    nodes: dict[str, Any] = {
        name: llm(output_keys=f"v{number}") for number, name in enumerate(names)
    }
    nodes["last"] = node("lambda", **{"lambda": "f"})
    edges = [{"from": "START", "to": names[0]}, *more]
    return Bench({"f": lambda config, state: {}}).task(
        {"graph_config": {"nodes": nodes, "edges": edges}}
    )


LOOP = drawn(
    ["ask", "never"],
    {"from": "ask", "to": "last"},
    {"from": "last", "condition": "f", "path_map": {"again": "ask", "self": "last", "END": "END"}},
)


def test_the_arrows() -> None:
    assert arrows(LOOP) == [
        ("START", "ask", ""),
        ("ask", "last", ""),
        ("last", "ask", "again"),
        ("last", "last", "self"),
        ("last", "END", "END"),
    ]


def test_mermaid() -> None:
    assert mermaid(LOOP) == (
        "flowchart TD\n"
        '    n0(["START"])\n'
        '    n1["ask"]\n'
        '    n2["never"]\n'
        '    n3("last")\n'
        '    n4(["END"])\n'
        "    n0 --> n1\n"
        "    n1 --> n3\n"
        '    n3 -.->|"again"| n1\n'
        '    n3 -.->|"self"| n3\n'
        '    n3 -.->|"END"| n4\n'
    )


def boxes(picture: ElementTree.Element) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for group in picture.iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert box is not None
        found[title.text or ""] = (float(box.get("x", "")), float(box.get("y", "")))
    return found


def test_the_svg_has_every_node_once_apart_from_each_other_and_every_arrow() -> None:
    picture = ElementTree.fromstring(svg(LOOP))
    found = boxes(picture)
    assert set(found) == {"START", "ask", "never", "last", "END"}
    assert len(set(found.values())) == 5
    assert found["START"][1] < found["ask"][1] < found["last"][1] < found["END"][1]
    assert len(picture.findall(f"{SVG}path")) == 5
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    assert all(0 <= x < width and 0 <= y < height for x, y in found.values())


def test_names_of_strangers_are_harmless() -> None:
    odd = 'a"<b>&\x1b[31m'
    task = drawn([odd], {"from": odd, "to": "last"}, {"from": "last", "to": "END"})
    assert "a#quot;<b>&\\x1b[31m" in mermaid(task)
    assert 'a"<b>&\\x1b[31m' in boxes(ElementTree.fromstring(svg(task)))
