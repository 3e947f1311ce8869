"""Any experiment as the Intelligence Layer's files and back, and what the original left as an experiment."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings

from tests.formats.exchanged import Rows, experiments, exported, read, rows_of, store, told


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_what_is_written_is_read_again(rows: Rows) -> None:
    with TemporaryDirectory() as temporary:
        folder = store(Path(temporary, "source"), rows)
        exported(folder, "intelligence_layer", Path(temporary, "files"))
        (foreign,) = read(Path(temporary, "files"), "intelligence_layer")
        assert told(rows_of(foreign)) == told(rows)
        assert foreign.rejected == 0
