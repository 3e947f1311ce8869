"""No verb and no writer replaces a file that Assay did not write, or that somebody changed since; --force does."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

import assay
from assay.analysis.look.export import Export, Tables
from assay.cli import COMMANDS, group
from assay.engine.experiment.resolve import find_source
from assay.errors import StoreError, UserError
from assay.registry import writer
from assay.store.files import write_file
from assay.store.ledger import LEDGER
from tests.analysis.match_lab import won
from tests.analysis.rows import counted, save
from tests.cli.shell import Shell
from tests.support import Lab

THEIRS = "somebody's own words\n"
VERBS = {  # the words of each verb that writes a file which its user names
    "export": "export out -o FILE.csv",
    "report": "report out -o FILE.html",
    "rank": "rank arena --rounds 100 -o FILE.json",
    "schema": "schema -o FILE.json",
    "diff": "diff out results -o FILE.md",
    "gate": "gate results --min 0.1 --junit FILE.xml",
    "judge": "judge label out --label contains -o FILE.csv",
}
# `run`, `demo`, `evaluate`, `aggregate`, `merge`, `worker`, `import` and `dataset` write an experiment's folder, whose rows are
# never replaced (tests/engine/experiment); `convert` and `init` create files only, `gate --markdown` and `view`
# append; `local` writes its own file in the cache folder, `benchmarks pull` leaves what it did not write; the
# others write nothing.
FOLDERS = {"run", "demo", "evaluate", "aggregate", "import", "dataset", "merge", "worker"}
ADDING = {"benchmarks", "convert", "init", "local", "view"}
NOTHING = {
    "plan",
    "validate",
    "compare",
    "trace",
    "ls",
    "status",
    "sql",
    "list",
    "show",
    "mock-server",
}
NOTHING |= {"verify"}
OWN_RULE = {"lock"}  # a lock knows its own by their checksums: tests/cli/test_lock.py
FORMATS = {"mixeval", "sygra"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Lab(tmp_path).run()
    save(tmp_path / "results", counted(60, 100))
    save(tmp_path / "arena", won("a", "b", 30, 10, 2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(words: str) -> None:
    CliRunner().invoke(group, words.split(), catch_exceptions=False)


def check(file: Path, write: Callable[[], None], forced: Callable[[], None]) -> None:
    """`write` makes the file, and again; not over what others wrote; `forced` does."""
    write()
    ours = file.read_bytes()
    write()
    assert file.read_bytes()
    for theirs in (THEIRS.encode(), ours + b"\n"):
        file.write_bytes(theirs)
        with pytest.raises(UserError, match="Assay did not write what it holds") as caught:
            write()
        assert file.name in str(caught.value.where)
        assert file.read_bytes() == theirs
    forced()
    assert file.read_bytes() != theirs
    write()
    file.write_bytes(b"")  # there is nothing to lose in an empty one
    write()
    assert file.stat().st_size


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_replaces_only_what_it_wrote(folder: Path, verb: str) -> None:
    words = VERBS[verb].replace("FILE", str(folder / "file"))
    check(Path(words.split()[-1]), lambda: call(words), lambda: call(f"{words} --force"))


def test_every_verb_is_accounted_for() -> None:
    assert {*VERBS, *FOLDERS, *ADDING, *NOTHING, *OWN_RULE, *FORMATS} == set(COMMANDS)


@pytest.mark.parametrize("name", writer.names())
def test_a_writer_replaces_only_what_it_wrote(folder: Path, name: str) -> None:
    marks: dict[str, str] = getattr(writer.get(name), "__assay__", {})
    # a folder of several files
    whole = bool(marks.get("whole")) and not Path(marks["whole"]).suffix
    target = folder / "place" / ("" if whole else "file")

    def write(force: bool = False) -> None:
        writer.get(name)(
            Export(Tables(find_source(folder / "out")), "responses", target, force=force)
        )

    write()
    files = [
        path for path in (folder / "place").rglob("*") if path.is_file() and path.name[0] != "."
    ]
    # Assay's own in its folder, and what several runs share
    own = "manifest.json" if name == "assay" else "questions"
    written = [path for path in files if own not in path.name]
    assert written
    for file in written:
        if not whole:
            check(file, write, lambda: write(force=True))
            continue
        ours = file.read_bytes()
        for theirs in (THEIRS.encode(), ours + b"\n"):  # somebody's own, and ours with a change
            file.write_bytes(theirs)
            with suppress(UserError):  # or ours get another name
                write()
            assert file.read_bytes() == theirs
        file.write_bytes(ours)
        write()
        assert file.read_bytes() == ours


def test_saving_a_result(folder: Path) -> None:
    ranking = assay.rank([folder / "arena"], rounds=100)
    for suffix in (".json", ".csv", ".md", ".tex", ".html"):
        file = folder / f"plan{suffix}"
        check(
            file,
            lambda at=file: assay.save(ranking, at),
            lambda at=file: assay.save(ranking, at, force=True),
        )


def test_outputs_of_a_config(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["outputs"] = [{"type": "csv", "path": str(tmp_path / "answers.csv")}]
    lab.run()
    for _ in range(2):
        assay.run(lab.config)
        assert (tmp_path / "answers.csv").exists()
    (tmp_path / "answers.csv").write_text(THEIRS)
    with pytest.raises(UserError, match="Assay did not write what it holds"):
        assay.run(lab.config)
    assert (tmp_path / "answers.csv").read_text() == THEIRS


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    pieces: list[bytes] = []
    reader = Thread(target=lambda: pieces.append(pipe.read_bytes()))
    reader.start()
    call(f"schema -o {pipe}")
    reader.join(10)
    assert pieces[0].startswith(b"{")
    assert pipe.is_fifo()
    assert not (tmp_path / LEDGER).exists()


def test_what_only_adds_leaves_files_of_others(folder: Path) -> None:
    (folder / "config.yaml").write_text(THEIRS)
    with pytest.raises(UserError):
        call("init .")
    assert (folder / "config.yaml").read_text() == THEIRS


def test_a_markdown_summary_is_added_to(folder: Path) -> None:
    (folder / "summary.md").write_text(THEIRS)
    call("gate results --min 0.1 --markdown summary.md")
    assert (folder / "summary.md").read_text().startswith(THEIRS)


@pytest.mark.parametrize("name", ["config.yaml", "items.jsonl", "responses.jsonl", "metrics.json"])
def test_a_run_refuses_a_folder_with_files_of_others(shell: Shell, name: str) -> None:
    shell.out.mkdir()
    (shell.out / name).write_text(THEIRS)
    with shell.counted() as calls:
        refused = shell.run()
    assert (refused.code, calls["requests"]) == (2, 0)
    assert (
        f"this file is not Assay's, and a run would replace it\n  where: {shell.out / name}"
        in refused.err
    )
    assert [(path.name, path.read_text()) for path in shell.out.iterdir()] == [(name, THEIRS)]
    (shell.out / name).unlink()
    assert shell.run().code == 0
    assert shell.run().code == 0, "the folder is an experiment's now"


def test_a_run_never_replaces_its_own_config_and_dataset(shell: Shell) -> None:
    shell.config["output_dir"] = "."
    config = shell.save()
    before = shell.files()
    assert shell.call("run", str(config)).code == 2
    assert shell.files() == before


def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a file"):
        write_file(tmp_path / "pipe", b"x")
