"""Every error that Assay raises on purpose, with one wording: what is wrong, where, how to fix it.

AssayError                 exit code 1
├── UserError              exit code 2: the command, the config or the data is wrong
│   └── ConfigError        several problems of one config, reported together
├── StoreError             the disk or the folder cannot be used
│   └── LockedError        another process holds the folder
├── RunFailed              a step could not be finished; what was done is kept
├── BudgetError            exit code 5: the next call does not fit into the budget
├── Interrupted            exit code 130: the user stopped it
└── CallError              one model call failed: it becomes a row, never a crash
    ├── TransientError     worth another try
    ├── PermanentError     the same call would fail again
    └── LaneError          no call of this model can succeed: stop its lane
"""

from collections.abc import Sequence
from typing import Literal

ErrorKind = Literal["transient", "permanent"]
DISTRIBUTION = "assay-eval"  # what pip calls the package that is imported as `assay`
VERSION = "0.2.0"
ADDRESSES: dict[
    str, str
] = {}  # folders that are copies of a bucket's objects, and the addresses that people know

COMMAND: list[str] = []  # the words of the command line that is run, for errors that tell another


def shown(text: str) -> str:
    """A text with addresses in place of the folders that are copies of what is there."""
    for folder, address in ADDRESSES.items():
        text = text.replace(folder, address)
    return text


def install_command(extras: str) -> str:
    """Return the command that installs extras of this package, such as `sql,frames`."""
    return f"pip install '{DISTRIBUTION}[{extras}]'"


class AssayError(Exception):
    """What is wrong, where (file, line, config path), and how to fix it."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.fix:
            lines.append(f"  fix:   {self.fix}")
        return shown("\n".join(lines))


class UserError(AssayError):
    exit_code = 2


class ConfigError(UserError):
    """All problems found in one config; each is a UserError of its own."""

    def __init__(self, problems: Sequence[UserError], *, source: str = "") -> None:
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        super().__init__(f"{count} in {source or 'the config'}")
        self.problems = list(problems)

    def __str__(self) -> str:
        return shown("\n".join([self.what, *(str(problem) for problem in self.problems)]))


class StoreError(AssayError):
    pass


class LockedError(StoreError):
    pass


class RunFailed(AssayError):
    pass


class BudgetError(AssayError):
    exit_code = 5


class Interrupted(AssayError):
    exit_code = 130

    def __init__(self) -> None:
        super().__init__("stopped; every finished row is kept", fix="the same command resumes")


class CallError(AssayError):
    kind: ErrorKind = "permanent"


class TransientError(CallError):
    """`overload` asks the lane to slow down; `retry_after` is the server's own wish in seconds; `unreachable` means
    that no answer came at all, `timed_out` that none came in time."""

    kind: ErrorKind = "transient"

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        overload: bool = False,
        retry_after: float | None = None,
        unreachable: bool = False,
        timed_out: bool = False,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.overload = overload
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.timed_out = timed_out


class PermanentError(CallError):
    pass


class LaneError(CallError):
    pass
