"""JSON with the keys and values that are expected."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from assay.scorers._parameters import reads_answer
from assay.scorers._regex_child import search
from assay.sdk import (
    Item,
    JsonMapping,
    JsonObject,
    Response,
    Score,
    UserError,
    install_command,
    scorer,
)
from assay.text.answers import json_of
from assay.text.expected import expectation
from assay.text.json_out import NoJson, at_path, read_json


@dataclass
class Comparison:
    """How many expectations there were, and the paths of those that do not hold."""

    total: int = 0
    missing: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    unexpected: list[str] = field(default_factory=list[str])


def compare(
    wanted: Any, actual: Any, comparison: Comparison, strict: bool, tolerance: float, path: str = ""
) -> None:
    """Add to `found` what `wanted` expects of `given`: one expectation for each value at the end of a path."""
    if isinstance(wanted, dict) and wanted:
        if not isinstance(actual, dict):
            _count_all(wanted, comparison)
            comparison.wrong.extend(_ends(wanted, path))
            return
        for key, value in wanted.items():
            place = f"{path}.{key}" if path else str(key)
            if key in actual:
                compare(value, actual[key], comparison, strict, tolerance, place)
            else:
                _count_all(value, comparison)
                comparison.missing.extend(_ends(value, place))
        if strict:
            comparison.unexpected += [
                f"{path}.{key}" if path else str(key) for key in actual if key not in wanted
            ]
        return
    if (
        isinstance(wanted, list)
        and wanted
        and isinstance(actual, list)
        and len(wanted) == len(actual)
    ):
        for number, (value, other) in enumerate(zip(wanted, actual, strict=True)):
            compare(
                value,
                other,
                comparison,
                strict,
                tolerance,
                f"{path}.{number}" if path else str(number),
            )
        return
    comparison.total += 1
    if not equal(wanted, actual, strict, tolerance):
        comparison.wrong.append(path or "value")


def equal(wanted: Any, actual: Any, strict: bool, tolerance: float) -> bool:
    if isinstance(wanted, dict):  # an empty object: any object has what it expects
        return isinstance(actual, dict) and not (strict and actual)
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual
    if isinstance(wanted, (int, float)) and isinstance(actual, (int, float)):
        return wanted == actual or abs(wanted - actual) <= tolerance
    return type(wanted) is type(actual) and wanted == actual


def _ends(value: Any, path: str) -> list[str]:
    """The paths at which a value's expectations end."""
    if isinstance(value, dict) and value:
        return [
            end
            for key, entry in value.items()
            for end in _ends(entry, f"{path}.{key}" if path else str(key))
        ]
    return [path or "value"]


def _count_all(value: Any, comparison: Comparison) -> None:
    comparison.total += len(_ends(value, ""))


_SHOWN = 20
_SECONDS = 2.0  # for the patterns of a schema
_MATCHING = {"patternProperties", "additionalProperties", "unevaluatedProperties"}


@scorer(reads="ground_truth", version=1)
@reads_answer
def json_match(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_json: Any = None,
    expected_keys: list[str] | None = None,
    strict: bool = False,
    tolerance: float = 0.0,
    schema: JsonObject | None = None,
    response_field: str | None = None,
) -> Score:
    """The answer's JSON has the expected keys and values.

    Score: the share of the expectations that hold: each key of `expected_keys`, each value at the end of a path of
    the expected JSON, and the schema; passes if all do. Objects may have further keys unless `strict`; lists must
    have the same entries in the same order; 1 equals 1.0, and true equals no number. What is missing, wrong or
    unexpected is in `detailed_results`. The JSON may stand in a fence or in prose; an answer without any is unparsed.

    Without `expected_keys` and `schema`, every item needs an expected JSON.

    Parameters:
    expected: the field of the ground truth that has the JSON; without it `expected_json` or a usual one
    expected_json: the JSON itself, for all items
    expected_keys: paths that must be there (`user.name`, `items.0.id`), whatever their values
    strict: refuse keys that are not expected
    tolerance: the greatest difference of two numbers
    schema: a JSON Schema (`pip install 'assay-eval[schema]'`)
    response_field: compare this part (a dotted path) of the JSON in the answer
    """
    wanted = _expected_json(
        item, expected, expected_json, needed=expected_keys is None and schema is None
    )
    actual = json_of(response, response_field)
    comparison = Comparison()
    for path in expected_keys or ():
        comparison.total += 1
        if not _has(actual, path):
            comparison.missing.append(path)
    if wanted is not None:
        compare(wanted[0], actual, comparison, strict, tolerance)
    elif strict and expected_keys and isinstance(actual, dict):
        comparison.unexpected += sorted(
            actual.keys() - {path.split(".")[0].split("[")[0] for path in expected_keys}
        )
    problems = _schema_problems(actual, schema) if schema is not None else []
    return _score(comparison, problems, schema is not None)


def _expected_json(item: Item, field: str | None, literal: Any, needed: bool) -> tuple[Any] | None:
    """The expected JSON in a tuple, because null is one."""
    if literal is not None:
        return (_value_of(literal),)
    try:
        return (_value_of(expectation(item, field, "expected_json")),)
    except LookupError:
        truth = item.ground_truth
        if (
            field is None
            and needed
            and isinstance(truth, dict)
            and truth
            and truth is not item.data
        ):
            return (truth,)
        if needed or field is not None:
            raise
        return None


def _value_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except NoJson:
        return value


def _has(value: Any, path: str) -> bool:
    try:
        at_path(value, path)
    except KeyError:
        return False
    return True


def _schema_problems(value: Any, schema: JsonObject) -> list[str]:
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import extend, validator_for
    except ImportError:
        raise UserError("a JSON Schema needs `jsonschema`", fix=install_command("schema")) from None
    try:
        validator = validator_for(schema)
        validator.check_schema(schema)
        validator = extend(validator, _keywords_in_time(validator.VALIDATORS))
        errors = validator(schema).iter_errors(value)
        return [
            f"{'.'.join(map(str, error.absolute_path)) or 'it'}: {error.message[:200]}"
            for error in errors
        ]
    except SchemaError as error:
        raise ValueError(f"`schema` is not a JSON Schema: {error.message}") from None


def _keywords_in_time(keywords: JsonMapping) -> JsonObject:
    """The keywords of a schema that look for patterns, with a limit of time for all together."""
    from jsonschema.exceptions import ValidationError

    deadline = time.monotonic() + _SECONDS

    def matches(pattern: str, text: str) -> bool:
        seconds = max(0.01, deadline - time.monotonic())
        return search(re.compile(pattern), text, full=False, seconds=seconds) is not None

    def pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and not matches(pattern, value):
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    def tried(keyword: Any) -> Any:
        """They match every name themselves: what takes too long has ended before."""

        def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
            for names in schema.get("patternProperties", {}) if isinstance(value, dict) else ():
                for name in value:
                    matches(names, name)
            yield from keyword(validator, wanted, value, schema) or ()

        return check

    return {
        "pattern": pattern,
        **{name: tried(keywords[name]) for name in _MATCHING & keywords.keys()},
    }


def _score(comparison: Comparison, problems: list[str], has_schema: bool) -> Score:
    total = comparison.total + has_schema + bool(comparison.unexpected)
    wrong = (
        len(comparison.missing)
        + len(comparison.wrong)
        + bool(problems)
        + bool(comparison.unexpected)
    )
    listed = {
        "missing": comparison.missing,
        "wrong": comparison.wrong,
        "unexpected": comparison.unexpected,
    }
    details = {
        name: paths[:_SHOWN] for name, paths in {**listed, "schema": problems}.items() if paths
    }
    return Score(passed=not wrong, score=1 - wrong / total if total else 1.0, details=details)
