"""Workers on a plain folder: the same rows and numbers as one process, however the work is split."""

import json
from pathlib import Path
from typing import Any

import assay
from tests.support import Lab, without_times


def sharded(lab: Lab, number: int, parts: int, **options: Any) -> Any:
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    return assay.run(lab.config, shard=f"{number}/{parts}", **options)


def rows(folder: Path, stem: str) -> list[dict[str, Any]]:
    files = [folder / f"{stem}.jsonl", *sorted((folder / f"{stem}.d").rglob("*.jsonl"))]
    lines = (line for file in files if file.exists() for line in file.read_text().splitlines())
    return sorted((without_times(json.loads(line)) for line in lines), key=lambda row: row["key"])


def test_shards_make_what_one_process_makes(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.run()
    one, many, paid = tmp_path / "out", tmp_path / "many", lab.calls()
    lab.config["output_dir"] = str(many)
    result = sharded(lab, 1, 3)
    assert rows(one, "responses") == rows(many, "responses")
    assert rows(one, "evaluation_results") == rows(many, "evaluation_results")
    assert (one / "metrics.jsonl").read_bytes() == (many / "metrics.jsonl").read_bytes()
    assert result.run.complete
    assert lab.calls() == 2 * paid
    again = lab.run()
    assert (again.ran, again.paid) == (0, 0)
