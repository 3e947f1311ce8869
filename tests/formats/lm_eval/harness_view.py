"""What lm-eval itself makes of a folder of tasks: run by an interpreter that has it, with folders as arguments.

Prints one JSON object for each name. Functions are named, not imported, and no data is loaded.
"""

import json
import logging
import sys
from typing import Any

logging.disable(logging.CRITICAL)


class Named:
    """A `!function` that stays a name."""

    def __init__(self, name: str, folder: Any) -> None:
        self.text = f"!function {folder}/{name}"

    def __call__(self) -> None:
        raise NotImplementedError

    def __deepcopy__(self, memo: Any) -> "Named":
        return self


def plain(value: Any) -> Any:
    if isinstance(value, Named):
        return value.text
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def main(folders: list[str]) -> None:
    from lm_eval.api import group, task
    from lm_eval.config.task import TaskConfig
    from lm_eval.tasks import TaskManager, _factory, _yaml_loader

    class Bare(task.Task):
        """A task that has a config and nothing else."""

        def __init__(self, config: Any = None) -> None:
            self._config = TaskConfig(**config)

        task_name = property(lambda self: self._config.task)

    Bare.__abstractmethods__ = frozenset()
    _factory.ConfigurableTask = Bare  # type: ignore[misc]
    _yaml_loader._import_func_in_yml = Named

    def described(item: Any) -> Any:
        if isinstance(item, group.Group):
            metrics = [vars(entry) for entry in item.aggregate_metric_list or []]
            version = (item.metadata or {}).get("version")
            children = [described(child) for child in item]
            return {
                "group": item.name,
                "aggregate": plain(metrics),
                "version": version,
                "members": children,
            }
        values = {**vars(item._config), "fewshot_config": vars(item._config.fewshot_config)}
        values.pop("tag", None)
        return plain(values)

    manager = TaskManager(include_path=folders or None, include_defaults=not folders)
    for name, entry in list(manager.task_index.items()):
        line = {
            "name": name,
            "kind": entry.kind.name,
            "file": str(entry.yaml_path or ""),
            "tags": sorted(entry.tags),
        }
        if entry.kind.name in ("TASK", "GROUP"):
            try:
                made = manager._factory.build(entry, overrides=None, registry=manager.task_index)
                line["made"] = described(made)
            except Exception as error:
                line["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(line, default=repr, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
