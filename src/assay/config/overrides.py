"""Single values set from outside the file: `--set a.b=value` and `EVAL_*`."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from assay.config.environment import eval_variables, expand
from assay.config.inline import ARGUMENTS
from assay.config.models import FIELDS
from assay.config.normalise import LIFTED
from assay.config.source import Document, Key, copied, flag_value
from assay.errors import UserError


def parse_override(text: str) -> tuple[str, Any]:
    """`models.0.name=x` as its key and its value, read like a value in YAML."""
    key, sign, value = text.partition("=")
    if not sign or not all(key.strip().split(".")):
        raise UserError(f"{text!r} sets nothing", where="--set", fix="write --set dotted.key=value")
    return key.strip(), flag_value(value)


def apply(
    document: Document,
    overrides: Mapping[str, Any],
    variables: Mapping[str, str],
    *,
    arguments: Mapping[str, Any] = {},
) -> None:
    """Set what `EVAL_*` variables, then what arguments and then what flags say, in a document of long forms."""
    for name, (key, value) in eval_variables(variables).items():
        _set(document, key, value, name)
    spelled = {key: name for name, key in ARGUMENTS.items()}
    for key, value in arguments.items():
        by = f"the argument `{spelled.get(key, key)}`"
        _set(document, (key,), expand(copied(value), (key,), variables, document), by)
    for text, value in overrides.items():
        key = tuple(int(part) if part.isdecimal() else part for part in text.split("."))
        _set(document, key, expand(value, key, variables, document), f"--set {text}")


def _set(document: Document, key: Key, value: Any, by: str) -> None:
    key = _long_key(key)
    document.set(key, by)
    target = LIFTED.get((str(key[0]),)) or LIFTED.get(tuple(map(str, key)))
    if target:
        document.data.pop(target, None)
    holder: Any = document.data
    for part, following in pairwise(key):
        holder = _inside(holder, part, [] if isinstance(following, int) else {})
    last = key[-1]
    if isinstance(holder, dict):
        holder[str(last)] = value
    elif isinstance(holder, list) and isinstance(last, int) and last <= len(holder):
        holder[last:] = [value, *holder[last + 1 :]]
    else:
        document.report(f"there is nothing to set at {'.'.join(map(str, key))}", key, "count entries from 0")


def _inside(holder: Any, part: str | int, empty: Any) -> Any:
    """What `part` names, made `empty` first if it is not there; a list grows only at its end."""
    if isinstance(holder, list) and isinstance(part, int) and part <= len(holder):
        if part == len(holder):
            holder.append(empty)
        return holder[part]
    if not isinstance(holder, dict):
        return None
    if holder.get(str(part)) is None:
        holder[str(part)] = empty
    return holder[str(part)]


def _long_key(key: Key) -> Key:
    """Where a model's key stands in its long form."""
    if key[0] != "models" or len(key) < 3:
        return key
    rest = key[3:] if key[2] in ("config", "params") else key[2:]
    if not rest:
        return key
    return (*key[:2], *rest) if rest[0] in FIELDS else (*key[:2], "params", *rest)
