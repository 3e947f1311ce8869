"""Writes `llms.txt`, the map of the documentation for language models: every page with its first sentence.

python -m tools.llms
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "src/assay/data/agents/llms.txt"
HEAD = (
    "# Assay\n\n"
    "> Find out how good a language model, a prompt or an agent really is. Assay runs every model × prompt × item × "
    "sample of one config, scores the answers, and prints numbers with their uncertainty. A crash costs nothing, "
    "nothing is paid twice, and every failure is counted.\n\n"
    "Start with `assay init first` and `assay run first/config.yaml`: the embedded model needs no key and no network. "
    "Every command has `--help` and `--json`; `assay schema` is the JSON Schema of a config, `assay schema COMMAND` "
    "that of what a command prints with `--json`. How to work with it is in SKILL.md beside this file. The pages "
    "below are in the folder `docs` of Assay's repository.\n"
)
SECTIONS = {
    "Commands": lambda title: title.startswith("assay ") or title == "--json",
    "Coming from other tools": lambda title: title.startswith("Coming from"),
    "Parts and reference": lambda title: True,
}


def text() -> str:
    """The whole file."""
    pages = [
        _page(path) for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "index.md"
    ]
    parts = [HEAD]
    for name, belongs in SECTIONS.items():
        own = [page for page in pages if belongs(page[0])]
        pages = [page for page in pages if page not in own]
        lines = [
            f"- [{title}](docs/{file}){f': {about}' if about else ''}" for title, file, about in own
        ]
        parts.append(f"## {name}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _page(path: Path) -> tuple[str, str, str]:
    """Title, file name and first sentence of a page."""
    title, _, rest = path.read_text(encoding="utf-8").partition("\n")
    paragraph = next(
        (part for part in rest.split("\n\n") if part.strip() and part.strip()[0].isalnum()), ""
    )
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    sentence = re.split(r"(?<=[.:!?]) (?=[A-Z`])", plain)[0]
    return title.lstrip("# "), path.name, sentence.rstrip(":")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
