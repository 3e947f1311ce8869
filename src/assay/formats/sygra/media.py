"""Images and other media in output records: a data URL becomes a file beside the output; its path takes its place."""

import base64
import binascii
import re
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from assay.store.files import write_file
from assay.store.names import safe_name

MARK = b";base64,"
_URL = re.compile(r"data:[\w.+-]+/([\w.+-]+)(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/=\s]+)")


def with_files(line: bytes, folder: Path) -> bytes:
    """A record's JSON with paths for its data URLs; equal content is one file."""
    return msgspec.json.encode(_replaced(msgspec.json.decode(line), folder, "value"))


def _replaced(value: Any, folder: Path, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(entry, folder, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [_replaced(entry, folder, name) for entry in value]
    found = _URL.fullmatch(value) if isinstance(value, str) and value.startswith("data:") else None
    if found is None:
        return value
    try:
        content = base64.b64decode(found[2], validate=False)
    except binascii.Error:  # text that only looks like one
        return value
    kind = re.sub(r"\W.*", "", found[1]) or "bin"
    path = folder / f"{safe_name(name)}-{blake2b(content, digest_size=8).hexdigest()}.{kind}"
    if not path.exists():
        write_file(path, content)
    return str(path)
