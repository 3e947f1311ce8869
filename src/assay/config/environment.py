"""The environment of a config: `.env` beside it, `env_vars` in it, `${VAR}` and `EVAL_*`.

A variable that is already set wins over `.env`, and both win over `env_vars`.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.config.secrets import is_secret_variable, stays_reference
from assay.config.source import Document, Key
from assay.config.types import Config
from assay.errors import UserError

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
    """What `secret` and the user's code should see: the environment, `.env` and `env_vars` together."""
    outer = _with_dotenv(Path(config.base) if config.source else None, environ, None)
    return _with_env_vars(config.env_vars, outer)


def secret(reference: str, environ: Mapping[str, str]) -> str | None:
    """The text that `${VAR}` (or `Bearer ${VAR}`) stands for; None if a variable is not set or empty."""
    missing = [name for _, name, default in _VARIABLE.findall(reference) if not environ.get(name) and not default]
    if missing:
        return None
    return _VARIABLE.sub(lambda match: environ.get(match[2]) or match[3] or "", reference)


def environment_of(document: Document, environ: Mapping[str, str] | None) -> dict[str, str]:
    """The same for a config that is still being read; bad lines of `.env` are its problems."""
    outer = _with_dotenv(document.base if document.file else None, environ, document)
    given = document.data.get("env_vars")
    return _with_env_vars(given, outer) if isinstance(given, Mapping) else outer


def expand(value: Any, key: Key, variables: Mapping[str, str], document: Document) -> Any:
    """`value` with `${VAR}` and `${VAR:-default}` replaced, except in prompts and where secrets stand."""
    if isinstance(value, Mapping):
        return {name: expand(entry, (*key, str(name)), variables, document) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [expand(entry, (*key, n), variables, document) for n, entry in enumerate(value)]
    if not isinstance(value, str) or "${" not in value or not _expands(key):
        return value

    def text_of(match: re.Match[str]) -> str:
        name, default = match[2], match[3]
        if match[1]:
            return match[0][1:]
        if is_secret_variable(name):
            document.report(f"${{{name}}} looks like a secret", key, "use it only under `api_key` or `headers`")
        elif name not in variables and match.end(3) < 0:
            fix = f"set it, or write ${{{name}:-default}}; $${{{name}}} is the text itself"
            document.report(f"the variable {name!r} is not set", key, fix)
        else:
            return variables.get(name, default)
        return ""

    expanded = _VARIABLE.sub(text_of, value)
    whole = _VARIABLE.fullmatch(value)
    return FromEnvironment(expanded, value) if whole and not whole[1] else expanded


def escape(value: Any, key: Key = ()) -> Any:
    """`value` so that `expand` gives it back."""
    if isinstance(value, Mapping):
        return {name: escape(entry, (*key, str(name))) for name, entry in value.items()}
    if isinstance(value, list):
        return [escape(entry, (*key, n)) for n, entry in enumerate(value)]
    if isinstance(value, str) and _expands(key):
        return _VARIABLE.sub(lambda match: f"${match[0]}", value)
    return value


def eval_variables(variables: Mapping[str, str]) -> dict[str, tuple[Key, FromEnvironment]]:
    """The keys that `EVAL_*` variables set; `EVAL_SAMPLE_<name>` sets a sample parameter."""
    found: dict[str, tuple[Key, FromEnvironment]] = {}
    for name in sorted(variables):
        key = _EVAL_KEYS.get(name)
        if key is None and name.startswith("EVAL_SAMPLE_"):
            key = ("sample_params", name.removeprefix("EVAL_SAMPLE_").lower())
        if key is not None:
            found[name] = (key, FromEnvironment(variables[name], name))
    return found


def variable_text(value: Any) -> Any:
    """A number or a truth value of `env_vars` as the text that a variable holds."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _expands(key: Key) -> bool:
    if key[:1] and key[0] in PROMPT_KEYS:
        return key[-1] == "path"
    return not stays_reference(key)


def _with_dotenv(folder: Path | None, environ: Mapping[str, str] | None, document: Document | None) -> dict[str, str]:
    outer = dict(os.environ if environ is None else environ)
    file = folder / ".env" if folder else None
    if file is None or not file.is_file():
        return outer
    found: dict[str, str] = {}
    for number, line in enumerate(file.read_text("utf-8-sig", errors="replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match:
            found[match[1]] = _unquoted(match[2])
        elif document:
            what = "this line is not NAME=value"
            document.problems.append(UserError(what, where=f"{file}:{number}", fix="begin a comment with #"))
    return {**found, **outer}


def _unquoted(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), quoted[2])


def _with_env_vars(given: Mapping[str, Any], outer: Mapping[str, str]) -> dict[str, str]:
    inner = {name: secret(str(variable_text(value)), outer) for name, value in given.items()}
    return {**{name: value for name, value in inner.items() if value is not None}, **outer}
