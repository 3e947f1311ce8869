"""`assay validate`: check everything that can be known before spending."""

from typing import Any

from assay import api
from assay.cli import verb
from assay.cli._options import config_of, config_options
from assay.cli._output import json_option, print_json, print_sheet


@verb("validate")
@config_options
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Check a config, its code, its dataset and its templates, without calling a model."""
    source, chosen = config_of(**options)
    experiment = api.experiment(source, **chosen)
    warnings, config = list(experiment.validate()), experiment.config
    counts = {
        "models or tasks": len(config.models) + len(config.tasks),
        "prompts": max(1, len(config.prompts)),
        "evaluation methods": len(config.evaluation_methods),
        "metrics": len(config.metrics),
    }
    if as_json:
        print_json({"ok": True, "warnings": warnings, "counts": counts})
        return
    lines = [f"warning: {warning}" for warning in warnings]
    lines.append("ok: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    print_sheet(api.listing(lines))
