"""Check the language of documentation, comments, docstrings, messages and names.

Each rule is a pattern for wording that stops a reader (``CONTRIBUTING.md`` explains the rules). A
committed baseline holds the number of hits in each file; a file must not exceed its number.

    check_words.py            compare with the baseline
    check_words.py FILE...    print every hit of these files
    check_words.py --update   write the baseline, unless the sum of all hits has risen
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
BASELINE: Final = ROOT / "scripts" / "words_baseline.json"

_EXAMPLES: Final = {Path(__file__).resolve(), ROOT / "tests" / "unit" / "test_check_words.py"}
"""Files that quote the wording that the rules object to."""

_MAX_WORDS: Final = 25
_LOG_METHODS: Final = {"debug", "info", "warning", "error", "exception", "critical"}


class Kind(Enum):
    """Part of a file that a rule applies to."""

    PROSE = auto()
    """Paragraph of a Markdown page."""
    TEXT = auto()
    """Comment or string of a program."""
    DOCSTRING = auto()
    LOG_MESSAGE = auto()
    FUNCTION = auto()
    """Name of a function or method."""
    TEST = auto()
    """Name of a test."""


class Rule(NamedTuple):
    advice: str
    pattern: re.Pattern[str]
    kinds: frozenset[Kind]


class Passage(NamedTuple):
    """Text of one kind with the line on which it begins."""

    kind: Kind
    line: int
    text: str


class Hit(NamedTuple):
    line: int
    rule: str
    text: str


def _rule(advice: str, pattern: str, *kinds: Kind) -> Rule:
    # A space of a pattern also matches the line break of a wrapped paragraph.
    return Rule(advice, re.compile(pattern.replace(" ", r"\s+"), re.MULTILINE), frozenset(kinds))


_TEXTS: Final = (Kind.PROSE, Kind.TEXT, Kind.DOCSTRING)
_START: Final = r"(^\s*(?:[-*#|]+\s*)?|[.!;:|] )"

RULES: Final = {
    "W1": _rule(
        "name the actor at the beginning of a sentence",
        _START + r"(Who|Whom|Whose|Whoever|What|Whatever)\b(?![^.]*\?)",
        *_TEXTS,
    ),
    "W2": _rule(
        "name the thing after a preposition",
        r"\b(of|for|by|with|to|from|in|about|on|as|than|until|before|after)"
        r" (what|who|whom|whose|whoever|whatever)\b",
        *_TEXTS,
    ),
    "W3": _rule(
        "repeat the noun",
        r"\b(?i:nobody|somebody|everybody|whoever|(that|which|another|other) one)\b",
        *_TEXTS,
    ),
    "W4": _rule(
        "use the standard term (failover, outbound queue, repair, bug, permission, block)",
        r"\b(?i:way out|take-overs?|on (its|their) way|gives? way|mend(s|ed)?|unheard|unreached"
        r"|looks? after|looked after|h[eo]lds? up|defects?|rights?)\b",
        *_TEXTS,
    ),
    "W5": _rule(
        "let the subject act; end no passive with a preposition",
        r"\b(is|are|was|were|be|been) (waited for|looked (at|for|up|after)|asked for|held up"
        r"|taken for|listened on|let go|said)\b",
        *_TEXTS,
    ),
    "W6": _rule(
        "write must, can, might or has permission",
        r"\b(is|are|was|were) (not )?to [a-z]+\b|\bha(s|ve|d) to be\b|\bshall\b|\bmay not\b",
        *_TEXTS,
    ),
    "W7": _rule(
        "begin with the subject",
        _START + r"(Of (a|an|the|two|many|these|those|each|all|such)"
        r"|So (is|are|does|do|has|have|may|can)|Nor|Likewise|Neither)\b",
        *_TEXTS,
    ),
    "W9": _rule(
        "use a plain connective (no longer, without, even if, usually, otherwise)",
        r"\b(any more|for want of|as ever|all the same|in vain|for good|also (if|when|where)"
        r"|[Ll]ikewise|[Bb]esides|[Mm]ostly)\b|[,;.] ?[Ee]lse\b",
        *_TEXTS,
    ),
    "W10": _rule(
        "begin a docstring with a verb (function) or a noun (others)",
        r"\A\s*(What|Who|Whom|Whose|Those|It|One|So|For so|Of|See)\b",
        Kind.DOCSTRING,
    ),
    "W11": _rule(
        "name the subject and the event in sentence case; give details as fields",
        r"\A[a-z]|\bwho\b|\bwhat\b|[Nn]obody|any more|: [a-z]",
        Kind.LOG_MESSAGE,
    ),
    "W12": _rule(
        "name a test test_<subject>_<outcome>[_when_<condition>]",
        r"\Atest_(what|who|whom|whose|one|it|they|of|that|so|another|others|nobody|nothing|whoever"
        r"|whatever)_",
        Kind.TEST,
    ),
    "W13": _rule(
        "begin the name of a function with a precise verb",
        r"\A_?(take|tell|hold|mend|settle|look|ask|say|said|give|let|leave|keep|go|put|have)(_|\Z)",
        Kind.FUNCTION,
    ),
}
_LONG_SENTENCE: Final = ("W8", f"at most {_MAX_WORDS} words in a sentence")


def find_hits(path: Path, source: str) -> list[Hit]:
    """Return what the rules object to in a Python or Markdown file, in the order of lines."""
    passages = _python(source) if path.suffix == ".py" else _markdown(source)
    hits: list[Hit] = []
    for passage in passages:
        for name, rule in RULES.items():
            if passage.kind in rule.kinds:
                hits += [
                    Hit(
                        passage.line + passage.text.count("\n", 0, found.start()),
                        name,
                        _line(found),
                    )
                    for found in rule.pattern.finditer(passage.text)
                ]
        if passage.kind is Kind.PROSE:
            hits += _long_sentences(passage)
    return sorted(hits)


def _line(found: re.Match[str]) -> str:
    start = max(0, found.start() - 30)
    return " ".join(found.string[start : found.end() + 50].split())


def _long_sentences(passage: Passage) -> Iterator[Hit]:
    for found in re.finditer(r"[^.!?|]+(?:[.!?|](?=\s|\Z)|\Z|[.!?])", passage.text):
        words = found.group().split()
        if len(words) > _MAX_WORDS:
            line = passage.line + passage.text.count("\n", 0, found.start())
            yield Hit(line, _LONG_SENTENCE[0], " ".join(words[:12]) + " ...")


def _markdown(source: str) -> Iterator[Passage]:
    """Yield paragraphs, list items and rows of tables, without code."""
    lines: list[str] = []
    begin = 0
    in_code = False
    for number, raw in enumerate(source.splitlines(), start=1):
        fence = raw.lstrip().startswith("```")
        in_code ^= fence
        line = "" if fence or in_code else re.sub(r"`[^`]*`", "`code`", raw)
        starts_anew = not line.strip() or re.match(r"\s*(?:[-*|#]|\d+\.\s)", line)
        if starts_anew and lines:
            yield Passage(Kind.PROSE, begin, "\n".join(lines))
            lines = []
        if line.strip():
            begin = begin if lines else number
            lines.append(line.strip())
    if lines:
        yield Passage(Kind.PROSE, begin, "\n".join(lines))


def _python(source: str) -> Iterator[Passage]:
    """Yield comments, strings, messages of logs, and names of functions."""
    tree = ast.parse(source)
    docstrings = set(_docstring_lines(tree))
    log_messages = dict(_log_messages(tree))
    comment: list[str] = []
    begin = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            begin = begin if comment else token.start[0]
            comment.append(token.string.lstrip("#: "))
            continue
        if token.type in (tokenize.NL, tokenize.NEWLINE):
            continue
        if comment:
            yield from _paragraphs(Kind.TEXT, begin, "\n".join(comment))
            comment = []
        if tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            if token.start in log_messages:
                continue
            kind = Kind.DOCSTRING if token.start[0] in docstrings else Kind.TEXT
            yield from _paragraphs(kind, token.start[0], token.string)
    for (line, _), text in log_messages.items():
        yield Passage(Kind.LOG_MESSAGE, line, text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = Kind.TEST if node.name.startswith("test_") else Kind.FUNCTION
            yield Passage(kind, node.lineno, node.name)


def _paragraphs(kind: Kind, line: int, text: str) -> Iterator[Passage]:
    """Yield the paragraphs of a comment or a string, each with its own beginning."""
    text = re.sub(r"\A[A-Za-z]{0,2}(\"\"\"|'''|\"|')", "", text)
    text = re.sub(r"``[^`]*``", "``code``", text).rstrip("\"'")
    for number, part in enumerate(re.split(r"\n\s*\n", text)):
        if part.strip():
            first = kind is Kind.DOCSTRING and number == 0
            yield Passage(kind if first or kind is Kind.TEXT else Kind.TEXT, line, _unwrapped(part))
        line += part.count("\n") + 2


def _unwrapped(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))


def _docstring_lines(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which strings that are statements begin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value.lineno


def _log_messages(tree: ast.AST) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield position and text of the constant messages that are given to a logger."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        message = node.args[0]
        if node.func.attr not in _LOG_METHODS or not isinstance(message, ast.Constant):
            continue
        logger = node.func.value
        name = logger.attr if isinstance(logger, ast.Attribute) else getattr(logger, "id", "")
        if "log" in name.lower() and isinstance(message.value, str):
            yield (message.lineno, message.col_offset), message.value


def _tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return [path for path in paths if path.exists() and path not in _EXAMPLES]


def _hits_of(path: Path) -> list[Hit]:
    return find_hits(path, path.read_text(encoding="utf-8"))


def _print_hits(path: Path, hits: list[Hit]) -> None:
    for hit in hits:
        advice = RULES[hit.rule].advice if hit.rule in RULES else _LONG_SENTENCE[1]
        print(f"{path.relative_to(ROOT)}:{hit.line}: {hit.rule} {advice}: {hit.text}")


def _compare(hits: dict[Path, list[Hit]], baseline: dict[str, int]) -> int:
    risen = 0
    for path, found in hits.items():
        allowed = baseline.get(str(path.relative_to(ROOT)), 0)
        if len(found) > allowed:
            risen += 1
            _print_hits(path, found)
            print(f"{path.relative_to(ROOT)}: {len(found)} hits, {allowed} in the baseline\n")
    if risen:
        print("Reword the passages that are new. After moving text: check_words.py --update.")
    return 1 if risen else 0


def _update(counts: dict[str, int], baseline: dict[str, int]) -> int:
    before, now = sum(baseline.values()), sum(counts.values())
    if baseline and now > before:
        print(f"{now} hits, {before} in the baseline: reword what is new, then update again.")
        return 1
    BASELINE.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{now} hits, {before} before")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the baseline")
    parser.add_argument("files", nargs="*", type=Path, help="print every hit of these files")
    options = parser.parse_args(arguments)
    if options.files:
        for path in options.files:
            _print_hits(path.resolve(), _hits_of(path.resolve()))
        return 0
    hits = {path: _hits_of(path) for path in _tracked_files()}
    baseline = json.loads(BASELINE.read_text("utf-8")) if BASELINE.exists() else {}
    if not options.update:
        return _compare(hits, baseline)
    counts = {str(path.relative_to(ROOT)): len(found) for path, found in hits.items() if found}
    status = _update(counts, baseline)
    if status == 0:
        by_rule = Counter(hit.rule for found in hits.values() for hit in found)
        print(", ".join(f"{name} {by_rule[name]}" for name in sorted(by_rule)))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
