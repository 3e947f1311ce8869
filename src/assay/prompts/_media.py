"""The files that a prompt's messages show: named by the template, or by the items.

A rendered message has a file's name, type and digest, which is what the row shows and the key holds; the task puts the
bytes in place when it asks. A template's path that holds an item's field may not leave the folder that the template
names; an item's own path may not leave the dataset's folder.
"""

import os
from pathlib import Path
from typing import Any

from assay.sdk import Message, UserError
from assay.text.media import described, part_of
from assay.text.template import Render, Variables, compiled


class Media:
    """`constant` are the digests of files that no item changes; `folder` is what items' paths count from, None if
    nobody knows; `files` has the place of every file that was rendered, by digest."""

    def __init__(self, folder: str | None = "") -> None:
        self.constant: list[str] = []
        self.varies = False
        self.files: dict[str, Path] = {}
        self._folder = None if folder is None else Path(folder).resolve()

    def part(self, part: Message, where: str) -> Render:
        """A function from variables to the message part, or parts, of one {type, path | url | field}."""
        kind = part["type"]
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        if "field" in part:
            return lambda context: self._field(kind, context[part["field"]], detail)
        if "url" in part:
            render = compiled(part["url"], where)
            return lambda context: _at_address(kind, render(context), detail)
        source = str(part["path"])
        render = compiled(source, where)
        begin = min((at for at in (source.find("{{"), source.find("{%")) if at >= 0), default=-1)
        folder = Path(os.path.dirname(source if begin < 0 else source[:begin])).resolve()
        if begin < 0:
            self.constant.append(self._describe(source, folder, kind)["digest"])
        else:
            self.varies = True

        def render_part(context: Variables) -> Message:
            return {**self._describe(render(context), folder, kind), **detail}

        return render_part

    def _describe(self, text: str, folder: Path, kind: str) -> Message:
        reference, file = described(text, Path(), folder, kind)
        self.files[reference["digest"]] = file
        return {"type": kind, "name": file.name, **reference}

    def _field(self, kind: str, value: Any, detail: dict[str, str]) -> list[Message]:
        """Return what an item's field names: nothing, one file, or several."""
        if value in (None, ""):
            return []
        sources: list[Any] = value if isinstance(value, list) else [value]
        return [self.file_part(part_of(kind, source, detail)) for source in sources]

    def file_part(self, part: Any) -> Any:
        """A part of an item's message; one that names a file by its path becomes the file's reference."""
        if not isinstance(part, dict) or "path" not in part:
            return part
        if self._folder is None:
            what = f"it is not clear which folder {part['path']!r} is in"
            raise UserError(
                what, fix="name the folder of the rows' files: `media: FOLDER` in `dataset`"
            )
        reference, file = described(part["path"], self._folder, self._folder, part["type"])
        self.files[reference["digest"]] = file
        detail = {"detail": part["detail"]} if "detail" in part else {}
        return {"type": part["type"], "name": part["path"], **reference, **detail}


def _at_address(kind: str, url: str, detail: dict[str, str]) -> Message:
    if not url.startswith(("http://", "https://")):
        shown = url if len(url) <= 60 else f"{url[:57]}…"
        raise UserError(
            f"the {kind}'s url is {shown!r}",
            fix="begin it with https://, or give a file as `path:`",
        )
    return part_of(kind, url, detail)
