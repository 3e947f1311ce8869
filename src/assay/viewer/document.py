"""The one HTML document: script and style inside, allowed by their hashes, and nothing else may run or be loaded."""

import base64
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

import msgspec

from assay.viewer.index.columns import declared


@cache
def asset(name: str) -> str:
    """A built file of the viewer: app.js, rich.js or style.css."""
    return (files("assay.viewer") / "assets" / name).read_text(encoding="utf-8")


def policy(*, served: bool) -> str:
    """The Content-Security-Policy. Pictures come from the rows (data:), or, on a click, from where they are."""
    scripts = " ".join(f"'sha256-{_hash(asset(name))}'" for name in ("app.js", "rich.js"))
    rules = {
        "default-src": "'none'",
        "script-src": scripts,
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob: https: http:" if served else "data: blob:",
        "connect-src": "'self'" if served else "",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {values}" for name, values in rules.items() if values)


def _hash(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def document(title: str, pages: Iterable[tuple[str, bytes]] | None = None) -> Iterator[bytes]:
    """The document in pieces. `pages` are keys and compressed JSON for a report; without them a server is asked."""
    columns = msgspec.json.encode(declared()).replace(b"<", b"\\u003c").decode()
    yield (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(served=pages is None))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{asset('style.css')}</style>\n</head>\n<body>\n"
        '<div id="app"><p>loading …</p></div>\n'
        f'<script type="application/json" id="columns">{columns}</script>\n'
    ).encode()
    if pages is not None:
        yield b'<div id="pages" hidden>\n'
        for key, content in pages:
            yield f'<script type="text/plain" data-page="{escape(key)}">'.encode()
            yield base64.b64encode(content)
            yield b"</script>\n"
        yield b"</div>\n"
    yield f"<script>{asset('app.js')}</script>\n</body>\n</html>\n".encode()
