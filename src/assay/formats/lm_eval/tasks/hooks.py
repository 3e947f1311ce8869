"""Functions that a task's YAML names by `!function`."""

from functools import cached_property
from pathlib import Path
from typing import Any


class Hook:
    """`!function module.name`, written in a YAML file of `folder`; nothing is imported before its value is needed.

    The value need not be a function: classes, lists and partials are used as well.
    """

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.folder = folder

    def __repr__(self) -> str:
        return f"!function {self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hook) and (self.name, self.folder) == (other.name, other.folder)

    def __hash__(self) -> int:
        return hash((self.name, self.folder))

    def __reduce__(self) -> tuple[type["Hook"], tuple[str, str]]:
        return Hook, (self.name, self.folder)

    @property
    def file(self) -> Path | None:
        """The Python file that has it; None if its module is an installed one."""
        from assay.formats.lm_eval.facade.sources import local_file

        module = self.name.rpartition(".")[0]
        file = Path(self.folder, *module.split(".")).with_suffix(".py")
        return (
            file.resolve() if file.is_file() else local_file(module, Path(self.folder, "task.yaml"))
        )

    @cached_property
    def value(self) -> Any:
        from assay.formats.lm_eval.facade.importing import value_of

        return value_of(self)

    @cached_property
    def identity(self) -> str:
        """Name and a hash of the bytes of its file and of the local modules that this imports."""
        from assay.formats.lm_eval.facade.sources import digest

        return f"{self.name}#{digest(self.file)}" if self.file else self.name
