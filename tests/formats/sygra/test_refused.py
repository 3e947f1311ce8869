"""What cannot be done is refused before any call, with the reason and a way out: the kinds that SyGra's tasks have."""

from collections.abc import Callable

import pytest

from assay.errors import UserError
from assay.formats.sygra import run
from assay.server import stats
from tests.cli.shell import Shell
from tests.formats.sygra.folder import Folder

Edit = Callable[[Folder], object]
DEDUP = "sygra.core.graph.graph_postprocessor.SemanticDedupPostProcessor"
SCHEMA = "sygra.core.models.structured_output.schemas_factory.SimpleResponse"


def of_node(**keys: object) -> Edit:
    return lambda folder: folder.nodes["ask"].update(keys)


def of_model(**keys: object) -> Edit:
    return lambda folder: folder.nodes["ask"]["model"].update(keys)


def described(key: str, value: str) -> Edit:
    return lambda folder: folder.environ.update({f"SYGRA_EVAL_MODEL_{key}": value})


def recipe(folder: Folder) -> None:
    folder.nodes["ask"] = {"node_type": "subgraph", "subgraph": "sygra.recipes.evol_instruct"}


def library(folder: Folder) -> None:
    folder.write("tasks/qa/code.py", "import no_such_library\ndef post(response): ...\n")
    folder.nodes["ask"]["post_process"] = "tasks.qa.code.post"


def aggregator(name: str, params: object = None) -> Edit:
    entry = {"name": name, "unit_metrics_results": ["exact_match_result"], "params": params or {}}
    return lambda folder: folder.aggregators.append(entry)


REFUSED: dict[str, tuple[Edit, str, str]] = {
    "sound out": (
        of_model(output_type="audio"),
        "output_type 'audio' is not offered",
        "put them into the records",
    ),
    "images out": (
        of_model(output_type="image"),
        "output_type 'image' is not offered",
        "put them into the records",
    ),
    "a model of images": (
        described("OUTPUT_TYPE", "image"),
        "output_type 'image' is not offered",
        "model 'eval_model'",
    ),
    "a model that hears": (
        described("INPUT_TYPE", "audio"),
        "input_type 'audio' is not offered",
        "model 'eval_model'",
    ),
    "a provider": (
        described("MODEL_TYPE", "bedrock"),
        "'bedrock' is not offered",
        "an OpenAI-compatible server",
    ),
    "a recipe": (
        recipe,
        "there is no task 'sygra.recipes.evol_instruct'",
        "copy SyGra's folder sygra/recipes/evol_instruct",
    ),
    "duplicates": (
        lambda folder: folder.graph["graph_post_process"].append(DEDUP),
        "does not offer 'SemanticDedupPostProcessor'",
        "use `assay dataset`, which finds duplicates",
    ),
    "a table, read": (
        lambda folder: folder.graph["data_config"].update(
            source={"type": "servicenow", "table": "incident"}
        ),
        "ServiceNow",
        "fix:",
    ),
    "a library": (
        library,
        "No module named 'no_such_library'",
        "pip install what provides 'no_such_library'",
    ),
    "a class of SyGra": (
        of_node(structured_output={"schema": SCHEMA}),
        "does not offer the module 'sygra.core.models.structured_output'",
        "write it yourself, in a module beside the task",
    ),
    "a variable": (
        of_node(prompt=[{"user": "{qestion}"}]),
        "the prompt of the node 'ask' needs 'qestion', which no record has and no node sets",
        "did you mean 'question'?",
    ),
    "an aggregator": (
        aggregator("acuracy"),
        "Aggregator metric 'acuracy' not found",
        "Available metrics: ['accuracy'",
    ),
    "its parameters": (
        aggregator("pass@k"),
        "missing required field `k`",
        "aggregator_metrics_map",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_before_any_call(
    kind: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit, reason, way_out = REFUSED[kind]
    edit(folder)
    folder.save()
    for name, value in folder.environ.items():
        monkeypatch.setenv(name, value)
    before = stats(folder.url)["requests"]
    with pytest.raises(UserError) as caught:
        run("qa", base=str(folder.base), output_dir=str(folder.out))
    assert caught.value.exit_code == 2
    assert reason in str(caught.value)
    assert way_out in str(caught.value)
    assert stats(folder.url)["requests"] == before


def of_data(**keys: object) -> Edit:
    return lambda folder: folder.graph["data_config"].update(keys)


def of_source(transform: str) -> Edit:
    steps = [{"transform": f"sygra.processors.data_transform.{transform}"}]
    return lambda folder: folder.graph["data_config"]["source"].update(transformations=steps)


def picture(folder: Folder) -> None:
    folder.write("tasks/qa/one.png", "")
    folder.records[0]["picture"] = "one.png"


SINK = {"type": "jsonl", "file_path": "rows.jsonl"}
PARTS = [{"type": "disk", "file_path": "tasks/qa/data.json", "alias": "a", "join_type": "primary"}]
GONE: dict[str, tuple[Edit, str, str, str]] = {
    "a sink": (of_data(sink=SINK), "sink is not offered", "data_config.sink", "the output file"),
    "several sinks": (of_data(sink=[SINK]), "sink is not", "data_config.sink", "post-processor"),
    "joined sources": (
        of_data(source=PARTS * 2),
        "a list of sources is not offered",
        "data_config.source",
        "into one file beforehand",
    ),
    "an agent": (
        of_node(node_type="agent"),
        "node_type 'agent' is not offered",
        "graph_config.nodes.ask.node_type",
        "an llm node with `tools`",
    ),
    "a transform of images": (
        of_source("CreateImageUrlTransform"),
        "does not offer 'CreateImageUrlTransform'",
        "data_config.source.transformations[0]",
        "data URLs in the records",
    ),
    "a transform of sounds": (
        of_source("CreateAudioUrlTransform"),
        "does not offer 'CreateAudioUrlTransform'",
        "data_config.source.transformations[0]",
        "data URLs in the records",
    ),
    "an image in the first record": (
        picture,
        "an image or a sound is not offered",
        "data_config.source: field 'picture' of the first record",
        "data URLs in the records",
    ),
}


@pytest.mark.parametrize("kind", GONE)
def test_what_is_gone_is_refused_before_anything_is_written(kind: str, folder: Folder) -> None:
    edit, reason, place, instead = GONE[kind]
    edit(folder)
    before = stats(folder.url)["requests"]
    with pytest.raises(UserError) as caught:
        folder.call(resume=False)
    assert caught.value.exit_code == 2
    assert reason in caught.value.what
    assert caught.value.where == f"{folder.base / 'tasks/qa/graph_config.yaml'}: {place}"
    assert instead in str(caught.value)
    assert stats(folder.url)["requests"] == before
    assert not folder.out.exists()


def test_an_idle_agent_is_no_agent(folder: Folder) -> None:
    folder.nodes["idle"] = {"node_type": "agent", "node_state": "idle"}
    assert folder.call().ok


def test_a_variable_that_user_code_may_set_is_not_refused(folder: Folder) -> None:
    folder.write(
        "tasks/qa/code.py", "def before(state):\n    return {**state, 'added': state['question']}\n"
    )
    folder.nodes["ask"] |= {"prompt": [{"user": "{added}"}], "pre_process": "tasks.qa.code.before"}
    assert folder.call().ok
    folder.write(
        "tasks/qa/code.py", "def set_it(config, state):\n    return {'added': state['question']}\n"
    )
    folder.nodes["ask"].pop("pre_process")
    folder.nodes["first"] = {"node_type": "lambda", "lambda": "tasks.qa.code.set_it"}
    folder.graph["graph_config"]["edges"][0] = {"from": "START", "to": "first"}
    folder.graph["graph_config"]["edges"].append({"from": "first", "to": "ask"})
    assert folder.call().ok


def no_records(folder: Folder) -> None:
    folder.records = []


def lines(name: str, text: str) -> Edit:
    def edit(folder: Folder) -> None:
        folder.graph["data_config"]["source"]["file_path"] = name
        folder.write(name, text)

    return edit


def skipped(folder: Folder) -> None:
    params = {"skip_type": "count", "count": {"from_start": 9}}
    transform = {"transform": "sygra.processors.data_transform.SkipRecords", "params": params}
    folder.graph["data_config"]["source"]["transformations"] = [transform]


@pytest.mark.parametrize(
    "edit", [no_records, lines("a.jsonl", ""), lines("a.csv", "id,question\n"), skipped]
)
def test_an_empty_dataset_exits_as_with_the_other_verbs(edit: Edit, folder: Folder) -> None:
    edit(folder)
    sibling = Shell(folder.base)
    sibling.rows = []
    done = folder.run()
    assert done.code == sibling.run().code == 2
    assert "the dataset is empty" in done.err
    assert folder.report()["evaluation_summary"] == {"total_records": 0, "status": "no_data"}


def test_a_generator_that_leaves_out_every_record_is_no_success(folder: Folder) -> None:
    folder.write(
        "tasks/qa/code.py",
        """
        from sygra.processors.output_record_generator import BaseOutputGenerator
        class Nothing(BaseOutputGenerator):
            def generate(self, state):
                return None
        """,
    )
    folder.graph["output_config"] = {"generator": "tasks.qa.code.Nothing"}
    done = folder.run()
    assert done.code == 1
    assert "the output generator left out every record" in done.err
