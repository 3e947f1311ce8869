"""A batch of tasks, in a process of its own."""

import signal
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

TIME = 25  # seconds for one task


def _without_hashes() -> None:
    """`datasets` hashes functions to find what they made before; here nothing is kept."""
    from datasets import fingerprint

    fingerprint.Hasher.hash = classmethod(
        lambda cls, value: fingerprint.generate_random_fingerprint()
    )


def _only_names(key: str, value: Any) -> bool:
    """Tasks that differ in these alone do the same on the same rows."""
    return key in ("task", "task_alias", "tag", "metadata", "dataset_name") or (
        key == "description" and "{" not in str(value)
    )


def _late(*_: Any) -> None:
    raise TimeoutError(f"more than {TIME} s")


def work(batch: list[tuple[str, str]]) -> list[dict[str, Any]]:
    from assay.formats.lm_eval.tasks import task_keys
    from assay.formats.lm_eval.tasks.task_keys import definition, hooks_in
    from tools.benchmark_matrix.trial import TRIES, Outcome, try_task

    _without_hashes()
    signal.signal(signal.SIGALRM, _late)
    schemas: dict[Any, Any] = {}
    outcomes: dict[str, Any] = {}
    failures: Counter[Any] = Counter()
    parsed: dict[Path, Any] = {}
    made: list[dict[str, Any]] = []
    for name, file in batch:
        begin, alike = time.perf_counter(), name
        outcome = Outcome("", "")
        signal.alarm(TIME)
        try:
            keys = task_keys.load(Path(file), parsed)
            alike = repr(
                [(key, value) for key, value in sorted(keys.items()) if not _only_names(key, value)]
            )
            if alike in outcomes:
                made.append(
                    {
                        "task": name,
                        "stage": outcomes[alike].stage,
                        "problem": outcomes[alike].problem,
                        "seconds": 0,
                    }
                )
                continue
            task = definition(keys, file, {})
            for hook in hooks_in(keys):
                _ = hook.value
            place = (task.dataset_path, str(Path(file).parent))
            siblings = schemas.setdefault(place, {})
            outcome = try_task(task, siblings, TRIES if failures[place] < 3 else 2)
            failures[place] += outcome.stage != "runs"
            if outcome.stage == "runs" and outcome.schema:
                siblings |= outcome.schema.children
        except (Exception, SystemExit) as error:
            problem = getattr(error, "what", None) or f"{type(error).__name__}: {error}"
            fix = getattr(error, "fix", "") or ""
            outcome = Outcome(outcome.stage, f"{problem} {fix}".strip())
            if not hasattr(error, "what"):
                outcome = Outcome(outcome.stage, problem + " :: " + traceback.format_exc()[-600:])
        signal.alarm(0)
        outcomes[alike] = outcome
        made.append(
            {
                "task": name,
                "stage": outcome.stage,
                "problem": outcome.problem,
                "seconds": round(time.perf_counter() - begin, 3),
            }
        )
    return made
