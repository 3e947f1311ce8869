"""File names for ids, which are text from anywhere: slashes, dots, unicode, 10 kB of it."""

import re
from hashlib import blake2b

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)

INSIDE = ".assay"  # the folder in which commands keep experiments behind files of their own


def safe_name(id: str) -> str:
    """A file or folder name: the id itself if it is plainly safe, else a readable start, `~` and a hash.

    Different ids have different names: no safe id contains `~`.
    """
    if _SAFE.fullmatch(id) and not id.endswith("."):
        return id
    readable = _UNSAFE.sub("-", id[:200])[:40].strip(".-") or "id"
    return f"{readable}~{blake2b(id.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
