"""Looking at folders changes nothing in the process that looks: no import hook appears."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.formats.exchanged import exported, store
from tests.formats.test_dialects import DIALECTS, experiment

HERE = Path(__file__).parent
LOOKING = """
    import sys
    from contextlib import suppress

    hooks = [*sys.meta_path, *sys.path_hooks]
    import assay
    from assay.errors import AssayError
    from assay.viewer.experiments import experiments_below
    from assay.viewer.pages import page

    for path in sys.argv[1:]:
        assert assay.ls(path), path
        shown = experiments_below([path])
        assert shown.list(), path
        for name in ("experiments", "leaderboard", "samples"):
            page(shown, name, {})
        with suppress(AssayError):  # some folders have several experiments, or no answers
            assay.export(path, "jsonl", table="samples", output=sys.argv[1] + ".jsonl", force=True)
        new = [hook for hook in (*sys.meta_path, *sys.path_hooks) if hook not in hooks]
        assert not new, (path, new)
"""


def test_looking_at_folders_installs_no_import_hook(tmp_path: Path) -> None:
    """Native folders, those that 0.1 made, folders of each dialect and logs of each other tool."""
    source = store(tmp_path / "source", experiment())
    folders = [tmp_path / dialect for dialect in DIALECTS]
    for folder in folders:
        exported(source, folder.name, folder)
    shutil.copytree(HERE.parent / "fixtures/made_by_0_1/results", tmp_path / "made")
    folders += [tmp_path / "made" / name for name in ("made", "library", "sygra")]
    folders += sorted(HERE.glob("*/logs"))
    done = subprocess.run(
        [sys.executable, "-c", dedent(LOOKING), *map(str, folders)],
        env={**os.environ, "ASSAY_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
