"""A copy of an experiment's folder: its rows, config, metrics and calls."""

from assay.analysis.look.export import Export
from assay.engine.experiment.imports.own_folder import OwnFolder, check_free
from assay.engine.experiment.imports.results import import_one
from assay.foreign import Read
from assay.sdk import UserError, writer


@writer(whole="assay")
def assay(export: Export) -> list[str]:
    """An experiment's folder of its own, with the rows that count."""
    if export.path is None:
        raise UserError("an experiment is a folder", fix="name one with -o")
    copied = OwnFolder(export.tables.source)
    check_free(export.path, copied.source)
    return import_one(Read("assay", copied), export.path).notes
