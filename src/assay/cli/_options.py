"""Options that several commands share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from assay import api
from assay.errors import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)

cluster_option = click.option(
    "--cluster-by",
    default="",
    metavar="NAME",
    help="The field that items share which belong together.",
)
settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a dotted key of the config.",
)
force_option = click.option("--force", is_flag=True, help="Replace files that Assay did not write.")
parameters_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A parameter of the format."
)
without_sidecar_option = click.option(
    "--without-sidecar", is_flag=True, help="Go on without the sidecar of an earlier `convert`."
)


paths_argument = click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path()
)
own_config_option = click.option(
    "-c", "--config", type=click.Path(), help="The config; default: the folder's own."
)
no_progress_option = click.option("--no-progress", is_flag=True, help="No progress display.")
label_option = click.option(
    "--label", default="", help="The label to look at, if there are several."
)
level_option = click.option(
    "--level", type=LEVEL, default=0.95, help="Of the intervals; default 0.95."
)
margin_option = click.option(
    "--margin",
    type=click.FloatRange(min=0, min_open=True),
    help="Differences below it do not matter.",
)


def _trust(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked:
        api.trust()


trust_option = click.option(
    "--trust",
    is_flag=True,
    expose_value=False,
    callback=_trust,
    help="Run and read what the config of a folder names that you did not make.",
)


def _all_of(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in options:
            function = option(function)
        return function

    return decorate


include_path_option = click.option(
    "--include-path",
    type=click.Path(exists=True, file_okay=False),
    help="A folder with more tasks, whose code is run.",
)
benchmark_options = _all_of(  # of `run`, `plan` and `validate`
    (
        click.option(
            "--unsafe-code", is_flag=True, help="Benchmarks may run code that models write."
        ),
        click.option(
            "--sound",
            is_flag=True,
            help="The right number where a benchmark's own is known to be wrong.",
        ),
        include_path_option,
        click.option(
            "--num-fewshot",
            type=click.IntRange(min=0),
            help="Examples in the prompts of benchmarks.",
        ),
    )
)
config_options = _all_of(  # of `run`, `plan` and `validate`
    (
        benchmark_options,
        click.argument("config", required=False, type=click.Path()),
        click.option(
            "-c",
            "--config",
            "config_option",
            type=click.Path(),
            help="The config; the same as CONFIG.",
        ),
        settings_option,
        click.option("-o", "--output-dir", help="The experiment's folder."),
        click.option(
            "-m",
            "--model",
            "models",
            multiple=True,
            metavar="MODEL",
            help="Only this model: a name in the config, provider:name, type:name[@url], or file.py:function.",
        ),
        click.option(
            "--limit",
            type=click.IntRange(min=0),
            help="Only the first N items, of benchmarks the first N of each task.",
        ),
        click.option(
            "--num-samples",
            type=click.IntRange(min=1),
            help="Only the first N samples of each item.",
        ),
        click.option("--retry-errors", is_flag=True, help="Try permanent errors again, too."),
    )
)

existing_rows_options = _all_of(  # of `evaluate` and `aggregate`
    (
        own_config_option,
        click.option(
            "-o", "--output-dir", help="The folder to write to; default: the one that was read."
        ),
        settings_option,
        click.option("--retry-errors", is_flag=True, help="Try what failed again."),
        trust_option,
    )
)


def _shard(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """`3/16` as (3, 16)."""
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not slash or not number.isdecimal() or not count.isdecimal():
        raise UserError(
            f"--shard takes I/N, got {text!r}",
            fix="--shard 3/16 for the third of sixteen processes",
        )
    if not 1 <= int(number) <= int(count):
        raise UserError(
            f"there is no shard {number} of {count}",
            fix=f"they are called 1/{count} to {count}/{count}",
        )
    return int(number), int(count)


shard_option = click.option(
    "--shard",
    metavar="I/N",
    callback=_shard,
    help="Be worker I of N, 1 to N: its shards first, then those left over.",
)

on_option = click.option(
    "--on", type=click.Choice(["ray"]), help="Let this engine place the workers."
)
cluster_options = _all_of(  # of `run` and `evaluate`
    (
        on_option,
        shard_option,
        click.option(
            "--workers",
            type=click.IntRange(min=0),
            help="Processes that share the work; 0: only begin, for `worker`.",
        ),
    )
)

row_options = _all_of(  # of `compare` and `gate`: which rows, which number, how sure
    (
        click.option("--level", type=LEVEL, help="Of the intervals."),
        click.option(
            "--where", multiple=True, metavar="FACET=VALUE", help="Only rows with this value."
        ),
        label_option,
        click.option("--metric", help="mean (the default), pass_rate, pass@k, or another metric."),
        click.option("--partial", is_flag=True, help="Judge unfinished or damaged evidence, too."),
        cluster_option,
        click.option(
            "--seed",
            hidden=True,
            expose_value=False,
            help="Of 0.1, which drew samples: nothing is drawn.",
        ),
        click.option("--resamples", hidden=True, expose_value=False, help="As --seed."),
        trust_option,
    )
)


def completing(names: Callable[[click.Context], Iterable[str]]) -> Callable[..., Any]:
    """Return what completes a word to one of these names; a mapping tells what they are."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        known = names(ctx)
        about = known if isinstance(known, Mapping) else dict.fromkeys(known)
        begun = (name for name in about if name.startswith(incomplete))
        return [CompletionItem(name, help=about[name]) for name in begun]

    return complete


def overrides(settings: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE pairs, values as YAML would read them."""
    return dict(api.parse_override(setting) for setting in settings)


def facet_values(settings: Sequence[str]) -> dict[str, str]:
    """FACET=VALUE pairs."""
    pairs = [setting.partition("=") for setting in settings]
    for facet, equals, value in pairs:
        if not facet or not equals:
            what = f"--where takes FACET=VALUE, got {facet + equals + value!r}"
            raise UserError(what, fix="--where model_name=small")
    return {facet: value for facet, _, value in pairs}


def config_of(
    config: str | None, config_option: str | None, settings: Sequence[str], **options: Any
) -> tuple[str, dict[str, Any]]:
    """The config that `config_options` name, and the other arguments of `api.experiment`, `plan` and `run`."""
    source = config or config_option
    if source is None or (config and config_option):
        raise UserError("name one config", fix="assay run config.yaml")
    own = {
        name: options.pop(name, None)
        for name in ("num_fewshot", "include_path", "sound", "unsafe_code")
    }
    changes = {
        f"benchmarks.*.{name}": value for name, value in own.items() if value not in (None, False)
    }
    return source, {"overrides": {**changes, **overrides(settings)}, **options}
