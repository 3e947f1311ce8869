"""The JSON Schema of the config as a file of the package: `assay schema` prints it without loading the types."""

import json
from pathlib import Path

from assay.config.resolved import schema

FILE = Path(__file__).parent.parent / "data" / "config.schema.json"


def schema_text() -> str:
    """What the file should hold."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
