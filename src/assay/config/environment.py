"""The environment of a config: `.env` beside it, `env_vars` in it, `${VAR}` and `EVAL_*`; and the secrets in it.

A variable that is already set wins over `.env`, and both win over `env_vars`. Keys to paid services stay outside: a
config names the variable that holds one, and never holds it itself. So no value that passed these checks can put a key
into a file, a log line or an error.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from assay import reading
from assay.config.source import Document, Key, brief, map_values, values_in
from assay.config.types import Config
from assay.errors import UserError
from assay.records import JsonMapping

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
_USER = re.compile(
    r"(?i)\b(?:https?|wss?|ftp)://[^\s/?#]*@|\b[a-z][a-z\d+.-]*://[^\s/?#@:]*:(?!\d+(?:[/?#]|$))[^\s@]*@"
)
_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
PROMPT_KEYS = ("prompts", "prompt_template", "eval_prompt_template", "prompt_templates")
_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_QUOTED = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
_EVAL_KEYS: dict[str, Key] = {
    "EVAL_MODE": ("mode",),
    "EVAL_BATCH_SIZE": ("batch_size",),
    "EVAL_MAX_WORKERS": ("max_concurrency",),
    "EVAL_TIMEOUT": ("timeout",),
    "EVAL_MAX_RETRIES": ("max_retries",),
    "EVAL_OUTPUT_DIR": ("output_dir",),
    "EVAL_LOG_LEVEL": ("logging", "level"),
    "EVAL_LOG_FILE": ("logging", "file"),
    "EVAL_RESUME": ("resume",),
    "EVAL_DATASET": ("dataset",),
    "EVAL_LIMIT": ("limit",),
}


class FromEnvironment(str):
    """Text that a variable gave: a number or a truth value where the config wants one."""

    reference: str

    def __new__(cls, text: str, reference: str) -> "FromEnvironment":
        self = super().__new__(cls, text)
        self.reference = reference
        return self


def environment(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what `secret` and the user's code should see: the environment, `.env` and `env_vars` together."""
    outer = _with_dotenv(Path(config.base) if config.source else None, environ, None)
    return _with_env_vars(config.env_vars, outer)


def variables_in(folder: Path) -> dict[str, str]:
    """The environment and the folder's `.env`."""
    return _with_dotenv(folder, None, None)


def secret(reference: str, environ: Mapping[str, str]) -> str | None:
    """The text that `${VAR}` (or `Bearer ${VAR}`) stands for; None if a variable is not set or empty."""
    missing = [
        name
        for _, name, default in _VARIABLE.findall(reference)
        if not environ.get(name) and not default
    ]
    if missing:
        return None
    text = _VARIABLE.sub(lambda match: environ.get(match[2]) or match[3] or "", reference)
    return FromEnvironment(text, reference) if text != reference else text


def environment_of(document: Document, environ: Mapping[str, str] | None) -> dict[str, str]:
    """The same for a config that is still being read; bad lines of `.env` are its problems."""
    outer = _with_dotenv(document.base if document.file else None, environ, document)
    inner = document.data.get("env_vars")
    return _with_env_vars(inner, outer) if isinstance(inner, Mapping) else outer


def expand(value: Any, key: Key, variables: Mapping[str, str], document: Document) -> Any:
    """`value` with `${VAR}` and `${VAR:-default}` replaced, except in prompts and where secrets stand."""

    def expand_leaf(leaf: Any, at: Key) -> Any:
        if not isinstance(leaf, str) or "${" not in leaf or not _expands(at):
            return leaf
        text = _VARIABLE.sub(lambda match: _value(match, at, variables, document), leaf)
        whole = _VARIABLE.fullmatch(leaf)
        return FromEnvironment(text, leaf) if whole and not whole[1] else text

    return map_values(value, expand_leaf, key)


def _value(match: re.Match[str], key: Key, variables: Mapping[str, str], document: Document) -> str:
    name, default = match[2], match[3]
    if match[1]:
        return match[0][1:]
    if is_secret_variable(name):
        document.report(
            f"${{{name}}} looks like a secret", key, "use it only under `api_key` or `headers`"
        )
    elif name not in variables and match.end(3) < 0:
        fix = f"set it, or write ${{{name}:-default}}; $${{{name}}} is the text itself"
        document.report(f"the variable {name!r} is not set", key, fix)
    else:
        return variables.get(name, default)
    return ""


def escape(value: Any) -> Any:
    """`value` so that `expand` gives it back."""
    return map_values(
        value,
        lambda leaf, key: (
            _VARIABLE.sub(lambda match: f"${match[0]}", leaf)
            if isinstance(leaf, str) and _expands(key)
            else leaf
        ),
    )


def eval_variables(variables: Mapping[str, str]) -> dict[str, tuple[Key, FromEnvironment]]:
    """The keys that `EVAL_*` variables set; `EVAL_SAMPLE_<name>` sets a sample parameter."""
    keys: dict[str, tuple[Key, FromEnvironment]] = {}
    for name in sorted(variables):
        key = _EVAL_KEYS.get(name)
        if key is None and name.startswith("EVAL_SAMPLE_"):
            key = ("sample_params", name.removeprefix("EVAL_SAMPLE_").lower())
        if key is not None:
            keys[name] = (key, FromEnvironment(variables[name], name))
    return keys


def variable_text(value: Any) -> Any:
    """A number or a truth value of `env_vars` as the text that a variable holds."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _expands(key: Key) -> bool:
    if key[:1] and key[0] in PROMPT_KEYS:
        return key[-1] == "path"
    return not stays_reference(key)


def _with_dotenv(
    folder: Path | None, environ: Mapping[str, str] | None, document: Document | None
) -> dict[str, str]:
    outer = dict(os.environ if environ is None else environ)
    file = folder / ".env" if folder else None
    if file is None or not file.is_file():
        return outer
    inner: dict[str, str] = {}
    for number, line in enumerate(reading.text(file, "utf-8-sig", "replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match:
            inner[match[1]] = _unquote(match[2])
        elif document:
            what = "this line is not NAME=value"
            document.problems.append(
                UserError(what, where=f"{file}:{number}", fix="begin a comment with #")
            )
    return {**inner, **outer}


def _unquote(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), quoted[2])


def _with_env_vars(given: JsonMapping, outer: Mapping[str, str]) -> dict[str, str]:
    inner = {name: secret(str(variable_text(value)), outer) for name, value in given.items()}
    return {**{name: value for name, value in inner.items() if value is not None}, **outer}


# ---- secrets


def names_secret(key: Key) -> bool:
    """Return whether the value at `key` is a secret by the names on its path; only references may stand there."""
    return any(isinstance(part, str) and _SECRET_KEY.search(part) for part in key) or (
        key[:1] == ("env_vars",) and len(key) > 1 and is_secret_variable(str(key[1]))
    )


def is_secret_variable(name: str) -> bool:
    return bool(_SECRET_VARIABLE.search(name))


def stays_reference(key: Key) -> bool:
    """Return whether `${VAR}` is not expanded at load, because what it stands for may be secret."""
    return "headers" in key or key[:1] == ("env_vars",) or names_secret(key)


def shown_safely(value: Any) -> str:
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
    if re.search(r":\S*@", text):
        return "a value with a user or a password"
    return text if len(text) <= 60 else f"{text[:57]}…{text[-1]}"


def check_secrets(document: Document) -> None:
    """Report every literal secret, without printing it."""
    for key, value in values_in(document.data):
        if (
            key[0] == "prompts"
            or not isinstance(value, str | int | float)
            or isinstance(value, bool)
        ):
            continue
        text = str(value)
        if names_secret(key):
            if text.lower() not in PLACEHOLDERS and not _REFERENCE.fullmatch(text):
                document.report(
                    f"{brief(key)} is a literal secret",
                    key,
                    "write ${VAR} and put it into the environment",
                )
        elif _SECRET_VALUE.search(text):
            document.report(
                f"{brief(key)} looks like a secret",
                key,
                "write ${VAR} under `api_key` or `headers`",
            )
        elif without_user(text) != text:
            document.report(
                f"{brief(key)} has a user or a password in its address",
                key,
                "use `headers` with ${VAR}",
            )


def is_address(endpoint: Any) -> bool:
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        return False


def without_user(text: str) -> str:
    """The text without what its addresses tell about who asks: `https://user:password@host`."""
    return (
        _USER.sub(lambda match: match[0].partition("://")[0] + "://", text) if "@" in text else text
    )
