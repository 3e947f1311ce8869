"""Imports of other tools' logs beside the tools' own readers."""

import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Line, child
from tests.formats.installed import INSTALL, program

SAMPLES = 2_000
# A log as inspect_ai writes it: a conversation with four calls of a tool, 36 events, repeated under other ids.
MAKE = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import tool

@tool
def add():
    async def execute(first: int, second: int) -> str:
        '''Add two numbers.

        Args:
            first: the first number
            second: the second number
        '''
        return str(first + second)
    return execute

said = [ModelOutput.for_tool_call("mockllm/model", "add", {"first": n, "second": n + 1}) for n in range(4)]
said.append(ModelOutput.from_content("mockllm/model", "The sum is 15 after all of these steps."))
for output in said:
    output.usage = ModelUsage(input_tokens=20, output_tokens=7, total_tokens=27)
task = Task(
    dataset=[Sample(id="a", input="Add these numbers, one after the other.", target="15")],
    solver=[system_message("You add numbers."), use_tools(add()), generate()],
    scorer=includes(),
)
model = get_model("mockllm/model", custom_outputs=said)
[log] = eval(task, model=model, log_dir="logs", display="none")
log = read_eval_log(log.location)
count = int(sys.argv[2])
log.samples = [log.samples[0].model_copy(update={"id": f"q{n}", "uuid": f"u{n}"}) for n in range(count)]
log.eval.dataset.samples, log.eval.dataset.sample_ids = count, [sample.id for sample in log.samples]
log.results.total_samples = log.results.completed_samples = count
log.eval.model_args, log.reductions = {}, None
write_eval_log(log, sys.argv[1])
"""
READ = """
import sys, time
from inspect_ai.log import read_eval_log
read_eval_log(sys.argv[1], header_only=True)
began = time.process_time()
log = read_eval_log(sys.argv[1])
print(time.process_time() - began, len(log.samples))
"""


def peer(name: str, code: str, folder: str, *arguments: str) -> str:
    """What a script says that the tool's own Python runs."""
    python = program(name)
    if not python.exists():
        raise SystemExit(f"{name} is missing: {INSTALL.format(name)}")
    done = subprocess.run(
        [python, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def import_log(path: str, folder: str, few: str) -> float:
    """CPU seconds of an import; what is imported lazily is there already."""
    from assay.engine.experiment.imports.results import import_results

    import_results(few, f"{folder}/few")
    began = time.process_time()
    (result,) = import_results(path, f"{folder}/many")
    seconds = time.process_time() - began
    assert result.responses == {"ok": SAMPLES}
    return seconds


def import_inspect() -> list[Line]:
    """A log of inspect_ai: its own reader and the whole import take turns, the best of three each."""
    theirs: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        log, few = f"{folder}/log.eval", f"{folder}/few.eval"
        for path, count in ((log, SAMPLES), (few, 3)):
            peer("inspect_ai", MAKE, folder, path, str(count))
        for number in range(3):
            seconds, count = peer("inspect_ai", READ, folder, log).split()
            assert int(count) == SAMPLES
            theirs.append(float(seconds))
            ours.append(child(import_log, log, f"{folder}/{number}", few)["result"])
        size = Path(log).stat().st_size
    slow, fast = min(theirs), min(ours)
    what = f"inspect_ai, {SAMPLES:,} samples: read_eval_log / import, CPU"
    detail = f"{slow:.2f} s / {fast:.3f} s; {size:,} bytes, {SAMPLES / fast:,.0f} samples/s"
    return [Line(what, slow / fast, ">=", 20, detail)]


BENCHMARKS = [import_inspect]
