"""Answers without the reasoning that some models write before them.

A closing tag without an opening one is usual (the chat template has written the opener), an opening tag without a
closing one means that the model ran out of tokens before it answered.
"""

import re

_TAG = re.compile(r"<(/?)(think|thinking|thought|reasoning|seed:think)>", re.I)


def without_reasoning(text: str) -> str:
    """What follows the last closing tag; empty if the reasoning never ends. Text without tags comes back as it is."""
    if "<" not in text:
        return text
    tags = list(_TAG.finditer(text))
    if not tags:
        return text
    closing = [tag for tag in tags if tag[1]]
    if not closing:
        return text[: tags[0].start()].rstrip()
    after = text[closing[-1].end() :]
    reopened = [tag for tag in tags if not tag[1] and tag.start() > closing[-1].start()]
    if reopened:
        return text[closing[-1].end() : reopened[0].start()].strip()
    return after.lstrip()
