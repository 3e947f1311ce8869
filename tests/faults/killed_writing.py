"""Files that a user names, written by processes that are killed after every call that changes the disk.

`python -m tests.faults.killed_writing FOLDER` works in FOLDER and prints, as JSON, how many processes were killed, and
what the same command did wrong afterwards. It is a process of its own because it forks.
"""

import gc
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay import api
from assay.formats.mixeval.experiment import MixEvalRun, MixEvalScore
from assay.formats.mixeval.plans import MixEvalOptions
from assay.store.stores import EXPERIMENT_FILES, MANIFEST
from assay.threads import run_blocking
from fuzz.imports import read
from tests.faults.killed_import import die_at, ended, points
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import write_both, write_model
from tests.support import Lab

EXPORTS = {
    "csv": "rows.csv",
    "jsonl": "rows.jsonl",
    "een": "",
    "hf": "",
    "ragicamp": "",
    "mixeval": "",
}
OWN = {*EXPERIMENT_FILES, MANIFEST}
OUT = Path("out")
Work = Callable[[], Any]


def main(here: Path) -> dict[str, Any]:
    os.chdir(here)
    flows = {**exports(), **mixeval()}
    for first, second in flows.values():  # modules are imported, which opens files
        start(first)
        second()
    gc.freeze()  # forks share it
    kills, wrong = dict[str, int](), list[str]()
    for name, (first, second) in flows.items():
        # into an empty folder, and over what an earlier command wrote
        for earlier, work in ((None, first), (first, second)):
            start(earlier)
            work()
            whole = files()
            assert whole
            start(earlier)
            for point in points(work):
                start(earlier)
                assert os.WIFSIGNALED(ended(lambda point=point, work=work: die_at(point, work)))
                kills[name] = kills.get(name, 0) + 1
                try:
                    work()
                    found = files()
                except Exception as error:
                    found = {"": str(error).encode()}
                if found != whole:
                    again = "" if earlier is None else " again"
                    other = [
                        each for each in {*found, *whole} if found.get(each) != whole.get(each)
                    ]
                    told = found.get("", b"").decode() or f"{sorted(other)} differ"
                    wrong.append(f"{name}{again}, killed at {point}: {told}")
    return {"kills": kills, "wrong": wrong}


def start(earlier: Work | None) -> None:
    """A folder in which nothing was done, or what came before."""
    shutil.rmtree(OUT, ignore_errors=True)
    if earlier is not None:
        earlier()


def files() -> dict[str, bytes]:
    """The files that are not an experiment's own."""
    return {
        name: content
        for name, content in read(OUT).items()
        if not Path(name).name.startswith(".") and not is_own(OUT / name)
    }


def is_own(file: Path) -> bool:
    """Whether a file is one of an experiment's own, which have times, or set aside by it."""
    is_aside = file.parent.name == "superseded"
    return is_aside or (file.name in OWN and (file.parent / MANIFEST).exists())


def exports() -> dict[str, tuple[Work, Work]]:
    """Rows of two experiments, one after the other, with the same name."""
    for number in (1, 2):
        folder = Path(f"lab{number}").absolute()
        folder.mkdir()
        lab = Lab(folder, items=number)
        lab.config["dataset"] = str(folder / "items.jsonl")
        lab.run()

    def export(name: str, number: int) -> Work:
        return lambda: api.export(f"lab{number}/out", name, output=OUT / EXPORTS[name])

    return {f"export {name}": (export(name, 1), export(name, 2)) for name in EXPORTS}


def mixeval() -> dict[str, tuple[Work, Work]]:
    data = str(write_both(Path.cwd()))
    answers = {"first": ["Oslo", "It is Bergen.", "8"], "second": ["Bergen", "Oslo", "9"]}
    for name, free in answers.items():
        write_model(Path(name).absolute(), "m", free, ["B", "**A**", "no idea"])
    options: dict[str, Any] = {"data": data, "version": VERSION, "output_dir": str(OUT)}

    def run(**more: Any) -> Work:
        return lambda: run_blocking(
            MixEvalRun(MixEvalOptions(**options, models=["demo:small"], **more)).run
        )

    def score(name: str) -> Work:
        return lambda: run_blocking(
            MixEvalScore([f"{name}/responses/m"], MixEvalOptions(**options)).run
        )

    settings = {"sample_params": {"temperature": 0.5}}
    return {
        "mixeval run": (run(), run(settings=settings, layout="array")),
        "mixeval score": (score("first"), score("second")),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
