"""Why rows failed: for each task or scorer how many, the commonest reasons, and an item to look at."""

import re

import msgspec

from assay.sdk import JsonObject, Log, Manifest, UserError

FAILURES = "failures"  # where a manifest's metadata has them
UNANSWERED = "the response of "  # how the error of a label begins that has no answer to look at
_MOST_REASONS = 5
_LONGEST = 500  # of a message, whose first line is shown
_MOST_SHAPES = 1000
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class Reason(msgspec.Struct):
    """`error` is the message of the row of `item_id`; `count` rows have one that differs in names and numbers only."""

    count: int
    error: str
    item_id: str


class Failures(msgspec.Struct, kw_only=True):
    """The errored rows of one task (under the model's name, where it has one task), or of one scorer; `unanswered` are
    labels whose response failed already."""

    of: str
    rows: int = 0
    errored: int = 0
    unanswered: int = 0
    reasons: list[Reason] = []

    @property
    def is_total(self) -> bool:
        return self.errored == self.rows

    def lines(self) -> list[str]:
        """A line for each reason."""
        return [
            f"{reason.count:,} of {self.rows:,} rows of {self.of}: {reason.error} (for example item {reason.item_id})"
            for reason in self.reasons
        ]


class _OutcomeRow(msgspec.Struct):
    item_id: str
    model_name: str = ""
    task: str = ""
    scorer: str = ""
    outcome: str = "ok"
    error: str | None = None


def failures_in(log: Log) -> list[JsonObject]:
    """Return the failures of tasks or scorers that have errored rows, for a manifest."""
    from assay.store.table.decode import read_rows  # it takes numpy, and `assay ls` is to be quick

    by_owner: dict[str, Failures] = {}
    models: dict[str, set[str]] = {}
    shapes: dict[tuple[str, str], Reason] = {}
    for _, row in read_rows(log, _OutcomeRow):
        if row.outcome == "skipped":  # not for this scorer
            continue
        owner = row.scorer or row.task or row.model_name
        failures = by_owner.get(owner)
        if failures is None:
            failures = by_owner[owner] = Failures(of=row.scorer or row.model_name)
            models.setdefault(failures.of, set()).add(owner)
        failures.rows += 1
        if row.outcome != "errored":
            continue
        error = (row.error or "no reason was given").partition("\n")[0][:_LONGEST]
        failures.errored += 1
        failures.unanswered += error.startswith(UNANSWERED)
        shape = owner, _VARYING.sub("…", error) if len(shapes) < _MOST_SHAPES else ""
        shapes.setdefault(shape, Reason(0, error, row.item_id)).count += 1
    for (owner, _), reason in shapes.items():
        by_owner[owner].reasons.append(reason)
    for owner, failures in by_owner.items():
        failures.of = owner if len(models[failures.of]) > 1 else failures.of
        failures.reasons = sorted(failures.reasons, key=lambda reason: -reason.count)[
            :_MOST_REASONS
        ]
    return [msgspec.to_builtins(failures) for failures in by_owner.values() if failures.errored]


def failures_of(run: Manifest | None, evaluation: Manifest | None) -> list[Failures]:
    """Return the failures of an experiment."""
    metadata = (manifest.metadata if manifest else {} for manifest in (run, evaluation))
    try:
        return told_once(
            *(msgspec.convert(each.get(FAILURES, []), list[Failures]) for each in metadata)
        )
    except msgspec.ValidationError as error:
        raise UserError(
            f"a manifest's failures cannot be read: {error}", fix="run it again"
        ) from None


def told_once(run: list[Failures], evaluation: list[Failures]) -> list[Failures]:
    """Return both; what the run tells already is not told again for every scorer."""
    if run:
        for failures in evaluation:
            failures.reasons = [
                reason for reason in failures.reasons if not reason.error.startswith(UNANSWERED)
            ]
    return [*run, *(failures for failures in evaluation if failures.reasons)]
