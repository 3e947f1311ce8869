"""Whatever is killed while it writes files that a user names: the same command does not refuse what it left."""

import json
import subprocess
import sys
from tempfile import TemporaryDirectory

from fuzz.imports import MEMORY


def test_a_killed_export_or_dialect_goes_on_with_the_same_command() -> None:
    """In the end its files are those of a command that nobody killed."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        command = [sys.executable, "-m", "tests.faults.killed_writing", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    result = json.loads(done.stdout)
    assert not result["wrong"], result["wrong"][:5]
    assert all(kills >= 8 for kills in result["kills"].values()), result["kills"]
    assert sum(result["kills"].values()) > 300
