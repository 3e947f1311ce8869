"""Published scores with their citations: `data/reference_scores.json`, or a user's file of the same form."""

import math
from importlib.resources import files
from pathlib import Path

import msgspec

from assay import reading
from assay.errors import UserError
from assay.registry import nearest


class Reference(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A published score. `source` is a key of the file's sources, or the citation itself; `n` is over how many items it
    was measured, `variant` what else one must know about how."""

    model: str
    benchmark: str
    metric: str
    value: float
    source: str
    filter: str = ""
    shots: int | None = None
    variant: str = ""
    n: int | None = None
    stderr: float | None = None
    lower_is_better: bool = False

    @property
    def error(self) -> float | None:
        """Its standard error; None where nothing tells."""
        if self.stderr is not None:
            return self.stderr
        return (
            math.sqrt(self.value * (1 - self.value) / self.n)
            if self.n and 0 <= self.value <= 1
            else None
        )


class _Publication(msgspec.Struct, kw_only=True):
    citation: str
    url: str = ""


class References(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The form of a file."""

    references: list[Reference]
    sources: dict[str, _Publication] = {}
    about: str = ""

    def citation(self, reference: Reference) -> str:
        publication = self.sources.get(reference.source)
        return (
            f"{publication.citation} {publication.url}".strip() if publication else reference.source
        )


def load_references(reference: str | Path) -> References:
    """Those of a model by its name, or of a JSON file; `file.json:model` are those of one model in it."""
    text = str(reference)
    file, _, model = text.partition(".json:")
    if text.endswith(".json") or model:
        path = Path(f"{file}.json" if model else text)
        try:
            content = reading.content(path)
        except OSError as error:
            raise UserError(
                f"the reference cannot be read: {error.strerror}", where=str(path)
            ) from None
    else:
        path, model = Path("reference_scores.json"), text
        content = (files("assay") / "data" / path.name).read_bytes()
    try:
        published = msgspec.json.decode(content, type=References)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fix = 'its form is {"references": [{"model": …, "benchmark": …, "metric": …, "value": …, "source": …}]}'
        raise UserError(
            f"the file of references cannot be read: {error}", where=str(path), fix=fix
        ) from None
    if model:
        named = [entry for entry in published.references if is_model(entry.model, model)]
        if not named:
            raise UserError(
                f"no reference is called {model!r}",
                where="--reference",
                fix=f"{nearest(model, {entry.model for entry in published.references})}; or name a JSON file",
            )
        published.references = named
    return published


def is_model(model: str, name: str) -> bool:
    """Whether a name means this model; what stands before the slash may be left out."""
    return name.lower() in (model.lower(), model.rpartition("/")[2].lower())
