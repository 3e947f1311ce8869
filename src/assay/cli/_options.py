"""Options that several commands share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from assay import api
from assay.errors import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path()
FILE = click.Path(path_type=Path)
NATURAL = click.IntRange(min=0)
POSITIVE = click.IntRange(min=1)
PORT = click.IntRange(0, 65535)
AMOUNT = click.FloatRange(min=0)
SHARE = click.FloatRange(0, 1)
LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Return an option of a command. The last of its names is its help."""
    return click.option(*names[:-1], help=names[-1], **settings)


flag = partial(option, is_flag=True)
place = partial(click.argument, type=PATH)

cluster_option = option(
    "--cluster-by", "The field that items share which belong together.", default="", metavar="NAME"
)
settings_option = option(
    "--set", "settings", "Override a dotted key of the config.", multiple=True, metavar="KEY=VALUE"
)
force_option = flag("--force", "Replace files that Assay did not write.")
parameters_option = option(
    "--set", "settings", "A parameter of the format.", multiple=True, metavar="KEY=VALUE"
)
without_sidecar_option = flag(
    "--without-sidecar", "Go on without the sidecar of an earlier `convert`."
)


paths_argument = place("paths", metavar="PATH...", nargs=-1, required=True)
own_config_option = option("-c", "--config", "The config; default: the folder's own.", type=PATH)
no_progress_option = flag("--no-progress", "No progress display.")
label_option = option("--label", "The label to look at, if there are several.", default="")
level_option = option("--level", "Of the intervals; default 0.95.", type=LEVEL, default=0.95)
margin_option = option(
    "--margin", "Differences below it do not matter.", type=click.FloatRange(min=0, min_open=True)
)


def _trust(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked:
        api.trust()


trust_option = flag(
    "--trust",
    "Run and read what the config of a folder names that you did not make.",
    expose_value=False,
    callback=_trust,
)


def all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in options:
            function = option(function)
        return function

    return decorate


include_path_option = option(
    "--include-path",
    "A folder with more tasks, whose code is run.",
    type=click.Path(exists=True, file_okay=False),
)
benchmark_options = all_of(  # of `run`, `plan` and `validate`
    flag("--unsafe-code", "Benchmarks may run code that models write."),
    flag("--sound", "The right number where a benchmark's own is known to be wrong."),
    include_path_option,
    option("--num-fewshot", "Examples in the prompts of benchmarks.", type=NATURAL),
)
config_options = all_of(  # of `run`, `plan` and `validate`
    benchmark_options,
    place("config", required=False),
    option("-c", "--config", "config_option", "The config; the same as CONFIG.", type=PATH),
    settings_option,
    option("-o", "--output-dir", "The experiment's folder."),
    option(
        "-m",
        "--model",
        "models",
        "Only this model: a name in the config, provider:name, type:name[@url], or file.py:function.",
        multiple=True,
        metavar="MODEL",
    ),
    option(
        "--limit",
        "Only the first N items, of benchmarks the first N of each task.",
        type=NATURAL,
    ),
    option("--num-samples", "Only the first N samples of each item.", type=POSITIVE),
    flag("--retry-errors", "Try permanent errors again, too."),
)

existing_rows_options = all_of(  # of `evaluate` and `aggregate`
    own_config_option,
    option("-o", "--output-dir", "The folder to write to; default: the one that was read."),
    settings_option,
    flag("--retry-errors", "Try what failed again."),
    trust_option,
)


def _shard(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, int] | None:
    return None if text is None else api.shard_of(text)


shard_option = option(
    "--shard",
    "Be worker I of N, 1 to N: its shards first, then those left over.",
    metavar="I/N",
    callback=_shard,
)

on_option = option("--on", "Let this engine place the workers.", type=click.Choice(["ray"]))
cluster_options = all_of(  # of `run` and `evaluate`
    on_option,
    shard_option,
    option(
        "--workers", "Processes that share the work; 0: only begin, for `worker`.", type=NATURAL
    ),
)

row_options = all_of(  # of `compare` and `gate`: which rows, which number, how sure
    option("--level", "Of the intervals.", type=LEVEL),
    option("--where", "Only rows with this value.", multiple=True, metavar="FACET=VALUE"),
    label_option,
    option("--metric", "mean (the default), pass_rate, pass@k, or another metric."),
    flag("--partial", "Judge unfinished or damaged evidence, too."),
    cluster_option,
    option(
        "--seed",
        "Of 0.1, which drew samples: nothing is drawn.",
        hidden=True,
        expose_value=False,
    ),
    option("--resamples", "As --seed.", hidden=True, expose_value=False),
    trust_option,
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
