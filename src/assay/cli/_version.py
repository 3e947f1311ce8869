"""The text of `--version`: the versions that explain a difference between two machines."""

import os
import platform
import sys

from assay import __version__

LIBRARIES = ("click", "jinja2", "msgspec", "numpy", "pyreqwest", "pyyaml", "rich")
EXTRAS = ("duckdb", "datasets", "zstandard", "jsonschema", "pandas", "polars", "pyarrow")


def version_text() -> str:
    installed = _installed()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    lines = [
        f"assay {__version__}",
        f"  python    {python} ({sys.executable})",
        f"  platform  {platform.system()} {platform.release()} {platform.machine()}",
        f"  libraries {_versions(LIBRARIES, installed)}",
    ]
    extras = _versions(EXTRAS, installed)
    return "\n".join([*lines, *([f"  extras    {extras}"] if extras else [])])


def _versions(names: tuple[str, ...], installed: dict[str, str]) -> str:
    return ", ".join(f"{name} {installed[name]}" for name in names if name in installed)


def _installed() -> dict[str, str]:
    """Versions by package, from the names of their metadata folders: importlib.metadata takes half the start-up."""
    versions: dict[str, str] = {}
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.endswith(".dist-info"):
                name, _, version = entry.removesuffix(".dist-info").rpartition("-")
                versions.setdefault(name.lower().replace("_", "-"), version)
    return versions
