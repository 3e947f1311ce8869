"""`assay dataset`: named, immutable datasets in a repository."""

from typing import Any

import click

from assay.cli import Command

_repository = click.option(
    "--repository", default="", metavar="DIR", help="Default: $ASSAY_REPOSITORY, else the folder assay-data."
)
_debug = click.option("--debug", is_flag=True, help="Show tracebacks.")
_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group("dataset")
def command() -> None:
    """Keep named, immutable datasets."""


@command.command("add", cls=Command)
@click.argument("source")
@click.option("--name", required=True, help="What configs call it.")
@click.option("--id", default="", help="Its id and folder; by default the name.")
@click.option("--label", "labels", multiple=True, help="A word to find it by; may be repeated.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of `dataset:`, such as fields.id.")
@_repository
@_debug
def add(source: str, name: str, settings: tuple[str, ...], repository: str, debug: bool, **more: Any) -> None:
    """Store the rows of SOURCE (a file, a pattern, hf:NAME, file.py:function) under a name."""
    from assay.config import parse_override
    from assay.engine.experiment.dataset import dataset_of, keep
    from assay.text.plain import plain

    origin = dataset_of(source, dict(parse_override(setting) for setting in settings))
    kept = keep(origin, name=name, repository=repository, **more)
    manifest = kept.manifest
    items = manifest.counts["items"]
    if kept.new:
        click.echo(f"stored {plain(name)}: {items:,} items, hash {manifest.digest}")
        click.echo(_duplicates(repository, manifest.id))
    else:
        click.echo(f"{plain(name)} is there already with the same {items:,} items, hash {manifest.digest}")


@command.command("ls", cls=Command)
@_repository
@_json
@_debug
def ls(repository: str, as_json: bool, debug: bool) -> None:
    """List the stored datasets."""
    from assay.datasets.stored import manifests
    from assay.text.plain import plain

    found = [_facts(manifest) for manifest in manifests(repository)]
    if as_json:
        _print_json(found)
        return
    width = max((len(plain(facts["name"])) for facts in found), default=0)
    for facts in found:
        labels = plain(" ".join(facts["labels"]))
        click.echo(f"{plain(facts['name']):<{width}}  {facts['items']:>9,} items  {facts['hash']}  {labels}".rstrip())
    if not found:
        click.echo("no datasets: `assay dataset add FILE --name NAME` stores one")


@command.command("show", cls=Command)
@click.argument("name")
@click.option("--head", type=click.IntRange(min=0), default=3, show_default=True, help="How many items to print.")
@_repository
@_json
@_debug
def show(name: str, head: int, repository: str, as_json: bool, debug: bool) -> None:
    """Describe a stored dataset: hash, origin, duplicates, its first items."""
    from itertools import islice

    from assay.analysis.look.duplicates import duplicates
    from assay.datasets.stored import find, repository_of
    from assay.text.plain import plain

    manifest = find(name, repository)
    there = repository_of(repository)
    there.verify(manifest.id)
    log = there.store.log("dataset", manifest.id)
    lines = [line for _, line in islice(log.scan(), head)]
    facts = _facts(manifest)
    if as_json:
        import msgspec

        found = msgspec.to_builtins(duplicates(log))
        _print_json({**facts, "duplicates": found, "head": [msgspec.json.decode(line) for line in lines]})
        return
    for key, value in facts.items():
        shown = ", ".join(value) if isinstance(value, list) else _text(value)
        click.echo(f"{key + ':':<9} {plain(shown)}".rstrip())
    click.echo(_duplicates(repository, manifest.id))
    for line in lines:
        click.echo(plain(line.decode()))


@command.command("verify", cls=Command)
@click.argument("name")
@_repository
@_debug
def verify(name: str, repository: str, debug: bool) -> None:
    """Check that a stored dataset has the bytes that were stored."""
    from assay.datasets.stored import find, repository_of
    from assay.text.plain import plain

    manifest = find(name, repository)
    there = repository_of(repository)
    there.verify(manifest.id)
    click.echo(f"ok: {plain(name)} has its {manifest.counts['items']:,} items, hash {manifest.digest}")


def _facts(manifest: Any) -> dict[str, Any]:
    from datetime import UTC, datetime

    return {
        "name": manifest.name,
        "id": manifest.id,
        "items": manifest.counts["items"],
        "hash": manifest.digest,
        "labels": manifest.labels,
        "stored": datetime.fromtimestamp(manifest.created, UTC).isoformat(timespec="seconds"),
        "origin": _origin(manifest.plan),
    }


def _origin(plan: dict[str, Any]) -> dict[str, Any]:
    """The keys of `dataset:` that say something, and the revision that was read."""
    source = {**plan.get("dataset", {}), "revision": plan.get("revision")}
    said = {key: value for key, value in source.items() if value not in (None, "", [], {})}
    return {key: value for key, value in said.items() if (key, value) != ("seed", 0)}


def _text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        import msgspec

        return msgspec.json.encode(value).decode()
    return str(value)


def _duplicates(repository: str, id: str) -> str:
    """The report of `add` and `show`."""
    from assay.analysis.look.duplicates import duplicates
    from assay.datasets.stored import repository_of
    from assay.text.plain import plain

    found = duplicates(repository_of(repository).store.log("dataset", id))
    if not found.exact and not found.near:
        return f"duplicates: none among {found.items:,} items"
    lines = [
        f"duplicates: {found.exact:,} exact, {found.near:,} near "
        f"(at least {found.threshold:.0%} of three-word sequences in common)"
    ]
    lines += [f"  exactly: {plain(', '.join(group))}" for group in found.exact_groups]
    lines += [f"  nearly:  {plain(', '.join(group))}" for group in found.near_groups]
    return "\n".join(lines)


def _print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())
