"""Examples that come with Assay, a folder each, and `assay init`, which copies one.

Here are only folders with a `config.yaml`, whose first line says what it shows. Python files are stored with a further
`.txt`, so that no tool takes them for ours.
"""

from pathlib import Path

EXAMPLES = Path(__file__).parent
SKILL = EXAMPLES.parent / "data" / "agents"
DEFAULT = "qa"


def examples() -> dict[str, str]:
    """Name and first comment of each example."""
    found = sorted(path for path in EXAMPLES.iterdir() if (path / "config.yaml").is_file())
    return {
        path.name: (path / "config.yaml").read_text("utf-8").partition("\n")[0].lstrip("# ")
        for path in found
    }


def init(folder: str | Path = ".", *, example: str = DEFAULT, skill: bool = False) -> list[Path]:
    """Put a commented example that runs with the demo model into a folder, or with `skill` what coding agents read
    about Assay; nothing is overwritten."""
    from assay.errors import UserError
    from assay.registry import nearest
    from assay.store.files import store_error

    target = Path(folder)
    if example not in examples():
        raise UserError(f"there is no example {example!r}", fix=nearest(example, examples()))
    place = SKILL if skill else EXAMPLES / example
    sources = sorted(path for path in place.iterdir() if path.is_file())
    files = {
        target / path.name.removesuffix(".txt" if ".py" in path.name else ""): path
        for path in sources
    }
    existing = [path for path in files if path.exists() or path.is_symlink()]
    if existing:
        names = ", ".join(repr(path.name) for path in existing)
        raise UserError(
            f"{names} would be overwritten", where=str(target), fix="name another folder"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, source in files.items():
            with open(path, "xb") as file:
                file.write(source.read_bytes())
    except OSError as error:
        raise store_error(error, target) from error
    return list(files)
