"""Templates of strangers end: what they repeat, multiply or nest is refused with its line and the bound."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.config import DatasetConfig
from assay.datasets._shape import shape_rows
from assay.errors import UserError
from assay.prompts.jinja import jinja
from assay.records import Item
from assay.scorers._judge_prompt import JudgeQuestion, render_question
from assay.text.template import compiled
from assay.text.verdict_words import YES_NO

GROWING = "{% set n = namespace(a=START) %}{% for i in range(100) %}{% set n.a = NEXT %}{% endfor %}{{ n.a USE }}"
DOUBLED = {
    "added": ("'aa'", "n.a + n.a", ""), "joined": ("'aa'", "n.a ~ n.a", ""), "listed": ("['a']", "[n.a, n.a]", ""),
    "as text": ("['a']", "[n.a, n.a]", "|string"), "as JSON": ("['a']", "[n.a, n.a]", "|tojson"),
    "formatted": ("['a']", "{'a': n.a, 'b': n.a}", ".values()|map('string')|list"),
    "squared": ("3", "n.a * n.a", "> 1"),
    "by percent": ("'a'", "'%s%s' % (n.a, n.a)", ""), "by format": ("'a'", "'{0}{0}'.format(n.a)", ""),
    "by replace": ("'a'", "n.a.replace('a', 'aa')", ""), "by filter": ("'a'", "n.a|replace('a', 'aa')", ""),
}  # fmt: skip
REFUSED = [
    *(GROWING.replace("START", a).replace("NEXT", b).replace("USE", c) for a, b, c in DOUBLED.values()),
    *("{{ 'a' * 10**9 }}", "{{ 10**9 * ['a'] }}", "{{ 2**(10**8) }}", "{{ (1,) * 10**8 }}"),
    *("{{ ['a' * 10**6] * 10**6 }}",),
    "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{% for b in range(100000) if b == 5 %}{% endfor %}{% endfor %}",
    "{% for a in 'a' * 9999999 %}{% endfor %}",
    "{% for a in range(100000) recursive %}{{ loop(range(100000)) }}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}",
    "{% block a %}{{ self.a() }}{% endblock %}",
    *("{{ 'a'|center(10**9) }}", "{{ 'a'.center(10**9) }}", "{{ 'a'.zfill(10**9) }}", "{{ (5).to_bytes(10**9) }}"),
    *("{{ '%1000000000d' % 1 }}", "{{ '%*d' % (10**9, 1) }}", "{{ '%.999999999f'|format(1.5) }}"),
    *("{{ '{:1000000000}'.format(1) }}", "{{ '{:{w}}'.format(1, w=10**9) }}"),
    *("{{ '{a:{w}}'.format_map({'a': 1, 'w': 10**9}) }}",),
    *("{{ range(100000)|join('a' * 10**6) }}", "{{ ('a' * 10**6).join(range(100000)|map('string')) }}"),
    *("{{ range(100000)|map('string')|map('center', 100000)|list|length }}", "{{ [1]|batch(10**9, 'a')|list }}"),
    *("{{ [1]|slice(10**9)|list }}", "{{ range(100000)|map('string')|map('list')|sum(start=[]) }}"),
    *("{{ ('<!---->' * 10**6)|striptags }}", "{{ ('.' * 10**6)|urlize }}", "{{ ('a ' * 10**6)|wordwrap(1) }}"),
    *("{{ ('a\\n' * 10**6)|indent(100000) }}", "{{ 1.5|round(10**9, 'ceil') }}", "{{ [1]|tojson(indent=10**9) }}"),
    *("{{ ('a' * 10**6).translate({97: 'b' * 10**6}) }}", "{{ ('\\t' * 10**6).expandtabs(10**6) }}"),
    "{% for a in range(100000) %}{{ document|upper }}{% endfor %}",
    "{% macro m() %}{% for a in range(100000) %}{{ document|upper }}{% endfor %}{% endmacro %}{{ m() }}",
    "{% set x %}{% for a in range(100000) %}{{ document }}{% endfor %}{% endset %}{{ x }}",
    "{{ document }}" * 20,
    "{% autoescape 1 %}{% set x %}{% for a in range(9999) %}{{ document }}{% endfor %}{% endset %}{% endautoescape %}",
]  # fmt: skip
DOCUMENT = "a b " * 250_000


@pytest.mark.parametrize("template", REFUSED)
def test_refused(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.text.bounded_jinja.SECONDS", 1.0)
    started = time.process_time()
    with pytest.raises(UserError, match="the template is refused: ") as failure:
        compiled(f"first line\n{template}", "prompt_template")({"document": DOCUMENT})
    assert time.process_time() - started < 3
    assert failure.value.where == "prompt_template"
    assert "line 2" in failure.value.what or "document" in template


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
        "{% for i in x %}" * 30 + "{% endfor %}" * 30,
    ],
)
def test_nested_too_deeply(template: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        compiled(template, "prompt_template")


ORDINARY = {
    "{% for o in options %}{{ 'AB'[loop.index0] }}. {{ o }}{{ ',' if not loop.last }} {% endfor %}": "A. one, B. two ",
    "{% for o in options|reverse %}{{ loop.length }}{{ loop.revindex }}{{ o }}{% endfor %}": "22two21one",
    "{{ '%s of %d in 123456789012' % ('x', 8000000000) }}": "x of 8000000000 in 123456789012",
    "{{ '{:,} {} tel 491512345'.format(8000000000, '491512345') }}": "8,000,000,000 491512345 tel 491512345",
    "{{ options|map('upper')|join('; ') }} {{ [1, 2]|sum }} {{ [[1], [2]]|sum(start=[]) }}": "ONE; TWO 3 [1, 2]",
    "{{ options ~ '!' }} {{ '-' * 3 }} {{ 2 ** 10 }} {{ 7 % 4 }} {{ options + ['c'] }}": (
        "['one', 'two']! --- 1024 3 ['one', 'two', 'c']"
    ),
    "{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m('x') }}{{ 'a'.ljust(3) }}|{{ 'a-b'.replace('-', '+') }}": "<x>a  |a+b",
    "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}": "123",
    "{% autoescape true %}{{ '<' }}{% endautoescape %}{{ '<' }}": "&lt;<",
    "{{ document|length }} {{ document.split()|length }} {{ document|wordcount }}": "1000000 500000 500000",
}  # fmt: skip


@pytest.mark.parametrize(("template", "text"), ORDINARY.items())
def test_ordinary_templates_are_what_they_were(template: str, text: str) -> None:
    assert compiled(template, "")({"options": ["one", "two"], "document": DOCUMENT}) == text


BOMB = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"


def _prompt() -> None:
    problem = jinja(BOMB, where="prompt_template").check(Item(id="q", data={}, ground_truth=None))
    assert problem is not None
    raise UserError(problem)


def _judge() -> None:
    render_question(
        f"{{{{answer}}}}{BOMB}",
        Item(id="q", data={}),
        JudgeQuestion({"answer": "a"}, {}, YES_NO, 0.5),
    )


def _filter() -> None:
    config = DatasetConfig(
        type="jsonl", path="x", filter="range(100000)|map('string')|map('center', 9999)|list"
    )
    list(shape_rows(iter([("row 1", {"a": 1})]), config))


@pytest.mark.parametrize("render", [_prompt, _judge, _filter])
def test_wherever_templates_are_rendered(render: Callable[[], Any]) -> None:
    with pytest.raises(UserError, match="refused"):
        render()


def test_one_environment() -> None:
    """Nobody makes another one, without bounds."""
    package = Path(compiled.__code__.co_filename).parents[1]
    makes = re.compile(r"SandboxedEnvironment[(]|[(]\w*SandboxedEnvironment[)]")
    makers = [path.name for path in package.rglob("*.py") if makes.search(path.read_text())]
    assert makers == ["bounded_jinja.py"]
