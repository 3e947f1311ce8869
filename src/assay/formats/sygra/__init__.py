"""SyGra's evaluation tasks: `graph_config.yaml` folders with their Python helpers, models.yaml, metrics and reports.

`graph/` is a graph as a task of the engine, `data/` its records, `metrics/` its metrics; here are
the command, the run (`experiment`, `scoring`, `outputs`) and what helpers import. `run(task, …)`
is what `assay sygra` does; `install()` lets notebooks and tests import `sygra.…` and
`tasks.eval.utils`.
`command.py`, `reader.py`, `task.py`, `scorer.py` and `metric.py` are found by name; what is not
offered is in `instead.py`. No other format is known here.
"""

from typing import TYPE_CHECKING, Any

from assay.formats.sygra.modules import install as install

if TYPE_CHECKING:
    from assay.formats.sygra.experiment import Result


def run(task: str, **options: Any) -> "Result":
    """Run a task folder with the options of `assay sygra`; the same call resumes an earlier one."""
    from assay.formats.sygra.experiment import Options, SygraRun
    from assay.threads import run_blocking

    return run_blocking(SygraRun(Options(task=task, **options)).run)
