"""The versions of other tools that `make test-peers` installs are those that made the logs."""

import ast
import json
import re

import pytest

from tests.formats.test_peers import HERE, PEERS

NAMES = {
    "inspect_ai": "inspect_ai",
    "lm_eval": "lm_eval",
    "openai_evals": "evals",
    "pydantic_evals": "pydantic-evals",
}


def pins(peer: str) -> dict[str, str]:
    if peer == "promptfoo":
        return json.loads((HERE / peer / "package.json").read_text())["dependencies"]
    lines = (HERE / peer / "requirements.txt").read_text().splitlines()
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines]
    assert None not in found, "a name and a version, no address"
    return dict(match.groups() for match in found if match)


@pytest.mark.parametrize("peer", PEERS)
def test_the_logs_were_made_with_the_pinned_version(peer: str) -> None:
    version = pins(peer)[NAMES.get(peer, peer)]
    said = ast.get_docstring(ast.parse((HERE / peer / "make_logs.py").read_text()))
    assert said is not None
    assert re.search(rf"(?<![\d.]){re.escape(version)}(?![\d])", said)


def test_every_tool_that_can_be_installed_is_run() -> None:
    pinned = {
        file.parent.name
        for name in ("requirements.txt", "package.json")
        for file in HERE.glob(f"*/{name}")
    }
    assert pinned == {file.parent.name for file in HERE.glob("*/make_logs.py")} == {*PEERS}
