"""`assay validate`: many problems at once, each with its place and the way out."""

from tests.cli.shell import Shell


def test_a_good_config_is_ok_and_costs_nothing(shell: Shell) -> None:
    shell.save()
    before = shell.files()
    with shell.counted() as calls:
        result = shell.call("validate", "CONFIG")
    assert result.code == 0
    assert result.out.startswith("ok: ")
    assert calls["requests"] == 0
    assert shell.files() == before


def test_all_problems_of_the_text_are_told_together(shell: Shell) -> None:
    config = shell.write(
        "many.yaml",
        """
        dataset: missing.jsonl
        modles: [a]
        models:
          - name: a
            tpye: openai
            timeout: soon
          - name: a
        sample_params: {temperature: 7}
        evaluation_methods: [exact_macth]
        metrics: [{name: pass@1, facet: [model_name]}]
        output_dir: out
        """,
    )
    result = shell.call("validate", str(config))
    assert result.code == 2
    for said, line in (
        ("'modles'", 3),
        ("missing.jsonl", 2),
        ("temperature must be a number from 0 to", 9),
        ("did you mean 'exact_match'?", 10),
        ("did you mean 'facets'?", 11),
    ):
        assert said in result.err
        assert f"{config}:{line}" in result.err, f"{said}\n{result.err}"
    assert "soon" in result.err


def test_what_binding_and_data_show_is_told_together(shell: Shell) -> None:
    shell.write("mine.py", "def scorer(item, response, *, strict=False): return True\n")
    shell.rows[2]["data"] = {"other": 1}
    shell.config |= {
        "models": [{"name": "x", "type": "python", "path": "mine.py", "function_name": "nothing"}],
        "evaluation_methods": [
            {"name": "s", "path": "mine.py", "function_name": "scorer", "params": {"strikt": 1}}
        ],
        "metrics": [{"name": "pass_at_k", "params": {"kk": 2}}],
    }
    result = shell.call("validate", "CONFIG")
    assert result.code == 2
    for said in (
        "has no function 'nothing'",
        "did you mean 'strict'?",
        "'kk'",
        "item 'q2'",
        "items.jsonl:3",
    ):
        assert said in result.err, result.err


def test_warnings_are_no_failure(shell: Shell) -> None:
    shell.config |= {"metrics": [{"name": "pass@5"}]}
    result = shell.call("validate", "CONFIG")
    assert result.code == 0
    assert "warning: pass@5: num_samples is 1" in result.out


def test_duplicate_keys_and_broken_yaml_are_named_by_line(shell: Shell) -> None:
    for text, said in (
        ("dataset: a\ndataset: b\n", ":2"),
        ("models: [a\nname: x\n", ":2"),
        ("- 1\n", "mapping"),
    ):
        result = shell.call("validate", str(shell.write("bad.yaml", text)))
        assert result.code == 2
        assert said in result.err
