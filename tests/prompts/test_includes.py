"""Fragments: in place before anything runs, from the config's own folder, never in a circle."""

import re
from pathlib import Path

import pytest

from assay.config import load, resolved
from assay.config.prompts import with_includes
from assay.errors import ConfigError, UserError
from tests.support import Lab


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    (folder / "deep").mkdir(parents=True)
    (folder / "rules.txt").write_text("Be {{tone}}.\n")
    (folder / "deep/all.txt").write_text('<{% include "rules.txt" %}>')
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "self.txt").write_text('{% include "self.txt" %}')
    (folder / "ping.txt").write_text('{% include "pong.txt" %}')
    (folder / "pong.txt").write_text("{% include 'ping.txt' %}")
    (folder / "binary.txt").write_bytes(b"\xff\xfe")
    return folder


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ('{% include "rules.txt" %} Q', "Be {{tone}}. Q"),
        ("{% include 'rules.txt' %}{% include 'rules.txt' %}", "Be {{tone}}.Be {{tone}}."),
        ('a \n{%- include "rules.txt" -%}\n b', "aBe {{tone}}.b"),
        ('a \n{%+ include "rules.txt" %}\n b', "a \nBe {{tone}}.\n b"),
        ('{% include "deep/all.txt" %}', "<Be {{tone}}.>"),
        ('{# {% include "no.txt" %} #}x', '{# {% include "no.txt" %} #}x'),
        (
            '{% raw %}{% include "no.txt" %}{% endraw %}',
            '{% raw %}{% include "no.txt" %}{% endraw %}',
        ),
        ("please include everything", "please include everything"),
    ],
)
def test_the_fragment_takes_the_tags_place(base: Path, template: str, expected: str) -> None:
    assert with_includes(template, base) == expected


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ('{% include "self.txt" %}', "includes itself: self.txt → self.txt"),
        ('{% include "ping.txt" %}', "includes itself: ping.txt → pong.txt → ping.txt"),
        ('{% include "../outside.txt" %}', "outside the config's folder"),
        ('{% include "/etc/passwd" %}', "outside the config's folder"),
        ('{% include "link.txt" %}', "outside the config's folder"),
        ('{% include "rule.txt" %}', "there is no fragment 'rule.txt'"),
        ('{% include "binary.txt" %}', "cannot be read as UTF-8"),
        ("{% include name %}", "an include names one file"),
        ('{% include ["a.txt", "b.txt"] %}', "an include names one file"),
        ('{% include "a.txt" ignore missing %}', "an include names one file"),
    ],
)
def test_what_cannot_be_included_is_an_error(base: Path, template: str, what: str) -> None:
    with pytest.raises(UserError, match=re.escape(what)):
        with_includes(template, base)
    (base / "items.jsonl").write_text('{"question": "1"}\n')
    (base / "c.yaml").write_text(
        f"models: [demo:m]\ndataset: items.jsonl\nprompt_template: >-\n  {template}\n"
    )
    with pytest.raises(ConfigError, match=re.escape(what)) as caught:
        load(base / "c.yaml", environ={})
    assert "c.yaml:3 prompt_template" in str(caught.value)


def test_fragments_of_fragments_do_not_explode(base: Path) -> None:
    for number in range(30):
        (base / f"{number}.txt").write_text(f'{{% include "{number + 1}.txt" %}}' * 2)
    (base / "30.txt").write_text("x" * 10)
    with pytest.raises(UserError, match="more than 1000 fragments"):
        with_includes('{% include "0.txt" %}', base)


def test_a_resolved_config_needs_no_fragment(base: Path) -> None:
    (base / "items.jsonl").write_text('{"question": "1"}\n')
    (base / "chat.yaml").write_text("- {role: user, content: \"{% include 'rules.txt' %}\"}\n")
    (base / "c.yaml").write_text(
        "models: [demo:m]\ndataset: items.jsonl\nprompt_template: chat.yaml\n"
    )
    written = resolved(load(base / "c.yaml", environ={}))
    assert written["prompts"][0]["messages"] == [{"role": "user", "content": "Be {{tone}}."}]
    (base / "rules.txt").unlink()
    (base / "chat.yaml").unlink()
    assert load(written, environ={}).prompts[0].messages == written["prompts"][0]["messages"]


def test_an_edited_fragment_runs_its_own_prompt_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab.folder)
    fragment = lab.write("fragment.txt", "Hello.")
    lab.config["prompt_templates"] = {
        "with": '{% include "fragment.txt" %} What is {{question}}?',
        "without": "What is {{question}}?",
    }
    assert lab.run().ran == 16
    assert lab.run().ran == 0
    fragment.write_text("Good day.")
    assert lab.run().ran == 8
