import gc
import os
import random
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from assay import registry
from assay.engine.experiment import trust
from tests.support import Lab

# How long an example takes says something about the machine, which may be busy, and nothing about the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

MEMORY = Path("/dev/shm")
# hundreds of thousands of calls of fsync, each of which would wait for a disk
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    and disk_usage(MEMORY).free > 4 << 30
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

STATE = TemporaryDirectory(prefix="assay-tests-")
# what the tests make is not remembered in the user's own directory
os.environ["ASSAY_STATE_DIR"] = STATE.name

REGISTRIES = [value for value in vars(registry).values() if isinstance(value, registry.Registry)]


@pytest.fixture(autouse=True)
def plug_ins_of_one_test() -> Iterator[None]:
    """What a test registers is gone afterwards: tests must not depend on their order."""
    before = [set(each._found) for each in REGISTRIES]
    yield
    for each, names in zip(REGISTRIES, before, strict=True):
        for name in set(each._found) - names:
            if not each._found[name].__module__.startswith("assay."):
                del each._found[name]


@pytest.fixture(autouse=True)
def trust_of_one_test() -> Iterator[None]:
    """What a test trusts, by `--trust` in this process, is not trusted by the next."""
    yield
    trust._Process.trusts = trust._Process.said = False
    trust._Process.foreign = set()


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle",
        metavar="SEED",
        help="Run the modules, and the tests of each, in a random order.",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Modules stay together, so that what they set up is set up once."""
    if config.getoption("--shuffle") is None:
        return
    order = random.Random(config.getoption("--shuffle"))
    modules = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    order.shuffle(modules)
    for tests in modules:
        order.shuffle(tests)
    items[:] = [item for tests in modules for item in tests]


def pytest_collection() -> None:
    gc.disable()  # everything stays


def pytest_collection_finish() -> None:
    """What all tests share, which is a lot, is not looked through again at every garbage collection."""
    gc.enable()
    gc.collect()
    gc.freeze()
