"""What a template reads of a document."""

from typing import Any

from jinja2 import Environment, nodes

from tools.benchmark_matrix.fields import Field

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
    "format",
}
_TEXT |= {
    "title",
    "rsplit",
    "removeprefix",
    "removesuffix",
    "isdigit",
    "splitlines",
    "trim",
    "find",
    "count",
    "partition",
}
_DICT = {"items", "keys", "values", "get"}


def read(source: str, root: Field) -> None:
    _Reader(root).block(Environment().parse(source).body, {})


def read_choices(source: str, root: Field) -> None:
    """The template's value is a list."""
    body = Environment().parse(source).body
    reader = _Reader(root)
    reader.block(body, {})
    outputs = [node for part in body if isinstance(part, nodes.Output) for node in part.nodes]
    if len(outputs) == 1:
        value = reader.of(outputs[0], {})
        if isinstance(value, Field) and not value.children:
            value.element()


class _Reader:
    def __init__(self, root: Field) -> None:
        self.root = root

    def block(self, body: list[Any], names: dict[str, Any]) -> None:
        for node in body:
            self.statement(node, names)

    def statement(self, node: Any, names: dict[str, Any]) -> None:
        if isinstance(node, nodes.For):
            source = self.of(node.iter, names)
            item = source.element() if isinstance(source, Field) else None
            inner = {**names, "loop": None}
            if isinstance(node.target, nodes.Name):
                inner[node.target.name] = item
            else:
                inner.update({part.name: None for part in node.target.find_all(nodes.Name)})
            if node.test:
                self.of(node.test, inner)
            self.block(node.body + node.else_, inner)
        elif isinstance(node, nodes.Assign):
            value = self.of(node.node, names)
            if isinstance(node.target, nodes.Name):
                names[node.target.name] = value
        else:
            for part in node.iter_child_nodes():
                if isinstance(part, nodes.Stmt):
                    self.statement(part, names)
                else:
                    self.of(part, names)

    def of(self, node: Any, names: dict[str, Any]) -> Any:
        """A Field, a constant in a tuple of one, or None."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method:
            return method(node, names)
        for part in node.iter_child_nodes():
            self.of(part, names)
        try:
            return (node.as_const(),)
        except nodes.Impossible:
            return None

    def _name(self, node: nodes.Name, names: dict[str, Any]) -> Any:
        if node.name in names:
            return names[node.name]
        return (
            None
            if node.name in ("range", "dict", "namespace", "lipsum", "cycler", "joiner")
            else self.root.child(node.name)
        )

    def _getattr(self, node: nodes.Getattr, names: dict[str, Any]) -> Any:
        base = self.of(node.node, names)
        return base.child(node.attr) if isinstance(base, Field) else None

    def _getitem(self, node: nodes.Getitem, names: dict[str, Any]) -> Any:
        base, key = self.of(node.node, names), self.of(node.arg, names)
        if isinstance(base, tuple) and isinstance(key, Field):
            if isinstance(base[0], dict):
                key.one_of(base[0])
            else:
                key.is_number, key.range = True, len(base[0])
            return None
        if not isinstance(base, Field):
            return None
        if isinstance(key, tuple) and isinstance(key[0], str):
            return base.child(key[0])
        if isinstance(key, Field):
            key.is_number, key.range = True, base.length
        if isinstance(key, tuple) and isinstance(key[0], int):
            base.length = max(base.length, key[0] + 1)
        if isinstance(node.arg, nodes.Slice):
            for bound in filter(None, (node.arg.start, node.arg.stop)):
                value = self.of(bound, names)
                if isinstance(value, Field):
                    value.is_number = True
            return base
        return base.element()

    def _call(self, node: nodes.Call, names: dict[str, Any]) -> Any:
        given = [self.of(part, names) for part in node.args]
        if not isinstance(node.node, nodes.Getattr):
            self.of(node.node, names)
            return None
        base, name = self.of(node.node.node, names), node.node.attr
        if isinstance(base, Field):
            if name in _TEXT:
                base.is_text = True
                if name == "split" and given and isinstance(given[0], tuple):
                    base.inside += [given[0][0]] if given[0][0] not in base.inside else []
                return (
                    base
                    if name in ("strip", "lower", "upper", "lstrip", "rstrip", "replace")
                    else None
                )
            if name == "get" and given and isinstance(given[0], tuple):
                return base.child(str(given[0][0]))
            if name == "index":
                base.element()
                if isinstance(given[0], Field):
                    given[0].twin = base
        elif isinstance(base, tuple) and name == "index" and isinstance(given[0], Field):
            given[0].one_of(base[0])
        elif isinstance(base, tuple) and name == "join" and isinstance(given[0], Field):
            given[0].element()
        return None

    def _filter(self, node: nodes.Filter, names: dict[str, Any]) -> Any:
        base = self.of(node.node, names) if node.node else None
        given = [self.of(part, names) for part in node.args]
        if isinstance(base, Field):
            if node.name in (
                "join",
                "first",
                "last",
                "list",
                "map",
                "sort",
                "random",
                "select",
                "reject",
            ):
                item = base.element()
                for keyword in node.kwargs:
                    if keyword.key == "attribute":
                        item.child(keyword.value.as_const())
                return item if node.name in ("first", "last") else base
            if node.name in (
                "lower",
                "upper",
                "trim",
                "replace",
                "capitalize",
                "title",
                "regex_replace",
            ):
                base.is_text = True
            if node.name in ("int", "float"):
                base.is_number = True
            del given
            return base
        return None

    def _sub(self, node: nodes.Sub, names: dict[str, Any]) -> Any:
        left, right = self.of(node.left, names), self.of(node.right, names)
        if isinstance(left, Field) and isinstance(right, tuple) and isinstance(right[0], int):
            left.is_number = True
            if not left.is_text:
                left.one_of([right[0], right[0] + 1])

    def _compare(self, node: nodes.Compare, names: dict[str, Any]) -> Any:
        left = self.of(node.expr, names)
        for operand in node.ops:
            right = self.of(operand.expr, names)
            pair = (left, right) if isinstance(left, Field) else (right, left)
            if isinstance(pair[0], Field) and isinstance(pair[1], tuple):
                constant = pair[1][0]
                if operand.op in ("gt", "lt", "gteq", "lteq"):
                    pair[0].is_number = True
                elif operand.op == "in" and isinstance(constant, (list, tuple)) and pair[0] is left:
                    pair[0].one_of(constant)
                elif operand.op == "eq" and constant is not None and constant != "":
                    pair[0].one_of([constant])
        return None
