"""The log that a config asks for: what happened, for people who look later. Texts in it never hold a secret."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from assay.config import LoggingConfig
from assay.errors import StoreError

logger = logging.getLogger("assay")


@contextmanager
def log_to(config: LoggingConfig) -> Generator[None]:
    """Send Assay's log records to the config's file, if it names one."""
    before = logger.level
    logger.setLevel(config.level)
    handler: logging.Handler | None = None
    if config.file:
        path = Path(config.file)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"the log cannot be written: {error.strerror}", where=str(path)) from error
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        if handler is not None:
            logger.removeHandler(handler)
            handler.close()
