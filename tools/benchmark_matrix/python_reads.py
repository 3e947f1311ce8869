"""What a task's Python functions read of a document, from their source; what they call is followed."""

import ast
import functools
import inspect
import re
import textwrap
from typing import Any

from tools.benchmark_matrix.fields import Field
from tools.benchmark_matrix.patterns import sample
from tools.benchmark_matrix.values import Constant, Docs, Length, Projected, Rows, Several, numbered

_TEXT = {
    "strip",
    "lstrip",
    "rstrip",
    "split",
    "lower",
    "upper",
    "replace",
    "startswith",
    "endswith",
    "capitalize",
}
_TEXT |= {
    "title",
    "rsplit",
    "isdigit",
    "splitlines",
    "find",
    "rfind",
    "encode",
    "partition",
    "format",
    "removeprefix",
}
_DECODERS = {"loads", "literal_eval", "eval"}
_DEPTH = 8


Names = dict[str, Any]


def read(function: Any, root: Field, *, docs: bool = False) -> None:
    """docs: the function gets the whole dataset"""
    _Reader(root).call(function, [Docs() if docs else root], {}, 0)


class _Reader:
    def __init__(self, root: Field) -> None:
        self.root = root
        self.open: list[Any] = []

    def call(self, function: Any, given: list[Any], keywords: Names, depth: int) -> Any:
        if isinstance(function, functools.partial):
            bound = {name: Constant(value) for name, value in function.keywords.items()}
            return self.call(
                function.func, [*map(Constant, function.args), *given], {**bound, **keywords}, depth
            )
        if (
            not inspect.isfunction(function)
            and callable(function)
            and not isinstance(function, type)
        ):
            function, given = type(function).__call__, [None, *given]
        if not inspect.isfunction(function) or depth > _DEPTH or function in self.open:
            return None
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, SyntaxError, TypeError):
            return None
        node = next(
            (part for part in ast.walk(tree) if isinstance(part, (ast.FunctionDef, ast.Lambda))),
            None,
        )
        if node is None:
            return None
        names: Names = {name: Constant(value) for name, value in function.__globals__.items()}
        try:
            closed = inspect.getclosurevars(function).nonlocals
        except (TypeError, ValueError):
            closed = {}
        names |= {name: Constant(value) for name, value in closed.items()}
        self.open.append(function)
        try:
            return self.enter(node, names, given, keywords, depth)
        finally:
            self.open.pop()

    def enter(self, node: Any, names: Names, given: list[Any], keywords: Names, depth: int) -> Any:
        inner = _Body(self, {**names}, depth)
        arguments = [*node.args.posonlyargs, *node.args.args]
        for argument, default in zip(
            reversed(arguments), reversed(node.args.defaults), strict=False
        ):
            inner.names[argument.arg] = inner.of(default)
        for argument in [*arguments, *node.args.kwonlyargs]:
            inner.names.setdefault(argument.arg, None)
        for argument, value in zip(arguments, given, strict=False):
            inner.names[argument.arg] = value
        inner.names |= keywords
        if isinstance(node, ast.Lambda):
            return inner.of(node.body)
        inner.block(node.body)
        return inner.returned


class _Body:
    """One call of a function."""

    def __init__(self, reader: _Reader, names: Names, depth: int) -> None:
        self.reader = reader
        self.names = names
        self.depth = depth
        self.returned: Any = None

    def block(self, body: list[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self.names[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            value = self.of(node.value) if node.value else None
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.bind(target, value)
        elif isinstance(node, ast.For):
            self.bind(node.target, self.element(self.of(node.iter)))
            self.block([*node.body, *node.orelse])
        elif isinstance(node, ast.Return):
            value = self.of(node.value) if node.value else None
            self.returned = self.returned or value
        else:
            for name, part in ast.iter_fields(node):
                for entry in part if isinstance(part, list) else [part]:
                    if isinstance(entry, ast.expr):
                        self.of(entry)
                    elif isinstance(entry, ast.stmt):
                        self.statement(entry)
                    elif isinstance(entry, ast.ExceptHandler):
                        self.block(entry.body)
                    elif isinstance(entry, ast.withitem):
                        self.of(entry.context_expr)
                del name

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value if isinstance(value, list) else [None] * len(target.elts)
            for part, entry in zip(target.elts, parts, strict=False):
                self.bind(part, entry)
        elif isinstance(target, ast.Subscript):
            self.of(target)

    def element(self, value: Any) -> Any:
        if isinstance(value, Docs):
            return self.reader.root
        if isinstance(value, Constant) and isinstance(value.value, (list, tuple)):
            return Several(value.value)
        return value.element() if isinstance(value, Field) else None

    def of(self, node: ast.expr) -> Any:
        """A Field, Docs, a Constant, a list of those (a tuple of the code), or None."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method:
            return method(node)
        values = [
            self.of(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)
        ]
        try:
            return Constant(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError, MemoryError):
            pass
        return (
            next((value for value in values if isinstance(value, Field)), None)
            if isinstance(node, ast.BoolOp | ast.IfExp)
            else None
        )

    def _name(self, node: ast.Name) -> Any:
        return self.names.get(node.id)

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        parts = [
            self.of(part.value if isinstance(part, ast.FormattedValue) else part)
            for part in node.values
        ]
        if all(isinstance(part, Constant) for part in parts):
            return Constant("".join(str(part.value) for part in parts))
        return None

    def _namedexpr(self, node: ast.NamedExpr) -> Any:
        value = self.of(node.value)
        self.bind(node.target, value)
        return value

    def _tuple(self, node: ast.Tuple) -> Any:
        values = [self.of(part) for part in node.elts]
        if all(isinstance(value, Constant) for value in values):
            return Constant(tuple(value.value for value in values))
        return values

    def _comprehension(self, node: Any) -> Any:
        before, source, made = {**self.names}, None, None
        for part in node.generators:
            source = self.of(part.iter)
            self.bind(part.target, self.element(source))
            for test in part.ifs:
                self.of(test)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                made = self.of(getattr(node, name))
        self.names = before
        return (
            Projected(made, source) if isinstance(made, Field) and type(source) is Field else None
        )

    _listcomp = _setcomp = _generatorexp = _dictcomp = _comprehension

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.of(node.value)
        key = None if isinstance(node.slice, ast.Slice) else self.of(node.slice)
        if isinstance(node.slice, ast.Slice):
            return base
        if isinstance(base, Docs):
            return (
                Docs()
                if isinstance(key, Constant) and isinstance(key.value, str)
                else self.reader.root
            )
        if isinstance(base, Constant) and isinstance(key, Field):
            if isinstance(base.value, dict):
                key.one_of(base.value)
            elif isinstance(base.value, (list, tuple, str)) and len(base.value):
                key.is_number, key.range = True, len(base.value)
            return None
        if isinstance(base, Constant) and isinstance(key, Constant):
            try:
                return Constant(base.value[key.value])
            except Exception:
                return None
        if not isinstance(base, Field):
            return None
        if isinstance(key, Constant) and isinstance(key.value, str):
            return base.child(key.value)
        if isinstance(key, Several):
            return next(
                iter([base.child(name) for name in key.values if isinstance(name, str)]), None
            )
        if isinstance(node.slice, ast.JoinedStr):
            return [base.child(name) for name in numbered(node.slice)][-1]
        if isinstance(key, Field) and not key.is_text:
            key.is_number, key.range = True, base.length
        if isinstance(key, Constant) and isinstance(key.value, int):
            base.length = max(base.length, key.value + 1)
        return base.element()

    def _compare(self, node: ast.Compare) -> Any:
        left = self.of(node.left)
        for operator, part in zip(node.ops, node.comparators, strict=True):
            right = self.of(part)
            if (
                isinstance(left, Length)
                and isinstance(right, Constant)
                and isinstance(right.value, int)
            ):
                if isinstance(operator, ast.Eq) and right.value:
                    left.field.element()
                    left.field.length = right.value
                elif isinstance(operator, (ast.Gt, ast.GtE)):
                    left.field.length = max(left.field.length, right.value + 1)
            field, other = (left, right) if isinstance(left, Field) else (right, left)
            if (
                isinstance(operator, ast.In)
                and isinstance(right, Field)
                and not isinstance(left, Constant | Field)
            ):
                right.element().is_number = True
            if isinstance(field, Field) and isinstance(other, Constant):
                value = other.value
                if isinstance(operator, (ast.Gt, ast.Lt, ast.GtE, ast.LtE)):
                    field.is_number = field.is_number or isinstance(value, (int, float))
                elif isinstance(operator, ast.In) and field is right and isinstance(value, str):
                    field.inside += (
                        [value] if value not in field.inside and not field.is_list else []
                    )
                elif isinstance(operator, ast.In) and isinstance(value, (list, tuple, set, dict)):
                    field.one_of(value)
                elif isinstance(operator, (ast.Eq, ast.Is)) and value not in (None, ""):
                    field.one_of([value])
            left = right

    def _call(self, node: ast.Call) -> Any:
        given = [
            self.of(part.value if isinstance(part, ast.Starred) else part) for part in node.args
        ]
        keywords = {part.arg: self.of(part.value) for part in node.keywords if part.arg}
        if isinstance(node.func, ast.Attribute):
            base, name = self.of(node.func.value), node.func.attr
            if isinstance(base, Docs):
                return self._dataset(name, given, keywords)
            if isinstance(base, Field):
                return self._method(base, name, given)
            if isinstance(base, Constant) and not inspect.ismodule(base.value):
                self._of_constant(base.value, name, given)
                function = getattr(base.value, name, None) if isinstance(base.value, type) else None
                return self._follow(Constant(function), given, keywords)
            if name == "join" and given and isinstance(given[0], Field):
                given[0].element()
            if isinstance(base, Constant):
                pattern = given[0] if given else None
                if (
                    base.value is re
                    and len(given) > 1
                    and isinstance(pattern, Constant)
                    and isinstance(given[-1], Field)
                ):
                    given[-1].is_text = True
                    given[-1].inside.append(f" {sample(str(pattern.value))}")
                if name in _DECODERS and given and isinstance(given[0], Field):
                    return given[0].inner()
                return self._follow(Constant(getattr(base.value, name, None)), given, keywords)
            return None
        return self._plain(node.func, given, keywords)

    def _dataset(self, name: str, given: list[Any], keywords: Names) -> Any:
        function = given[0] if given else keywords.get("function")
        if name in ("map", "filter"):
            self._follow(function, [self.reader.root], {})
        if name == "to_list":
            return Docs()
        return Docs()

    def _method(self, base: Field, name: str, given: list[Any]) -> Any:
        if name in _TEXT:
            base.is_text = True
            if (
                name == "startswith"
                and given
                and isinstance(given[0], Constant)
                and isinstance(given[0].value, str)
            ):
                base.one_of([given[0].value])
            if (
                name in ("split", "rsplit")
                and given
                and isinstance(given[0], Constant)
                and isinstance(given[0].value, str)
            ):
                base.inside += [given[0].value] if given[0].value not in base.inside else []
                return None
            return (
                base if name in ("strip", "lower", "upper", "lstrip", "rstrip", "replace") else None
            )
        if name == "get" and given and isinstance(given[0], Constant):
            return base.child(str(given[0].value))
        if name in ("items", "keys", "values"):
            if not base.children or base is self.reader.root:
                base.child("first"), base.child("second")
        elif name == "index":
            if given and isinstance(given[0], Constant) and isinstance(given[0].value, str):
                base.inside += [given[0].value] if given[0].value not in base.inside else []
            else:
                item = base.element()
                if given and isinstance(given[0], Constant):
                    item.one_of([1, given[0].value])
            if given and isinstance(given[0], Field):
                given[0].twin = base
        return base if name == "copy" else None

    def _of_constant(self, value: Any, name: str, given: list[Any]) -> None:
        field = given[0] if given and isinstance(given[0], Field) else None
        if field is None:
            return
        if name == "join":
            field.element()
        elif name in ("index", "get") and isinstance(value, (list, tuple, dict, str)):
            field.one_of(list(value))

    def _plain(self, function: ast.expr, given: list[Any], keywords: Names) -> Any:
        name = function.id if isinstance(function, ast.Name) else ""
        first = given[0] if given and isinstance(given[0], Field) else None
        known = self.of(function)
        if name == "zip_longest":
            return Rows([self.element(value) for value in given])
        if known is not None:
            return self._follow(known, given, keywords)
        if name in ("zip", "zip_longest"):
            return Rows([self.element(value) for value in given])
        if name == "enumerate":
            return Rows([None, self.element(given[0])]) if given else None
        if first is None:
            return given[0] if name in ("list", "sorted", "dict") and given else None
        if name in ("int", "float", "abs", "round"):
            first.is_number = True
        elif name in (
            "list",
            "sorted",
            "reversed",
            "set",
            "tuple",
            "sum",
            "max",
            "min",
            "any",
            "all",
        ):
            first.element()
            return first
        elif name == "dict":
            return first
        elif name == "len":
            return Length(first)
        elif name == "ord":
            first.one_of("ABCD")
        elif name in _DECODERS:
            return first.inner()
        return None

    def _follow(self, function: Any, given: list[Any], keywords: Names) -> Any:
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            if self.depth > _DEPTH:
                return None
            self.depth += 1
            try:
                return self.reader.enter(function, self.names, given, keywords, self.depth)
            finally:
                self.depth -= 1
        if isinstance(function, Constant) and callable(function.value):
            module = getattr(function.value, "__module__", "") or ""
            if module.startswith("lm_eval") or isinstance(function.value, functools.partial):
                return self.reader.call(function.value, given, keywords, self.depth + 1)
            if module in ("json", "ast", "json.decoder") and given and isinstance(given[0], Field):
                return given[0].inner()
        return None

    def _lambda(self, node: ast.Lambda) -> Any:
        return node
