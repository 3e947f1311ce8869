"""What the engine knows about scorers that ask models: which ones, from which prompt, and how far to believe them.

A scorer marked `@scorer(judge=True)` has the parameters `model` (a name, or several for a panel) and `prompt` (the name
of a shipped prompt, a file, or the text itself). Both are settled when it is bound, so that the scorer gets names and a
text, and its identity holds who judges by which words.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from assay import reading
from assay.sdk import JsonMapping, JsonObject, Manifest, Model, UserError, nearest

CALIBRATIONS = "calibrations"
OWN_ANSWERS = "own_answers"
PROMPTS = Path(__file__).parents[2] / "data" / "judges"


def settle_judge(
    params: JsonMapping,
    models: Mapping[str, Model],
    helpers: Sequence[str],
    *,
    base: Path,
    where: str,
) -> JsonObject:
    """The parameters with `model` as a list of known names and `prompt` as its text."""
    settled = dict(params)
    only = next((each for each in (helpers, models) if len(each) == 1), ())
    named = settled.get("model") or only
    names = [named] if isinstance(named, str) else list(named)
    if not names:
        raise UserError(
            "which model judges?",
            where=where,
            fix=f"add `model:` to its params; {nearest('', models)}",
        )
    for name in names:
        if name not in models:
            raise UserError(
                f"the judge {name!r} is none of the models", where=where, fix=nearest(name, models)
            )
    settled["model"] = names
    if isinstance(settled.get("prompt"), str):
        settled["prompt"] = prompt_text(settled["prompt"], base=base, where=where)
    return settled


def prompt_text(prompt: str, *, base: Path, where: str) -> str:
    """The text of a judge's prompt: a shipped one by its name, a file's, or what is written here."""
    if "\n" in prompt or "{{" in prompt:
        return prompt
    package = Path(__file__).parents[2]
    places = (PROMPTS, *(package / "formats").glob("*/judges"))
    shipped = {file.stem: file for place in places for file in place.glob("*.txt")}
    if prompt in shipped:
        return shipped[prompt].read_text("utf-8")
    file = base / prompt
    try:
        return reading.text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the judge's prompt {prompt!r} is neither shipped nor a readable file: {error}",
            where=where,
            fix=f"{nearest(prompt, shipped)}; or a file beside the config",
        ) from None


def own_answers(
    judges: Mapping[str, Mapping[str, JsonMapping]], runs: Iterable[Manifest | None]
) -> JsonObject:
    """By scorer, the judged models that are their own judges: `judges` has the identities of each scorer's models."""
    judged: JsonObject = {}
    for run in runs:
        for task in (run.plan.get("tasks") or []) if run else []:
            identity = (task.get("identity") or {}).get("model")
            if identity:
                judged[str((task.get("facets") or {}).get("model_id", ""))] = _plain(identity)
    found = {
        scorer: sorted(
            name for name, identity in judged.items() if identity in map(_plain, models.values())
        )
        for scorer, models in judges.items()
    }
    return {scorer: names for scorer, names in found.items() if names}


def _plain(identity: JsonMapping) -> JsonObject:
    """Return it without what the model is called here, which does not matter."""
    return {key: value for key, value in identity.items() if key != "name"}


class Judges:
    """What the manifests of some evaluations say about their judges."""

    def __init__(self, manifests: Iterable[Manifest | None]) -> None:
        self._calibrations: dict[str, JsonObject] = {}
        self._own: dict[str, set[str]] = {}
        for manifest in manifests:
            found = manifest.metadata if manifest else {}
            self._calibrations |= found.get(CALIBRATIONS, {})
            for scorer, names in found.get(OWN_ANSWERS, {}).items():
                self._own.setdefault(scorer, set()).update(names)

    def calibration(self, label: str) -> JsonObject | None:
        return self._calibrations.get(label)

    def warning(self, scorers: Iterable[str], facets: JsonMapping) -> str | None:
        """That a judge of these rows judges its own answers."""
        own = {name for scorer in scorers for name in self._own.get(scorer, ())}
        shown = {
            str(facets[key])
            for key in ("model_name", "model_id", "metadata.model_id")
            if key in facets
        }
        named = sorted(own & shown if shown else own)
        return f"the judge judges its own answers: {', '.join(named)}" if named else None
