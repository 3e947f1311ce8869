"""Makes the logs in `logs/` by really running inspect_ai (0.3.285) against the server of `tests/formats/peers.py`:

    .venv/peers/inspect_ai/bin/python tests/formats/inspect_ai/make_logs.py [FOLDER]

Of tracebacks only the last line is kept, and no path of this machine. The run that is killed and the one that is
cancelled are processes of their own (`make_logs.py held FOLDER URL`), which stop at the fourth question.
"""

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, eval as run_tasks, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, choice, grouped, includes, mean, scorer, stderr
from inspect_ai.solver import generate, multiple_choice, solver, use_tools
from inspect_ai.tool import tool

HERE = Path(__file__).resolve().parent
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
URL = "http://127.0.0.1:8126/v1"  # as the logs have it, wherever the server really was


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


peers = _module(HERE.parent / "peers.py")


def model(name: str, url: str) -> Any:
    config = GenerateConfig(max_retries=0, max_tokens=64)
    return get_model(
        f"openai/{name}", config=config, base_url=url, api_key="unused", responses_api=False
    )


@solver
def waits_at(number: int):
    async def solve(state, generate):
        if state.sample_id == peers.QUESTIONS[number]["id"]:
            await asyncio.sleep(600)
        return await generate(state)

    return solve


@task
def held():
    samples = [
        Sample(id=row["id"], input=row["question"], target=row["answer"])
        for row in peers.QUESTIONS[:6]
    ]
    return Task(dataset=samples, solver=waits_at(3), scorer=includes())


@task
def letters():
    samples = []
    for number, row in enumerate(peers.QUESTIONS[10:], 1):
        choices = ["Lima", "Oslo", "Paris"]
        target = "ABC"[choices.index(row["answer"])]
        samples.append(Sample(id=number, input=row["question"], choices=choices, target=target))
    samples.append(
        Sample(
            id="word", input="Which of these is a number?", choices=["seven", "blue"], target="A"
        )
    )
    asked = "{question}\n\n{choices}\n\nSay 'ANSWER: ' and one of {letters}."
    return Task(dataset=samples, solver=multiple_choice(template=asked), scorer=choice())


@tool
def add():
    async def execute(first: int, second: int) -> str:
        """Add two numbers.

        Args:
            first: the first number
            second: the second number
        """
        return str(first + second)

    return execute


@scorer(metrics={"right": [mean(), stderr()], "short": [mean(), grouped(mean(), "kind")]})
def two_marks():
    async def score(state, target):
        said = state.output.completion
        right = 1.0 if target.text in said else 0.0
        why = "the sum is in the answer" if right else "the sum is missing"
        return Score(value={"right": right, "short": len(said) < 12}, answer=said, explanation=why)

    return score


@task
def tools():
    picture = [
        ContentText(text="Add the numbers of this picture: 2 and 3."),
        ContentImage(image=PIXEL),
    ]
    long = "Add 7 and 8. " + "Take your time. " * 12
    samples = [
        Sample(
            id="picture",
            input=[ChatMessageUser(content=picture)],
            target="5",
            metadata={"kind": "image"},
        ),
        Sample(id="words", input=long, target="15", metadata={"kind": "text"}),
    ]
    return Task(dataset=samples, solver=[use_tools(add()), generate()], scorer=two_marks())


def tool_answers() -> list[ModelOutput]:
    said = []
    for first, second, text in ((2, 3, "5"), (7, 8, "The two numbers make 15.")):
        call = ModelOutput.for_tool_call("mockllm/model", "add", {"first": first, "second": second})
        thought = ContentReasoning(reasoning=f"I have to add {first} and {second}.")
        call.choices[0].message.content = [thought, ContentText(text="I ask the tool.")]
        said += [call, ModelOutput.from_content("mockllm/model", text)]
    return _counted(said)


def _counted(outputs: list[ModelOutput]) -> list[ModelOutput]:
    for number, output in enumerate(outputs):
        usage = {
            "input_tokens": 20,
            "output_tokens": 6 + number,
            "total_tokens": 26 + number,
            "reasoning_tokens": 3,
        }
        output.usage = ModelUsage(**usage, total_cost=0.001)
    return outputs


def newest(folder: str, suffix: str) -> Path:
    return max(Path(folder).glob(f"*{suffix}"), key=lambda path: path.stat().st_mtime_ns)


def run(target: Path, url: str, tasks: Any, **settings: Any) -> None:
    folder = f"out/{target.name}"
    own = {"model": model("large", url), **settings}
    run_tasks(tasks, log_dir=folder, display="none", max_samples=1, log_model_api=False, **own)
    keep(newest(folder, target.suffix), target, url)


def stopped(target: Path, url: str, how: int) -> None:
    folder = f"out/{target.name}"
    child = subprocess.Popen(
        [sys.executable, str(HERE / "make_logs.py"), "held", folder, url], stdout=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while time.monotonic() < until and not _samples(folder, 3):
        time.sleep(0.5)
    child.send_signal(how)
    try:
        child.wait(60)
    finally:
        child.kill()
    keep(newest(folder, ".eval"), target, url)


def _samples(folder: str, count: int) -> bool:
    for path in Path(folder).glob("*.eval"):
        try:
            with zipfile.ZipFile(path) as log:
                return sum(name.startswith("samples/") for name in log.namelist()) >= count
        except zipfile.BadZipFile:
            return False
    return False


def keep(path: Path, target: Path, url: str) -> None:
    """Copy a log, without this machine's paths."""
    if path.suffix == ".json":
        target.write_bytes(_clean(path.read_bytes(), url))
        return
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", 93) as copy:
        for member in source.infolist():
            plain = zipfile.ZipInfo(member.filename, (2026, 11, 17, 0, 0, 0))
            plain.compress_type = 93
            copy.writestr(plain, _clean(source.read(member), url))


def _clean(data: bytes, url: str) -> bytes:
    text = json.dumps(
        _without_source(json.loads(data)), ensure_ascii=False, separators=(",", ":")
    ).replace(url, URL)
    places = {
        *site.getsitepackages(),
        str(Path(json.__file__).parents[1]),
        os.getcwd(),
        str(HERE.parents[2]),
        sys.prefix,
    }
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(json.dumps(place)[1:-1], "…")
    assert "/tmp/" not in text
    assert f"{Path.home()}/" not in text
    return text.encode()


def _without_source(value: Any) -> Any:
    """Tracebacks show lines of other people's programs: only their last line stays."""
    if isinstance(value, dict):
        return {
            name: inner.strip().splitlines()[-1][:200]
            if name.startswith("traceback") and inner
            else _without_source(inner)
            for name, inner in value.items()
        }
    return [_without_source(inner) for inner in value] if isinstance(value, list) else value


def main(logs: Path) -> None:
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    server = peers.serve()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "sums.py", folder)
        os.chdir(folder)
        Path("questions.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in peers.QUESTIONS)
        )
        sums = _module(Path("sums.py")).sums
        run(logs / "large.eval", url, sums(), fail_on_error=False)
        run(logs / "tiny.eval", url, sums(), model=model("tiny", url), fail_on_error=False)
        run(
            logs / "limited.json",
            url,
            sums(),
            epochs=Epochs(2, "max"),
            limit=3,
            token_limit=8,
            log_format="json",
        )
        run(logs / "failed.eval", url, sums(), epochs=1)
        said = [
            ModelOutput.from_content("mockllm/model", f"ANSWER: {letter}")
            for letter in ("C", "B", "?")
        ]
        run(
            logs / "letters.eval",
            url,
            letters(),
            model=get_model("mockllm/model", custom_outputs=_counted(said)),
        )
        run(
            logs / "tools.eval",
            url,
            tools(),
            model=get_model("mockllm/model", custom_outputs=tool_answers()),
        )
        stopped(logs / "killed.eval", url, signal.SIGKILL)
        stopped(logs / "cancelled.eval", url, signal.SIGINT)
        os.chdir(HERE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["held"]:
        # a shell's background jobs ignore it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        asked = model("large", sys.argv[3])
        run_tasks(
            held(), model=asked, log_dir=sys.argv[2], log_buffer=1, max_samples=1, display="none"
        )
    else:
        main(Path(*sys.argv[1:2] or [HERE / "logs"]).absolute())
