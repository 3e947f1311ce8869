"""What determines the numbers of a config, in one file that can be read, compared and committed: `assay lock`; and a run
that is what its lock says, or none: `assay run --locked`.

It holds hashes, names and versions: no secret, no time, no place on this machine. Equal configs give equal bytes. What
servers report of themselves is known after a run, and `unknown` before.
"""

import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import msgspec

from assay import reading, usercode
from assay.config import Config, to_yaml
from assay.config.providers import table
from assay.config.source import scalar
from assay.engine.calls.stop import Stop
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.experiment import bind
from assay.engine.experiment.experiment import Experiment, Result
from assay.engine.experiment.models import bind_usable, price_of, sampling
from assay.engine.experiment.trust import with_list
from assay.engine.run.plan import content_hash
from assay.sdk import (
    VERSION,
    JsonMapping,
    JsonObject,
    Manifest,
    Model,
    RunFailed,
    Task,
    UserError,
    canonical,
    digest,
    write_file,
)
from assay.shown import Shown
from assay.store.log import FileLog
from assay.store.table.decode import read_rows

_LOCK_VERSION = 1
UNKNOWN = "unknown"
_HEAD = (
    "# What determines the numbers of this config: `assay run --locked` refuses anything else.\n"
)
_SEAL = re.compile(r"(?s)\A(.*\n)checksum: ([0-9a-f]{32})\n\Z")
_LONGEST = 80


class Locked(Shown, kw_only=True):
    """What `assay lock` wrote, where, and whether that is new: `unchanged`, `written` or `changed`."""

    file: str
    state: str
    lock: JsonObject


class Drift(msgspec.Struct):
    """A value that is not the locked one; None where there is none."""

    place: str
    locked: Any
    now: Any

    def line(self) -> str:
        return f"{self.place}: {_text(self.locked)} is now {_text(self.now)}"


def lock(experiment: Experiment, output: str | Path | None = None) -> Locked:
    """Write what determines the numbers of a config beside it. Nothing is run, and a file that is not a lock stays."""
    file = lock_file(experiment.config, output)
    before = read_lock(file) if os.path.exists(file) and os.path.getsize(file) else None
    values = values_of(experiment)
    if before is not None:
        _keep_served(values, before)
    state = "written" if before is None else "changed"
    if before == values:
        state = "unchanged"
    else:
        write_lock(file, values)
    return Locked(file=str(file), state=state, lock=values)


def lock_file(config: Config, given: str | Path | None = None) -> Path:
    if given is None and not os.path.isfile(config.source):
        raise UserError(
            "it is not clear where the lock of this config is", fix="name a file with -o"
        )
    return Path(given or f"{config.source}.lock")


# ---- the file


def write_lock(file: Path, values: JsonObject) -> None:
    text = _HEAD + to_yaml(values)
    write_file(file, f"{text}checksum: {_checksum(text)}\n".encode(), private=False)


def read_lock(file: Path) -> JsonObject:
    """The values of a lock; what is not one, was edited or is of a later version is refused."""
    try:
        text = reading.content(file).decode()
    except FileNotFoundError:
        name = file.name.removesuffix(".lock")
        raise UserError(
            "there is no lock", where=str(file), fix=f"write one: assay lock {name}"
        ) from None
    except (UnicodeDecodeError, OSError) as error:
        raise UserError(
            f"the lock cannot be read: {error}", where=str(file), fix="restore it"
        ) from None
    found = _SEAL.match(text)
    if not text.startswith(_HEAD[:40]) and "assay_lock:" not in text[:1000]:
        fix = "Assay replaces only its own: name another file, or move this one away"
        raise UserError("this file is not a lock", where=str(file), fix=fix)
    later = re.search(r"(?m)^assay_lock: (\d+)$", text)
    if later and int(later[1]) > _LOCK_VERSION:
        what = f"this lock is of version {later[1]}, and this Assay knows {_LOCK_VERSION}"
        raise UserError(what, where=str(file), fix="update Assay")
    if found is None or found[2] != _checksum(found[1]):
        fix = "restore it, or remove it and lock again: a lock is not edited"
        raise UserError(
            "this lock is damaged: it is not what was written", where=str(file), fix=fix
        )
    return cast("JsonObject", scalar(found[1]))


def _checksum(text: str) -> str:
    return digest("lock", text.encode()).hex()


# ---- its values


def values_of(experiment: Experiment) -> JsonObject:
    """All that determines the numbers, in a fixed order."""
    config = experiment.config
    models = bind_usable(config, experiment.environ)
    samples = max(config.num_samples, experiment.options.num_samples or 1)
    tasks = bind.bind_tasks(config, models, samples)
    scorers, metrics = bind.bind_scorers(config, models), bind.bind_metrics(config)
    with experiment.trial_store() as store:
        dataset = experiment.ingest(store) if config.dataset is not None else None
    plain: JsonObject = {
        "assay_lock": _LOCK_VERSION,
        "name": config.name,
        "seed": config.seed,
        "samples": samples,
        "dataset": _dataset(config, dataset),
        "prompts": _prompts(config),
        "models": _models(experiment, models),
        "tasks": [_task(task) for task in tasks],
        "scorers": [_scorer(scorer) for scorer in scorers],
        "metrics": [{**metric.plan(), "params": _params(metric.params)} for metric in metrics],
        "packages": versions(_functions_of([*scorers, *metrics], tasks, models)),
        "prices_as_of": table().as_of,
    }
    return msgspec.json.decode(msgspec.json.encode(plain))


def _functions_of(
    bound: Iterable[Any], tasks: Iterable[Task], models: Mapping[str, Model]
) -> list[Callable[..., Any]]:
    """Return what scorers, metrics, tasks and models are made of."""
    made = [getattr(task, "function", type(task)) for task in tasks]
    return [*(part.function for part in bound), *made, *map(type, models.values())]


def _prompts(config: Config) -> list[JsonObject]:
    prompts = enumerate(bind.bind_prompts(config), 1)
    return [{"name": p.name or f"prompt {number}", "hash": _hash(p.text)} for number, p in prompts]


def _task(task: Task) -> JsonObject:
    return {"name": task.name, "hash": _hash([dict(task.identity), dict(task.facets)])}


def _dataset(config: Config, manifest: Manifest | None) -> JsonObject | None:
    source = config.dataset
    if manifest is None or source is None:
        return None
    shaped = {
        name: value for name in _SHAPE if (value := getattr(source, name)) not in (None, "", {}, [])
    }
    shaped = {**msgspec.to_builtins(shaped), "limit": config.limit, "seed": source.seed}
    return {"hash": content_hash(manifest), "items": manifest.counts.get("items", 0), **shaped}


_SHAPE = (
    "type",
    "name",
    "subset",
    "revision",
    "fields",
    "answer",
    "filter",
    "split",
    "sample",
    "shuffle",
)


def _models(experiment: Experiment, models: Mapping[str, Model]) -> list[JsonObject]:
    served, config = served_of(experiment.folder), experiment.config
    entries = [_model(config, models, number) for number in range(len(config.models))]
    return [{**entry, "served": served.get(entry["name"], UNKNOWN)} for entry in entries]


def _model(config: Config, models: Mapping[str, Model], number: int) -> JsonObject:
    entry = config.models[number]
    price, identity = price_of(config, entry), dict(models[entry.name].identity)
    return {
        "name": entry.name,
        "type": entry.type,
        "id": str(entry.params.get("model_name") or entry.name),
        "hash": _hash(identity),
        "settings": _params(
            {name: value for name, value in identity.items() if name not in ("name", "type")}
        ),
        "sampling": sampling(config, entry),
        "price": UNKNOWN if price is None else {"input": price.input, "output": price.output},
    }


def _scorer(scorer: BoundScorer) -> JsonObject:
    found: JsonObject = {
        "name": scorer.name,
        "hash": scorer.identity.hex(),
        "code": usercode.identity(scorer.function),
    }
    if scorer.params:
        found["params"] = _params(scorer.params)
    if scorer.judges:
        found["judges"] = {name: _hash(identity) for name, identity in scorer.judges.items()}
    if scorer.people is not None:
        found["people"] = scorer.people.digest
    return found


def _params(params: JsonMapping) -> JsonObject:
    """Parameters that are short are shown, texts and paths by their hashes."""
    return {name: _short_value(value) for name, value in params.items()}


def _short_value(value: Any) -> Any:
    try:
        text = canonical(value).decode()
    except (TypeError, ValueError):
        return _hash(str(value))
    return _hash(value) if len(text) > _LONGEST or "/" in text or "\\" in text else value


def _hash(value: Any) -> str:
    return digest("lock", value.encode() if isinstance(value, str) else canonical(value)).hex()


# ---- what servers report


class _Reported(msgspec.Struct):
    served_model: str | None = None
    served_fingerprint: str | None = None
    outcome: str = "ok"


class _AnsweredRow(_Reported):
    model_name: str = ""


class _Called(msgspec.Struct):
    model_name: str = ""
    completion: _Reported = msgspec.field(default_factory=_Reported)


def served_of(folder: Path) -> dict[str, JsonObject]:
    """By model the names and fingerprints that servers gave in a folder's rows and calls."""
    found: dict[str, tuple[set[str], set[str]]] = {}

    def add(name: str, row: _Reported) -> None:
        names, fingerprints = found.setdefault(name, (set(), set()))
        names |= {row.served_model} - {None}  # type: ignore[arg-type]
        fingerprints |= {row.served_fingerprint} - {None}  # type: ignore[arg-type]

    for _, row in read_rows(FileLog(folder / "responses.jsonl"), _AnsweredRow):
        if row.outcome != "errored":
            add(row.model_name, row)
    for _, call in read_rows(FileLog(folder / "calls.jsonl"), _Called):
        add(call.model_name, call.completion)
    return {
        name: {"models": sorted(names), "fingerprints": sorted(fingerprints)}
        for name, (names, fingerprints) in found.items()
    }


def _keep_served(values: JsonObject, before: JsonObject) -> None:
    """Keep what is known of a server while its model is the same."""
    known = {model["name"]: model for model in before.get("models") or ()}
    for model in values["models"]:
        old = known.get(model["name"])
        if model["served"] == UNKNOWN and old is not None and old.get("hash") == model["hash"]:
            model["served"] = old.get("served", UNKNOWN)


# ---- drift


def drift(locked: JsonObject, now: JsonObject) -> list[Drift]:
    """Return the places where two locks differ, but for what servers report."""
    before, after = dict(_leaves(locked)), dict(_leaves(now))
    places = dict.fromkeys((*before, *after))
    return [
        Drift(place, before.get(place), after.get(place))
        for place in places
        if before.get(place) != after.get(place) and ".served" not in place
    ]


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its place; entries of lists are called by their names."""
    if isinstance(value, dict) and value:
        for name, part in cast("JsonObject", value).items():
            yield from _leaves(part, f"{place}.{name}" if place else str(name))
    elif (
        isinstance(value, list)
        and value
        and all(isinstance(part, dict) for part in cast("list[Any]", value))
    ):
        for part in cast("list[JsonObject]", value):
            yield from _leaves(
                {name: inner for name, inner in part.items() if name != "name"},
                f"{place}.{part['name']}",
            )
    else:
        yield place, value


def _text(value: Any) -> str:
    if value is None:
        return "not there"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_MOST = 20


class LockedExperiment(Experiment):
    """Refuses to begin where anything that determines the numbers is not as it was locked, and fails at the end where
    a server reports something else of itself. `lock` is its file, by default beside the config."""

    def __init__(self, *arguments: Any, lock: str = "", **named: Any) -> None:
        super().__init__(*arguments, **named)
        options = self.options
        flags = {
            "--limit": options.limit,
            "--model": options.models,
            "--num-samples": options.num_samples,
        }
        if asked := [flag for flag, value in flags.items() if value]:
            raise UserError(
                f"a locked run does all that is locked: {asked[0]} does less",
                fix=f"leave out {asked[0]}",
            )
        self.lock = lock_file(self.config, lock or None)

    async def run(self, stop: Stop | None = None) -> Result:
        locked = read_lock(self.lock)
        self._refuse_drift(locked)
        result = await super().run(stop)
        self._check_served(locked)
        return result

    def _refuse_drift(self, locked: JsonObject) -> None:
        if locked.get("name") != self.config.name:
            what = f"this is the lock of {locked.get('name')!r}, and the config is {self.config.name!r}"
            raise UserError(
                what, where=str(self.lock), fix="name the config's own lock, or lock it"
            )
        found = drift(locked, values_of(self))
        if not found:
            return
        other = any(each.place == "dataset.hash" for each in found)
        of = (
            "this is the lock of another dataset, or the items changed"
            if other
            else "the config is not as locked"
        )
        what = f"{of}; nothing was run. What differs:"
        raise UserError(
            with_list(what, [each.line() for each in found], _MOST),
            where=str(self.lock),
            fix=f"undo these changes, or accept them: assay lock {self.config.source}",
        )

    def _check_served(self, locked: JsonObject) -> None:
        """Refuse servers that report what is not locked; what was unknown is locked now."""
        reported, differ = served_of(self.folder), list[str]()
        models: list[JsonObject] = [{**model} for model in locked.get("models") or ()]
        for model in models:
            now = reported.get(model["name"])
            if now is None:
                continue
            if model["served"] == UNKNOWN:
                model["served"] = now
                continue
            for what, values in now.items():
                if more := sorted(set(values) - set(model["served"][what])):
                    known = ", ".join(model["served"][what]) or "none"
                    differ.append(f"{model['name']}: {what} {known} is now {', '.join(more)}")
        if differ:
            what = "a server is not what it was when it was locked; all rows are kept"
            raise RunFailed(
                with_list(what, differ, len(differ)),
                where=str(self.lock),
                fix=f"find out what changed, or accept it: assay lock {self.config.source}",
            )
        if models != locked.get("models"):
            write_lock(self.lock, {**locked, "models": models})
            self.progress.note(f"what servers report of themselves is locked now: {self.lock}")


_ALWAYS = ("jinja2", "msgspec", "numpy")  # templates, rows and statistics
_PARTS = (
    "scorers",
    "metrics",
    "models",
    "prompts",
    "tasks",
    "datasets",
    "text",
    "stats",
    "demo",
    "formats",
)


def versions(functions: Iterable[Callable[..., Any]]) -> dict[str, str]:
    """By package, in order of name. `functions` are the plug-ins; what they import is looked up, not imported."""
    named = {*_ALWAYS}
    for file in _files(functions):
        named |= {name for name in _imports(file) if name not in sys.stdlib_module_names}
    found = {"assay": VERSION, "python": platform.python_version()}
    for distribution in sorted({each for name in named for each in _distributions(name)}):
        found.setdefault(distribution.lower().replace("_", "-"), version(distribution))
    return dict(sorted(found.items()))


def _distributions(module: str) -> list[str]:
    """The installed packages that a module is of: mostly one that is called like it."""
    try:
        version(module)
    except PackageNotFoundError:
        return _by_module().get(module, []) if any(_specs(module)) else []
    return [module]


@cache
def _by_module() -> Mapping[str, list[str]]:
    return packages_distributions()


def _files(functions: Iterable[Callable[..., Any]]) -> set[Path]:
    """The files of functions, and of the parts of Assay or of the user's folder that these import."""
    found: set[Path] = set()
    for function in functions:
        module = sys.modules.get(str(getattr(function, "__module__", "")))
        file = getattr(module, "__file__", None)
        if file is None:
            continue
        if usercode.is_built_in(function):
            _follow(Path(file), found)
        else:
            found.update(usercode.sources(Path(file).resolve()))
    return found


def _follow(file: Path, found: set[Path]) -> None:
    if file in found:
        return
    found.add(file)
    for name in _imports(file, whole=True):
        parts = name.split(".")
        if parts[0] == "assay" and len(parts) > 2 and parts[1] in _PARTS:
            for spec in _specs(name):
                _follow(spec, found)


def _specs(name: str) -> Iterator[Path]:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        yield Path(spec.origin)


@cache
def _imports(file: Path, *, whole: bool = False) -> frozenset[str]:
    """The modules that a file imports, anywhere in it: their first names, or `whole`."""
    names = {name for level, name in usercode.imported_names(file) if not level}
    return frozenset(names if whole else {name.partition(".")[0] for name in names} - {"assay"})
