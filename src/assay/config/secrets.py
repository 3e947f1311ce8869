"""Keys to paid services stay outside: a config names the variable that holds one, and never holds it itself.

So no value that passed these checks can put a key into a file, a log line or an error.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from assay.config.source import Document, Key, brief

PLACEHOLDERS = {"", "none", "null", "empty", "dummy", "not-needed", "dummy_api_key_for_local_model"}

_SECRET_KEY = re.compile(
    r"(?i)(api[_-]?key|apikey|secret|secret[_-]?key|private[_-]?key|access[_-]?key|passw(or)?d|authorization|cookie"
    r"|credentials?|(access|auth|api|bearer|refresh|hf|github)[_-]?token|^token)$"
)
_SECRET_VARIABLE = re.compile(r"(?i)(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWD|PASSWORD|CREDENTIALS?)$")
_SECRET_VALUE = re.compile(
    r"(?<![\w-])(?:(?=[\w-]*\d)(?:sk-|sk_|gsk_|xox[abp]-|glpat-)[\w-]{16,}"
    r"|(?:ghp_|github_pat_|hf_)[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,})"
)
_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def names_secret(key: Key) -> bool:
    """Whether the value at `key` is a secret by the names on its path; only references may stand there."""
    return any(isinstance(part, str) and _SECRET_KEY.search(part) for part in key) or (
        key[:1] == ("env_vars",) and len(key) > 1 and is_secret_variable(str(key[1]))
    )


def is_secret_variable(name: str) -> bool:
    return bool(_SECRET_VARIABLE.search(name))


def stays_reference(key: Key) -> bool:
    """Where `${VAR}` is not expanded at load, because what it stands for may be secret."""
    return "headers" in key or key[:1] == ("env_vars",) or names_secret(key)


def shown(value: Any) -> str:
    """A value for an error text: short, and nothing that looks like a secret."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    reference = getattr(value, "reference", None)
    if reference is not None:
        return f"the value of {reference}"
    text = repr(value)
    if _SECRET_VALUE.search(text):
        return "a value that looks like a key"
    return text if len(text) <= 60 else f"{text[:57]}…{text[-1]}"


def check_secrets(document: Document) -> None:
    """Report every literal secret, without printing it."""
    for key, value in _leaves(document.data, ()):
        if key[0] == "prompts" or not isinstance(value, str | int | float) or isinstance(value, bool):
            continue
        text = str(value)
        if names_secret(key):
            if text.lower() not in PLACEHOLDERS and not _REFERENCE.fullmatch(text):
                document.report(
                    f"{brief(key)} is a literal secret", key, "write ${VAR} and put it into the environment"
                )
        elif _SECRET_VALUE.search(text):
            document.report(f"{brief(key)} looks like a secret", key, "write ${VAR} under `api_key` or `headers`")
        elif "@" in text and "://" in text and _has_password(text):
            document.report(f"{brief(key)} has a password in its address", key, "use `headers` with ${VAR}")


def _has_password(address: str) -> bool:
    try:
        return urlsplit(address).password is not None
    except ValueError:
        return False


def _leaves(value: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _leaves(entry, (*key, str(name)))
    elif isinstance(value, list):
        for n, entry in enumerate(value):
            yield from _leaves(entry, (*key, n))
    else:
        yield key, value
