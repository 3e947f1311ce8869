"""The types of a config's values: numbers within bounds, and texts that are paths."""

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from assay.records import JsonMapping, JsonObject

Policy = Literal["wrong", "exclude"]
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]
Text = Annotated[str, Meta(min_length=1)]


PathKind = Literal["read", "written", "placed", "code", "template", "data", "given"]


class PathMark(NamedTuple):
    """That a text is a path; `kind` names the way to make it absolute (see `paths`)."""

    kind: PathKind


class ParamsMark(NamedTuple):
    """That a mapping holds paths; `fields` gives their types by name, for the entry that the mapping belongs to."""

    fields: Callable[[JsonMapping], JsonObject]


ReadPath = Annotated[str, PathMark("read")]  # a file that must exist
WrittenPath = Annotated[str, PathMark("written")]  # from the current folder
PlacedPath = Annotated[str, PathMark("placed")]  # it need not exist
CodePath = Annotated[Text, PathMark("code")]  # `file.py:function`, or else a name
TemplatePath = Annotated[str, PathMark("template")]  # a file, or else the text itself
# files or patterns; what else it is depends on the type
DataPath = Annotated[str | list[str], PathMark("data")]
GivenPath = Annotated[Text, PathMark("given")]  # mostly a name; a path stays as it is


def model_paths(model: JsonMapping) -> JsonObject:
    return {
        "path": WrittenPath if model.get("type") == "record" else ReadPath,
        "of": {"type": GivenPath, "path": ReadPath},
    }


def method_paths(method: JsonMapping) -> JsonObject:
    """Return the files that a judge or a decider of matches is made from."""
    kind = str(method.get("type"))
    pairwise = kind == "pairwise"
    by_people = pairwise and method["params"].get("decide") == "people"
    return {
        "prompt": TemplatePath if "judge" in kind or pairwise else GivenPath,
        "decide": CodePath if pairwise else GivenPath,
        "labels": ReadPath if by_people else GivenPath,
    }
