"""`assay compare`: tell whether experiments, models or prompts differ."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import NATURAL, facet_values, flag, margin_option, option, row_options
from assay.cli._output import with_formats


@verb("compare")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@option(
    "--facet", "Compare the values of this facet within one PATH; values may follow it.", default=""
)
@row_options
@margin_option
@option("--flips", "List this many changed items a pair; default 5 for one pair.", type=NATURAL)
@flag("--all-labels", "One table of all labels, the best values marked.")
@option("--lower", "Less is better under this label, too.", multiple=True, metavar="LABEL")
@option(
    "--reference", "Compare with published scores of this model.", default="", metavar="NAME|FILE"
)
@with_formats
def command(
    paths: tuple[str, ...],
    facet: str,
    where: tuple[str, ...],
    **options: Any,
) -> Any:
    """Tell whether the experiments in each PATH differ: folders, or files of evaluation rows.

    The first is the baseline of the others. With --facet: one PATH, then the values to compare, or none for all.
    With --reference: a model of the shipped scores, a JSON file of such scores, or FILE.json:MODEL.
    """
    default = "" if options["reference"] else "mean"
    options |= {
        "metric": options["metric"] or default,
        "level": options["level"] or 0.95,
        "where": facet_values(where),
    }
    places, values = (paths[:1], paths[1:]) if facet else (paths, ())
    return api.compare(places, facet=facet, values=values, **options)
