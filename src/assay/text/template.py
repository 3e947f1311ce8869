"""Jinja in a sandbox, and what a template is given of an item: templates are data from strangers.

A template of plain variables, the common case, is joined directly, nine times faster than Jinja renders it.
Jinja is imported with the first template: much of what asks for an item's question needs none.
"""

import re
from collections.abc import Callable, Container, Generator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from assay.errors import UserError
from assay.records import Item, JsonObject, as_object
from assay.usercode import places_in

if TYPE_CHECKING:
    from jinja2 import Environment, Template, nodes

_UNDEFINED = re.compile(r"'(\w+)' is undefined")
_FIX = "make the template, or what it repeats, smaller (docs/prompts.md has the bounds)"
LETTERS = 10_000_000  # of a prompt, and of any text or list on the way to it
DEFAULT_FIELDS = ("prompt", "question", "problem")

Variables = JsonObject
Render = Callable[[Variables], Any]


def whole(item: Item) -> Variables:
    """Return all that an item has."""
    own = {"id": item.id, "data": item.data, "ground_truth": item.ground_truth}
    return {**own, "metadata": item.metadata, **item.extra}


def variables(item: Item) -> Variables:
    """Return what a template is given of an item: everything but a ground truth that the row gives
    as such."""
    fields = as_object(item.data)
    own = whole(item)
    del own["ground_truth"]
    return {**own, "item": own, **fields}


def question(context: Variables) -> str:
    """Return what an item asks by itself, where no template says it."""
    for field in DEFAULT_FIELDS:
        if field in context:
            return str(context[field])
    data = context["data"]
    return data if isinstance(data, str) else msgspec.json.encode(data).decode()


@cache
def _environment() -> "Environment":
    from assay.text.bounded_jinja import BoundedEnvironment

    return BoundedEnvironment()


def compiled(source: str, where: str) -> Callable[[Variables], str]:
    """The template as a function; what is wrong with it, or a bound that it exceeds, is a UserError at `where`."""
    with _readable(where):
        environment = _environment()
        parts = plain_parts(environment.parse(source), environment.globals)
        if parts is not None:
            return _join_parts(parts, where)
        return _render_bounded(environment.from_string(source), where)


def _join_parts(parts: list[tuple[bool, str]], where: str) -> Callable[[Variables], str]:
    def render(context: Variables) -> str:
        text = "".join([str(context[part]) if name else part for name, part in parts])
        if len(text) > LETTERS:
            raise UserError(
                f"the template is refused: it makes more than {LETTERS:,} letters",
                where=where,
                fix=_FIX,
            )
        return text

    return render


def expression(source: str, where: str) -> Callable[[Variables], Any]:
    """One expression of a template as a function; TemplateError if it cannot be read."""
    from assay.text.bounded_jinja import begin

    evaluate = _environment().compile_expression(source, undefined_to_none=False)

    def value(context: Variables) -> Any:
        begin()
        try:
            return evaluate(context)
        except RuntimeError as error:
            raise _template_error(error, evaluate._template, where) from None

    return value


def _render_bounded(template: "Template", where: str) -> Callable[[Variables], str]:
    from assay.text.bounded_jinja import begin, joined

    environment = _environment()

    def render(context: Variables) -> str:
        begin()
        try:
            return joined(template.root_render_func(template.new_context(context)))
        except RuntimeError as error:
            raise _template_error(error, template, where) from None
        except Exception:
            environment.handle_exception()

    return render


def _template_error(error: RuntimeError, template: "Template", where: str) -> Exception:
    """Return what a bound says, with the template's line; any other error as it is."""
    from assay.text.growth import Exceeded

    if not isinstance(error, (Exceeded, RecursionError)):
        return error
    place = "the template"
    if steps := places_in(error, (template.filename or "<template>").__eq__):
        place = f"line {template.get_corresponding_lineno(steps[-1][1])} of the template"
    what = "it calls itself too often" if isinstance(error, RecursionError) else str(error)
    return UserError(f"{place} is refused: {what}", where=where, fix=_FIX)


def names_in(source: str, where: str) -> set[str]:
    """The variables that a template asks for."""
    from jinja2 import meta

    with _readable(where):
        return meta.find_undeclared_variables(_environment().parse(source))


def undefined_name(error: Exception) -> str:
    """The variable that a template asks for and does not get; "" if it fails for another reason."""
    name = _UNDEFINED.match(str(error))
    return name[1] if name else ""


@contextmanager
def _readable(where: str) -> Generator[None]:
    from jinja2 import TemplateError

    try:
        yield
    except (
        TemplateError,
        RecursionError,
        SyntaxError,
        MemoryError,
    ) as error:  # the last: of Python, for deep nesting
        line = getattr(error, "lineno", None) if isinstance(error, TemplateError) else None
        place = f"{where} line {line}" if line else where
        raise UserError(f"the prompt template cannot be read: {error}", where=place) from None


def plain_parts(
    tree: "nodes.Template", not_variables: Container[str]
) -> list[tuple[bool, str]] | None:
    """(is a variable, name or text) for each piece of a template made of text and plain variables, else None."""
    from jinja2 import nodes

    parts: list[tuple[bool, str]] = []
    for output in tree.body:
        if not isinstance(output, nodes.Output):
            return None
        for node in output.nodes:
            if isinstance(node, nodes.TemplateData):
                parts.append((False, node.data))
            elif isinstance(node, nodes.Name) and node.name not in not_variables:
                parts.append((True, node.name))
            else:
                return None
    return parts
