"""Packages that modules of tasks import, lm-eval itself among them: whether they are there, how to install them."""

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "lm_eval"
ALWAYS = {"jinja2", "numpy", "yaml"}  # Assay's own
_DISTRIBUTIONS = {
    "absl": "absl-py",
    "antlr4": "antlr4-python3-runtime==4.11",
    "antlr4-python3-runtime": "antlr4-python3-runtime==4.11",
    "bert_score": "bert-score",
    "bs4": "beautifulsoup4",
    "iso639": "iso639-lang",
    "kstar_planner": "kstar-planner",
    "math_verify": "math-verify[antlr4_11_0]",
    "rouge_score": "rouge-score",
    "sklearn": "scikit-learn",
    "tinyBenchmarks": "git+https://github.com/felipemaiapolo/tinyBenchmarks",
}


def install_line(*modules: str) -> str:
    names = dict.fromkeys(module.split(".")[0] for module in modules)
    return "pip install " + " ".join(f"'{_DISTRIBUTIONS.get(name, name)}'" for name in names)


@cache
def is_installed(module: str) -> bool:
    """Whether the package of a module, or a distribution (`a-b`), is there; it is not imported."""
    if "-" in module:
        return _has_version(*_DISTRIBUTIONS.get(module, module).partition("==")[::2])
    try:
        return find_spec(module.split(".")[0]) is not None
    except (ValueError, ImportError):
        return False


def _has_version(distribution: str, start: str) -> bool:
    pattern = f"{distribution.replace('-', '_')}-{start}*.dist-info"  # `importlib.metadata` takes long to import
    return any(next(Path(folder).glob(pattern), None) for folder in sys.path)


def installed_tasks() -> Path | None:
    """The folder of tasks of an installed lm-eval, which is not imported."""
    try:
        spec = find_spec(PACKAGE)
    except (ValueError, ImportError):
        return None
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next(
        (Path(folder, "tasks") for folder in folders if Path(folder, "tasks").is_dir()), None
    )


def missing(names: tuple[str, ...]) -> str:
    """Which of the packages are not installed, as a reason; "" if all are."""
    lacking = [name for name in names if not is_installed(name)]
    return f"needs {', '.join(lacking)}: {install_line(*lacking)}" if lacking else ""
