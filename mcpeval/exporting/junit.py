"""Scores as JUnit XML, which the CI systems show (`to_junit`)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from ..errors import InputError, check_threshold
from ..frames import rows_of
from .places import manifest_text, replacing, target_of, write_manifest
from .provenance import manifest

# XML 1.0 has no other characters (https://www.w3.org/TR/xml/#charsets).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(scores: pd.DataFrame, path: str | os.PathLike[str], *, threshold: float | None = None) -> Path:
    """Write scores as a JUnit XML file: a suite per agent, a test case per run and evaluator.

    A case fails where `passed` is false, is an error where the row could not be scored, and is
    skipped where there was nothing to judge or where nothing says what passes.

    Parameters
    ----------
    scores : DataFrame
        As `score` returns it. Reads `evaluator`, `passed`, `score`, `status`, and of `agent`,
        `task_id`, `trial`, `sample`, `run_id`, `reason`, `error`, `seconds` those that exist.
    path : path-like
        A manifest is written beside it.
    threshold : float, optional
        The score from which a row passes whose `passed` is missing.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        A column is missing, or `threshold` is no score.
    FileError
        As `to_csv`.
    """
    target = target_of(scores, path, "to_junit")
    check_threshold(threshold, "to_junit")
    for name in ("evaluator", "passed", "score", "status"):
        if name not in scores.columns:
            raise InputError(f"to_junit: scores has no column {name!r}; expected a frame, as score() returns it")
    suites: dict[str, ElementTree.Element] = {}
    for row in rows_of(scores):
        agent = _xml(row.get("agent") or "agent")
        suite = suites.setdefault(agent, ElementTree.Element("testsuite", name=agent))
        suite.append(_case(row, agent, threshold))
    root = ElementTree.Element("testsuites", name="mcpeval")
    for suite in suites.values():
        _count(suite)
        root.append(suite)
    ElementTree.indent(root)
    about = manifest_text(manifest(scores))
    with replacing(target) as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    write_manifest(target, about)
    return target


def _case(row: dict[str, Any], agent: str, threshold: float | None) -> ElementTree.Element:
    name = _xml(row.get("task_id") or row.get("run_id") or "run")
    numbered = [f"{key} {row[key]}" for key in ("trial", "sample") if row.get(key)]
    case = ElementTree.Element(
        "testcase", name=f"{name} [{', '.join([_xml(row['evaluator']), *numbered])}]", classname=agent
    )
    if row.get("seconds") is not None:
        case.set("time", f"{row['seconds']:.3f}")
    passed, score, status = row["passed"], row["score"], row["status"]
    if passed is None and score is not None and threshold is not None:
        passed = score >= threshold
    reason = _xml(row.get("error") or row.get("reason") or "")
    if status == "ok" and passed is None:
        said = "no score" if score is None else f"score {score:g}; nothing says from which score it passes"
        _add(case, "skipped", said, reason)
    elif status == "skipped":
        _add(case, "skipped", "there was nothing to judge", reason)
    elif status != "ok":
        _add(case, "error", f"could not be scored: {status}", reason, status)
    elif not passed:
        _add(case, "failure", "failed" if score is None else f"score {score:g}", reason, _xml(row["evaluator"]))
    return case


def _add(case: ElementTree.Element, tag: str, message: str, text: str, kind: str | None = None) -> None:
    element = ElementTree.SubElement(case, tag, message=message, **({} if kind is None else {"type": kind}))
    element.text = text


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{sum(float(case.get('time', 0)) for case in suite):.3f}")


def _xml(value: Any) -> str:
    return _NOT_XML.sub("\ufffd", str(value))
