"""A run that is what its lock says, or none: `assay run --locked`."""

from typing import Any

from assay.engine.calls.stop import Stop
from assay.engine.experiment.experiment import Experiment, Result
from assay.engine.experiment.locks.lock import (
    UNKNOWN,
    Values,
    drift,
    lock_file,
    read_lock,
    served_of,
    values_of,
    write_lock,
)
from assay.errors import RunFailed, UserError

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

    def _refuse_drift(self, locked: Values) -> None:
        if locked.get("name") != self.config.name:
            what = f"this is the lock of {locked.get('name')!r}, and the config is {self.config.name!r}"
            raise UserError(
                what, where=str(self.lock), fix="name the config's own lock, or lock it"
            )
        found = drift(locked, values_of(self))
        if not found:
            return
        lines = [each.line() for each in found[:_MOST]]
        lines += [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
        other = any(each.place == "dataset.hash" for each in found)
        of = (
            "this is the lock of another dataset, or the items changed"
            if other
            else "the config is not as locked"
        )
        raise UserError(
            "\n  - ".join([f"{of}; nothing was run. What differs:", *lines]),
            where=str(self.lock),
            fix=f"undo these changes, or accept them: assay lock {self.config.source}",
        )

    def _check_served(self, locked: Values) -> None:
        """What servers reported is what is locked; where it was unknown, it is locked now."""
        reported, differ = served_of(self.folder), list[str]()
        models: list[Values] = [{**model} for model in locked.get("models") or ()]
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
            raise RunFailed(
                "\n  - ".join(
                    ["a server is not what it was when it was locked; all rows are kept", *differ]
                ),
                where=str(self.lock),
                fix=f"find out what changed, or accept it: assay lock {self.config.source}",
            )
        if models != locked.get("models"):
            write_lock(self.lock, {**locked, "models": models})
            self.progress.note(f"what servers report of themselves is locked now: {self.lock}")
