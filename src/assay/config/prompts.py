"""The prompts of a config: their files read, their fragments and examples found, and what is wrong with them.

`{% include "fragment.txt" %}` is written out: the fragment's text takes the tag's place, so a prompt's text is all that
determines it. An edited fragment is an edited prompt, and a resolved config needs no other file. Fragments come only
from the config's own folder.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay import reading
from assay.config.paths import absolute, existing, mappings, resolve_dataset
from assay.config.source import Document, Key, scalar, similar_files
from assay.config.types import DatasetConfig, FewShotConfig, PromptConfig
from assay.errors import UserError
from assay.records import JsonObject
from assay.registry import nearest

PARTS = ("text", "image", "audio", "file")
ROLES = ("system", "developer", "user", "assistant", "tool")
_CHAT_SUFFIXES = (".yaml", ".yml", ".json")
_DATASET_KEYS = {*DatasetConfig.__struct_fields__}
_FEW_SHOT_KEYS = {*FewShotConfig.__struct_fields__}
# fragments of one template: two that include two that include two … would fill the memory
MOST_FRAGMENTS = 1000
_TAG = re.compile(
    r"\{#.*?#\}"
    r"|\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}"
    r"|\{%(?P<left>[-+]?)\s*include\b(?P<name>.*?)(?P<right>[-+]?)%\}(?P<after>\s*)",
    re.DOTALL,
)
_QUOTED = re.compile(r"""\s*(?:"([^"\n]+)"|'([^'\n]+)')\s*""")


def read_prompts(document: Document, *, files_needed: bool) -> None:
    """Put into every prompt what its files say."""
    for n, prompt in mappings(document.data.get("prompts")):
        key: Key = ("prompts", n)
        named = isinstance(prompt.get("path"), str) and prompt["path"] != ""
        if named:
            _read_file(prompt, (*key, "path"), document)
        file = Path(prompt["path"]) if named else None
        _complete(prompt, key, document, file)
        few_shot = prompt.get("few_shot")
        if isinstance(few_shot, dict):
            _complete(few_shot, (*key, "few_shot"), document, file)
            source = few_shot.get("dataset")
            if isinstance(source, dict):
                few_shot["dataset"] = source = _source(source, document)
                resolve_dataset(source, document, files_needed, (*key, "few_shot"))


def long_few_shot(value: Any, long_dataset: Any) -> Any:
    """A path, or a mapping in which the keys of a dataset may stand beside the others."""
    if isinstance(value, str):
        value = {"path": value}
    if not isinstance(value, dict):
        return value
    source = {
        name: entry for name, entry in value.items() if name in _DATASET_KEYS - _FEW_SHOT_KEYS
    }
    few_shot = {name: entry for name, entry in value.items() if name not in source}
    dataset = few_shot.get("dataset")
    if source and dataset is None:
        dataset = source
    if dataset is not None:
        few_shot["dataset"] = long_dataset(dataset)
    return few_shot


def _source(source: JsonObject, document: Document) -> JsonObject:
    """Return where the examples are; without a file or function of its own, another part of the config's dataset."""
    whole = document.data.get("dataset")
    if any(
        source.get(name) for name in ("path", "name", "module", "function_name")
    ) or not isinstance(whole, dict):
        return source
    return {**whole, **{name: value for name, value in source.items() if value != ""}}


def _read_file(prompt: JsonObject, key: Key, document: Document) -> None:
    """The text of a file; a text that is given beside the path stands, so a resolved config needs no file."""
    if prompt.get("text") or prompt.get("messages"):
        prompt["path"] = absolute(prompt["path"], key, document)
        return
    before = len(document.problems)
    written, prompt["path"] = prompt["path"], existing(prompt["path"], key, document)
    if len(document.problems) > before:
        return
    try:
        text = reading.text(prompt["path"])
    except (OSError, UnicodeDecodeError):
        document.report(f"{written!r} cannot be read as UTF-8 text", key)
        return
    if not text:
        document.report(f"{written!r} is empty", key, "write the template into it")
    elif not prompt["path"].lower().endswith(_CHAT_SUFFIXES):
        prompt["text"] = text
    else:
        try:
            messages = scalar(text)  # JSON is YAML
        except UserError as error:
            document.report(f"{written}:{error.where}: {error.what}", key, error.fix)
            return
        prompt["messages"] = messages.get("messages") if isinstance(messages, dict) else messages
        if not isinstance(prompt["messages"], list):
            document.report(
                f"{written!r} is not a list of messages", key, "write `- {role: user, content: …}`"
            )
            del prompt["messages"]


def _complete(template: JsonObject, key: Key, document: Document, file: Path | None) -> None:
    """Fragments into texts, and the paths of images made absolute."""
    for holder, name, place in _templates(template, key):
        if name == "path":
            holder[name] = _image_path(holder[name], place, document)
            continue
        try:
            holder[name] = with_includes(holder[name], document.base, file)
        except UserError as error:
            inner = f" ({error.where})" if error.where else ""
            document.report(error.what + inner, place, error.fix)


def _templates(template: JsonObject, key: Key) -> Iterator[tuple[JsonObject, str, Key]]:
    """(mapping, key in it, place) of every text, and of every path of an image."""
    for name in ("text", "system"):
        if isinstance(template.get(name), str):
            yield template, name, (*key, name)
    messages: list[Any] = template["messages"] if isinstance(template.get("messages"), list) else []
    for n, turn in enumerate(messages):
        content = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(content, str):
            yield turn, "content", (*key, "messages", n)
        for part in content if isinstance(content, list) else ():
            for name in ("text", "path"):
                if isinstance(part, dict) and isinstance(part.get(name), str):
                    yield part, name, (*key, "messages", n)


def _image_path(text: str, key: Key, document: Document) -> str:
    path = os.path.expanduser(text)
    if "{" in path:  # a template: only its beginning is a path
        return path if os.path.isabs(path) else os.path.join(document.base, path)
    return absolute(text, key, document)


def check_prompt(prompt: PromptConfig, key: Key, document: Document) -> None:
    if prompt.text and prompt.messages:
        document.report("a prompt has text or messages, not both", key, "remove one of them")
    if prompt.turns == "each" and prompt.prefill:
        document.report(
            "an answer to each turn cannot be begun with `prefill`", key, "remove one of them"
        )
    _check_messages(prompt.messages, (*key, "messages"), document)
    few_shot = prompt.few_shot
    if few_shot is None:
        return
    place: Key = (*key, "few_shot")
    _check_messages(few_shot.messages, (*place, "messages"), document)
    if few_shot.text and few_shot.messages:
        document.report("few_shot has text or messages, not both", place, "remove one of them")
    if few_shot.dataset is not None and not few_shot.dataset.type:
        document.report(
            "what the examples' file holds is not clear from its name", place, "add `type: jsonl`"
        )


def _check_messages(messages: list[JsonObject] | None, key: Key, document: Document) -> None:
    if messages == []:
        document.report("there are no messages", key, "write `- {role: user, content: …}`")
    for n, turn in enumerate(messages or ()):
        place: Key = (*key, n)
        role, content = turn.get("role"), turn.get("content")
        if not isinstance(role, str) or not isinstance(content, str | list) or content == []:
            document.report(
                "a message needs a role and a content", place, "write {role: user, content: …}"
            )
        elif role not in ROLES:
            document.report(f"unknown role {role!r}", place, nearest(role, ROLES))
        elif isinstance(content, list):
            for part in content:
                _check_part(part, place, document)


def _check_part(part: Any, key: Key, document: Document) -> None:
    fix = "write {type: text, text: …}, {type: image, path: …}, {type: image, url: …} or {type: image, field: …}"
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in PARTS:
        document.report("a part of a message is a text, an image, an audio or a file", key, fix)
        return
    keys = {"text"} if kind == "text" else {"path", "url", "field"}
    sources = keys & part.keys()
    if len(sources) != 1 or not isinstance(part[next(iter(sources))], str):
        document.report(f"a part of type {kind} needs {' or '.join(sorted(keys))}", key, fix)
    for name in part.keys() - keys - {"type", "detail"}:
        document.report(f"unknown key {name!r}", key, nearest(name, {*keys, "type", "detail"}))


# ---- fragments


def with_includes(text: str, base: Path, file: Path | None = None) -> str:
    """The template with its fragments, and theirs, in place; `file` is where it came from itself."""
    if "include" not in text:
        return text
    return _with_fragments(text, base.resolve(), [file.resolve()] if file else [], [])


def _with_fragments(text: str, base: Path, within: list[Path], done: list[Path]) -> str:
    pieces: list[str] = []
    end = 0
    for tag in _TAG.finditer(text):
        if tag["name"] is None:
            continue
        before = text[end : tag.start()]
        fragment = _fragment(tag["name"], base, within, done)
        pieces += [before.rstrip() if tag["left"] == "-" else before, fragment]
        end = tag.end() if tag["right"] == "-" else tag.start("after")
    return "".join([*pieces, text[end:]])


def _fragment(written: str, base: Path, within: list[Path], done: list[Path]) -> str:
    # the file that holds the tag; a template in the config itself has its place from there
    holder = within[-1] if within else None
    place = (
        ""
        if holder is None
        else str(holder.relative_to(base) if holder.is_relative_to(base) else holder)
    )
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        what = f"an include names one file: {{% include {written.strip()} %}} cannot be read before the run"
        raise UserError(what, where=place, fix='write {% include "fragment.txt" %}')
    name = quoted[1] or quoted[2]
    file = _inside(base, name)
    if file is None:
        what = f"the fragment {name!r} is outside the config's folder"
        raise UserError(what, where=place, fix=f"move it into {base}")
    if file in within:
        chain = " → ".join(step.name for step in [*within[within.index(file) :], file])
        raise UserError(f"{name!r} includes itself: {chain}", where=place, fix="remove one include")
    done.append(file)
    if len(done) > MOST_FRAGMENTS:
        raise UserError(f"the template includes more than {MOST_FRAGMENTS} fragments", where=place)
    try:
        text = reading.text(file)
    except FileNotFoundError:
        raise UserError(
            f"there is no fragment {name!r}", where=place, fix=similar_files(file)
        ) from None
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{name!r} cannot be read as UTF-8 text", where=place) from None
    return _with_fragments(text.removesuffix("\n"), base, [*within, file], done)


def _inside(base: Path, name: str) -> Path | None:
    """The file, if it is in the folder or below, with all links followed."""
    try:
        file = (base / name).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return file if file.is_relative_to(base) else None
