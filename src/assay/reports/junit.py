"""A gate's checks as JUnit XML, which CI systems show as tests."""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from assay.analysis.compare.gate import Gated
from assay.reports.compare import bound_text, value_text
from assay.text.plain import plain

_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def junit(gated: Gated, *, inconclusive: str = "exit") -> bytes:
    """One test case for each check. What is inconclusive is an error, a failure, or for policy `pass` only skipped."""
    suite = Element("testsuite", name="assay gate", tests=str(len(gated.checks)))
    for check in gated.checks:
        name = _text(f"{check.name}: {bound_text(check)}")
        case = SubElement(suite, "testcase", classname=_text(gated.path), name=name)
        kind = {"passed": "", "failed": "failure", "incomplete": "error"}.get(check.outcome)
        if kind is None:
            kind = {"pass": "skipped", "fail": "failure"}.get(inconclusive, "error")
        if kind:
            shown = SubElement(case, kind, message=_text(f"{check.outcome}: {check.why}"))
            shown.text = _text(f"{value_text(check)}, {bound_text(check)}")
        SubElement(case, "system-out").text = _text(value_text(check))
    if gated.reasons:
        SubElement(suite, "system-err").text = _text("\n".join(gated.reasons))
    for kind, name in _COUNTED.items():
        suite.set(name, str(len(suite.findall(f"*/{kind}"))))
    indent(suite)
    return tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("?", plain(text))
