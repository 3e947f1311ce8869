"""Images in messages: read when a prompt is rendered, sent when it is asked, never kept in a row.

A rendered message has the image's name, type and digest, which is what the row shows and the key holds; `sent` puts
the bytes in place as a data URL. A path that holds an item's field may not leave the folder that the template names.
"""

import base64
import os
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from assay import reading
from assay.errors import TransientError, UserError
from assay.interfaces import Message
from assay.text.template import Render, Variables, compiled

_KINDS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))


class Images:
    """The image files of one prompt. `constant` are the digests of those that no item changes."""

    def __init__(self) -> None:
        self.constant: list[str] = []
        self.varies = False
        self._files: dict[str, Path] = {}

    def part(self, part: Message, where: str) -> Render:
        """A function from variables to the message part of one {type: image, path|url}."""
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        if "url" in part:
            render = compiled(part["url"], where)
            return lambda context: {"type": "image_url", "image_url": {"url": _address(render(context)), **detail}}
        source = str(part["path"])
        render = compiled(source, where)
        begin = min((at for at in (source.find("{{"), source.find("{%")) if at >= 0), default=-1)
        folder = Path(os.path.dirname(source if begin < 0 else source[:begin])).resolve()
        if begin < 0:
            self.constant.append(self._described(source, folder)["digest"])
        else:
            self.varies = True

        def rendered(context: Variables) -> Message:
            return {"type": "image", **self._described(render(context), folder), **detail}

        return rendered

    def _described(self, text: str, folder: Path) -> dict[str, str]:
        try:
            file = Path(text).resolve()
            inside = file.is_relative_to(folder)
            stat = file.stat() if inside else None
        except (OSError, ValueError, RuntimeError):
            raise UserError(f"there is no image {text!r}") from None
        if stat is None:
            raise UserError(f"the image {text!r} is outside {str(folder)!r}", fix="move it there")
        kind, digest = _read(str(file), stat.st_size, stat.st_mtime_ns)
        self._files[digest] = file
        return {"name": file.name, "media_type": f"image/{kind}", "digest": digest}

    def sent(self, messages: list[Message]) -> list[Message]:
        """The messages as a server gets them."""
        return [
            {**message, "content": [self._sent_part(part) for part in message["content"]]}
            if isinstance(message["content"], list)
            else message
            for message in messages
        ]

    def _sent_part(self, part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") != "image":
            return part
        file = self._files[part["digest"]]
        try:
            content = reading.content(file)
        except OSError:
            content = b""
        if _digest(content) != part["digest"]:
            raise TransientError(f"the image {file.name!r} changed during the run", where=str(file))
        url = f"data:{part['media_type']};base64,{base64.b64encode(content).decode()}"
        detail = {"detail": part["detail"]} if "detail" in part else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}


@lru_cache(maxsize=1 << 16)
def _read(path: str, size: int, mtime_ns: int) -> tuple[str, str]:
    """Kind and digest of a file; with its size and time, so that a changed one is read again."""
    try:
        content = reading.content(path)
    except OSError as error:
        raise UserError(f"the image cannot be read: {error.strerror}", where=path) from None
    kind = next((kind for start, kind in _KINDS if content.startswith(start)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "webp"
    if not kind:
        raise UserError(f"{Path(path).name!r} is not an image", where=path, fix="png, jpeg, gif and webp can be sent")
    return kind, _digest(content)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        shown = url if len(url) <= 60 else f"{url[:57]}…"
        raise UserError(f"the image's url is {shown!r}", fix="begin it with https://, or give a file as `path:`")
    return url
