"""The linter of wording: the passages that each rule objects to, and those that it accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_words import RULES, find_hits


def rules(name: str, source: str) -> list[str]:
    return [hit.rule for hit in find_hits(Path(name), source)]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("W1", "Who holds the Lease writes."),
        ("W1", "One broker leads. What it knows is old."),
        ("W2", "A report of what happened."),
        ("W3", "Nothing changes while nobody leads."),
        ("W4", "The broker has the right to read."),
        ("W5", "A broker is waited for."),
        ("W6", "The replica is to leave the ISR."),
        ("W7", "Of two drains the older counts."),
        ("W8", "word " * 26 + "end."),
        ("W9", "The node does not exist any more."),
    ],
)
def test_rule_finds_wording_in_documentation_and_programs(rule: str, sentence: str) -> None:
    assert rule in rules("page.md", sentence)
    if rule != "W8":
        assert rule in rules("module.py", f"# {sentence}\n")
        assert rule in rules("module.py", f'message = "{sentence}"\n')


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("W10", '"""One that the controller knows."""\n'),
        ("W11", '_log.info("left alone", extra={})\n'),
        ("W12", "def test_who_is_dead_is_not_elected() -> None: ...\n"),
        ("W13", "def take_answer() -> None: ...\n"),
    ],
)
def test_rule_finds_wording_in_names_docstrings_and_logs(rule: str, source: str) -> None:
    assert rules("module.py", source) == [rule]


def test_wrapped_paragraph_is_read_as_one() -> None:
    assert rules("page.md", "The replica is\nto leave.") == ["W6"]
    assert rules("module.py", "# The replica tells\n# who leads.\nx = 1\n") == []


def test_hit_names_the_line_on_which_it_stands() -> None:
    source = (
        '"""Module."""\n\n\ndef f() -> None:\n    """Do.\n\n    Until\n    nobody leads.\n    """\n'
    )
    assert [(hit.line, hit.rule) for hit in find_hits(Path("m.py"), source)] == [(8, "W3")]


def test_code_in_documentation_is_not_read() -> None:
    assert rules("page.md", "```\nnobody leads\n```\nUse `nobody leads`.\n") == []


def test_plain_wording_is_accepted() -> None:
    page = "Regent waits for these brokers. What does it do? It retries every minute.\n"
    module = (
        '"""Failover of the controller."""\n\n\ndef reconcile() -> None:\n'
        '    """Derive the next step."""\n    _log.info("Controller elected", extra={})\n'
    )
    assert rules("page.md", page) == []
    assert rules("module.py", module) == []


def test_every_rule_has_advice() -> None:
    assert all(rule.advice and rule.kinds for rule in RULES.values())
