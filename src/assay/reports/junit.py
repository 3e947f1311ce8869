"""A gate's checks as JUnit XML, which CI systems show as tests."""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from assay.analysis.compare.gate import Gated
from assay.reports.compare import bound_text, value_text
from assay.text.plain import plain

_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def junit(gated: Gated, *, inconclusive: str = "exit") -> bytes:
    """One test case for each check. What is inconclusive is an error, a failure, or for policy `pass` only skipped."""
    suite = Element("testsuite", name="assay gate", tests=str(len(gated.checks)))
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for check in gated.checks:
        name = _text(f"{check.name}: {bound_text(check)}")
        case = SubElement(suite, "testcase", classname=_text(gated.path), name=name)
        kind = {"passed": "", "failed": "failure", "incomplete": "error"}.get(check.outcome)
        if kind is None:
            kind = {"pass": "skipped", "fail": "failure"}.get(inconclusive, "error")
        if kind:
            counts[kind] += 1
            shown = SubElement(case, kind, message=_text(f"{check.outcome}: {check.why}"))
            shown.text = _text(f"{value_text(check)}, {bound_text(check)}")
    if gated.reasons:
        SubElement(suite, "system-err").text = _text("\n".join(gated.reasons))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))
    indent(suite)
    return tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("?", plain(text))
