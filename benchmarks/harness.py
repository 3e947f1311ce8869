"""Benchmarks of lm-evaluation-harness: Assay and the harness itself, whole commands against the same server."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from assay.server import Options, running
from benchmarks.measure import Line, child

ROOT = Path(__file__).parent.parent
DOCUMENTS = 10_000
CONCURRENCY = 32  # of the harness; Assay finds its own
GENERATE = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: items.jsonl}}
test_split: test
doc_to_text: "Question: What is {{a}} + {{b}}?\\nAnswer:"
doc_to_target: "{{a + b}}"
num_fewshot: 5
generation_kwargs: {until: ["\\n"], temperature: 0, max_gen_toks: 16}
filter_list:
  - {name: number, filter: [{function: regex, regex_pattern: "(-?[0-9]+)"}, {function: take_first}]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
CHOICES = """
task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: items.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "What is {{a}} + {{b}}?\\nAnswer:"
doc_to_choice: choices
doc_to_target: label
num_fewshot: 5
"""
# What the server costs must not hide what the clients do: words are tokens, and their lengths the log-probabilities.
SERVER = """
import json, re, sys
sys.path.append({tests!r})
import fake_answers

def reply(path, body):
    asked = json.loads(body)
    prompts = asked["prompt"] if isinstance(asked["prompt"], list) else [asked["prompt"]]
    choices, count = [], 0
    for index, prompt in enumerate(prompts):
        words = [*re.findall(r"\\s*\\S+", prompt), "."]
        values = [None, *(-0.1 * len(word) for word in words[1:])]
        tops = [None, *({{word: value}} for word, value in zip(words[1:], values[1:]))]
        logprobs = {{"tokens": words, "token_logprobs": values, "top_logprobs": tops}}
        choices.append({{"index": index, "text": prompt + ".", "finish_reason": "length", "logprobs": logprobs}})
        count += len(words) - 1
    usage = {{"prompt_tokens": count, "completion_tokens": len(prompts), "total_tokens": count + len(prompts)}}
    return {{"id": "x", "model": "fake", "choices": choices, "usage": usage}}

with fake_answers.FakeServer() as server:
    server.replies.reply = reply
    print(server.url, flush=True)
    sys.stdin.read()
"""
# The harness needs a tokenizer for likelihoods: it gets the server's own, in process, and no call for each text.
HARNESS = """
import re
import lm_eval
from lm_eval.models import api_models

texts = dict()

def encode(text):
    words = re.findall(r"\\s*\\S+", text)
    texts.update((hash(word), word) for word in words)
    return [hash(word) for word in words]

class Words:
    def __init__(self, *_, **__): ...
    eos_token = bos_token = ""
    eos_token_id = bos_token_id = 0

lm_eval.utils.RemoteTokenizer = Words
api_models.TemplateAPI.tok_encode = lambda self, string, **_: (
    encode(string) if isinstance(string, str) else [encode(each) for each in string]
)
api_models.TemplateAPI.decode_batch = lambda self, lists: ["".join(map(texts.get, numbers)) for numbers in lists]
results = lm_eval.simple_evaluate(
    model="local-completions",
    model_args={arguments!r},
    tasks=[{task!r}],
    task_manager=lm_eval.tasks.TaskManager(include_path="tasks", include_defaults=False),
)
print(results["results"])
"""


@contextmanager
def folder_of(task: str) -> Generator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tasks/task.yaml").write_text(task)
        with (folder / "items.jsonl").open("w") as file:
            for i in range(DOCUMENTS):
                choices = [str(2 * i % 97 + offset) for offset in range(4)]
                file.write(
                    json.dumps({"a": i, "b": i % 97, "choices": choices, "label": i % 4}) + "\n"
                )
        yield folder


def seconds(command: list[str], folder: Path) -> float:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {"TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    began = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return time.perf_counter() - began


def ours(task: str, url: str, folder: Path) -> float:
    assay = str(Path(sys.executable).with_name("assay"))
    settings = ["--set", "models.*.api=completions", "--include-path", "tasks", "--no-progress"]
    return seconds([assay, "run", task, "-m", f"fake@{url}", *settings], folder)


def theirs(task: str, url: str, folder: Path) -> float:
    arguments = {
        "model": "fake",
        "base_url": f"{url}/v1/completions",
        "num_concurrent": CONCURRENCY,
    }
    arguments |= {"tokenizer_backend": "remote", "tokenized_requests": False}
    if task == "sums":
        arguments["tokenizer_backend"] = "none"
    code = HARNESS.format(arguments=arguments, task=task)
    return seconds([sys.executable, "-c", code], folder)


@contextmanager
def word_server() -> Generator[str]:
    command = [sys.executable, "-c", SERVER.format(tests=str(ROOT / "tests/formats/lm_eval"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.stdin.close()


def generate_task() -> list[Line]:
    with folder_of(GENERATE) as folder, running(Options()) as url:
        return [_line("generate, 10,000 documents: lm-eval / assay run", 20, "sums", url, folder)]


def choice_task() -> list[Line]:
    with folder_of(CHOICES) as folder, word_server() as url:
        return [
            _line("four choices, 10,000 documents: lm-eval / assay run", 15, "choices", url, folder)
        ]


def _line(what: str, bound: float, task: str, url: str, folder: Path) -> Line:
    if find_spec("lm_eval") is None:
        raise SystemExit("lm-eval is missing: pip install -e '.[harness]'")
    # the index is made once
    seconds([str(Path(sys.executable).with_name("assay")), "list", "benchmarks"], folder)
    mine = ours(task, url, folder)
    harness = theirs(task, url, folder)
    return Line(what, harness / mine, ">=", bound, f"{harness:.1f} s / {mine:.1f} s")


def write_mmlu(folder: Path, names: list[str]) -> None:
    """Rows of mmlu's schema: 246 documents and five examples for each subject."""
    for name in names:
        place = folder / "cais/mmlu" / name
        place.mkdir(parents=True)
        for split, count in (("test", 246), ("dev", 5)):
            with (place / f"{split}.jsonl").open("w") as file:
                for i in range(count):
                    row = {
                        "question": f"What is {i} of {name}?",
                        "subject": name,
                        "choices": ["a", "b", "c", "d"],
                    }
                    file.write(json.dumps({**row, "answer": i % 4}) + "\n")


def bind_mmlu(folder: str) -> list[float]:
    """CPU seconds for reading the data of mmlu's tasks, and for reading it and making all documents."""
    from assay.formats.lm_eval.asking.data import load
    from assay.formats.lm_eval.asking.documents import documents
    from assay.formats.lm_eval.asking.rows import rows
    from assay.formats.lm_eval.tasks.definitions import definitions, members

    tasks = definitions(members(["mmlu"], overrides={"num_fewshot": 5}))
    write_mmlu(Path(folder), [str(task.dataset_name) for task in tasks])
    os.environ["ASSAY_DATA"] = folder
    load(tasks[0]).split("test")  # the library is imported
    began = time.process_time()
    for task in tasks:
        data = load(task)
        assert sum(1 for split in ("test", "dev") for _ in rows(data.split(split))) == 251
    read = time.process_time() - began
    began = time.process_time()
    assert sum(1 for task in tasks for _ in documents(task)) == 246 * len(tasks)
    return [read, time.process_time() - began, len(tasks)]


def binding() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        read, bound, tasks = child(bind_mmlu, folder)["result"]
    what = f"binding mmlu ({tasks} tasks, 5 shots) / reading its data, CPU"
    return [Line(what, bound / read, "<=", 5, f"{bound:.2f} s / {read:.2f} s")]


def list_time() -> list[Line]:
    assay = str(Path(sys.executable).with_name("assay"))
    lists, helps = ([], [])
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(9):
            lists.append(seconds([assay, "list", "benchmarks"], Path(folder)))
            helps.append(seconds([assay, "--help"], Path(folder)))
    ours, bare = min(lists[1:]), min(helps[1:])
    return [
        Line(
            "assay list benchmarks / assay --help",
            ours / bare,
            "<=",
            2,
            f"{ours:.3f} s / {bare:.3f} s",
        )
    ]


BENCHMARKS = [generate_task, choice_task, binding, list_time]
