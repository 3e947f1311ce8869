"""The package `datasets` as it is used here: silent, and without traces in its cache."""

import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from assay.errors import UserError, install_command


def library() -> ModuleType:
    """The package `datasets`, silent."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import datasets
        import huggingface_hub
    except ModuleNotFoundError:
        raise UserError("benchmarks need the package datasets", fix=install_command("hf")) from None
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    huggingface_hub.logging.set_verbosity_error()
    return datasets


@contextmanager
def made_by_functions() -> Generator[None]:
    """Within, datasets that a task's functions make get any fingerprint: to hash their rows takes longer than to make
    them, and nothing is cached. Warnings of the library are not shown."""
    module = library().arrow_dataset
    before, module.generate_fingerprint = (
        module.generate_fingerprint,
        lambda *_: module.generate_random_fingerprint(),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        module.generate_fingerprint = before


def in_memory(dataset: Any) -> Any:
    """The dataset without its cache files: a task's functions then leave nothing in the cache, and get nothing from it
    that another state of `random` has made. Its columns stay mapped from disk."""
    datasets = library()
    if not isinstance(dataset, datasets.Dataset) or dataset._indices is not None:
        return dataset
    table = datasets.table.InMemoryTable(dataset.data.table)
    return datasets.Dataset(
        table, info=dataset.info, split=dataset.split, fingerprint=dataset._fingerprint
    )
