"""RAGiCamp's three files are read and written as streams: what grows with them are indexes, a few bytes a row."""

import tempfile
from pathlib import Path

from benchmarks.measure import Line, child

PREDICTIONS = 300_000
BOUNDS = {"read": 50, "write": 90}  # the rows of a prediction have 1,100 on disk
METRICS = ("exact_match",)


def write_three_files(folder: str, count: int) -> None:
    """The files as RAGiCamp would have written them, row by row."""
    place = Path(folder)
    place.mkdir()
    with (place / "bench_questions.json").open("w") as file:
        file.write(f'{{"dataset_name": "bench", "num_questions": {count}, "questions": [')
        for number in range(count):
            first = f"answer {number % 97}"
            row = f'"id": "q{number}", "question": "Which one is number {number}?", "expected_answer": "{first}"'
            file.write(
                f'{"," if number else ""}{{{row}, "all_acceptable_answers": ["{first}", "another"]}}\n'
            )
        file.write("]}")
    with (place / "agent_predictions.json").open("w") as file:
        about = '"agent_name": "agent", "dataset_name": "bench", "timestamp": "2026-01-01T00:00:00.000000"'
        file.write(f'{{{about}, "num_examples": {count}, "predictions": [')
        for number in range(count):
            row = f'"question_id": "q{number}", "question": "Which one is number {number}?"'
            scores = ", ".join(f'"{name}": {number % 2}.0' for name in METRICS)
            file.write(f'{"," if number else ""}{{{row}, "prediction": "answer {number % 89}", ')
            file.write(f'"metrics": {{{scores}}}, "metadata": {{}}}}\n')
        file.write("]}")


def read_three_files(folder: str, target: str) -> int:
    """The import: how many responses it found."""
    from assay.engine.experiment.imports.results import import_results

    return sum(import_results(folder, target)[0].responses.values())


def write_again(source: str, target: str) -> int:
    """The export: how many bytes of predictions it wrote."""
    from assay.analysis.look.export import Export, Tables
    from assay.engine.experiment.resolve import find_source
    from assay.formats.ragicamp.writer import ragicamp

    ragicamp(Export(Tables(find_source(source)), "responses", Path(target)))
    return (Path(target) / "agent_predictions.json").stat().st_size


def ragicamp_memory(predictions: int = PREDICTIONS) -> list[Line]:
    """Both directions, each in a process of its own: what a prediction adds to the peak."""
    peaks: dict[str, list[float]] = {"read": [], "write": []}
    seconds: dict[str, float] = {}
    few = predictions // 10
    with tempfile.TemporaryDirectory() as folder:
        for count in (few, predictions):
            given, rows, again = (f"{folder}/{name}-{count}" for name in ("given", "rows", "again"))
            write_three_files(given, count)
            done = {
                "read": child(read_three_files, given, rows),
                "write": child(write_again, rows, again),
            }
            assert done["read"]["result"] == count
            for direction, one in done.items():
                peaks[direction].append(one["peak"])
                seconds[direction] = one["seconds"]
    return [
        Line(
            f"ragicamp: bytes of memory a prediction, {direction} {predictions:,} against {few:,}",
            (large - small) * 2**20 / (predictions - few),
            "<=",
            BOUNDS[direction],
            f"{large:.0f} MB / {small:.0f} MB; {predictions / seconds[direction]:,.0f} predictions/s",
        )
        for direction, (small, large) in peaks.items()
    ]


BENCHMARKS = [ragicamp_memory]
