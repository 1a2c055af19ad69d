#!/usr/bin/env python3
"""Compare expected agent workflows with recorded tool calls, offline, and write a JSON report.

    python agent_trace_audit.py --expected workflows.json --observed traces.json > report.json
    python agent_trace_audit.py --expected workflows.json --observed traces.json --fail-on-errors

One file, Python 3.8 or newer, standard library only. It runs no model, no tool and no network, and
needs no argument and no output of any call. It reads top-down along the trust boundary: path ->
bytes -> text -> JSON value -> checked records -> verdicts -> report -> streams -> options, and each
section uses only what stands above it. The checker is whole where the line of the opt-in rooms
stands; each room below that line can be taken out, from its banner to the next.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # A stray json.py beside a copied script must not be imported in place of the standard one.
    sys.path[:] = [entry for entry in sys.path[1:] if entry != sys.path[0]]

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while the rest is loaded

import contextlib
import functools
import io
import json
import os
import re
import stat
from decimal import Context, Decimal, DecimalException, DivisionByZero, Inexact, InvalidOperation, Overflow
from types import SimpleNamespace

TYPE_CHECKING = False  # the module `typing` is for the type checker alone: loading it takes longer than a small check
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Sequence, TextIO

    Reader = Callable[[Any], Any]  # takes a JSON value; gives the checked value or raises Misfit
    Check = tuple[str, dict[str, Any], str | None]  # a verdict, its evidence in report order, a sentence unless a pass
    Accepted = tuple[dict[str, Any], list[Any]]  # the size and hash of an input's bytes, and its records in file order
    Place = Callable[[Any, bool], None] | None  # puts an Output in place, and is told whether it is the last
    Mismatch = tuple[str, int | None] | None  # why a sequence does not match, and the step that could not be placed

__all__ = ["InputError", "audit"]

# ---- constants: the bounds and words of the inputs and the report ---------------------------------

NAME = "agent_trace_audit"
VERSION = "1.0.0"
REPORT_VERSION = 1

EXIT_REPORTED = 0
EXIT_NO_STATEMENT = 1
EXIT_VERDICT_FAIL = 2


class Bound:
    """One inclusive upper bound: its value and what it counts."""

    def __init__(self, value: int, unit: str) -> None:
        self.value, self.unit = value, unit

    def __str__(self) -> str:
        return f"{self.value:,} {self.unit}"


BOUNDS = {
    "size": Bound(524_288, "bytes (512 KiB)"),
    "nodes": Bound(20_000, "JSON values"),
    "depth": Bound(32, "levels"),
    "cases": Bound(500, "cases"),
    "traces": Bound(500, "traces"),
    "runs": Bound(500, "runs of a case"),
    "calls": Bound(50, "calls"),
    "tools": Bound(50, "tool names"),
    "facts": Bound(20, "facts"),
    "number": Bound(100, "characters"),
    "group": Bound(80, "code points"),
    "failed_calls": Bound(50, "failed calls"),
    "max_calls": Bound(50, "calls of a tool"),
    "total_tool_ms": Bound(180_000_000, "milliseconds"),
    "duration_ms": Bound(3_600_000, "milliseconds"),
    "problems": Bound(20, "lines"),
    "report": Bound(16_777_216, "bytes (16 MiB)"),
}

SUCCEEDED, FAILED, PENDING = STATUSES = ("succeeded", "failed", "pending")
PASS, FAIL, UNKNOWN, NOT_CHECKED = VERDICTS = ("pass", "fail", "unknown", "not_checked")

IDENTIFIER = re.compile(r"[A-Za-z0-9.:_-]{1,128}")
STEP = re.compile(rf"{IDENTIFIER.pattern}(?:\+{IDENTIFIER.pattern}){{0,20}}")
MONEY = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
SURROGATE = re.compile("[\ud800-\udfff]")
SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

# No sum of money is ever rounded: what does not fit is an error, and the bounds make everything fit.
EXACT = Context(prec=120, traps=[Inexact, Overflow, InvalidOperation, DivisionByZero])

LIMITATIONS = (
    "Recorded statuses, costs and durations are taken as given; nothing was run or measured again.",
    "Arguments, outputs, permissions and business effects are not examined.",
    "Tool time is the sum of the durations of calls, not end-to-end latency.",
    "A budget that is not set was not checked.",
)
FACTS_LIMITATION = "Facts are taken as recorded; the arguments and outputs behind them were not seen here."

# ---- records: what the checked inputs consist of, and what a refusal is ---------------------------


class Call(SimpleNamespace):
    """One recorded tool call; None is what was not recorded. Money keeps its spelling."""

    id: str
    tool: str
    status: str
    cost_usd: str | None = None
    duration_ms: int | None = None
    facts: dict[str, bool] | None = None


class Trace(SimpleNamespace):
    """The calls of one run, in the order in which they were made; `case` is the case that it is a run of, if named."""

    id: str
    calls: list[Call]
    case: str | None = None


class Case(SimpleNamespace):
    """One expected workflow: the value, or the default, of every key that a rule reads, and of those about runs."""

    id: str
    group: str | None
    expects: dict[str, Any]
    runs: dict[str, int | None]


class Run(SimpleNamespace):
    """A trace as rules look at it; all is empty for a missing one. Cost and time: what is known, whose part is not."""

    recorded: bool
    calls: list[Call]
    succeeded: list[Call]
    failed: list[Call]
    pending: list[Call]
    cost_usd: tuple[Decimal, list[str]]
    tool_ms: tuple[int, list[str]]


class InputError(ValueError):
    """A refused input; `problems` lists its messages, each behind the name of its document, but for so many `more`."""

    def __init__(self, problems: Sequence[str], more: int = 0) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        self.more = more


class Refused(Exception):
    """Why a document is refused: every argument is a problem, its place in the document before what would be right."""


class Misfit(Exception):
    """Why a JSON value is not what it must be: every argument is a place below it and what would be right there."""

    def within(self, step: str | int) -> list[tuple[str, str]]:
        """The problems as those of the array or object around the value, by its index or key there."""
        return [(step_to(step) + place, text) for place, text in self.args]


class Failure(Exception):
    """Anything else that ends the command with exit 1; the text is the message."""


# ---- text: anything -> printable ASCII that is safe on a terminal and in a CI log ---------------


def printable(text: str) -> str:
    """Escape everything but printable ASCII; `##` is parted because CI systems obey `##[...]` anywhere in a line."""
    return text.encode("unicode_escape").decode("ascii").replace("##", "#\\x23")


def cut(text: str, most: int, quote: str = "") -> str:
    """Printable, with quotes escaped, at most so many characters, and never cut within an escape."""
    text = text[:most]
    while len(escaped := printable(text).replace(quote or "\0", "\\" + quote)) > most:
        text = text[:-1]
    return escaped


def quoted_word(word: str) -> str:
    """A word of the command line as a message repeats it."""
    return cut(word, 100)


def quoted_key(key: str) -> str:
    """A document's key as a message may show it: too short to carry much content."""
    return '"' + cut(key, 40, quote='"') + '"'


def step_to(member: str | int) -> str:
    """The step of a JSON path that leads to a member, by its key, or to an entry, by its index."""
    if isinstance(member, int):
        return f"[{member}]"
    return f".{member}" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,39}", member) else f"[{quoted_key(member)}]"


def counted(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listing(items: Sequence[str], most: int = 6) -> str:
    """`a, b and c`; a long list ends with how many more there are."""
    shown = [*items[:most], f"{len(items) - most:,} more"] if len(items) > most else list(items)
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


# ---- reading: path -> bytes -> text -> JSON value, every bound kept before any checking ---------


def read_bounded(path: str, bound: Bound) -> bytes:
    """The bytes of a file, or of standard input for `-`; one byte beyond the bound ends even an endless one."""
    chunks: list[bytes] = []
    wanted = bound.value + 1
    try:
        with open(0 if path == "-" else path, "rb", buffering=0, closefd=path != "-") as file:
            # os.read raises where a raw file would return None for "no data yet", which looks like an end.
            while wanted > 0 and (chunk := os.read(file.fileno(), min(wanted, 1 << 20))):
                chunks.append(chunk)
                wanted -= len(chunk)
    except (OSError, ValueError) as error:
        raise Refused(f": cannot be read: {reason(error)}") from None
    return within(b"".join(chunks), bound)


def within(data: bytes, bound: Bound) -> bytes:
    if len(data) > bound.value:
        raise Refused(f": larger than {bound}")
    return data


def reason(error: Exception) -> str:
    """What the operating system says of a failure, without the path that it repeats."""
    return printable(getattr(error, "strerror", None) or str(error))


def decode(data: bytes) -> str:
    """UTF-8 bytes -> text without the one byte order mark that is tolerated."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(data) > 1 and data[:2].count(0) == 1):
        raise Refused(": not UTF-8: it looks like UTF-16, which PowerShell's > writes; save it as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1:,}, in line {data.count(10, 0, error.start) + 1:,}"
        if error.end == len(data) and error.reason == "unexpected end of data":
            raise Refused(f": not UTF-8: the file is cut off within a character at {place}") from None
        raise Refused(f": not UTF-8: {place}, is not valid there; save it as UTF-8") from None
    return text[1:] if text.startswith("\ufeff") else text


ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def skeleton(data: bytes) -> bytes:
    """Documents without white space and with one letter for every string. Linear, and no backtracking."""
    bare, pieces, within = data.replace(b"\\\\", b"").replace(b'\\"', b""), [], False
    for start in range(0, len(bare), 1 << 18):  # all at once takes ten times the memory
        piece = b'"' * within + bare[start : start + (1 << 18)]  # with the quote that a cut string lacks
        within = piece.count(b'"') % 2 == 1
        pieces.append(b"s".join(piece.translate(None, b" \t\r\n").split(b'"')[::2]))
    return b"".join(pieces)


def exceeds_depth(bones: bytes, bound: Bound) -> bool:
    """Whether arrays and objects nest too deep; decided before a parser can run out of stack."""
    level = 0
    for bracket in bones.translate(None, ALL_BUT_BRACKETS):
        level += 1 if bracket in b"[{" else -1
        if level > bound.value:
            return True
    return False


def count_nodes(bones: bytes) -> int:
    """The JSON values of a valid document: the root, one per comma, one per container that is not empty."""
    filled = bones.count(b"[") + bones.count(b"{") - bones.count(b"[]") - bones.count(b"{}")
    return 1 + bones.count(b",") + filled


class Number:
    """A JSON number, kept as written: it never becomes a float, and true is never one."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def exact_whole(value: Any) -> int | None:
    """The value of a JSON number that is whole, exactly: 2000, 2000.0 and 2e3 are the same; None for all else."""
    if not isinstance(value, Number) or len(value.text) > BOUNDS["number"].value or not value.text[-1:].isdigit():
        return None
    if value.text.isdigit():
        return int(value.text)
    try:
        number = EXACT.create_decimal(value.text)
    except DecimalException:
        return None
    if not number:
        return 0
    whole = number.adjusted() < BOUNDS["number"].value and number == EXACT.to_integral_value(number)
    return int(number) if whole else None


# Python's own words for a syntax error differ between versions and may repeat the document.
SYNTAX_ADVICE = (
    ("Expecting value", "expected a value"),
    ("Expecting property name", "expected a key in double quotes"),
    ("Expecting ':'", "expected ':' after the key"),
    ("Expecting ','", "expected ',' between members"),
    ("Illegal trailing comma", "expected no ',' before the closing bracket"),
    ("Unterminated string", "expected the string to end with a double quote"),
    ("Invalid control character", "expected control characters in a string to be escaped"),
    ("Invalid \\", "expected an escape such as \\n or \\u00e9 after the backslash"),
    ("Extra data", "expected nothing after the document"),
)
GET_IN = "the README tells how to get traces in"

NUMERALS = bytes.maketrans(b"-+.123456789eE", b"0" * 14)
LEXEME = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?Infinity|-?NaN|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)', re.DOTALL)


def refuse_lexemes(text: str, bones: bytes) -> None:
    """Refuse what Python's parser accepts and JSON, or a bound, does not; looked for where the skeleton shows it."""
    too_long = b"0" * (BOUNDS["number"].value + 1)
    if not (b"N" in bones or b"I" in bones or too_long in bones.translate(NUMERALS)):
        return
    for lexeme in LEXEME.finditer(text):
        token = lexeme.group(1) or ""
        if token.endswith(("NaN", "Infinity")):
            advice = "not valid JSON: NaN and Infinity are no JSON numbers"
        elif len(token) > BOUNDS["number"].value:
            advice = f"a number may have at most {BOUNDS['number']}"
        else:
            continue
        raise Refused(f"{line_and_column(text, lexeme.start())}: {advice}")


def parse_json(text: str) -> tuple[Any, dict[int, list[tuple[str, Any]]]]:
    """Text -> JSON value, and by the identity of each of its objects in which a key stands twice all its members."""
    repeats: dict[int, list[tuple[str, Any]]] = {}

    def keep_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            repeats[id(members)] = pairs
        return members

    try:
        value = json.JSONDecoder(object_pairs_hook=keep_object, parse_int=Number, parse_float=Number).decode(text)
    except json.JSONDecodeError as error:
        raise Refused(syntax_problem(text, error)) from None
    return value, repeats


def syntax_problem(text: str, error: json.JSONDecodeError) -> str:
    position, words = error.pos, error.msg
    before, rest = text[:position].rstrip(" \t\r\n"), text[position:].lstrip(" \t\r\n")
    if before.endswith(",") and words.startswith(("Expecting value", "Expecting property")):
        # Newer Pythons tell a trailing comma apart; the older ones are brought to say the same.
        closing = "]" if words.startswith("Expecting value") else "}"
        if text[position : position + 1] == closing:
            position, words = len(before) - 1, "Illegal trailing comma"
    elif words.startswith("Invalid \\") and '"' not in rest:
        words = "Unterminated string"  # a file that is cut off after, or within, an escape
    advice = next((ours for theirs, ours in SYNTAX_ADVICE if words.startswith(theirs)), "expected a value")
    if not rest:
        advice = "the document ends too early" if before else "the file is empty"
    elif words.startswith("Expecting ','") and re.match("[0-9][0-9.xXeE]", text[position - 1 : position + 1]):
        advice = "expected a number such as 0, 0.5 or 2e3"
    elif rest.startswith(("//", "/*", "#")):
        advice += "; JSON has no comments"
    elif rest.startswith("'"):
        advice += '; text stands in double quotes ("), not in single ones'
    elif words.startswith("Extra data") and rest[0] in "{[":
        advice += f"; JSON Lines, or another tool's trace file, is no input: {GET_IN}"
    return f"{line_and_column(text, position)}: not valid JSON: {advice}"


def line_and_column(text: str, position: int) -> str:
    """`:LINE:COLUMN` in characters from 1; lines end at LF."""
    return f":{text.count(chr(10), 0, position) + 1}:{position - text.rfind(chr(10), 0, position)}"


def text_problems(value: Any, repeats: dict[int, list[tuple[str, Any]]], place: str = "$") -> Iterator[str]:
    """Duplicate keys, and surrogates without their other half, wherever they stand, in document order."""
    if isinstance(value, str) and SURROGATE.search(value):
        yield f": {place}: holds an unpaired surrogate"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from text_problems(item, repeats, place + step_to(index))
    elif isinstance(value, dict):
        pairs = repeats.get(id(value), list(value.items()))
        times: dict[str, int] = {}
        for key, _ in pairs:
            times[key] = times.get(key, 0) + 1
        for key in times:
            if times[key] > 1:
                yield f": {place}: duplicate key {quoted_key(key)}"
            if SURROGATE.search(key):
                yield f": {place}: the key {quoted_key(key)} holds an unpaired surrogate"
        for key, member in pairs:
            yield from text_problems(member, repeats, place + step_to(key))


def read_json(data: bytes, depth: Bound = BOUNDS["depth"], nodes: Bound = BOUNDS["nodes"]) -> Any:
    """The bytes of one document -> JSON value, stage by stage; the first stage with a problem ends it."""
    text = decode(data)
    bones = skeleton(data)
    if exceeds_depth(bones, depth):
        raise Refused(f": arrays and objects nested deeper than {depth}")
    refuse_lexemes(text, bones)
    value, repeats = parse_json(text)
    if count_nodes(bones) > nodes.value:
        raise Refused(f": holds more than {nodes} (nodes)")
    if (repeats or SURROGATE_ESCAPE.search(text)) and (problems := list(text_problems(value, repeats))):
        raise Refused(*problems)
    return value


# ---- validation: JSON value -> checked records, every problem collected with its JSON path ------


class Key:
    """A key of an object: how its value is read, whether it must be there, what its absence means."""

    def __init__(self, read: Reader, required: bool = False, default: Any = None) -> None:
        self.read, self.required, self.default = read, required, default


def text_that(fits: Callable[[str], Any], must: str) -> Reader:
    """A reader of strings that fit; documents repeat themselves, so it remembers some that did."""
    fits = functools.lru_cache(maxsize=1_024)(fits)

    def read(value: Any) -> Any:
        if isinstance(value, str) and fits(value):
            return value
        raise Misfit(("", must))

    return read


def read_each(read: Reader, members: Iterable[tuple[Any, Any]], problems: list[tuple[str, str]]) -> dict[Any, Any]:
    """What a reader makes of each member, by index or key; raises Misfit with the given problems and those of all."""
    checked = {}
    for step, member in members:
        try:
            checked[step] = read(member)
        except Misfit as misfit:
            problems += misfit.within(step)
    if problems:
        raise Misfit(*problems)
    return checked


def array_of(read_item: Reader, bound: Bound, least: int = 0, ids: set[str] | None = None) -> Reader:
    """A reader of arrays with `least` to `bound` entries; `ids` is shared with the reader of ids that must differ."""
    must = f"must be an array of {f'{least} to' if least else 'at most'} {bound}"

    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise Misfit(("", must))
        if ids is not None:
            ids.clear()
        fits = least <= len(value) <= bound.value
        return list(read_each(read_item, enumerate(value[: bound.value]), [] if fits else [("", must)]).values())

    return read


def object_of(keys: dict[str, Key]) -> Reader:
    """A reader of objects with these keys and no others; it gives every key's value or default."""
    required = {name for name, key in keys.items() if key.required}
    named = {wanted: ", ".join(name for name in keys if (name in required) == wanted) for wanted in (True, False)}
    names = f"{named[True]}, and optionally {named[False]}" if named[False] else named[True]
    defaults = {name: key.default for name, key in keys.items()}
    readers = {name: key.read for name, key in keys.items()}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(("", f"must be an object with the keys: {names}"))
        problems = []
        if not required <= value.keys() <= readers.keys():
            unknown = [f"unknown key {quoted_key(name)}; the keys are: {names}" for name in value if name not in keys]
            missing = [f"missing key {quoted_key(name)}" for name in keys if name in required and name not in value]
            problems = [("", text) for text in unknown + missing]
        checked = defaults.copy()
        for name, member in value.items():
            try:
                checked[name] = readers[name](member)
            except KeyError:
                continue  # an unknown key
            except Misfit as misfit:
                optional = member is None and name not in required
                advice = "null is not accepted: leave the key out when it is unknown or not wanted"
                problems += [(step_to(name), advice)] if optional else misfit.within(name)
        if problems:
            raise Misfit(*problems)
        return checked

    return read


def named_members(fits: Callable[[str], Any], form: str, what: Bound, read_member: Reader) -> Reader:
    """A reader of objects with 1 to so many names as keys: an empty one would say nothing."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(("", f"must be an object whose keys are 1 to {what}"))
        problems = [("", f"the key {quoted_key(name)} must be {form}") for name in value if not fits(name)]
        if not 1 <= len(value) <= what.value:
            problems.append(("", f"must have 1 to {what} as keys; leave it out when there is nothing to say"))
        return read_each(read_member, value.items(), problems)

    return read


def whole_number(name: str, least: int = 0) -> Reader:
    """A reader of whole numbers up to a bound of the table."""
    most = BOUNDS[name].value

    def read(value: Any) -> int:
        number = exact_whole(value)
        if number is None or not least <= number <= most:
            raise Misfit(("", f"must be a whole number from {least} to {most:,}"))
        return number

    return read


def read_truth(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise Misfit(("", "must be true or false; leave a fact out when it was not established"))


def one_of(words: Iterable[str]) -> Reader:
    """A reader of one of some fixed words."""
    known = tuple(words)
    quoted = [f'"{word}"' for word in known]
    return text_that(known.__contains__, f"must be {', '.join(quoted[:-1])} or {quoted[-1]}")


def is_step(text: str) -> bool:
    return bool(STEP.fullmatch(text)) and ("+" not in text or len(facts := text.split("+")[1:]) == len(set(facts)))


IDENTIFIER_FORM = "1 to 128 characters out of A-Z a-z 0-9 . : _ -"
MONEY_FORM = '1 to 9 digits, optionally a point and 1 to 6 digits, such as "0.25"'

read_identifier = text_that(IDENTIFIER.fullmatch, f"must be a string of {IDENTIFIER_FORM}")
read_money = text_that(MONEY.fullmatch, f"must be a string of {MONEY_FORM}")
read_group = text_that(
    lambda text: len(text) <= BOUNDS["group"].value, f"must be a string of at most {BOUNDS['group']}"
)
STEP_FORM = f"a tool name, {IDENTIFIER_FORM}, then up to {BOUNDS['facts']}, each once and behind a +"
read_step = text_that(is_step, f"must be {STEP_FORM}")
read_steps = array_of(read_step, BOUNDS["tools"])
read_some_steps = array_of(read_step, BOUNDS["tools"], least=1)
read_facts = named_members(IDENTIFIER.fullmatch, IDENTIFIER_FORM, BOUNDS["facts"], read_truth)


def unlike(taken: set[str]) -> Reader:
    """A reader of ids that must differ from those taken by earlier entries of the same array."""

    def read(value: Any) -> Any:
        if read_identifier(value) in taken:
            raise Misfit(("", "must be unique, but an earlier entry has the same id"))
        taken.add(value)
        return value

    return read


def read_root(read: Reader, value: Any, other: str, key: str) -> Any:
    """A whole document; one that is `other` by its `key`, or another tool's, is told so."""
    try:
        return read(value)
    except Misfit as misfit:
        problems = [("$" + place, text) for place, text in misfit.args]
        entries = value if isinstance(value, list) else [value]
        names = {name for entry in entries[:1] if isinstance(entry, dict) for name in entry}
        place, text = problems[0]
        if key in names:
            problems[0] = place, f"{text}; this looks like {other}: are the two inputs swapped?"
        elif names - {"id"} and not names & {"calls", "cases", "sequence"}:
            problems[0] = place, f"{text}; if this is another tool's trace file, {GET_IN}"
        raise Refused(*[f": {place}: {text}" for place, text in problems]) from None


def read_expected(value: Any, rule_keys: dict[str, Key]) -> list[Case]:
    """The expected workflows; `rule_keys` are the keys of a case that rules read."""
    ids: set[str] = set()
    run_keys = {"min_passing_runs": Key(whole_number("runs", least=1)), "max_failing_runs": Key(whole_number("runs"))}
    own_keys = {"id": Key(unlike(ids), required=True), "group": Key(read_group)}
    read_members = object_of({**own_keys, **rule_keys, **run_keys})

    def read_case(value: Any) -> Case:
        members = read_members(value)
        runs = {key: members.pop(key) for key in run_keys}
        return Case(id=members.pop("id"), group=members.pop("group"), expects=members, runs=runs)

    # At least one: a gate that checks nothing must not look green.
    read_cases = array_of(read_case, BOUNDS["cases"], least=1, ids=ids)
    read = object_of({"cases": Key(read_cases, required=True)})
    cases: list[Case] = read_root(read, value, "recorded traces", "calls")["cases"]
    return cases


def read_observed(value: Any) -> list[Trace]:
    """The recorded traces."""
    call_ids: set[str] = set()
    trace_ids: set[str] = set()
    read_call = object_of(
        {
            "id": Key(unlike(call_ids), required=True),
            "tool": Key(read_identifier, required=True),
            "status": Key(one_of(STATUSES), required=True),
            "cost_usd": Key(read_money),
            "duration_ms": Key(whole_number("duration_ms")),
            "facts": Key(read_facts),
        }
    )
    read_calls = array_of(lambda value: Call(**read_call(value)), BOUNDS["calls"], ids=call_ids)
    trace_keys = {"id": Key(unlike(trace_ids), True), "case": Key(read_identifier), "calls": Key(read_calls, True)}
    read_trace = object_of(trace_keys)
    read = array_of(lambda value: Trace(**read_trace(value)), BOUNDS["traces"], ids=trace_ids)
    traces: list[Trace] = read_root(read, value, "expected workflows", "cases")
    return traces


# ---- rules: records -> verdicts; no rule raises, and none sees a report or a stream --------------


def judged(evidence: dict[str, Any], message: str | None) -> Check:
    """A check that fails when there is something to say."""
    return (PASS if message is None else FAIL), evidence, message


def beyond(limit: int, noun: str, ids: Sequence[str]) -> str | None:
    """`expected at most 1 failed call, got 2: c1 and c2`, where there are more."""
    return f"expected at most {counted(limit, noun)}, got {len(ids)}: {listing(ids)}" if len(ids) > limit else None


def add_money(amounts: Iterable[Decimal]) -> Decimal:
    """An exact sum with as many decimals as its most precise term."""
    return functools.reduce(EXACT.add, amounts, Decimal(0))


def plain_money(amount: Decimal) -> str:
    """A decimal without exponent, with all the decimals of its most precise term."""
    return format(amount, "f")


def run_of(trace: Trace | None) -> Run:
    calls = trace.calls if trace else []
    # A pending call may still grow: what it has used so far counts, but it is never fully known.
    unpriced = [call.id for call in calls if call.cost_usd is None or call.status == PENDING]
    untimed = [call.id for call in calls if call.duration_ms is None or call.status == PENDING]
    costs = [Decimal(call.cost_usd) for call in calls if call.cost_usd is not None]
    times = [call.duration_ms for call in calls if call.duration_ms is not None]
    return Run(
        recorded=trace is not None,
        calls=calls,
        **{status: [call for call in calls if call.status == status] for status in STATUSES},
        cost_usd=(add_money(costs), unpriced),
        tool_ms=(sum(times), untimed),
    )


def tool_of(step: str) -> str:
    return step.partition("+")[0]


def fits(step: str, call: Call, unknown: bool) -> bool:
    """Whether a call is of the step's tool and every fact of the step is true of it; `unknown` is one not recorded."""
    if "+" not in step:
        return step == call.tool
    tool, *facts = step.split("+")
    return tool == call.tool and all((call.facts or {}).get(fact, unknown) for fact in facts)


def lacking(step: str, call: Call) -> str:
    """The facts of a step that are not true of a call: `small is false and ok is not recorded`."""
    recorded = call.facts or {}
    facts = [fact for fact in step.split("+")[1:] if not recorded.get(fact)]
    return listing([f"{fact} is {'false' if fact in recorded else 'not recorded'}" for fact in facts])


def first_unfit(steps: Iterable[str], calls: Iterable[Call], favour: bool) -> str | None:
    """`verify in call c1 does not fit (ok is false)`: the first call that is of a step's tool alone."""
    pairs = ((step, call) for step in steps for call in calls if call.tool == tool_of(step))
    unfit = ((step, call) for step, call in pairs if not fits(step, call, favour))
    return next((f"{call.tool} in call {call.id} does not fit ({lacking(step, call)})" for step, call in unfit), None)


def doubted(message: str, favour: bool, pairs: Iterable[tuple[str, Call]]) -> str:
    """A message that, read against the case, says which fact leaves open whether a call of the pairs fits its step."""
    if favour or "is not recorded" in message:
        return message
    pair = next((pair for pair in pairs if fits(*pair, True) and not fits(*pair, False)), None)
    return f"{message}; {lacking(*pair)} of {pair[1].tool} in call {pair[1].id}" if pair else message


# Every rule is a function of what the case expects, the run, and how facts that are not recorded are read: in the
# case's favour or against it. Without facts both are one.


def judge_trace_recorded(_: dict[str, Any], run: Run, favour: bool) -> Check:
    return judged({}, None if run.recorded else "expected a recorded trace with the id of this case, got none")


class Comparison:
    """The steps of a case beside the successful calls of a run, and what a largest pairing of them leaves over."""

    def __init__(self, steps: list[str], run: Run, favour: bool) -> None:
        self.steps, self.run, self.calls, self.favour = steps, run, run.succeeded, favour
        self.observed = [call.tool for call in run.succeeded]
        self.missing: list[str] = []
        self.left: list[Call] = []
        if steps != self.observed:
            taken = self.pair()
            self.missing = [step for index, step in enumerate(steps) if index not in taken.values()]
            self.left = [call for index, call in enumerate(self.calls) if index not in taken]

    def after(self, placed: int) -> list[Call]:
        """The calls made after so many of the successful ones."""
        return self.run.calls[self.run.calls.index(self.calls[placed - 1]) + 1 if placed else 0 :]

    def fits(self, step: int, call: int) -> bool:
        return fits(self.steps[step], self.calls[call], self.favour)

    def pair(self) -> dict[int, int]:
        """By index of call the step that it is paired with; the earlier first, a step moved only where it must be."""
        taken: dict[int, int] = {}
        places = range(len(self.calls))
        fitting = [[call for call in places if self.fits(step, call)] for step in range(len(self.steps))]
        movable = "+" in "".join(self.steps)  # steps without facts fit the same calls

        def place(step: int, asked: set[int]) -> bool:
            for call in fitting[step]:
                if call not in taken:
                    taken[call] = step
                    return True
            for call in fitting[step] if movable else []:
                if call not in asked:
                    asked.add(call)
                    if place(taken[call], asked):
                        taken[call] = step
                        return True
            return False

        for step in range(len(self.steps)):
            place(step, set())
        return taken


def match_exact(both: Comparison) -> Mismatch:
    steps, calls = both.steps, both.calls
    most = min(len(steps), len(calls))
    index = next((place for place in range(most) if not both.fits(place, place)), most)
    if index == len(steps) == len(calls):
        return None
    start = f"step {index + 1}: expected"
    if index >= len(calls):
        end = counted(len(calls), "successful call") if calls else "no successful call"
        attempt = latest_attempt(steps[index], both.after(index))
        return f"{start} {steps[index]}, but {f'it {attempt}' if attempt else f'the run stopped after {end}'}", index
    if index >= len(steps):
        end = f"the end after {counted(len(steps), 'successful call')}" if steps else "no successful call"
        return f"{start} {end}, got {listing(both.observed[index:])}", index
    step, call = steps[index], calls[index]
    unfit = f" in call {call.id} ({lacking(step, call)})" if call.tool == tool_of(step) else ""
    return f"{start} {step}, got {call.tool}{unfit}", index


def latest_attempt(step: str, calls: Sequence[Call]) -> str | None:
    """What became of the latest of the calls that may be of a step of which none succeeded; None without one."""
    tried = [call for call in calls if call.status != SUCCEEDED and fits(step, call, True)][-1:]
    ended = {FAILED: "failed", PENDING: "is pending"}
    return f"was attempted in call {tried[0].id} and {ended[tried[0].status]}" if tried else None


def match_within(both: Comparison) -> Mismatch:
    steps, calls = len(both.steps), len(both.calls)
    size, first_step, first_call = 0, 0, 0  # of the longest block, the earliest of equals
    ending: dict[tuple[int, int], int] = {}  # how long the block is that ends at a step and a call
    for step in range(steps):
        for call in range(calls):
            if both.fits(step, call):
                ending[step, call] = length = ending.get((step - 1, call - 1), 0) + 1
                if length > size:
                    size, first_step, first_call = length, step - length + 1, call - length + 1
    if size == steps:
        return None
    got = "no call of any of them succeeded"
    if size:
        placed = f"{stretch('step', first_step, size)} at {stretch('successful call', first_call, size)}"
        got = f"the longest matching block is {placed} of {calls}"
    return f"expected {listing(both.steps, steps)} as one block, but {got}{unfit_left(both)}", None


def stretch(noun: str, start: int, size: int) -> str:
    """`step 2`, `steps 2 to 4`; counted from 1."""
    return f"{noun} {start + 1}" if size == 1 else f"{noun}s {start + 1} to {start + size}"


def unfit_left(both: Comparison) -> str:
    """What keeps a call that is left over from being a step that is missing."""
    unfit = first_unfit(both.missing, both.left, both.favour)
    return f"; {unfit}" if unfit else ""


def match_contains(both: Comparison) -> Mismatch:
    start, after = 0, ""
    for index, step in enumerate(both.steps):
        place = next((call for call in range(start, len(both.calls)) if both.fits(index, call)), None)
        if place is None:
            attempt = latest_attempt(step, both.after(start))
            got = f"it {attempt}" if attempt else f"no {'later ' if after else ''}call of it succeeded"
            got = first_unfit([step], both.calls[start:], both.favour) or got
            return f"step {index + 1}: expected {step}{after}, but {got}", index
        start, after = place + 1, f" after {step} in call {both.calls[place].id}"
    return None


def times(steps: Sequence[str]) -> str:
    """`lookup (2 times) and draft (once)`."""
    number = {step: steps.count(step) for step in steps}
    shown = [f"{step} ({'once' if n == 1 else f'{n} times'})" for step, n in number.items()]
    return listing(shown, BOUNDS["tools"].value)


def match_unordered(both: Comparison, least: bool, most: bool) -> Mismatch:
    """Wants every step (`least`), nothing beyond the steps (`most`), or both, in any order."""
    missing = both.missing if least else []
    surplus = [call.tool for call in both.left] if most else []
    if not missing and not surplus:
        return None
    bound = "" if least and most else "at least " if least else "at most "
    wanted = f"{bound}{times(both.steps)}" if both.steps else "no successful call"
    wrong = [f"{word} {times(tools)}" for word, tools in (("missing", missing), ("surplus", surplus)) if tools]
    return f"expected in any order {wanted}; {'; '.join(wrong)}{unfit_left(both)}", None


MATCHES: dict[str, Callable[[Comparison], Mismatch]] = {
    "exact": match_exact,
    "permutation": functools.partial(match_unordered, least=True, most=True),
    "within": match_within,
    "contains": match_contains,
    "superset": functools.partial(match_unordered, least=True, most=False),
    "subset": functools.partial(match_unordered, least=False, most=True),
}


def judge_sequence(expects: dict[str, Any], run: Run, favour: bool) -> Check:
    both = Comparison(expects["sequence"] if run.recorded else [], run, favour)
    alike = both.steps == both.observed
    message, step = (None if alike else MATCHES[expects["match"]](both)) or (None, None)
    if message:
        steps = [*both.missing, *both.steps]
        message = doubted(message, favour, ((step, call) for step in steps for call in both.calls))
    evidence = {
        "expected": list(expects["sequence"]),
        "observed": both.observed,
        "match": expects["match"],
        "missing": both.missing,
        "unexpected": [call.tool for call in both.left],
        "first_difference": step,
    }
    return judged(evidence, message)


def judge_allowed_tools(expects: dict[str, Any], run: Run, favour: bool) -> Check:
    allowed = expects["allowed_tools"]
    calls = [call for call in run.calls if call.tool not in allowed]
    wrong = [call for call in calls if not any(fits(step, call, favour) for step in allowed)]
    got = []
    for call in wrong:
        lacks = next((f" ({lacking(step, call)})" for step in allowed if tool_of(step) == call.tool), "")
        got.append(f"{call.tool} in {call.status} call {call.id}{lacks}")
    violations = [{"call": call.id, "tool": call.tool, "status": call.status} for call in wrong]
    only = f"only {listing(list(dict.fromkeys(allowed)), BOUNDS['tools'].value)}" if allowed else "no call of any tool"
    message = doubted(
        f"expected {only}, got {listing(got)}", favour, ((step, call) for call in wrong for step in allowed)
    )
    return judged({"allowed": list(allowed), "violations": violations}, message if wrong else None)


def judge_no_pending_calls(_: dict[str, Any], run: Run, favour: bool) -> Check:
    pending = [call.id for call in run.pending]
    got = pending and f"{counted(len(pending), 'pending call')}: {listing(pending)}"
    return judged({"calls": pending}, f"expected every call to have ended, got {got}" if got else None)


def judge_failed_calls(expects: dict[str, Any], run: Run, favour: bool) -> Check:
    limit, failed = expects["max_failed_calls"], [call.id for call in run.failed]
    return judged({"limit": limit, "observed": len(failed), "calls": failed}, beyond(limit, "failed call", failed))


def judge_budget(expects: dict[str, Any], run: Run, favour: bool, key: str, measure: str, unit: str) -> Check:
    """A budget with an unknown part is unknown, unless the known part alone is already over it."""
    limit, (known, unknown) = expects[key], getattr(run, measure)
    total = plain_money(known) if isinstance(known, Decimal) else known
    evidence = {"limit": limit, "known_total": total, "unknown_calls": unknown}
    if limit is None:
        return NOT_CHECKED, evidence, None
    over = known > Decimal(limit)
    if not over and not unknown:
        return PASS, evidence, None
    message = f"expected at most {limit} {unit}, got {total} {unit}"
    if unknown:
        message += f" so far and {counted(len(unknown), 'call')} not measured or not ended: {listing(unknown)}"
    return (FAIL if over else UNKNOWN), evidence, message


judge_cost = functools.partial(judge_budget, key="max_cost_usd", measure="cost_usd", unit="USD")
judge_time = functools.partial(judge_budget, key="max_total_tool_ms", measure="tool_ms", unit="ms of tool time")


def judge_require_prior(expects: dict[str, Any], run: Run, favour: bool) -> Check:
    policy = expects["require_prior"]
    unready = {step for steps in policy.values() for step in steps}  # no successful call has fitted them yet
    violations: list[dict[str, Any]] = []
    first, ready = "", set()
    for index, call in enumerate(run.calls):
        keys = [key for key in policy if fits(key, call, not favour)]
        if unmet := [step for step in dict.fromkeys(step for key in keys for step in policy[key]) if step in unready]:
            if not violations:
                wanted = f"expected a successful {listing(unmet)} before {call.tool} in call {call.id}"
                before = run.calls[:index]
                done = [prior for prior in before if prior.status == SUCCEEDED]
                became = [f"{step} {latest_attempt(step, before) or 'had not been called'}" for step in unmet]
                got = [first_unfit([step], done, favour) or attempt for step, attempt in zip(unmet, became)]
                pairs = [*((key, call) for key in keys), *((step, prior) for step in unmet for prior in done)]
                first = doubted(f"{wanted}, but {listing(got)}", favour, pairs)
            violations.append({"call": call.id, "tool": call.tool, "status": call.status, "missing": unmet})
        if call.status == SUCCEEDED and (like := kind_of(call)) not in ready:
            ready.add(like)
            unready = {step for step in unready if not fits(step, call, favour)}
    return violated(policy, violations, first)


def kind_of(call: Call) -> str:
    """Equal for calls that fit the same steps: a case may hold thousands of steps, and a trace many equal calls."""
    return f"{call.tool} {call.facts}"


def violated(policy: dict[str, Any], violations: Sequence[dict[str, Any]], first: str) -> Check:
    """The check of a policy; its message is a sentence on the first violation, and how many more there are."""
    more = f"; {counted(len(violations) - 1, 'more violation')}" if len(violations) > 1 else ""
    return judged({"limit": policy, "violations": violations}, first + more if violations else None)


def judge_forbid_after(expects: dict[str, Any], run: Run, favour: bool) -> Check:
    policy = expects["forbid_after"]
    violations: list[dict[str, Any]] = []
    first = ""
    begun: dict[str, int] = {}  # key -> the place of the first successful call that fits it
    forbidding: dict[str, list[str]] = {}  # the keys that list a step which calls of a kind fit
    for index, call in enumerate(run.calls):
        kind = kind_of(call)
        if kind not in forbidding:
            steps = {step for step in set().union(*policy.values()) if fits(step, call, not favour)}
            forbidding[kind] = [key for key in policy if not steps.isdisjoint(policy[key])]
        if keys := [key for key in forbidding[kind] if key in begun]:
            after = run.calls[min(begun[key] for key in keys)]
            if not violations:
                first = f"expected no {call.tool} after the successful {after.tool} in call {after.id}"
                first += f", got {call.status} call {call.id}"
                causes = [key for key in keys if run.calls[begun[key]] is after]
                pairs = [(step, call) for key in causes for step in policy[key] if fits(step, call, not favour)]
                first = doubted(first, favour, [*((key, after) for key in causes), *pairs])
            violations.append({"call": call.id, "tool": call.tool, "status": call.status, "after": after.id})
        if call.status == SUCCEEDED:
            fitting = [key for key in policy if key not in begun and fits(key, call, not favour)]
            begun.update(dict.fromkeys(fitting, index))
    return violated(policy, violations, first)


def judge_max_calls(expects: dict[str, Any], run: Run, favour: bool) -> Check:
    policy = expects["max_calls"]
    called = {step: sum(fits(step, call, not favour) for call in run.calls) for step in policy}
    over = {step: number for step, number in called.items() if number > policy[step]}
    messages = [f"expected at most {counted(policy[step], 'call')} of {step}, got {n}" for step, n in over.items()]
    first = doubted(messages[0], favour, ((step, call) for step in [*over][:1] for call in run.calls)) if over else ""
    return violated(policy, [{"tool": step, "calls": number} for step, number in over.items()], first)


class Rule:
    """A line of the table: name, function, the keys it reads; if not `always`, it is for cases that set its name."""

    def __init__(self, name: str, judge: Callable[..., Check], keys: dict[str, Key], always: bool = True) -> None:
        self.name, self.judge, self.keys, self.always = name, judge, keys, always


policy_of = functools.partial(named_members, is_step, STEP_FORM, BOUNDS["tools"])  # an object by step
SEQUENCE_KEYS = {"sequence": Key(read_steps, required=True), "match": Key(one_of(MATCHES), default="exact")}
RULES = (
    Rule("trace_recorded", judge_trace_recorded, {}),
    Rule("sequence", judge_sequence, SEQUENCE_KEYS),
    Rule("allowed_tools", judge_allowed_tools, {"allowed_tools": Key(read_steps, required=True)}),
    Rule("no_pending_calls", judge_no_pending_calls, {}),
    Rule("max_failed_calls", judge_failed_calls, {"max_failed_calls": Key(whole_number("failed_calls"), default=0)}),
    Rule("max_cost_usd", judge_cost, {"max_cost_usd": Key(read_money)}),
    Rule("max_total_tool_ms", judge_time, {"max_total_tool_ms": Key(whole_number("total_tool_ms"))}),
    Rule("require_prior", judge_require_prior, {"require_prior": Key(policy_of(read_some_steps))}, always=False),
    Rule("forbid_after", judge_forbid_after, {"forbid_after": Key(policy_of(read_some_steps))}, always=False),
    Rule("max_calls", judge_max_calls, {"max_calls": Key(policy_of(whole_number("max_calls")))}, always=False),
)
POLICY_RULES = {rule.name: rule for rule in RULES if not rule.always}
RULE_KEYS = {name: key for rule in RULES for name, key in rule.keys.items()}


def policies(case: Case) -> dict[str, dict[str, Any]]:
    """What a case sets of the rules that are not always in force, by their names."""
    return {name: case.expects[name] for name in POLICY_RULES if case.expects[name] is not None}


def settled(check: Check, rule: Rule, expects: dict[str, Any], run: Run) -> Check:
    """A check as it is if it passes also with what facts leave open read against the case, else unknown."""
    if check[0] != PASS:
        return check
    verdict, evidence, message = rule.judge(expects, run, False)
    return (UNKNOWN if verdict == FAIL else verdict), evidence, message


def judge_case(case: Case, run: Run) -> list[tuple[str, Check]]:
    """The check of every rule in force, in the order of the table."""
    expects, set_here = case.expects, policies(case)
    rules = [rule for rule in RULES if rule.always or rule.name in set_here]
    checks = [(rule.name, rule.judge(expects, run, True)) for rule in rules]
    if "+" in "".join(expects["sequence"]) + "".join(expects["allowed_tools"]) or (set_here and "+" in str(set_here)):
        checks = [(rule.name, settled(check, rule, expects, run)) for rule, (_, check) in zip(rules, checks)]
    return checks


def judge_runs(case: Case, passing: Sequence[str], failing: Sequence[str]) -> list[tuple[str, Check]]:
    """The checks of a repeated case itself, by the ids of its runs: at least one passes, and few enough do not."""
    total = len(passing) + len(failing)
    least, most = case.runs["min_passing_runs"] or 1, case.runs["max_failing_runs"] or 0
    got = f"{len(passing)} of {total}" + (f": {listing(passing)}" if passing else "")
    few = f"expected at least {counted(least, 'passing run')}, got {got}" if len(passing) < least else None
    many = beyond(most, "failing run", failing)
    return [
        ("trace_recorded", judge_trace_recorded({}, Run(recorded=total > 0), favour=True)),
        ("min_passing_runs", judged({"limit": least, "observed": len(passing)}, few)),
        ("max_failing_runs", judged({"limit": most, "observed": len(failing), "runs": list(failing)}, many)),
    ]


def unlisted(case: Case, steps: Iterable[str]) -> list[str]:
    """The tools of steps that allowed_tools leaves out, each once."""
    allowed = case.expects["allowed_tools"]
    others = [tool_of(step) for step in steps if step not in allowed]
    tools = set(map(tool_of, allowed)) if others else set()
    return list(dict.fromkeys([tool for tool in others if tool not in tools]))


def warnings_of(case: Case) -> Iterator[str]:
    """What no trace could meet, a sentence for each kind of it."""
    set_here, match = policies(case), case.expects["match"]
    if match != "subset" and (tools := unlisted(case, case.expects["sequence"])):
        yield f"no trace can pass: allowed_tools leaves out {listing(tools)}, which sequence expects"
    left_out = []
    for name, policy in set_here.items():
        listed = [tool for tools in policy.values() if isinstance(tools, list) for tool in tools]
        if tools := unlisted(case, [*policy, *listed]):
            left_out.append(f"{listing(tools)}, which {name} names")
    if left_out:
        yield f"allowed_tools leaves out {'; '.join(left_out)}"
    if set_here and match == "exact":
        # Judge the run that is the sequence and nothing else: further calls can only add violations.
        named = [step.split("+") for step in case.expects["sequence"]]
        calls = [
            Call(id=f"step-{number}", tool=tool, status=SUCCEEDED, facts=dict.fromkeys(facts, True))
            for number, (tool, *facts) in enumerate(named, start=1)
        ]
        run = run_of(Trace(id=case.id, calls=calls))
        if broken := [name for name in set_here if POLICY_RULES[name].judge(case.expects, run, True)[0] == FAIL]:
            yield f"no trace can pass: the exact sequence itself breaks {listing(broken)}"


# ---- report: records and verdicts -> the report, without clock, path or environment -------------


def report_call(call: Call) -> dict[str, Any]:
    """What was recorded of a call, in the order of its fields, which every reader of calls keeps."""
    return {key: value for key, value in vars(call).items() if value is not None}


def report_run(run: Run) -> dict[str, Any]:
    """The entries that describe the calls of a run."""
    (cost, unpriced), (time, untimed) = run.cost_usd, run.tool_ms
    return {
        "calls": {
            "total": len(run.calls),
            SUCCEEDED: len(run.succeeded),
            FAILED: len(run.failed),
            PENDING: len(run.pending),
        },
        "cost_usd": {"known_total": plain_money(cost), "unknown_calls": len(unpriced)},
        "tool_ms": {"known_total": time, "unknown_calls": len(untimed)},
        "recorded_calls": [report_call(call) for call in run.calls],
    }


def report_sums(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same entries, without the calls themselves, of several runs."""

    def total(part: str, name: str) -> int:
        return sum([run[part][name] for run in runs])

    cost = add_money([Decimal(run["cost_usd"]["known_total"]) for run in runs])
    return {
        "calls": {name: total("calls", name) for name in ("total", *STATUSES)},
        "cost_usd": {"known_total": plain_money(cost), "unknown_calls": total("cost_usd", "unknown_calls")},
        "tool_ms": {name: total("tool_ms", name) for name in ("known_total", "unknown_calls")},
    }


def report_checks(checks: Sequence[tuple[str, Check]], hidden: Iterable[str] = ()) -> tuple[str, list[dict[str, Any]]]:
    """The verdict of a case or a run, and its checks, without the evidence that stands elsewhere."""
    shown = []
    for name, (verdict, evidence, message) in checks:
        shown.append({"rule": name, "verdict": verdict, **evidence})
        for key in hidden:
            shown[-1].pop(key, None)
        if message is not None:
            shown[-1]["message"] = message
    verdicts = {verdict for _, (verdict, _, _) in checks}
    # At least one passes: nothing is green because nothing was checked.
    return PASS if PASS in verdicts and verdicts <= {PASS, NOT_CHECKED} else FAIL, shown


def report_case(case: Case, traces: Sequence[Trace]) -> dict[str, Any]:
    """A case with the trace that was recorded of it or, where it is repeated, with its runs."""
    if any(trace.case for trace in traces) or any(value is not None for value in case.runs.values()):
        runs = []
        for trace in traces:
            run = run_of(trace)
            verdict, shown = report_checks(judge_case(case, run)[1:], ("expected", "match", "allowed", "limit"))
            runs.append({"id": trace.id, "verdict": verdict, "checks": shown, **report_run(run)})
        passing, failing = ([run["id"] for run in runs if run["verdict"] == verdict] for verdict in (PASS, FAIL))
        checks = judge_runs(case, passing, failing)
        expects = {key: value for key, value in case.expects.items() if value is not None}
        recorded = {"expects": expects, **report_sums(runs), "runs": runs}
    else:
        run = run_of(traces[0] if traces else None)
        checks, recorded = judge_case(case, run), report_run(run)
    if not traces:  # what was not recorded can be held against nothing but the first rule
        checks[1:] = [(name, (NOT_CHECKED, evidence, None)) for name, (_, evidence, _) in checks[1:]]
    verdict, shown = report_checks(checks)
    trace_word = "recorded" if traces else "missing"
    return {"id": case.id, "group": case.group, "verdict": verdict, "trace": trace_word, "checks": shown, **recorded}


def report_rules(cases: Sequence[Case], reported: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How often each rule came to each verdict, in cases and runs; a rule that is in force nowhere is left out."""
    names = [rule.name for rule in RULES if rule.always or any(case.expects[rule.name] is not None for case in cases)]
    if any("runs" in case for case in reported):
        names += ["min_passing_runs", "max_failing_runs"]
    rules = {name: dict.fromkeys(VERDICTS, 0) for name in names}
    for case in reported:
        for judged_as in (case, *case.get("runs", ())):
            for check in judged_as["checks"]:
                rules[check["rule"]][check["verdict"]] += 1
    return rules


def report_groups(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str | None, dict[str, Any]] = {}
    for case in cases:
        group = groups.setdefault(case["group"], {"group": case["group"], "cases": 0, "passed": 0, "failed": 0})
        group["cases"] += 1
        group["passed" if case["verdict"] == PASS else "failed"] += 1
    return list(groups.values())


def runs_by_case(traces: Sequence[Trace]) -> dict[str, list[Trace]]:
    """The traces by the case that each is a run of, by default the one of its own id."""
    runs: dict[str, list[Trace]] = {}
    for trace in traces:
        runs.setdefault(trace.case or trace.id, []).append(trace)
    return runs


def build_report(expected: Accepted, observed: Accepted) -> dict[str, Any]:
    """The report, as plain dicts, lists, strings and whole numbers, in the order of its keys."""
    (expected_input, expected_cases), (observed_input, traces) = expected, observed
    runs = runs_by_case(traces)
    cases = [report_case(case, runs.pop(case.id, [])) for case in expected_cases]
    unknown = [trace for trace in traces if (trace.case or trace.id) in runs]
    passed = sum(case["verdict"] == PASS for case in cases)
    verdicts = [run["verdict"] for case in cases if case["trace"] == "recorded" for run in case.get("runs", [case])]
    counts = {"recorded": len(verdicts), "passed": verdicts.count(PASS), "failed": verdicts.count(FAIL)}
    with_facts = any(call.facts for trace in traces for call in trace.calls)
    return {
        "report_version": REPORT_VERSION,
        "checker": {"name": NAME, "version": VERSION},
        "inputs": {
            "expected": {**expected_input, "cases": len(cases)},
            "observed": {**observed_input, "traces": len(traces)},
        },
        "verdict": PASS if passed == len(cases) > 0 and not unknown else FAIL,
        "totals": {
            "cases": len(cases),
            "passed": passed,
            "failed": len(cases) - passed,
            "missing_traces": sum(case["trace"] == "missing" for case in cases),
            "unknown_cases": len(unknown),
            **({"runs": counts} if any("runs" in case for case in cases) else {}),
            **report_sums(cases),
        },
        "rules": report_rules(expected_cases, cases),
        "groups": report_groups(cases),
        "warnings": [{"case": case.id, "message": text} for case in expected_cases for text in warnings_of(case)],
        "cases": cases,
        "unknown_cases": [
            {"id": trace.id, **({"case": trace.case} if trace.case else {}), **report_run(run_of(trace))}
            for trace in unknown
        ],
        "limitations": [*LIMITATIONS, *([FACTS_LIMITATION] if with_facts else [])],
    }


# What is said of a report, here and in further outputs.

UNEXPECTED = "recorded, but no case expects it"


def findings(case: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Every check of a reported case and its runs that does not pass: its word, what it is a check of, itself."""
    tolerated = "TOLERATED" if case["verdict"] == PASS else ""  # what its runs may do wrong all the same
    runs = [(f"{case['id']}/{run['id']}", run) for run in case.get("runs", ())]
    return [
        (tolerated or check["verdict"].upper(), name, check)
        for name, judged_as in [(case["id"], case), *runs]
        for check in judged_as["checks"]
        if check["verdict"] in (FAIL, UNKNOWN)
    ]


def counts_line(report: dict[str, Any]) -> str:
    totals = report["totals"]
    cases, unknown = counted(totals["cases"], "case"), counted(totals["unknown_cases"], "unknown case")
    runs = totals.get("runs")
    of_runs = f", {runs['failed']} of {counted(runs['recorded'], 'run')} failed" if runs else ""
    return f"{totals['failed']} of {cases} failed, {unknown}{of_runs}"


def unknown_name(case: dict[str, Any]) -> str:
    """How an unknown case is named: by its own id and, where it names a case, that."""
    return f"{case['id']} (case {case['case']})" if "case" in case else str(case["id"])


def explain(report: dict[str, Any]) -> list[str]:
    """A line per check that does not pass, per unknown case, per warning, and a line of counts."""
    lines = [
        f"{word} {name} {check['rule']}: {check['message']}"
        for case in report["cases"]
        for word, name, check in findings(case)
    ]
    lines += [f"UNKNOWN-CASE {unknown_name(case)}: {UNEXPECTED}" for case in report["unknown_cases"]]
    lines += [f"WARNING {warning['case']}: {warning['message']}" for warning in report["warnings"]]
    return [*lines, counts_line(report)]


# ---- audit: the bytes of two inputs -> the report, or every problem of both -----------------------


def accept(problems: list[str], name: str, read: Callable[[], bytes], check: Callable[[Any], list[Any]]) -> Accepted:
    """Take one input through every stage; its problems join the list, each behind the document's name."""
    import hashlib

    data, records = b"", []
    try:
        data = read()
        records = check(read_json(data))
    except Refused as refused:
        problems += [name + problem for problem in refused.args]
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}, records


def audit_inputs(expected: Callable[[], bytes], observed: Callable[[], bytes], names: Sequence[str]) -> dict[str, Any]:
    """The report for two inputs, each a function that reads its bytes, and their names in messages."""
    problems: list[str] = []
    cases = accept(problems, names[0], expected, lambda value: read_expected(value, RULE_KEYS))
    traces = accept(problems, names[1], observed, read_observed)
    if problems:
        raise InputError(problems)
    return build_report(cases, traces)


def audit(expected: bytes, observed: bytes) -> dict[str, Any]:
    """Compare expected workflows with recorded traces, both given as the bytes of their JSON files.

    Returns the report that the command line writes, as plain dict, list, str, int and None: money is
    a decimal string in US dollars, time is whole milliseconds. Raises InputError when either
    document is refused; its `problems` name the documents `expected` and `observed`.
    """
    if not (isinstance(expected, bytes) and isinstance(observed, bytes)):
        raise TypeError("audit takes the bytes of two JSON files")
    size = BOUNDS["size"]
    return audit_inputs(lambda: within(expected, size), lambda: within(observed, size), ("expected", "observed"))


# ---- layout: a JSON value -> the bytes of its file, for a person and for diff -------------------

ONE_LINE_ENTRIES = {"checks", "recorded_calls", "calls"}  # each entry of these stands on one line
ONE_LINE = {"expects"}
CONTAINERS = {dict, list}

encode_line = json.JSONEncoder(separators=(", ", ": "), check_circular=False).encode
encode_key = functools.lru_cache(maxsize=None)(encode_line)


def json_bytes(value: Any) -> bytes:
    """ASCII, a newline at the end, the same bytes on every platform and Python.

    A container opens over lines when it holds another, unless its place says otherwise. What stands on one line is
    gathered and encoded in one go: each call of the encoder costs more than most of the lines.
    """
    lines: list[Any] = []
    before: list[str] = []  # what stands before each of the lines
    gap = ""  # what stands before the next of them

    def open_up(value: Any, name: str | int, indent: str) -> None:
        nonlocal gap
        keyed = type(value) is dict
        between, inner = ("{" if keyed else "[") + indent + "  ", indent + "  "
        if name in ONE_LINE_ENTRIES and not keyed:
            lines.extend(value)
            before.extend([gap + between, *["," + inner] * (len(value) - 1)])
            gap = f"{indent}]"
            return
        for key, member in value.items() if keyed else enumerate(value):
            gap += f"{between}{encode_key(key)}: " if keyed else between
            between = "," + inner
            if type(member) in CONTAINERS and key not in ONE_LINE and opens(member):
                open_up(member, key, inner)
            else:
                lines.append(member)
                before.append(gap)
                gap = ""
        gap += indent + ("}" if keyed else "]")

    if not opens(value):
        return (encode_line(value) + "\n").encode("ascii")
    open_up(value, "", "\n")
    parted: list[Any] = [""] * (2 * len(lines))  # an empty text after each line: no list of ours holds one
    parted[::2] = lines
    encoded = (encode_line(parted)[1:-1] + ", ").split(', "", ')
    return ("".join(map(str.__add__, before, encoded)) + gap + "\n").encode("ascii")


def opens(value: Any) -> bool:
    """Whether a container holds another."""
    return not CONTAINERS.isdisjoint(map(type, value.values() if type(value) is dict else value))


# ---- streams: bytes -> standard output, standard error, files that are whole, new or old -----------

# Signals that end a run, unless the outcome is settled: once the last output is in place, the exit status is the
# report's; once a run is interrupted, it cleans up.
INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
SETTLED: list[bool] = []


def interrupt(*_: Any) -> None:
    if not SETTLED:
        SETTLED.append(True)
        raise KeyboardInterrupt


def write_all(descriptor: int, data: bytes, last: bool = False) -> None:
    """Write until every byte is taken. No buffer of Python's stands between, so none can fail at exit."""
    rest = memoryview(data)
    while rest:
        if last and len(rest) == 1:  # in two steps, since a signal that comes with the only one is too late
            SETTLED.append(True)
        rest = rest[os.write(descriptor, rest[: (len(rest) - 1 or 1) if last else len(rest)]) :]


def put(stream: TextIO | None, data: bytes, last: bool = False) -> None:
    """Write to standard output or standard error; raises OSError or ValueError."""
    if stream is None:
        raise ValueError("it is closed")
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:  # the caller has put a text stream of its own in place
        stream.write(data.decode("utf-8"))
        return
    stream.flush()
    write_all(descriptor, data, last)


def say(lines: Sequence[str]) -> None:
    """Lines for standard error. When they cannot be written, or that is interrupted, what was done stands."""
    with contextlib.suppress(OSError, ValueError, KeyboardInterrupt):
        SETTLED.clear()  # a reader that never reads can be left
        put(sys.stderr, "".join(line + "\n" for line in lines).encode("ascii"))
        SETTLED.append(True)


class Output:
    """What is to be written where, with its option and name in messages; `make` gets how many bytes are there.

    `place` is a way of its own into a file; without it the file is replaced.
    """

    def __init__(self, option: str, what: str, path: str, make: Callable[[int], bytes], place: Place = None) -> None:
        self.option, self.what, self.path, self.make, self.place = option, what, path, make, place


def file_key(path: str, descriptor: int) -> Any:
    """Equal for two paths to one file, however spelled or linked; `-` is the descriptor's file."""
    try:
        found = os.fstat(descriptor) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return os.path.normcase(os.path.realpath(path)) if path != "-" else "-"
    # A terminal, a socket or the null device may well serve both ways.
    return path if stat.S_ISCHR(found.st_mode) or stat.S_ISSOCK(found.st_mode) else (found.st_dev, found.st_ino)


def refuse_clashes(inputs: Sequence[str], outputs: Sequence[Output]) -> None:
    """Refuse an output that would replace an input, and two outputs that name one file."""
    taken: dict[Any, str] = {}
    for output in outputs:
        other = taken.setdefault(file_key(output.path, 1), output.option)
        if other != output.option:
            raise Failure(f"{other} and {output.option} name one file; name two")
    for path in inputs:
        key = file_key(path, 0)
        if key in taken and not isinstance(key, str):
            raise Failure(f"{taken[key]} names an input; name a file that is not read")


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def write_beside(target: str, data: bytes, old: os.stat_result | None, cleanup: contextlib.ExitStack) -> str:
    """A new file beside the target, with its owner and permissions or, without one, those of a plain open."""
    path = os.path.join(os.path.dirname(target), f".{NAME}.{os.urandom(8).hex()}.tmp")
    if old and not os.access(target, os.W_OK):
        raise PermissionError("it is write-protected")
    cleanup.callback(remove, path)
    # Until it has the permissions of the file that it stands for, nobody else may look into it.
    mode = 0o600 if old else 0o666
    with open(path, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, mode)) as file:
        write_all(file.fileno(), data)
        os.fsync(file.fileno())
    if old:
        with contextlib.suppress(OSError, AttributeError):  # only root may give a file away, on Windows nobody
            os.chown(path, old.st_uid, old.st_gid)
        os.chmod(path, stat.S_IMODE(old.st_mode))
    return path


def stage(output: Output, cleanup: contextlib.ExitStack) -> tuple[int, Callable[[bool], None]]:
    """Make an output ready; gives its turn, and the step that puts it in place, which is told if it is the last."""
    path = output.path
    try:
        found = None if path == "-" else os.stat(path)
    except FileNotFoundError:
        found = None
    if path == "-" or (found and file_key(path, 1) == file_key("-", 1)):
        return 0, functools.partial(put, sys.stdout, output.make(0))
    if found and not stat.S_ISREG(found.st_mode):
        return 0, functools.partial(write_directly, path, output.make(0))
    if output.place:
        os.stat(os.path.dirname(path) or ".")
        return 1, functools.partial(output.place, output)
    target = os.path.realpath(path) if os.path.islink(path) else path  # a symbolic link stays
    return 2, functools.partial(replace, write_beside(target, output.make(0), found, cleanup), target)


def write_directly(path: str, data: bytes, last: bool) -> None:
    """Write to what is no regular file: a device, a named pipe."""
    with open(path, "wb", buffering=0) as file:
        write_all(file.fileno(), data, last)


def replace(new: str, target: str, last: bool) -> None:
    if last:
        SETTLED.append(True)
    os.replace(new, target)


def deliver(outputs: Sequence[Output]) -> None:
    """Make every output ready, write first what can still fail, rename last; each file is whole, new or old."""
    with contextlib.ExitStack() as cleanup:
        try:
            steps = []
            for output in outputs:
                steps.append((*stage(output, cleanup), output))
            steps.sort(key=lambda step: step[0])
            for _, put_in_place, output in steps:
                put_in_place(output is steps[-1][2])
        except (OSError, ValueError) as error:
            place = "standard output" if output.path == "-" else quoted_word(output.path)
            raise Failure(f"the {output.what} cannot be written to {place}: {reason(error)}") from None


# ---- command line: options, exit codes -----------------------------------------------------------


class Done:
    """What a command comes to: what it read, what is to be written and then said, and the exit status."""

    def __init__(self, inputs: list[str], outputs: list[Output], lines: Sequence[str] = (), status: int = 0) -> None:
        self.inputs, self.outputs, self.lines, self.status = inputs, outputs, lines, status


class Command:
    """One way to call the program: its help, which is where its options are read from, and what makes its outputs."""

    def __init__(self, about: str, help: str, run: Callable[[dict[str, str]], Done]) -> None:
        self.about, self.help, self.run = about, help, run


class ReportOutput:
    """A further output of a check: its name, its line of the help; `make` gets the report before a number of bytes."""

    def __init__(self, what: str, about: str, make: Callable[..., bytes], place: Place = None) -> None:
        self.what, self.about, self.make, self.place = what, about, make, place


COMMANDS: dict[str, Command] = {}  # by first word; the check has none
OUTPUTS: dict[str, ReportOutput] = {}  # by option


def main_output(what: str, options: dict[str, str], data: bytes) -> Output:
    """What --output or, without it, standard output takes."""
    option = "--output" if "--output" in options else "standard output"
    return Output(option, what, options.get("--output", "-"), lambda _: data)


CHECK_HELP = """\
usage: agent_trace_audit.py --expected FILE --observed FILE [options]

Compare expected agent workflows with recorded tool calls, and write a JSON report.

options:
  --expected FILE            the expected workflows (required)
  --observed FILE            the recorded traces (required)
  --fail-on-errors           exit 2 when the report's verdict is fail
  --output FILE              write there, whole or not at all, instead of to standard output
  --summary                  also explain the result on standard error, passing or not
{outputs}\
  --version                  show the version and the SHA-256 of this script's own bytes
  --help                     show this help

A FILE of - is standard input (for one of the two) or standard output.

WITHOUT --fail-on-errors, EXIT STATUS 0 IS NO STATEMENT ABOUT THE WORKFLOWS.

exit status:
  0  a valid report was written in full
  1  no statement at all: wrong usage, a refused input, an output that could not be written
  2  with --fail-on-errors: a valid report was written in full and its verdict is fail
{commands}"""


def run_check(options: dict[str, str]) -> Done:
    paths = [options["--expected"], options["--observed"]]
    if paths == ["-", "-"]:
        raise Failure("standard input can serve --expected or --observed, not both")
    reads = [functools.partial(read_bounded, path, BOUNDS["size"]) for path in paths]
    report = audit_inputs(reads[0], reads[1], [quoted_word(path) for path in paths])
    outputs = [
        Output(option, kind.what, options[option], functools.partial(kind.make, report), kind.place)
        for option, kind in OUTPUTS.items()
        if option in options
    ]
    data = json_bytes(report)
    if len(data) > BOUNDS["report"].value:
        raise Failure(f"the report would have more than {BOUNDS['report']}; give fewer runs at a time")
    outputs.append(main_output("report", options, data))
    gate, failing, summary = "--fail-on-errors" in options, report["verdict"] == FAIL, "--summary" in options
    lines = explain(report) if summary or (gate and failing) else []
    if failing and not gate and summary:
        lines.append("the exit status is 0 all the same: --fail-on-errors was not given")
    return Done(paths, outputs, lines, EXIT_VERDICT_FAIL if gate and failing else EXIT_REPORTED)


COMMANDS[""] = Command("", CHECK_HELP, run_check)


def help_text(command: Command) -> str:
    outputs = "".join(f"  {f'{option} FILE':26} {kind.about}\n" for option, kind in OUTPUTS.items())
    rows = "".join(f"  {name:10} {other.about}\n" for name, other in COMMANDS.items() if name)
    commands = f"\nfurther commands, each with a --help of its own:\n{rows}" if rows else ""
    return command.help.replace("{outputs}", outputs).replace("{commands}", commands)


def version_text(_: Command) -> str:
    import hashlib

    digest = "unknown: the file cannot be read again"
    with contextlib.suppress(OSError, NameError), open(__file__, "rb") as file:  # __file__: not from standard input
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe has been read already
            digest = hashlib.sha256(file.read()).hexdigest()
    return f"{NAME} {VERSION}\nsha256 {digest}\n"


SHOWN = {"--help": help_text, "--version": version_text}


def read_options(help: str, words: Sequence[str]) -> dict[str, str]:
    """The given options and arguments by name, each with its value; raises Failure on wrong usage.

    The help says what there is: a line of two blanks, the name, and for an option the word for its value in capitals,
    or the values that it may have, or nothing for a switch.
    """
    rows = re.findall(r"^  (--[a-z-]+|[A-Z]+)(?: ([A-Za-z|-]+))?  +(.*)", help, re.MULTILINE)
    forms = {name: form for name, form, _ in rows}
    arguments = [name for name in forms if not name.startswith("--")]
    given: dict[str, str] = {}
    left, plain = list(words), False
    while left:
        word = left.pop(0)
        if word == "--" and not plain:
            plain = True
            continue
        name, equals, value = word.partition("=")
        if plain or word == "-" or not word.startswith("-"):
            name, equals, value = next((name for name in arguments if name not in given), ""), "=", word
        elif not equals and forms.get(name) and left and (left[0] == "-" or not left[0].startswith("-")):
            equals, value = "=", left.pop(0)
        if name not in forms:
            raise Failure(f"unrecognized argument: {quoted_word(word)}; --help shows the usage")
        if name in given:
            raise Failure(f"{name} may be given only once")
        refuse_value(name, forms[name], equals, value)
        given[name] = value
    missing = [name for name, _, about in rows if name not in given and (name in arguments or "(required)" in about)]
    if missing:
        raise Failure(f"{missing[0]} is required; --help shows the usage")
    return given


def refuse_value(name: str, form: str, equals: str, value: str) -> None:
    """Refuse a value that an option or an argument cannot have."""
    switch = not form and name.startswith("--")
    if switch and equals:
        raise Failure(f"{name} takes no value; --help shows the usage")
    if not switch and not value:
        raise Failure(f"{name} needs a value; --help shows the usage")
    if form.islower() and value not in form.split("|"):
        raise Failure(f"{name} must be {' or '.join(form.split('|'))}")


def run(words: Sequence[str]) -> int:
    """Find the command, read its options, make its outputs, deliver them, say what there is to say."""
    name = words[0] if words and words[0] in COMMANDS else ""
    command, words = COMMANDS[name], words[1:] if name else words
    options_end = words.index("--") if "--" in words else len(words)
    asked = {"-h": "--help"}.get
    shown = [flag for flag in SHOWN if flag in [asked(word, word) for word in words[:options_end]]]
    if shown:
        data = SHOWN[shown[0]](command).encode("ascii")
        done = Done([], [main_output(shown[0][2:], {}, data)])
    else:
        done = command.run(read_options(help_text(command), words))
    refuse_clashes(done.inputs, done.outputs)
    deliver(done.outputs)
    if done.lines:
        say(done.lines)
    return done.status


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line, by default the process's own, and return its exit status."""
    SETTLED.clear()
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except InputError as refused:
        most = BOUNDS["problems"].value
        lines = [f"{NAME}: error: {problem}" for problem in refused.problems[:most]]
        hidden = len(refused.problems) - most + refused.more
        lines += [f"and {hidden:,} more"] if hidden > 0 else []
    except Failure as failure:
        lines = [f"{NAME}: error: {failure}"]
    except MemoryError:
        lines = [f"{NAME}: error: there is not enough memory for this; give it more, or less at a time"]
    except KeyboardInterrupt:
        lines = [f"{NAME}: error: interrupted"]
    say(lines)
    return EXIT_NO_STATEMENT


# ==== opt-in: the checker ends here; any room below can be taken out, from its banner to the next


def readable(text: str) -> str:
    """Text with letters of any script as they are; controls, what is invisible or changes direction, are escaped."""
    return re.sub(INVISIBLE, lambda match: printable(match[0]), text)


INVISIBLE = (  # by ranges of our own, since Python's differ between versions
    "[\0-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff0-\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def runs_passed(case: dict[str, Any]) -> str:
    """How many runs of a repeated case passed; empty for another."""
    runs = case.get("runs", [])
    return f"{sum(run['verdict'] == PASS for run in runs)} of {counted(len(runs), 'run')} passed" if runs else ""


def totals_sentence(report: dict[str, Any]) -> str:
    """How many calls there were, what they cost and how long they took, and of how many that is not known."""
    calls, cost, time = (report["totals"][key] for key in ("calls", "cost_usd", "tool_ms"))
    statuses = ", ".join(f"{calls[status]} {status}" for status in STATUSES)
    return (
        f"{counted(calls['total'], 'call')}: {statuses}. Known cost {cost['known_total']} USD (not known for "
        f"{counted(cost['unknown_calls'], 'call')}), known tool time {time['known_total']:,} ms "
        f"(not known for {counted(time['unknown_calls'], 'call')})."
    )


def remarks(case: dict[str, Any]) -> list[str]:
    """How many runs of a passing case passed, then each check that does not pass, behind the id of its run if any."""
    lines = [runs_passed(case)] if case["verdict"] == PASS and "runs" in case else []
    for word, name, check in findings(case):
        run = name[len(case["id"]) + 1 :]
        place = f"{'tolerated: ' if word == 'TOLERATED' else ''}{run}{' ' if run else ''}{check['rule']}"
        lines.append(f"{place}{' (unknown)' if check['verdict'] == UNKNOWN else ''}: {check['message']}")
    return lines


WRITTEN_STATUSES = """
exit status:
  0  what was asked for was written in full
  1  nothing was written: wrong usage, a refused input, an output that could not be written
"""

# ---- snapshot: checked traces -> expected workflows that they pass ------------------------------

SNAPSHOT_HELP = f"""\
usage: agent_trace_audit.py snapshot FILE [--output FILE] [--budget-headroom PERCENT]

Write expected workflows that the given traces pass, to be edited by hand.

arguments and options:
  FILE                       the recorded traces; - is standard input
  --output FILE              write there, whole or not at all, instead of to standard output
  --budget-headroom PERCENT  add budgets: what was measured plus 0 to 1,000 percent, rounded up
  --version                  show the version and the SHA-256 of this script's own bytes
  --help                     show this help
{WRITTEN_STATUSES}"""


def with_headroom(amount: int, percent: int) -> int:
    """A whole amount plus so many percent, rounded up."""
    return -(-amount * (100 + percent) // 100)


def expect_runs(id: str, traces: Sequence[Trace], percent: int | None) -> dict[str, Any]:
    """The case that its runs pass, which call the same tools; a budget that money cannot say is there as None."""
    runs = [run_of(trace) for trace in traces]
    sequence = []
    for calls in zip(*(run.succeeded for run in runs)):
        recorded = [call.facts or {} for call in calls]
        facts = [fact for fact in recorded[0] if all(others.get(fact) for others in recorded)]
        sequence.append("+".join([calls[0].tool, *facts]))
    tools = dict.fromkeys(call.tool for run in runs for call in run.calls)
    case: dict[str, Any] = {"id": id, "sequence": sequence, "allowed_tools": list(tools)}
    if failed := max(len(run.failed) for run in runs):
        case["max_failed_calls"] = failed
    if percent is not None and not any(run.cost_usd[1] for run in runs):
        cost = with_headroom(int(EXACT.scaleb(max(run.cost_usd[0] for run in runs), 6)), percent)
        text = f"{cost // 10**6}.{cost % 10**6:06}".rstrip("0").rstrip(".")
        case["max_cost_usd"] = text if MONEY.fullmatch(text) else None
    if percent is not None and not any(run.tool_ms[1] for run in runs):
        most = BOUNDS["total_tool_ms"].value
        case["max_total_tool_ms"] = min(with_headroom(max(run.tool_ms[0] for run in runs), percent), most)
    return case


def read_expectable(value: Any) -> list[Trace]:
    """Recorded traces that can be expected: at least one, no pending call, and runs of a case that agree."""
    traces = read_observed(value)
    if not traces:
        raise Refused(": $: must hold at least one trace: without one there is nothing to expect")
    pending = [
        f": $[{index}].calls[{place}].status: a pending call cannot be expected: record the run again once it has ended"
        for index, trace in enumerate(traces)
        for place, call in enumerate(trace.calls)
        if call.status == PENDING
    ]
    tools: dict[str, list[str]] = {}
    other = [
        f": $[{index}].calls: the run calls other tools than an earlier run of its case; snapshot takes runs that agree"
        for index, trace in enumerate(traces)
        for called in [[call.tool for call in trace.calls if call.status == SUCCEEDED]]
        if tools.setdefault(trace.case or trace.id, called) != called
    ]
    if pending or other:
        raise Refused(*pending, *other)
    return traces


def run_snapshot(options: dict[str, str]) -> Done:
    path, text = options["FILE"], options.get("--budget-headroom", "0")
    if not re.fullmatch("[0-9]{1,4}", text) or int(text) > 1_000:
        raise Failure("--budget-headroom must be a whole number from 0 to 1,000")
    percent = int(text) if "--budget-headroom" in options else None
    problems: list[str] = []
    name = quoted_word(path)
    traces = accept(problems, name, lambda: read_bounded(path, BOUNDS["size"]), read_expectable)[1]
    if problems:
        raise InputError(problems)
    cases = [expect_runs(id, runs, percent) for id, runs in runs_by_case(traces).items()]
    unpriced = [case["id"] for case in cases if case.get("max_cost_usd", "") is None]
    data = json_bytes({"cases": [{key: value for key, value in case.items() if value is not None} for case in cases]})
    try:
        read_json(within(data, BOUNDS["size"]))
    except Refused as refused:
        raise Failure(f"{name}: the workflows of these would be refused{refused}; give fewer at a time") from None
    note = f"{NAME}: note: max_cost_usd is left out for {listing(unpriced)}: it needs more digits than money has"
    output = main_output("expected workflows", options, data)
    return Done([path], [output], [note] if unpriced else [])


COMMANDS["snapshot"] = Command("write expected workflows that recorded traces pass", SNAPSHOT_HELP, run_snapshot)

# ---- JUnit XML: the report -> what test reporters of CI servers read ------------------------------


def xml_attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(readable(text)).replace("##", "#&#35;")


def junit_time(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}"


def junit_case(classname: str, case: dict[str, Any], name: str, lines: Sequence[str]) -> str:
    """One test case; the failure element, or the output of a passing one, holds what there is to say, line by line."""
    from xml.sax.saxutils import escape

    names = f"classname={xml_attribute(classname)} name={xml_attribute(name)}"
    opening = f'    <testcase {names} time="{junit_time(case["tool_ms"]["known_total"])}"'
    text = escape("\n".join(lines))
    if case.get("verdict") == PASS:
        return opening + (f">\n      <system-out>{text}</system-out>\n    </testcase>\n" if lines else "/>\n")
    failure = f"failure type={xml_attribute(FAIL)} message={xml_attribute('; '.join(lines))}"
    return f"{opening}>\n      <{failure}>{text}</failure>\n    </testcase>\n"


def junit_xml(report: dict[str, Any], _: int) -> bytes:
    """One test case per workflow and one failing one per unknown case; no clock, so that equal runs are equal."""
    cases = [
        junit_case(NAME if case["group"] is None else case["group"], case, case["id"], remarks(case))
        for case in report["cases"]
    ]
    cases += [junit_case(NAME, case, unknown_name(case), [UNEXPECTED]) for case in report["unknown_cases"]]
    failures = report["totals"]["failed"] + report["totals"]["unknown_cases"]
    time = junit_time(sum(case["tool_ms"]["known_total"] for case in report["cases"] + report["unknown_cases"]))
    # The attributes that every usual schema has on both of the outer elements.
    counts = f'name="{NAME}" tests="{len(cases)}" failures="{failures}" errors="0" time="{time}"'
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n  <testsuite {counts} skipped="0">\n'
        f"{''.join(cases)}  </testsuite>\n</testsuites>\n"
    )
    return text.encode("ascii", "xmlcharrefreplace")


OUTPUTS["--junit-xml"] = ReportOutput("JUnit XML", "also write JUnit XML for a test reporter", junit_xml)

# ---- Markdown: the report -> a summary for a job page or a pull request ---------------------------

MARKDOWN_LIMIT = 900_000  # bytes of the file in all; a job page of GitHub takes 1 MiB


def code_span(text: str) -> str:
    """Text that can be no markup: nothing is a tag, a link, an image or a mention inside a code span."""
    escaped = readable(text).replace("##", "#\\x23").replace("`", "\\x60").replace("|", "\\x7c")
    return f"`{escaped}`" if text else "(empty)"


def markdown_row(verdict: str, name: str, group: str | None, failures: Sequence[str]) -> str:
    shown = "" if group is None else code_span(group)
    return f"| {verdict} | {code_span(name)} | {shown} | {'<br>'.join(map(code_span, failures))} |\n"


def markdown_table(rows: Sequence[str], room: int) -> str:
    """As many rows as there is room for, then how many more there are."""
    text = ["| verdict | case | group | failed on |\n| --- | --- | --- | --- |\n"]
    room -= len(text[0]) + len("\nand 1,000 more\n")
    for index, row in enumerate(rows):
        room -= len(row.encode("utf-8"))
        if room < 0:
            return "".join([*text, f"\nand {len(rows) - index:,} more\n"])
        text.append(row)
    return "".join(text)


def markdown_head(report: dict[str, Any]) -> str:
    text = f"## {NAME}: {report['verdict']}, {counts_line(report)}\n\n{totals_sentence(report)}\n"
    if report["warnings"]:
        text += f"\nThe report holds {counted(len(report['warnings']), 'warning')} about expectations.\n"
    return text


def markdown(report: dict[str, Any], taken: int) -> bytes:
    """The verdict with its counts, the failing and the unknown cases, and the passing ones folded away."""
    rows: dict[str, list[str]] = {PASS: [], FAIL: []}
    for case in report["cases"]:
        row = markdown_row(case["verdict"].upper(), case["id"], case["group"], remarks(case))
        rows[case["verdict"]].append(row)
    for case in report["unknown_cases"]:
        rows[FAIL].append(markdown_row("UNKNOWN-CASE", unknown_name(case), None, [UNEXPECTED]))
    text = markdown_head(report)
    room = MARKDOWN_LIMIT - taken - len(text) - 1_000
    if room < 0:
        raise ValueError(f"it has no room below {MARKDOWN_LIMIT:,} bytes; name another file")
    if rows[FAIL]:
        table = "\n" + markdown_table(rows[FAIL], room)
        text += table
        room -= len(table.encode("utf-8"))
    if rows[PASS]:
        opening = f"\n<details><summary>{counted(len(rows[PASS]), 'case')} passed</summary>\n\n"
        text += opening + markdown_table(rows[PASS], room + 1_000 - len(opening) - 20) + "\n</details>\n"
    return text.encode("utf-8")


def append_summary(output: Output, last: bool) -> None:
    """Append in one go, after a blank line when the file holds anything: runs side by side lose nothing."""
    with open(output.path, "a+b", buffering=0) as file:
        with contextlib.suppress(ImportError, OSError):  # without locks such a run may miss the blank line
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - 1))
        end = file.read(1)
        blank = b"" if not end else b"\n" if end == b"\n" else b"\n\n"
        data = blank + output.make(length + len(blank))
        if last:
            SETTLED.append(True)
        written = os.write(file.fileno(), data)
        if written < len(data):
            if os.fstat(file.fileno()).st_size == length + written:  # nobody has appended since
                os.ftruncate(file.fileno(), length)
            raise OSError("no space is left for all of it")


OUTPUTS["--markdown"] = ReportOutput(
    "Markdown", "also append a Markdown summary for a job page", markdown, append_summary
)

# ---- page: the report -> one self-contained HTML page: no script, nothing fetched, whatever a group holds is text

# A class gives an element its colour (--k) and its sign (--s); the words stand in the page itself.
PAGE_STYLE = """
:root{color-scheme:light dark;--dim:#59636e;--good:#0b6b3a;--bad:#b3211a;--open:#7d4e00;--soft:#8882;--line:#8886}
@media screen and (prefers-color-scheme:dark){:root{--dim:#a0abb6;--good:#5fd38d;--bad:#ff9c93;--open:#eabd5a}}
.pass{--k:var(--good);--s:"\\2713\\a0"}.fail,.failed{--k:var(--bad);--s:"\\2717\\a0"}li{--k:var(--dim);--s:""}
.succeeded{--k:var(--dim);--s:"\\2713\\a0"}.unknown,.pending,.tolerated{--k:var(--open);--s:"?\\a0"}
*{box-sizing:border-box;margin:0;padding:0}b{color:var(--k)}b::before{content:var(--s)}bdi{white-space:pre-wrap}
body{margin:auto;max-width:80rem;padding:1.5rem 4vw;font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1,h2{font-size:1.25rem;margin:2rem 0 .75rem}h1,th,.succeeded{font-weight:400}h1 b{display:block;font-size:3rem}
h3,h4{font-size:1rem;display:inline}small,table,details ul,.path{font-size:.8125rem}ul,.path{list-style:none}
small,i,caption{color:var(--dim)}code{font-family:ui-monospace,monospace}.path small,i,td small{display:block}
details{border:1px solid var(--line);border-left:4px solid var(--k);margin:.5rem 0;padding:0 .75rem}
details>*{margin:.5rem 0 1rem}summary{margin:0 -.75rem;padding:.5rem .75rem;cursor:pointer}rect{fill:var(--k)}
summary>*{margin-right:.75rem}summary:hover,.path span{background:var(--soft)}summary:focus-visible{outline:3px solid}
.path{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:1rem 2px}
.path li{display:grid;grid-row:span 3;grid-template-rows:subgrid;row-gap:2px;border-top:3px dotted var(--k)}
.path li>*{padding:.25rem .4rem}.path .pass{border-top-style:solid}li.fail,li.unknown{border:2px solid var(--k)}
svg{display:block;overflow:visible;width:min(100%,24rem);height:.75rem;margin:.25rem 0 .5rem}th,caption{text-align:left}
.limit{fill:none;stroke:currentColor;stroke-width:2px;vector-effect:non-scaling-stroke}thead,td~td{white-space:nowrap}
th,td{border-top:1px solid var(--line);padding:.3em .5em .3em 0;vertical-align:top}tr>:nth-child(n+4){text-align:right}
table{border-collapse:collapse;width:100%}@media(max-width:40rem){th,td{font-size:.75rem;padding-right:.25em}}
@media print{details::details-content{content-visibility:visible;display:block}li,tr,summary{break-inside:avoid}}
"""


def shown(text: str) -> str:
    from html import escape

    return escape(readable(text)).replace("##", "#&#35;")  # CI systems obey `##[...]` anywhere in a line


def word(kind: str) -> str:
    return f'<b class="{kind}">{kind}</b>'


def steps_by_call(both: Comparison, mode: str) -> dict[int, int]:
    """By index of successful call the index of its step: by place, in any order, or in order from where a block is."""
    places, steps = range(len(both.calls)), range(len(both.steps))
    if mode not in ("within", "contains"):
        return dict(zip(places, places)) if mode == "exact" else both.pair()
    blocks = [at for at in places if all(at + step in places and both.fits(step, at + step) for step in steps)]
    found: dict[int, int] = {}
    for place in places[blocks[0] if blocks and mode == "within" else 0 :]:
        if len(found) < len(steps) and both.fits(len(found), place):
            found[place] = len(found)
    return found


def page_path(check: dict[str, Any], recorded: Sequence[dict[str, Any]]) -> str:
    """Expected above observed: successful calls under their steps, failed and pending ones between them."""
    steps, first, mode, verdict = (check[key] for key in ("sequence", "first_difference", "match", "verdict"))
    both = Comparison(steps, run_of(Trace(id="", calls=[Call(**call) for call in recorded])), verdict == FAIL)
    step_of = {both.calls[place].id: step for place, step in steps_by_call(both, mode).items()}
    columns: list[tuple[int | None, Any]] = [(step_of.get(call.id), call) for call in both.run.calls]
    columns += [(step, None) for step in range(len(steps)) if step not in step_of.values()]
    said = {FAIL: ": unmatched" if first is None else ": first difference", UNKNOWN: ": not established"}
    items = ""
    for step, call in columns:
        wanted = "" if step is None else "".join(steps[step : step + 1])
        extra = step is None and call.status == SUCCEEDED
        alone = (extra and mode in ("permutation", "subset")) or (call is None and mode != "subset")
        kind = verdict if (alone if first is None else step == first) else ""
        if wanted and call and not kind:
            kind = PASS if fits(wanted, call, False) else UNKNOWN if fits(wanted, call, True) else ""
        head = "extra call" if extra else "attempt" if step is None else f"step {step + 1}"
        above = wanted and f"<code>{shown(wanted).replace('+', '<wbr>+')}</code>"
        below = call and f"<code>{shown(call.tool)}</code><small>{word(call.status)} {shown(call.id)}</small>"
        items += f'<li class="{kind}"><b>{head}{said.get(kind, "")}</b><span><i>expected</i>{above or "no step"}</span>'
        items += f"<span><i>observed</i>{below or 'no call'}</span></li>\n"
    return f'<p><small>Step by step, match: {mode}</small></p>\n<ol class="path" role="list">{items}</ol>\n'


def page_bar(verdict: str, known: Any, limit: Any) -> str:
    """The known total of a budget against its limit, in the measure's own unit."""
    box = f'viewBox="0 0 {max(known, limit, key=float)} 1" preserveAspectRatio="none" aria-hidden="true"'
    bars = f'<rect class="{verdict}" width="{known}" height="1"/><rect class="limit" width="{limit}" height="1"/>'
    return f"<svg {box}>{bars}</svg>"


def page_run(run: dict[str, Any], expects: dict[str, Any]) -> str:
    """What there is of a case or a run of one: its path, the checks that it does not pass, its budgets, its calls."""
    path = checks = rows = ""
    for check in run.get("checks", ()):
        rule, verdict, said = check["rule"], check["verdict"], shown(check.get("message", ""))
        if rule == "sequence":
            path = page_path({"sequence": check.get("expected"), **expects, **check}, run["recorded_calls"])
        if "known_total" in check and verdict != NOT_CHECKED:
            known, limit = check["known_total"], check.get("limit", expects.get(rule))
            said = (said or f"{known} of at most {limit}") + page_bar(verdict, known, limit)
        checks += said and f"<li>{word(verdict)} <code>{rule}</code> {said}</li>\n"
    for call in run.get("recorded_calls", ()):
        facts = ", ".join(f"{fact} is {str(value).lower()}" for fact, value in call.get("facts", {}).items())
        cells = [f"<code>{shown(call['tool'])}</code><small>{shown(facts)}</small>", word(call["status"])]
        cells += [str(call.get(measure, "unknown")) for measure in ("cost_usd", "duration_ms")]
        rows += f'<tr><th scope="row"><code>{shown(call["id"])}</code></th><td>{"</td><td>".join(cells)}</td></tr>\n'
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("call", "tool", "status", "USD", "ms"))
    table = f"<table><caption>Calls of {shown(run['id'])}</caption><thead><tr>{heads}</tr></thead>\n<tbody>{rows}"
    return path + (checks and f"<ul>{checks}</ul>\n") + (rows and f"{table}</tbody></table>\n")


def page_entry(entry: dict[str, Any], case: dict[str, Any] | None = None) -> str:
    """A case with its runs, a run of `case`, or an unknown case; open unless it passes."""
    verdict, title = entry.get("verdict", UNKNOWN), "h4" if case else "h3"
    kind = "tolerated" if case and case["verdict"] == PASS != verdict else verdict
    notes = counted(entry["calls"]["total"], "call"), runs_passed(entry), UNEXPECTED if verdict == UNKNOWN else ""
    group = "" if entry.get("group") is None else f"<bdi>{shown(entry['group']) or '(empty)'}</bdi>"
    head = f"<{title}>{word(kind)} <code>{shown(unknown_name(entry))}</code></{title}> {group}"
    summary = f"<summary>{head} <small>{', '.join(filter(None, notes))}</small></summary>"
    body = page_run(entry, (case or entry).get("expects", {}))
    runs = sorted(entry.get("runs", ()), key=lambda run: run["verdict"] == PASS)
    body += "".join(page_entry(run, entry) for run in runs)
    return f'<details class="{kind}"{"" if verdict == PASS else " open"}>{summary}\n{body}</details>\n'


def html_page(report: dict[str, Any], _: int) -> bytes:
    """First the verdict, the counts and the warnings; then the cases, those that do not pass open and first."""
    import base64
    import hashlib

    warnings = "".join(f"<li><code>{one['case']}</code> {shown(one['message'])}</li>\n" for one in report["warnings"])
    entries = sorted([*report["cases"], *report["unknown_cases"]], key=lambda entry: entry.get("verdict") == PASS)
    limits = "".join(f"<li>{shown(text)}</li>\n" for text in report["limitations"])
    line, verdict = counts_line(report), report["verdict"]
    style = base64.b64encode(hashlib.sha256(PAGE_STYLE.encode("ascii")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{verdict}: {line}</title>
<style>{PAGE_STYLE}</style></head>
<body><header><p>{NAME} {report["checker"]["version"]}</p><h1>{word(verdict)} {line}</h1>
<p>{totals_sentence(report)}</p>{warnings and f"<h2>Warnings</h2><ul>{warnings}</ul>"}</header>
<main><h2>Cases</h2>
{"".join(map(page_entry, entries))}</main><footer><h2>Limitations</h2><ul>{limits}</ul></footer></body></html>
"""
    return page.encode("ascii", "xmlcharrefreplace")


OUTPUTS["--html"] = ReportOutput("HTML page", "also write a page to look at", html_page)

# ---- recorder: an agent's own calls -> observed traces, without content ---------------------------


def given_name(what: str, value: Any) -> str:
    if isinstance(value, str) and IDENTIFIER.fullmatch(value):
        return value
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"{what} must be a str of {IDENTIFIER_FORM}")


class RecordedRun:
    """One run: its id and perhaps its case, and the calls made in the context of its block, in order of start."""

    def __init__(self, recorder: Recorder, named: dict[str, str]) -> None:
        self._recorder, self._named, self._open = recorder, named, False
        self._calls: list[RecordedCall] = []

    def __enter__(self) -> None:
        with self._recorder._lock:
            self._recorder._refuse_run(self._named["id"])
            self._recorder._runs[self._named["id"]] = self
            self._open = True
        self._token = self._recorder._here.set((self, ()))

    def __exit__(self, *_: object) -> None:
        self._open = False
        with contextlib.suppress(ValueError):  # a block may end in another context than it began in
            self._recorder._here.reset(self._token)


class RecordedCall:
    """One call of a tool, made by the block that it is entered for; what is said of it may follow after that."""

    def __init__(self, recorder: Recorder, tool: str) -> None:
        self._recorder = recorder
        self._call = Call(id="", tool=tool, status=SUCCEEDED, cost_usd=None, duration_ms=None, facts=None)
        self._ended, self._begun = PENDING, 0  # how it ended, and how many calls of its run had begun by then

    def __enter__(self) -> RecordedCall:
        with self._recorder._lock:
            if self._call.id:
                raise RuntimeError("a call is entered once: each `with` needs a `recorder.call(...)` of its own")
            self._run, self._around = self._recorder._place()
            self._run._calls.append(self)
            self._call.id = f"call-{len(self._run._calls):02}"
            self._token = self._recorder._here.set((self._run, (*self._around, self)))
            self._began = self._recorder._clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        milliseconds = -(-(self._recorder._clock() - self._began) // 10**6)
        if milliseconds <= BOUNDS["duration_ms"].value:
            self._call.duration_ms = milliseconds
        self._ended = SUCCEEDED if kind is None else FAILED if issubclass(kind, Exception) else PENDING
        self._begun = len(self._run._calls)
        with contextlib.suppress(ValueError):  # a block may end in another context than it began in
            self._recorder._here.reset(self._token)

    def failed(self) -> None:
        """The tool reported failure in its answer."""
        self._recorder._where()
        self._call.status = FAILED

    def pending(self) -> None:
        """The call waits, for an approval say, also when the tool then says so by an exception."""
        self._recorder._where()
        self._call.status = PENDING

    def cost(self, usd: str | Decimal | int) -> None:
        """Add US dollars to what the call cost."""
        self._recorder._where()
        if isinstance(usd, bool) or not isinstance(usd, (str, Decimal, int)):
            raise TypeError("a cost must be a str, a Decimal or an int; a float is not exact")
        with self._recorder._lock, contextlib.suppress(DecimalException):  # more digits than any money
            text = usd if isinstance(usd, str) else plain_money(EXACT.create_decimal(usd))
            total = plain_money(EXACT.add(Decimal(self._call.cost_usd or 0), Decimal(text)))
            if MONEY.fullmatch(text) and MONEY.fullmatch(total):
                self._call.cost_usd = total
                return
        raise ValueError(f"a cost, and what it adds up to, must be {MONEY_FORM}; round a finer one up")

    def fact(self, name: str, value: bool) -> None:
        """Record that something is true or false of the call; given twice, the later holds."""
        self._recorder._where()
        if not isinstance(value, bool):
            raise TypeError("a fact must be True or False; leave out what is not known")
        with self._recorder._lock:
            facts = {**(self._call.facts or {}), given_name("the name of a fact", name): value}
            if len(facts) > BOUNDS["facts"].value:
                raise ValueError(f"a call may have at most {BOUNDS['facts']}")
            self._call.facts = facts


class Recorder:
    """Writes the calls of an agent's runs when its block ends; it keeps no argument, result or exception."""

    def __init__(self, path: str | os.PathLike[str], overlap: str = "refuse") -> None:
        import contextvars
        import threading
        import time

        if overlap not in ("refuse", "start-order"):
            raise ValueError('overlap must be "refuse" or "start-order"')
        self._path = os.path.abspath(os.fsdecode(path))  # an agent may change the working directory
        self._overlap, self._clock = overlap, time.monotonic_ns
        self._process = os.getpid()  # none once it is closed: in a child process it is as good as that
        self._lock = threading.RLock()  # a signal may come while it is held, and its handler record
        nowhere = RecordedRun(self, {}), ()
        self._here: contextvars.ContextVar[Any] = contextvars.ContextVar("recorded", default=nowhere)
        self._runs: dict[str, RecordedRun] = {}

    def __enter__(self) -> Recorder:
        self._where()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, id: str, case: str | None = None) -> RecordedRun:
        """A run of the case of this id, or of another: `with recorder.run("request-01"):`."""
        self._refuse_run(id)
        of = {} if case is None else {"case": given_name("the case of a run", case)}
        return RecordedRun(self, {"id": id, **of})

    def call(self, tool: str) -> RecordedCall:
        """A call in the run of this context: `with recorder.call("lookup_order") as call:`."""
        self._place()
        return RecordedCall(self, given_name("the name of a tool", tool))

    def tool(self, function: Any = None, name: str | None = None) -> Any:
        """The function, sync or async, with every call of it recorded; a decorator, with and without arguments."""
        import inspect

        self._where()
        if function is None:
            return functools.partial(self.tool, name=name)
        if isinstance(function, (classmethod, staticmethod)):
            return type(function)(self.tool(function.__func__, name))
        if not callable(function):
            raise TypeError("tool takes a function; its name is given as name=...")
        inner = function
        while isinstance(inner, functools.partial):  # it has no name of its own
            inner = inner.func
        body = inner if inspect.isroutine(inner) else type(inner).__call__
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            raise TypeError("a generator runs where it is used: put `with recorder.call(...)` around that")
        named = getattr(inner, "__name__", None) if name is None else name
        tool = given_name("the name of a tool (name=..., else __name__)", named)

        def recorded(*args: Any, **kwargs: Any) -> Any:
            with self.call(tool) as call:
                result = function(*args, **kwargs)
                if inspect.isawaitable(result):
                    call.pending()  # it is handed on, and nobody knows how it ends
                return result

        async def recorded_async(*args: Any, **kwargs: Any) -> Any:
            with self.call(tool):
                return await function(*args, **kwargs)

        wrapper: Any = recorded_async if inspect.iscoroutinefunction(body) else recorded
        functools.update_wrapper(wrapper, inner if hasattr(inner, "__name__") else body)
        wrapper.__wrapped__ = function  # whose signature it has
        return wrapper

    def close(self) -> None:
        """Write the file, once: whole, or not at all when it cannot be, or may not hold what was recorded."""
        with self._lock:
            if self._process != os.getpid():
                return
            self._process = 0
            problems: list[str] = []
            name, entries = quoted_word(os.path.basename(self._path)), []
            accepted = 'overlap="start-order" accepts calls that run in parallel, in the order of their start'
            for index, run in enumerate(self._runs.values()):
                for call in run._calls:  # of what was said of it and how it ended, what proves less holds
                    call._call.status = max(call._call.status, call._ended, key=STATUSES.index)
                entries.append({**run._named, "calls": [report_call(call._call) for call in run._calls]})
                parallel = (
                    f"{other._call.id} began before {call._call.id} had ended, and not inside it"
                    for place, call in enumerate(run._calls, start=1)
                    for other in run._calls[place : call._begun]
                    # As in imports, a call that never ended overlaps nothing: it is pending, which no case lets pass.
                    if other._begun and call not in other._around
                )
                if self._overlap == "refuse" and (ran := next(parallel, "")):
                    problems.append(f"{name}: $[{index}].calls: {ran}; {accepted}")
            data = json_bytes(entries)
            accept(problems, name, lambda: within(data, BOUNDS["size"]), read_observed)
            if problems:
                raise InputError(problems)
            try:
                with contextlib.ExitStack() as cleanup:
                    # Unlike a command's last output it settles no exit status.
                    stage(Output("", "", self._path, lambda _: data), cleanup)[1](False)
            except OSError as error:
                raise OSError(error.errno, f"the traces cannot be written: {reason(error)}", self._path) from error

    def _place(self) -> tuple[RecordedRun, tuple[RecordedCall, ...]]:
        """The run of this context and the calls around this place; where none is open, one that no file holds."""
        with self._lock:
            run, around = self._where()
            if not run._open and any(other._open for other in self._runs.values()):
                raise RuntimeError(
                    "this call is in no open run, and would be lost: a thread inherits the run of its starter through "
                    "contextvars.copy_context().run, and a run must wait in its block for all that it starts"
                )
            return (run, around) if run._open else (RecordedRun(self, {}), ())

    def _refuse_run(self, id: str) -> None:
        if self._where()[0]._open:
            raise RuntimeError("a run is open in this context: runs do not nest")
        if given_name("the id of a run", id) in self._runs:
            raise ValueError("the id of a run must be unique, but an earlier run has the same")

    def _where(self) -> Any:
        """What this context has entered last, by now perhaps left; a RuntimeError once nothing can be recorded."""
        if self._process != os.getpid():
            raise RuntimeError("nothing more can be recorded: the recorder is closed, or belongs to another process")
        return self._here.get()


__all__.append("Recorder")

# ---- comparison: two reports -> what got worse, better, other -----------------------------------

CHANGES = ("regressed", "removed", "added", "changed", "fixed")  # what there is to tell, in this order

COMPARE_HELP = """\
usage: agent_trace_audit.py compare BEFORE AFTER [options]

Compare two reports of this program: which cases got worse, which better, which changed otherwise.

arguments and options:
  BEFORE                     the report of the earlier check; - is standard input
  AFTER                      the report of the later one; - is standard input (for one of the two)
  --fail-on-regressions      exit 2 when the comparison's verdict is fail
  --output FILE              write there, whole or not at all, instead of to standard output
  --summary                  also explain the result on standard error, passing or not
  --version                  show the version and the SHA-256 of this script's own bytes
  --help                     show this help

The verdict is fail when a case, or the report as a whole, passed before and does not now, or a case is gone.
The exit status is that of a check, with --fail-on-regressions in place of --fail-on-errors.
"""


def having(**keys: Reader) -> Reader:
    """A reader of objects with at least these keys; what else they hold is not looked at."""
    read = object_of({name: Key(read, required=True) for name, read in keys.items()})
    return lambda value: read({key: value[key] for key in keys if key in value} if isinstance(value, dict) else value)


def read_sum(value: Any) -> int:
    """A whole number that a report can have added up."""
    number, most = exact_whole(value), BOUNDS["traces"].value * BOUNDS["total_tool_ms"].value
    if number is None or not 0 <= number <= most:
        raise Misfit(("", f"must be a whole number from 0 to {most:,}"))
    return number


def measured(read_total: Reader) -> Reader:
    """A reader of a cost or a time; None where some call is not measured."""
    read = having(known_total=read_total, unknown_calls=read_sum)
    return lambda value: None if (used := read(value))["unknown_calls"] else used["known_total"]


def read_report(value: Any) -> dict[str, Any]:
    """What is compared of a report: its verdict, its totals, and of each case, by its id, what a change shows."""
    first = value[0] if isinstance(value, list) and value else value
    if first is not value or not isinstance(value, dict) or "report_version" not in value:
        kinds = {"calls": "recorded traces", "cases": "expected workflows", "comparison_version": "a comparison"}
        known = [f"this looks like {kinds[key]}" for key in kinds if isinstance(first, dict) and key in first]
        hint = (known or ["what another tool wrote cannot be compared"])[0]
        raise Refused(f': $: must be a report of this program, an object with the key "report_version"; {hint}')
    if exact_whole(value["report_version"]) != REPORT_VERSION:
        raise Refused(f": $.report_version: must be {REPORT_VERSION}; a report of another version cannot be compared")
    # Known words alone, since they are written out again: nothing else that stands in their place may be.
    rules = [*[rule.name for rule in RULES], "min_passing_runs", "max_failing_runs"]
    checks = array_of(having(rule=one_of(rules), verdict=one_of(VERDICTS)), Bound(len(rules), "checks"), least=1)
    money = text_that(re.compile(r"[0-9]{1,14}(?:\.[0-9]{1,6})?").fullmatch, 'must be a sum of money such as "0.25"')
    used, verdict = {"cost_usd": measured(money), "tool_ms": measured(read_sum)}, one_of((PASS, FAIL))
    ids: set[str] = set()
    cases = array_of(having(id=unlike(ids), verdict=verdict, checks=checks, **used), BOUNDS["cases"], 1, ids)
    try:
        report: dict[str, Any] = having(verdict=verdict, totals=having(**used), cases=cases)(value)
    except Misfit as misfit:
        raise Refused(*[f": ${place}: {text}" for place, text in misfit.args]) from None
    sides = {}
    for case in report["cases"]:
        failing = [check["rule"] for check in case["checks"] if check["verdict"] in (FAIL, UNKNOWN)]
        sides[case["id"]] = {"verdict": case["verdict"], "not_passing": failing, **{key: case[key] for key in used}}
    return {**report, "cases": sides}


def change_of(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    if before is None or after is None:
        return "removed" if before else "added"
    if before["verdict"] != after["verdict"]:
        return "regressed" if before["verdict"] == PASS else "fixed"
    return "unchanged" if set(before["not_passing"]) == set(after["not_passing"]) else "changed"


def compare_reports(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The comparison of two reports as they were read, each with the size and SHA-256 of its bytes as `input`."""
    found: dict[str, Any] = {kind: [] for kind in ("unchanged", "changed", "fixed", "regressed", "added", "removed")}
    for id in {**after["cases"], **before["cases"]}:  # those that are gone come last
        sides = {"before": before["cases"].get(id), "after": after["cases"].get(id)}
        change = change_of(**sides)
        found[change].append({"case": id, "change": change, **sides})
    comparison = {"comparison_version": 1, "checker": {"name": NAME, "version": VERSION}}
    for name, report in (("before", before), ("after", after)):
        passed = sum(case["verdict"] == PASS for case in report["cases"].values())
        counts = {"cases": len(report["cases"]), "passed": passed}
        comparison[name] = {**report["input"], "verdict": report["verdict"], **counts}
    worse = found["regressed"] or found["removed"] or before["verdict"] == PASS != after["verdict"]
    comparison["verdict"] = FAIL if worse else PASS
    comparison["totals"] = {change: len(cases) for change, cases in found.items()}
    for key in before["totals"]:
        comparison[key] = {"before": before["totals"][key], "after": after["totals"][key]}
    return {**comparison, "changes": [case for change in CHANGES for case in found[change]]}


def explain_comparison(comparison: dict[str, Any]) -> list[str]:
    """A line per change, with what does not pass now or, where nothing is now, before; and a line of counts."""
    lines = []
    for change in comparison["changes"]:
        side = change["before" if change["change"] in ("fixed", "removed") else "after"]
        failing = "passed" if side["verdict"] == PASS else ", ".join(side["not_passing"])
        lines.append(f"{change['change'].upper()} {change['case']}: {failing}")
    counts = ", ".join(f"{comparison['totals'][change]} {change}" for change in (*CHANGES, "unchanged"))
    anew = comparison["before"]["verdict"] == PASS != comparison["after"]["verdict"]
    return [*lines, counts + ("; the report passed before and fails now" if anew else "")]


def run_compare(options: dict[str, str]) -> Done:
    import hashlib

    paths, reports, problems = [options["BEFORE"], options["AFTER"]], [], []
    if paths == ["-", "-"]:
        raise Failure("standard input can serve BEFORE or AFTER, not both")
    for path in paths:
        try:
            data = read_bounded(path, BOUNDS["report"])
            read = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            value = read_json(data, Bound(64, "levels"), Bound(1_000_000, "JSON values"))
            reports.append({"input": read, **read_report(value)})
        except Refused as refused:
            problems += [quoted_word(path) + problem for problem in refused.args]
    if problems:
        raise InputError(problems)
    comparison = compare_reports(*reports)
    gate, failing, summary = "--fail-on-regressions" in options, comparison["verdict"] == FAIL, "--summary" in options
    lines = explain_comparison(comparison) if summary or (gate and failing) else []
    if failing and not gate and summary:
        lines.append("the exit status is 0 all the same: --fail-on-regressions was not given")
    output = main_output("comparison", options, json_bytes(comparison))
    return Done(paths, [output], lines, EXIT_VERDICT_FAIL if gate and failing else EXIT_REPORTED)


ONE_LINE |= {"before", "after"}  # so that the two sides of a change stand one above the other
COMMANDS["compare"] = Command("compare two reports: what got worse, what got better", COMPARE_HELP, run_compare)

# ---- importers: another tool's trace file -> observed traces without content, or a refusal by its place --

# Per imported file: more than observed traces may have, since most of it is not kept.
IMPORT_SIZE = Bound(16_777_216, "bytes (16 MiB)")
IMPORT_DEPTH = Bound(64, "levels")
IMPORT_NODES = Bound(1_000_000, "JSON values")

TOO_MANY_NODES = f": holds more than {IMPORT_NODES} (nodes)"
FOREIGN = "no record of this format"
KEY_TWICE = "a key stands twice in one object; keys must be unique"
REPEATED = ("record", "of a span recorded before: counted once")
UNASKED = ("result", "without its call: passed over")
METRICS = ("resource", "of metrics or logs: passed over")


def require(fits: Any, at: Any, text: str) -> None:
    if not fits:
        raise Misfit((at, text))


class KeyTwice(dict):  # type: ignore[type-arg]  # on 3.8 a dict takes none
    """An object in which a key stands twice."""


class Item:
    """A value of the file that knows its place: its document's line, the JSON path there, and what leads on to it."""

    def __init__(self, value: Any, at: tuple[int, str], within: str = "") -> None:
        self.value, self.at, self.within = value, at, within

    def require(self, fits: Any, text: str = FOREIGN) -> None:
        require(fits, self.at, text)

    def members(self) -> dict[str, Any]:
        if type(self.value) is not dict:
            raise Misfit((self.at, KEY_TWICE if isinstance(self.value, KeyTwice) else FOREIGN))
        return self.value

    def has(self, key: str) -> bool:
        return key in self.members()

    def get(self, key: str) -> Any:
        return self.members().get(key)

    def read(self, reader: Callable[[Any], Any], *spellings: str, needed: bool = False) -> Any:
        """The value of a key, which may be spelled in several ways, as a reader gives it; None for none or null."""
        members, found, name = self.members(), None, spellings[0]
        for spelling in spellings:
            value = members.get(spelling)
            if value is not None and found is not None:
                raise Misfit((self.at, f"{name} and {spelling} are two spellings of one key; only one may be there"))
            if value is not None:
                found, name = value, spelling
        if found is None and not needed:
            return None
        try:
            return reader(found)
        except Misfit as misfit:
            raise Misfit((self.at, f"{self.within}{quoted_word(name)} {misfit.args[0][1]}")) from None

    def text(self, *spellings: str) -> str:
        """The non-empty string that must be there."""
        return str(self.read(a_text, *spellings, needed=True))

    def inner(self, key: str) -> Item:
        """The object under a key; an empty one where it is missing or null."""
        return Item(self.read(an_object, key) or {}, self.at, f"{self.within}{key}.")

    def entries(self, *keys: str) -> Iterator[Item]:
        """The entries of an array, or of the arrays under these keys; a key that is missing or null has none."""
        line, path = self.at
        arrays = [(f".{self.within}{key}", self.read(an_array, key)) for key in keys] if keys else [("", self.value)]
        for way, array in arrays:
            for index, entry in enumerate(array or ()):
                yield Item(entry, (line, f"{path}{way}[{index}]"))


# What reads a value: each gives it, or raises what it must be, and never says what it is.


def reader_of(kind: type, must: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        require(isinstance(value, kind), "", must)
        return value

    return read


an_object, an_array = reader_of(dict, "must be an object"), reader_of(list, "must be an array")
a_string, a_boolean = reader_of(str, "must be a string"), reader_of(bool, "must be true or false")
a_text = text_that(
    lambda text: text and not SURROGATE.search(text), "must be a non-empty string without unpaired surrogates"
)
# Keeps 100 characters exactly; beyond the exponents of Decimal, rounds up to infinity, or to more than nothing.
ANY_NUMBER = Context(prec=120, rounding="ROUND_CEILING", traps=[])


def a_number(value: Any) -> Decimal:
    """A JSON number, exactly. What is not read may be NaN or of any length."""
    if isinstance(value, Number) and len(value.text) <= BOUNDS["number"].value and value.text[-1].isdigit():
        return ANY_NUMBER.create_decimal(value.text)
    raise Misfit(("", f"must be a number of at most {BOUNDS['number']}"))


def an_integer(value: Any) -> int:
    """A whole number of 64 bits, or its digits as a string, which is how JSON made from protobuf writes it."""
    digits = isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value)
    number = int(value) if digits else exact_whole(value)
    if number is None or not 0 <= number < 2**64:
        raise Misfit(("", "must be a whole number of at most 64 bits, as a number or a string of digits"))
    return number


def a_case(value: Any) -> str:
    """What names a case."""
    with contextlib.suppress(Misfit):
        return str(a_text(value) if isinstance(value, str) else an_integer(value))
    raise Misfit(("", "must be a non-empty string or a whole number"))


def milliseconds(value: Any) -> Decimal:
    """A point in time in milliseconds -> nanoseconds, exactly, whatever its decimals."""
    number = a_number(value)
    require(number.is_finite() and -100 < number.adjusted() < 30, "", "must be a point in time in milliseconds")
    return number.scaleb(6, ANY_NUMBER)


def rounded_up(number: Decimal) -> int:
    """Milliseconds as a whole number; what is out of bounds stays out of bounds."""
    beyond = Decimal(BOUNDS["duration_ms"].value + 1)
    return -1 if number < 0 else int(min(number, beyond).to_integral_value("ROUND_CEILING", ANY_NUMBER))


ISO_TIME = r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-]\d\d)(?::?([0-5]\d))?)?"


def iso_time(value: Any) -> int:
    """An ISO 8601 time -> nanoseconds since 1970, exactly; without an offset it is UTC."""
    import datetime

    parts = re.fullmatch(ISO_TIME, value, re.ASCII) if isinstance(value, str) else None
    with contextlib.suppress(ValueError):  # there is no such day, hour or offset
        if parts:
            time = datetime.datetime.fromisoformat(f"{parts[1]}{parts[3] or '+00'}:{parts[4] or '00'}")
            passed = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
            return (passed.days * 86_400 + passed.seconds) * 10**9 + int((parts[2] or "").ljust(9, "0"))
    raise Misfit(("", "must be an ISO 8601 time such as 2026-01-05T10:00:00.250Z"))


class Record(SimpleNamespace):
    """What every format gives: one span, call or not, times in nanoseconds. The defaults are what it leaves open."""

    at: tuple[int, str]
    span: Any  # its id, or its place in the trace, from 1, where it has none
    parent: Any = None
    tool: str | None = None  # None for a span that is no call
    start: Any = None
    end: Any = None
    asked: int | None = None  # where its request and its answer stand in the file: for what has no times
    answered: int | None = None
    failed: bool = False
    ended: bool = False
    args: Any = None
    output: Any = None
    sure: bool = False  # an end without an error is a success, output or not
    waits: bool = False  # for an approval: pending, whatever else is recorded
    asks: bool = False  # its output only asked for an approval: pending unless it failed
    agentic: bool = True  # whether it is any evidence of an agent
    marks: tuple[Any, ...] = ()  # a direct child that shares one is the same call,
    served: bool = False  # and, anywhere inside a call, what carries or serves one of the same tool
    measured_ms: int | None = None  # stands in where a start or an end is missing
    cost: Decimal | None = None
    merged: bool = False  # from two records


class Gathered:
    """One trace while its records come in: each span once, at the place of its first record."""

    def __init__(self, at: tuple[int, str]) -> None:
        self.at = at
        self.records: list[Record] = []
        self.spans: dict[Any, int] = {}  # span -> its index in `records`
        self.answers: dict[Any, dict[str, Any]] = {}  # span -> what a record of its own says of its end
        self.given: dict[str, str] = {}  # fields that must agree within the trace; --case-id picks one


class Found:
    """What a file holds: its traces in order of their first records, what is refused, and what notes will say.

    As a context it collects what is refused inside, so that one bad record hides no other.
    """

    def __init__(self, options: dict[str, str], content: Any = None) -> None:
        self.options = options
        self.content = content  # what is handed args and outputs, and has more to say of calls
        self.field = options.get("--case-id", "trace")  # the one that names the case
        self.traces: dict[str, Gathered] = {}
        self.words: set[bytes] = set()  # of records and whole traces, to know those that are repeated word for word
        self.problems: list[tuple[tuple[int, str], str]] = []
        self.noted: dict[tuple[str, str], int] = {}
        self.names: dict[str, dict[str, str]] = {}
        self.known = False  # whether there was any record of the format
        self.refused = self.talks = self.records = self.spare = 0  # spare: records beyond one of a call

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, Misfit):
            self.known = self.known or error.args[0][1] != FOREIGN
            self.refused += 1
            if self.refused <= BOUNDS["problems"].value:  # a file may hold a million
                self.problems.append(error.args[0])
        return isinstance(error, Misfit)

    def note(self, noun: str, text: str, number: int = 1) -> None:
        if number:
            self.noted[noun, text] = self.noted.get((noun, text), 0) + number

    def clean(self, text: str, what: str, at: tuple[int, str]) -> str:
        """A name with the characters that may be written; `names` holds what each clean name of a kind was before."""
        cleaned, taken = re.sub("[^A-Za-z0-9.:_-]", "_", text), self.names.setdefault(what, {})
        require(IDENTIFIER.fullmatch(cleaned), at, f"the {what} must have 1 to 128 characters")
        if cleaned not in taken:
            self.note("name", "with characters replaced by _ (of tools, cases and calls)", cleaned != text)
        advice = "becomes the same as another when all but A-Z a-z 0-9 . : _ - becomes _; they must differ in those"
        require(taken.setdefault(cleaned, text) == text, at, f"the {what} {advice}")
        return cleaned

    def keep(self, tool: str | None, part: str, value: Any) -> Any:
        """The one way by which args and outputs come in: asked if they are there, and nothing else is kept here."""
        if value is None:
            return None
        return self.content.keep(tool, part, value) if self.content else True

    def asked(self, item: Item, **keys: str) -> dict[str, str]:
        """The field that --case-id names, by its key, where it is given; a KEY is looked up in `metadata` or here."""
        field, _, key = self.field.partition(".")
        if field not in keys:
            return {}
        item = item.inner(keys[field]) if key and keys[field] else item
        value = item.read(a_case, key or keys[field])
        return {} if value is None else {self.field: value}

    def trace(self, item: Item, id: str, given: dict[str, str], whole: bool = False) -> Gathered | None:
        """The trace that an item is of, or is as a whole; None for one that was there before, word for word."""
        self.known, known, word = True, id in self.traces, fingerprint([id, item.value])
        if word in self.words:
            self.note(*(("trace", "recorded before, word for word: counted once") if whole else REPEATED))
            self.spare += not whole
            return None
        item.require(not (whole and known), "a different trace with the same id was recorded before")
        self.words.add(word)
        trace = self.traces[id] if known else self.traces.setdefault(id, Gathered(item.at))
        for field, value in given.items():
            text = f"gives another {quoted_word(field)} than a record of its trace before"
            item.require(trace.given.setdefault(field, value) == value, text)
        return trace

    def span(self, trace: Gathered | None, item: Item, **fields: Any) -> None:
        """A span of a trace, recorded as a whole or by two records, its start and its end, in either order."""
        self.records += 1
        if trace is None:
            return
        for part in ("args", "output"):
            fields[part] = self.keep(fields["tool"], part, fields.get(part)) if fields.get("tool") else None
        record = Record(at=item.at, **{name: value for name, value in fields.items() if value is not None})
        index = trace.spans.setdefault(record.span, len(trace.records))
        if index == len(trace.records):
            trace.records.append(record)
            return
        first = trace.records[index]
        same = (first.parent, first.tool, first.start) == (record.parent, record.tool, record.start)
        end = same and (first.end is None) != (record.end is None) and not first.merged
        item.require(end, "repeats a span id of its trace, and is neither the same word for word nor the span's end")
        self.spare += 1
        self.note(*REPEATED)
        trace.records[index] = merge(record if first.end is None else first, first, record)

    def answer(self, trace: Gathered, span: Any, output: Any, **fields: Any) -> None:
        """What ends a call, wherever the call itself stands; the first one counts."""
        tool = trace.records[trace.spans[span]].tool if span in trace.spans else None
        if span not in trace.answers:
            trace.answers[span] = {**fields, "ended": True, "output": self.keep(tool, "output", output)}


def merge(kept: Record, first: Record, other: Record) -> Record:
    """Two records of one call, at the place of the first. What either of them establishes stays."""
    fields = {**vars(kept), "at": first.at, "merged": True}
    for name in ("failed", "waits", "asks", "agentic"):
        fields[name] = getattr(first, name) or getattr(other, name)
    for name in ("args", "output"):
        values = [getattr(record, name) for record in (kept, first, other)]
        fields[name] = next((value for value in values if value is not None), None)
    return Record(**fields)


def fingerprint(value: Any) -> bytes:
    """The same for values that are equal as JSON, whatever the order of their keys; numbers as written."""
    import hashlib

    nan = float("nan")  # is always kept as text, and so sets a number apart from an array of its text
    canonical = json.dumps(value, sort_keys=True, check_circular=False, default=lambda number: [nan, number.text])
    return hashlib.sha256(canonical.encode("ascii")).digest()[:16]


# The readers: each adds what an item of its format holds, and refuses one that is none of it.


def read_openai_agents(item: Item, found: Found) -> None:
    for record in item.entries("data") if isinstance(item.get("data"), list) else [item]:
        with found:
            kind = record.get("object")
            if kind == "trace":
                given = found.asked(record, workflow="workflow_name", group="group_id", metadata="metadata")
                found.trace(record, record.text("id"), given)
                found.records += 1
                continue
            record.require(kind == "trace.span")
            data, end = record.inner("span_data"), record.read(iso_time, "ended_at")
            tool = data.text("name") if data.text("type") == "function" else None
            output = data.get("output")
            # Its versions 0.10 to 0.22 write this for a call that waits for an approval: nothing ran.
            asks = (
                isinstance(output, str) and output.startswith("FunctionToolResult(") and "ToolApprovalItem(" in output
            )
            found.span(
                found.trace(record, record.text("trace_id"), {}),
                record,
                span=record.text("id"),
                parent=record.read(a_text, "parent_id"),
                tool=tool,
                start=record.read(iso_time, "started_at"),
                end=end,
                failed=record.get("error") is not None,
                ended=end is not None,
                args=data.get("input"),
                output=None if asks else output,
                asks=asks,
            )


GENERIC_KEYS = ("trace_id", "span_id", "type")
GENERIC_TYPES = ("tool", "function", "agent", "generation", "guardrail", "handoff", "custom")


def read_generic_jsonl(item: Item, found: Found) -> None:
    missing, kind = [key for key in GENERIC_KEYS if not item.has(key)], item.get("type")
    item.require(len(missing) < 2)
    item.require(not missing, f"a span must have {listing(GENERIC_KEYS)}; it has no {''.join(missing)}")
    item.require(kind in GENERIC_TYPES, f"type must be one of {', '.join(GENERIC_TYPES)}")
    trace, end, output = item.text("trace_id"), item.read(iso_time, "ended_at"), item.get("output")
    # Of its metadata the first record of the trace tells; the other two are given by any and must agree.
    given = found.asked(item, metadata="trace_metadata") if trace not in found.traces else {}
    for field, key in (("workflow", "workflow_name"), ("group", "group_id")):
        given.update({field: item.read(a_case, key)} if item.get(key) is not None else {})
    found.span(
        found.trace(item, trace, given),
        item,
        span=item.text("span_id"),
        parent=item.read(a_text, "parent_id"),
        tool=item.text("name") if kind in ("tool", "function") else None,
        start=item.read(iso_time, "started_at"),
        end=end,
        failed=item.get("error") is not None,
        ended=end is not None or output is not None,
        args=item.get("input"),
        output=output,
    )


def read_attest(item: Item, found: Found) -> None:
    item.require(item.has("steps") and (item.has("schema_version") or item.has("trace_id")))
    given = found.asked(item, agent="agent_id", conversation="conversation_id")
    trace = found.trace(item, item.text("trace_id"), given, whole=True)
    steps = list(attest_steps(item, iter(range(1, sys.maxsize)), None)) if trace else []
    spans = {span for _, span, _ in steps}
    for step, span, around in steps:
        with found:
            parent = step.read(a_text, "parent_span_id")
            inside = parent if parent in spans else around
            if step.text("type") != "tool_call":
                found.span(trace, step, span=span, parent=inside)
                continue
            metadata, result, end = step.inner("metadata"), step.get("result"), step.read(milliseconds, "ended_at_ms")
            soft_error = isinstance(result, dict) and result.get("error") is not None
            found.span(
                trace,
                step,
                span=span,
                parent=inside,
                tool=step.text("name"),
                start=step.read(milliseconds, "started_at_ms"),
                end=end,
                failed=step.get("error") is not None or soft_error,
                ended=end is not None or result is not None,  # neither: a request, which proves no run
                args=step.get("args"),
                output=result,
                measured_ms=metadata.read(lambda value: rounded_up(a_number(value)), "duration_ms"),
                cost=metadata.read(a_number, "cost_usd"),
            )


def attest_steps(trace: Item, places: Iterator[int], around: Any) -> Iterator[tuple[Item, Any, Any]]:
    """Every step with its span and the span of the step around it; those of a sub_trace after its own."""
    version = trace.read(a_number, "schema_version", needed=not trace.within)
    trace.require(version in (None, 1, 2), f"{trace.within}schema_version must be 1 or 2")
    trace.read(an_array, "steps", needed=True)
    for step in trace.entries("steps"):
        place, id = next(places), step.read(a_text, "span_id")
        span = place if id is None else id
        yield step, span, around
        if step.get("sub_trace") is not None:
            yield from attest_steps(step.inner("sub_trace"), places, span)


OTLP_SPANS = ("resourceSpans", "resource_spans", "batches")
OTLP_OTHERS = ("resourceMetrics", "resource_metrics", "resourceLogs", "resource_logs")
OTLP_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
OTLP_STATUS_NAMES = ("STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR")
OTLP_AGENTIC = ("gen_ai.", "openinference.", "traceloop.", "ai.", "langsmith.")
OTLP_NAMES = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name", "langsmith.trace.name")
# What tells a call from other spans: of another type than text, it must not make a call vanish.
OTLP_KINDS = ["gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind"]
OTLP_KINDS += ["mcp.method.name"]
# What makes a span look like a call, by its value where that matters. DSPy and instructor give no tool.name.
OTLP_LOOKS = {"openinference.span.kind": "TOOL", "gen_ai.tool.name": "", "gen_ai.tool.call.id": ""}
OTLP_LOOKS.update({"langfuse.observation.type": "tool", "mlflow.spanType": "TOOL", "span.type": "tool"})
OTLP_IN = ("gen_ai.tool.call.arguments", "tool_arguments", "ai.toolCall.args", "input.value", "traceloop.entity.input")
OTLP_OUT = ("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "output.value", "traceloop.entity.output")
OTLP_ENDS = ("error.type", "gen_ai.tool.status", "langfuse.observation.level", "pydantic_ai.tool.deferral.name")
OTLP_READ = {*OTLP_NAMES, *OTLP_KINDS, *OTLP_LOOKS, *OTLP_ENDS, "gen_ai.conversation.id"}


def read_otlp(item: Item, found: Found) -> None:
    if isinstance(item.get("trace"), dict):  # as Tempo answers
        item.require(not any(map(item.has, OTLP_SPANS)), "spans must stand under trace or beside it, not both")
        item = item.inner("trace")
    item.require(any(map(item.has, OTLP_SPANS + OTLP_OTHERS)))
    found.note(*METRICS, len(list(item.entries(*OTLP_OTHERS))))
    for group in item.entries(*OTLP_SPANS):
        with found:
            resource, _ = otlp_attributes(group.inner("resource"), found)
            for scope in group.entries(*OTLP_SCOPES):
                for span in scope.entries("spans"):
                    with found:
                        read_otlp_span(span, resource, found)


def read_otlp_span(span: Item, resource: Item, found: Found) -> None:
    own, agentic = otlp_attributes(span, found)
    tool, looks = otlp_tool(own, span, found)
    end = span.read(an_integer, "endTimeUnixNano", "end_time_unix_nano") or None  # 0: not ended
    failed = (
        span.inner("status").read(otlp_status, "code") == 2
        or own.has("error.type")
        or own.get("gen_ai.tool.status") == "error"  # Strands before 1.35, on a span whose status is OK
        or own.get("langfuse.observation.level") == "ERROR"
    )
    call_id, entity = own.read(a_string, "gen_ai.tool.call.id") if tool else None, own.get("traceloop.entity.name")
    marks = [(tool, call_id)] if call_id not in (None, "", "<not specified>") else []  # ADK specifies none for its own
    marks += [entity] if entity and own.get("traceloop.span.kind") == "tool" else []  # of two of its instrumentations
    # A span's own attribute wins over its resource's.
    given = found.asked(own, conversation="gen_ai.conversation.id", metadata="") or found.asked(resource, metadata="")
    found.span(
        found.trace(span, span.text("traceId", "trace_id"), given),
        span,
        span=span.text("spanId", "span_id"),
        parent=span.read(a_string, "parentSpanId", "parent_span_id") or None,
        tool=tool,
        start=span.read(an_integer, "startTimeUnixNano", "start_time_unix_nano"),
        end=end,
        failed=failed,
        ended=end is not None,
        args=otlp_content(span, OTLP_IN) if tool else None,
        output=otlp_content(span, OTLP_OUT) if tool else None,
        sure=True,  # exporters leave content out by default
        waits=own.has("pydantic_ai.tool.deferral.name"),
        agentic=agentic or tool is not None or looks,
        marks=tuple(marks),
        served=own.get("mcp.method.name") == "tools/call",
    )


def otlp_attributes(holder: Item, found: Found) -> tuple[Item, bool]:
    """The attributes that are read, without those of no value, and whether any one at all tells of an agent."""
    asked = found.field[9:] if found.field.startswith("metadata.") else None
    values: dict[str, Any] = {}
    agentic = False
    for entry in holder.entries("attributes"):
        key = entry.read(a_string, "key", needed=True)
        agentic = agentic or key.startswith(OTLP_AGENTIC)
        if key in OTLP_READ or key == asked:
            value = otlp_value(entry.inner("value"))
            same = key not in values or fingerprint(values[key]) == fingerprint(value)
            entry.require(same, "an attribute is given twice, with two values")
            values[key] = value
    return Item({key: value for key, value in values.items() if value is not None}, holder.at), agentic


def otlp_value(value: Item) -> Any:
    """A string or a whole number; anything else stays what it is, and an empty value is None."""
    text = value.read(lambda text: text, "stringValue", "string_value")
    number = value.read(an_integer, "intValue", "int_value")
    return text if text is not None else Number(str(number)) if number is not None else value.value or None


def otlp_content(span: Item, keys: Sequence[str]) -> Any:
    """The first of these attributes that has a value, as the JSON that it stands for."""
    values = {entry.get("key"): entry.get("value") for entry in span.entries("attributes")}
    return next((attribute_json(values[key]) for key in keys if values.get(key)), None)


def attribute_json(value: Any) -> Any:
    """Content is never refused: what stands for no JSON stays as it is."""
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        [(key, inner)] = value.items()
        kind = key.replace("_", "").lower()
        if kind == "kvlistvalue":
            pairs = [(str(entry["key"]), attribute_json(entry.get("value"))) for entry in inner.get("values", ())]
            return dict(pairs) if len(dict(pairs)) == len(pairs) else None  # which of two is meant, nobody knows
        if kind == "arrayvalue":
            return [attribute_json(entry) for entry in inner.get("values", ())]
        if kind in ("stringvalue", "boolvalue", "bytesvalue", "intvalue", "doublevalue") and inner is not None:
            return Number(inner) if kind[0] in "id" and isinstance(inner, str) else inner
    return value or None


def otlp_status(code: Any) -> int:
    with contextlib.suppress(Misfit):
        number = OTLP_STATUS_NAMES.index(code) if code in OTLP_STATUS_NAMES else an_integer(code)
        if number <= 2:
            return number
    raise Misfit(("", f"must be 0, 1, 2 or one of {', '.join(OTLP_STATUS_NAMES)}"))


def otlp_tool(own: Item, span: Item, found: Found) -> tuple[str | None, bool]:
    """The tool of a span that is a call by any of the conventions, and whether it at least looks like one."""
    name = span.read(a_string, "name") or ""
    if not own.value and " " not in name:
        return None, False  # plain, as most spans of a service are
    operation, kind, traceloop, langsmith, method = [own.read(a_text, key) for key in OTLP_KINDS]
    # ADK sums up parallel calls in a span of their kind, OpenInference has handoffs of theirs.
    merged = own.get("gen_ai.tool.name") == "(merged tools)" or name == "execute_tool (merged)"
    if merged or (kind == "TOOL" and name.startswith("handoff to ")):
        return None, False
    named, served = [name[len(verb) :] if name.startswith(verb) else "" for verb in ("execute_tool ", "tools/call ")]
    called = (
        operation == "execute_tool"
        or (own.has("gen_ai.tool.name") and own.has("gen_ai.tool.call.id"))  # Latitude has operations of its own
        or (kind == "TOOL" and own.has("tool.name"))
        or "tool" in (traceloop, langsmith)
        or method == "tools/call"
        or own.has("ai.toolCall.name")
        or (operation is None and (named or (name == "running tool" and own.has("gen_ai.tool.name"))))
    )
    # MLflow writes JSON into its strings.
    looks = [key for key, word in OTLP_LOOKS.items() if own.has(key) and word in ("", str(own.get(key)).strip('"'))]
    if not called and not looks:
        return None, False
    if not called:
        ways = "but is none by what tells one; --unnamed skip leaves it out, --unnamed span-name counts it"
        span.require("--unnamed" in found.options, f"looks like a tool call by its {looks[0]}, {ways}")
        skip = found.options["--unnamed"] == "skip"
        found.note("span", f"that looked like a tool call: {'left out' if skip else 'counted as one'}")
        if skip:
            return None, True
    names = [own.get(key) for key in OTLP_NAMES if own.has(key)]
    names += [named or served or (name if langsmith == "tool" or not called else None)]
    tool = names[0] if isinstance(names[0], str) and not SURROGATE.search(names[0]) else ""
    span.require(tool, f"a tool call must name its tool, in {listing(OTLP_NAMES)} or as execute_tool NAME")
    return tool, True


def read_traceix(item: Item, found: Found) -> None:
    payload = item.has("trajectories")
    item.require(payload or (item.has("test_name") and item.has("steps")))
    alone = not payload or (not item.has("steps") and item.get("trajectories") is not None)
    item.require(alone, "trajectories must be an array, in a record without steps of its own")
    found.known = True  # a payload without trajectories is a record all the same
    for trajectory in item.entries("trajectories") if payload else [item]:
        with found:
            trajectory.read(an_array, "steps", needed=True)
            trace = found.trace(trajectory, trajectory.text("test_name"), {}, whole=True)
            for number, step in enumerate(trajectory.entries("steps") if trace else (), 1):
                with found:
                    step.require(step.has("error"), "must have the key error; a golden snapshot records no outcome")
                    found.span(
                        trace,
                        step,
                        span=number,
                        tool=step.text("tool"),
                        failed=step.get("error") is not None,
                        ended=True,
                        args=step.get("args"),
                        output=step.get("result"),
                        measured_ms=step.read(lambda value: rounded_up(a_number(value)), "latency_ms"),
                    )


def read_claude_code(item: Item, found: Found) -> None:
    kind, spoken, records = item.get("type"), item.get("type") in ("assistant", "user"), found.records
    session = item.read(a_text, "sessionId") or item.read(a_text, "session_id")
    item.require(isinstance(kind, str) and (session is not None or not (spoken or item.has("trace_id"))))
    if session is not None:  # unlike a summary
        known = session in found.traces and found.field in found.traces[session].given  # later lines may differ
        trace = found.trace(item, session, {} if known else found.asked(item, metadata=""))
        message, place = item.inner("message") if spoken else Item({}, item.at), len(found.words)
        fits = kind != "assistant" or isinstance(message.get("content"), (list, str))
        item.require(fits, "message.content must be an array of blocks, or a string")
        for block in message.entries("content") if isinstance(message.get("content"), list) else ():
            with found:
                if trace:
                    read_claude_block(block, item, trace, place, found)
    found.records += records == found.records


def read_claude_block(block: Item, line: Item, trace: Gathered, place: int, found: Found) -> None:
    """A tool_use or a tool_result; what only ends so is of a tool of the server."""
    kind, time = f"_{block.text('type')}", line.read(iso_time, "timestamp")
    agent, caller = line.read(a_text, "agentId"), line.read(a_text, "parent_tool_use_id")
    if kind.endswith("_tool_use") and line.get("type") == "assistant":
        id, tool, args = block.text("id"), block.text("name"), block.get("input")
        parent = caller if caller or not agent else ("agent", agent)
        if id in trace.spans:  # a resumed session holds copies of the lines before
            found.note(*REPEATED)
        else:
            found.span(trace, block, span=id, parent=parent, tool=tool, start=time, asked=place, sure=True, args=args)
    if kind.endswith("_tool_result"):
        id, failed = block.text("tool_use_id"), block.read(a_boolean, "is_error") or False
        found.answer(trace, id, block.get("content"), end=time, answered=place, failed=failed)
        own = caller or line.get("isSidechain") is True
        told = line.inner("toolUseResult").get("agentId") if isinstance(line.get("toolUseResult"), dict) else None
        started = told if isinstance(told, str) and told != agent else None if own else agent
        if started and ("agent", started) not in trace.spans:  # the sub-agent, between its calls and this one
            trace.spans["agent", started] = len(trace.records)
            trace.records.append(Record(at=block.at, span=("agent", started), parent=id))


def read_talks(item: Item, found: Found, read: Callable[[Item], Any]) -> None:
    """The conversations of a document: a list of messages, an object that holds one, or an array of either.

    `read` gives a message's calls: (item, id, tool, args), and what it answers, if anything: (id, output, failed).
    """
    id, given, held = None, {}, []
    if isinstance(item.value, list):
        messages = list(item.entries())
        first = item.value[0] if messages else None
        if isinstance(first, list) or (isinstance(first, dict) and not first.keys().isdisjoint(TALKS)):
            for entry in messages:
                with found:
                    read_talks(entry, found, read)
            return
    else:
        keys = [key for key in TALKS if isinstance(item.get(key), (list, dict))]
        item.require(len(keys) < 2, f"only one of {listing(TALKS)} may be there")
        holder = item.inner("values") if isinstance(item.get("values"), dict) else item  # the state of a thread
        keys = [key for key in TALKS if holder.has(key)]
        item.require(keys)  # which a lone message has not
        messages, id, given = list(holder.entries(keys[0])), item.read(a_case, "id"), found.asked(item, metadata="")
        if not given and isinstance(item.get("metadata"), dict):  # where LangGraph states their thread
            given = found.asked(item, metadata="metadata")
    for message in messages:
        with found:
            held.append(read(message))
    found.talks += len(held) > 0
    trace = found.trace(item, id or f"conversation-{found.talks}", given, whole=True) if held else None
    if trace:
        pair(held, trace, found)


TALKS = ("messages", "traj", "values")


def pair(messages: list[Any], trace: Gathered, found: Found) -> None:
    """The order of messages stands in for times, and an answer ends the last open call of its id."""
    open_calls: dict[Any, list[int]] = {}
    for place, (calls, answer) in enumerate(messages):
        found.records += not calls
        for item, id, tool, args in calls:
            number = len(trace.records) + 1
            open_calls.setdefault(id, []).append(number)
            found.span(trace, item, span=number, tool=tool, asked=place, sure=True, args=args)
        if answer and open_calls.get(answer[0]):
            id, output, failed = answer
            found.answer(trace, open_calls[id].pop(), output, answered=place, failed=failed or False)
            text = "ended by what does not tell success from failure: counted as succeeded"
            found.note("call", text, failed is None)
        elif answer:
            found.note(*UNASKED)


OPENAI_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def read_openai_message(message: Item) -> Any:
    role, legacy, calls = message.get("role"), message.inner("function_call"), []
    message.require(isinstance(role, str))
    message.require(role in OPENAI_ROLES, f"role must be one of {', '.join(OPENAI_ROLES)}")
    blocks = [*(message.get("content") if isinstance(message.get("content"), list) else ()), message.value]
    kinds = [str(block.get("type")) for block in blocks if isinstance(block, dict)]
    other = any("tool" in kind for kind in kinds) or message.has("parts") or message.has("toolInvocations")
    message.require(not other, "holds tool calls in the way of another API; they must stand in tool_calls")
    for call in message.entries("tool_calls"):
        key, args = ("function", "arguments") if call.get("custom") is None else ("custom", "input")
        calls.append((call, call.read(a_text, "id"), call.inner(key).text("name"), call.inner(key).get(args)))
    if legacy.value:
        calls.append((message, ("named", legacy.text("name")), legacy.text("name"), legacy.get("arguments")))
    message.require(not calls or role == "assistant", "only a message of the role assistant may hold tool calls")
    if role not in ("tool", "function"):
        return calls, None
    id = message.read(a_text, "tool_call_id") if role == "tool" else ("named", message.text("name"))
    return calls, (id, message.get("content"), None)


LANGCHAIN_TYPES = ("ai", "human", "system", "tool", "function", "chat", "remove")


def read_langchain_message(message: Item) -> Any:
    """Flat, {"type", "data"} or {"lc", "id", "kwargs"}, where the last name of the id stands for the type."""
    names, kind = message.get("id"), message.get("type")
    wrapper = next((key for key in ("kwargs", "data") if isinstance(message.get(key), dict)), None)
    body = message.inner(wrapper) if wrapper else message
    if wrapper == "kwargs" and isinstance(names, list) and names:
        kind = names[-1]
    kind = kind.replace("Message", "").lower() if isinstance(kind, str) and body.has("content") else ""
    message.require(not kind.endswith("chunk"), "must be a whole message, not a chunk of one")
    message.require(kind in LANGCHAIN_TYPES)
    entries = list(body.entries("tool_calls")) if kind == "ai" else []
    calls = [(call, call.read(a_text, "id"), call.text("name"), call.get("args")) for call in entries]
    raw = body.get("additional_kwargs") if not calls and not body.get("invalid_tool_calls") else None
    lost = isinstance(raw, dict) and (raw.get("tool_calls") or raw.get("function_call"))
    message.require(not lost, "holds calls in additional_kwargs alone; they must stand in tool_calls")
    if kind != "tool":
        return calls, None
    known = body.get("status") in (None, "success", "error")
    message.require(known, f"{body.within}status must be success or error")
    return calls, (body.read(a_text, "tool_call_id"), body.get("content"), body.get("status") == "error")


read_openai_chat = functools.partial(read_talks, read=read_openai_message)
read_langchain = functools.partial(read_talks, read=read_langchain_message)
Format = functools.partial(SimpleNamespace, arrays=False)  # whether an array is one item, not one in each entry
# Each format: what reads an item of its files, and the fields that may name a case besides `trace`.
FORMATS = {
    "openai-agents": Format(read=read_openai_agents, fields=("workflow", "group", "metadata.KEY")),
    "generic-jsonl": Format(read=read_generic_jsonl, fields=("workflow", "group", "metadata.KEY")),
    "attest": Format(read=read_attest, fields=("agent", "conversation")),
    "otlp": Format(read=read_otlp, fields=("conversation", "metadata.KEY")),
    "traceix": Format(read=read_traceix, fields=("test",)),
    "claude-code": Format(read=read_claude_code, fields=("metadata.KEY",)),
    "openai-chat": Format(read=read_openai_chat, fields=("metadata.KEY",), arrays=True),
    "langchain": Format(read=read_langchain, fields=("metadata.KEY",), arrays=True),
}
TRACE_FIELDS = ("trace", "test")  # traceix reads as `trace` what others do not have: a name that stays from run to run


def import_documents(path: str) -> Iterator[tuple[Item, bool]]:
    """Every document of a file, unsliced, and whether a key stands twice in it; the bounds are kept before a parser."""
    data = read_bounded(path, IMPORT_SIZE)
    text, bones = decode(data), skeleton(data)
    if exceeds_depth(bones, IMPORT_DEPTH):
        raise Refused(f": arrays and objects nested deeper than {IMPORT_DEPTH}")
    # Without a comma between them two brackets stand in two documents, and each document is a value.
    documents = sum(bones.count(joint) for joint in (b"}{", b"}[", b"]{", b"]["))
    if count_nodes(bones) + documents > IMPORT_NODES.value:
        raise Refused(TOO_MANY_NODES)
    del data, bones  # the memory is for the documents
    flawed: list[Any] = []

    def keep_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            flawed.append(members := KeyTwice(members))
        return members

    decoder = json.JSONDecoder(
        object_pairs_hook=keep_members, parse_int=Number, parse_float=Number, parse_constant=Number
    )
    blanks = re.compile(r"[ \t\r\n]*")
    position, line = 0, 1
    while (start := blanks.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", position, start)
        try:
            value, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # What is missing is missed where the text before it ends, not on the next line: this one was cut off.
            next_line = error.msg.startswith("Expecting property") and text.startswith("{", error.pos)
            if next_line or error.msg.startswith(("Expecting ','", "Expecting ':'")) or not text[error.pos :].strip():
                error.pos = len(text[: error.pos].rstrip())
            raise Refused(syntax_problem(text, error)) from None
        yield Item(value, (line, "$")), bool(flawed)
        flawed.clear()
        line += text.count("\n", start, position)


def read_document(item: Item, name: str, found: Found) -> None:
    listed = isinstance(item.value, list) and not FORMATS[name].arrays
    for entry in item.entries() if listed else [item]:
        with found:
            FORMATS[name].read(entry, found)


EXPORT = "; export OTLP JSON instead, the README tells how"
# What else people try, by keys of its first entry.
LOOKS = {
    "it holds observed traces already, which need no import": [{"id", "calls"}],
    "its messages stand one by one; each conversation must be a list": [{"role", "content"}, {"type", "content"}],
    f"it looks like JSON of Jaeger{EXPORT}": [{"traceID", "spans"}],
    f"it looks like an export of Langfuse{EXPORT}": [{"observations"}, {"traceId", "startTime"}],
    f"it looks like an export of Phoenix{EXPORT}": [{"context", "span_kind"}, {"context.span_id"}],
    f"it looks like the output of a console exporter{EXPORT}": [{"context", "kind"}],
}


def resemblance(item: Item) -> str:
    """What a document of none of the named format looks like, be it a flawed one."""
    for other in FORMATS:
        elsewhere = Found({})
        read_document(item, other, elsewhere)
        if elsewhere.known:
            return f"it looks like {other}"
    value = item.value.get("data", item.value) if isinstance(item.value, dict) else item.value
    first = value[0] if isinstance(value, list) and value else value
    keys = set(first) if isinstance(first, dict) else set()
    return next((words for words, looks in LOOKS.items() if any(look <= keys for look in looks)), "")


def gather(path: str, name: str, found: Found) -> None:
    """Find all records of a file; raises Refused for a file of another format."""
    advice, number = "", 0
    for number, (item, flawed) in enumerate(import_documents(path), 1):
        if number > IMPORT_NODES.value:  # numbers and strings, one after another, which no bracket shows
            raise Refused(TOO_MANY_NODES)
        refused = found.refused
        read_document(item, name, found)
        with found:  # where it stands no reader looks
            item.require(not flawed or refused < found.refused, KEY_TWICE)
        if not (found.known or advice or number > 10_000):  # by then a file has shown what it is
            advice = resemblance(item)
    if not found.known:
        advice = "it holds metrics or logs alone" if METRICS in found.noted else advice
        advice = advice or ("nor of any other known format" if number else "it is empty")
        raise Refused(f": holds no record of the format {name}; {advice}")


def nest(trace: Gathered) -> tuple[dict[int, int], dict[int, int | None]]:
    """By index: the call that a record is, itself or one that it doubles; the call around it, whatever is between."""
    records = trace.records
    outside = [trace.spans.get(record.parent) for record in records]
    inside: dict[int | None, list[int]] = {}
    for index, outer in enumerate(outside):
        inside.setdefault(outer, []).append(index)
    calls: dict[int, int] = {}
    around: dict[int, int | None] = {}
    reached = inside.pop(None, [])
    for index in reached:
        record, outer = records[index], outside[index]
        call = around[index] = None if outer is None else calls.get(outer, around[outer])
        if record.tool is not None:
            shared = outer is not None and any(mark in records[outer].marks for mark in record.marks)
            double = shared or (record.served and call is not None and record.tool == records[call].tool)
            calls[index] = call if double and call is not None else index
        reached += inside.pop(index, [])
    for index in sorted(index for index in inside if index is not None):
        raise Misfit((records[index].at, "a span lies inside itself, by way of its parents"))
    return calls, around


def in_order(times: dict[int, tuple[Any, Any]], around: dict[int, int | None]) -> list[int]:
    """The calls by start time, then by place in the file, but none before the call around it."""
    waiting: dict[int, tuple[bool, Any, int]] = {}
    start: Any = None
    for index, (own, _) in times.items():
        start = start if own is None else own
        waiting[index] = (start is not None, start or 0, index)
    order: list[int] = []
    while waiting:
        order.append(min([index for index in waiting if around[index] not in waiting], key=waiting.__getitem__))
        del waiting[order[-1]]
    return order


def overlapping(times: dict[int, tuple[Any, Any]], around: dict[int, int | None]) -> list[int]:
    """The calls that ran beside another that they do not lie in; they come in order, each after the one around it."""
    outer: dict[int | None, set[int | None]] = {None: set()}
    beside: set[int] = set()
    for position, one in enumerate(times):
        outer[one] = outer[around[one]] | {around[one]}
        for other in list(times)[:position]:
            spans = [*times[one], *times[other]]
            if None not in spans and spans[0] < spans[3] and spans[2] < spans[1] and other not in outer[one]:
                beside |= {one, other}
    return [index for index in times if index in beside]


def call_cost(cost: Decimal | None, found: Found) -> str | None:
    """A cost digit for digit, rounded up to six decimals; None, and noted, where money cannot say it."""
    if cost is not None and 0 <= cost < 10**9:
        step = Decimal((0, (1,), max(-6, min(0, int(cost.as_tuple().exponent)))))
        # Neither EXACT, which refuses to round, nor the caller's context.
        text = plain_money(cost.quantize(step, "ROUND_CEILING", ANY_NUMBER).copy_abs())
        if MONEY.fullmatch(text):
            return text
    found.note("cost", "left out: money cannot say it", cost is not None)
    return None


def call_duration(record: Record, found: Found) -> int | None:
    """From start to end in milliseconds, rounded up; None, and noted, where that says nothing."""
    duration, bound = record.measured_ms, BOUNDS["duration_ms"]
    if record.start is not None and record.end is not None:
        duration = rounded_up(ANY_NUMBER.subtract(record.end, record.start).scaleb(-6, ANY_NUMBER))
    if duration is not None and 0 <= duration <= bound.value:
        return duration
    wrong = "with a negative duration: left out" if duration == -1 else f"of more than {bound}: no duration"
    found.note("call", "without times: no duration" if duration is None else wrong)
    return None


def settle(order: list[int], records: list[Record], found: Found) -> dict[int, str]:
    """The calls that are written, last first, each with its status."""
    choice, later, statuses = found.options.get("--no-output"), set(), {}
    for index in reversed(order):
        record = records[index]
        failed = record.failed and not record.waits
        silent = record.ended and record.output is None and not (failed or record.waits or record.sure)
        counts = silent and choice == "succeeded" and not record.asks
        if silent and choice == "superseded" and record.tool in later:
            found.note("call", "without an output and made again later: left out")
            found.spare += 1
            continue
        if record.waits or (silent and record.asks):
            found.note("call", "waiting for an approval: pending")
        elif silent:
            ways = "counted as succeeded" if counts else "pending unless --no-output succeeded is given"
            found.note("call", f"ended without an error and without an output: {ways}")
        ended = counts or (record.ended and not silent and not record.waits)
        statuses[index] = FAILED if failed else SUCCEEDED if ended else PENDING
        later.add(record.tool)
    return statuses


def shape_calls(trace: Gathered, case: str, found: Found) -> list[Call]:
    """The calls of one trace as they are written; raises Misfit when they cannot be."""
    found.note(*UNASKED, len(trace.answers.keys() - trace.spans.keys()))
    for span in trace.answers.keys() & trace.spans.keys():
        vars(trace.records[trace.spans[span]]).update(trace.answers[span])
    calls, around = nest(trace)
    records = list(trace.records)
    for index, call in calls.items():
        if call != index:
            found.spare += 1
            found.note("record", "of the same call as one around it: counted once")
            records[call] = merge(records[call], records[call], records[index])
    made = sorted(set(calls.values()))
    most = f"at most {BOUNDS['calls']} can be written; cut the run into cases"
    fits = len(made) <= BOUNDS["calls"].value
    require(fits, trace.at, f"the trace holds {counted(len(made), 'call')}, and {most}")
    times = {index: (records[index].start, records[index].end) for index in made}
    if all(start is None and end is None for start, end in times.values()):
        times = {index: (records[index].asked, records[index].answered) for index in made}
    order = in_order(times, around)
    found.names["call id"] = {}
    shaped: dict[int, Call] = {}
    statuses = settle(order, records, found)
    for index, record in [(index, records[index]) for index in order if index in statuses]:
        span = record.span if isinstance(record.span, str) else f"step-{record.span}"
        shaped[index] = Call(
            id=found.clean(span, "call id", record.at),
            tool=found.clean(str(record.tool), "tool name", record.at),
            status=statuses[index],
            cost_usd=call_cost(record.cost, found),
            duration_ms=call_duration(record, found),
        )
    apart = len(found.names["call id"]) == len(shaped)
    require(apart, trace.at, "the id of a call must not look like the step-N of a call without one")
    beside = overlapping({index: times[index] if index in shaped else (None, None) for index in order}, around)
    if beside and "--overlap" not in found.options:
        named = listing([f"{shaped[index].id} ({shaped[index].tool})" for index in beside])
        advice = "a trace is serial, and --overlap start-order accepts them in order of their start"
        raise Misfit((records[beside[0]].at, f"calls ran in parallel with others: {named}; {advice}"))
    if found.content:
        found.content.add(case, list(shaped.values()), [records[index] for index in shaped])
    return list(shaped.values())


def shape_traces(found: Found) -> list[dict[str, Any]]:
    """The traces as they are written, in order of their first records; problems join those of `found`."""
    traces, field, runs = found.traces, found.field, "--runs" in found.options
    kept = {id: trace for id, trace in traces.items() if not trace.records or any(r.agentic for r in trace.records)}
    found.note("trace", "left out: no tool call and no attribute of an agent", len(traces) - len(kept))
    if traces and not kept:
        raise Refused(f": holds no trace of an agent: no tool call, no attribute {' or '.join(OTLP_AGENTIC)}")
    if len(kept) > BOUNDS["traces"].value:
        most = f"at most {BOUNDS['traces']} can be written; import fewer at once"
        raise Refused(f": holds {counted(len(kept), 'trace')}, and {most}")
    shaped: list[dict[str, Any]] = []
    for id, trace in kept.items():
        with found:
            case = id if field in TRACE_FIELDS else trace.given.get(field)
            lacking = f"the trace has no {quoted_word(field)}; every trace must, or another --case-id"
            require(case is not None, trace.at, lacking)
            ways = "--runs accepts several runs of a case, or choose another --case-id"
            fits = runs or case not in found.names.get("case id", {}).values()
            require(fits, trace.at, f"another trace has the same case id; {ways}")
            case = found.clean(str(case), "case id", trace.at)
            names = {"id": found.clean(id, "trace id", trace.at), "case": case} if runs else {"id": case}
            calls = shape_calls(trace, case, found)
            shaped.append({**names, "calls": [report_call(call) for call in calls]})
    return shaped


def import_notes(found: Found, name: str, traces: list[dict[str, Any]]) -> list[str]:
    """What standard error says of an import: a line of counts, and one for whatever a reader should know."""
    statuses = [call["status"] for trace in traces for call in trace["calls"]]
    others = found.records - found.spare - len(statuses)
    lines = [
        f"{counted(found.records, 'record')}: {counted(len(traces), 'trace')}, {counted(len(statuses), 'call')} "
        f"({', '.join(f'{statuses.count(status):,} {status}' for status in STATUSES)}), "
        f"{counted(others, 'record')} that {'is no call' if others == 1 else 'are no calls'}"
    ]
    fields = FORMATS[name].fields
    if found.field == "trace" and not set(fields) <= set(TRACE_FIELDS):
        lines.append(f"note: trace ids change with every run; --case-id can name a case by {listing(fields)}")
    lines += [f"note: {counted(number, noun)} {text}" for (noun, text), number in found.noted.items()]
    lines += found.content.lines() if found.content else []
    most = BOUNDS["problems"].value
    return lines if len(lines) <= most else [*lines[: most - 1], f"and {len(lines) - most + 1:,} more"]


def import_traces(path: str, name: str, found: Found) -> tuple[bytes, list[str]]:
    """A file -> the bytes of its observed traces, and what to say of them; raises InputError."""
    shown, traces = quoted_word(path), []
    try:
        gather(path, name, found)
        traces = [] if found.problems else shape_traces(found)
    except Refused as refused:
        raise InputError([shown + problem for problem in refused.args]) from None
    problems = []
    for (line, inside), text in sorted(found.problems, key=lambda problem: problem[0][0]):
        problems.append(f"{shown}:{line}: {text}" if inside == "$" else f"{shown}:{line}: {inside}: {text}")
    data = json_bytes(traces)
    if not problems:
        what = f"{shown}: the traces cannot be written, import fewer at a time"
        accept(problems, what, lambda: within(data, BOUNDS["size"]), read_observed)
    if problems:
        raise InputError(problems, found.refused - len(found.problems))
    return data, import_notes(found, name, traces)


def run_import(options: dict[str, str], content: Any = None) -> Done:
    name, path, field = options["FORMAT"], options["FILE"], options.get("--case-id", "trace")
    if name not in FORMATS:
        raise Failure(f"FORMAT must be {' or '.join(FORMATS)}")
    fields = ("trace", *FORMATS[name].fields)
    if re.sub(r"^metadata\..+", "metadata.KEY", field, flags=re.DOTALL) not in fields:
        key = ", with a key of its metadata for KEY" if "metadata.KEY" in fields else ""
        raise Failure(f"--case-id must be one of {', '.join(fields)} for {name}{key}")
    if "--runs" in options and field in TRACE_FIELDS:
        raise Failure("--runs needs a --case-id that is the same for all runs of a case, not that of the trace")
    data, lines = import_traces(path, name, Found(options, content))
    return Done([path], [main_output("list of traces", options, data)], [f"{NAME}: {line}" for line in lines])


IMPORT_HELP = f"""\
usage: {NAME}.py import FORMAT FILE [options]

Turn a trace file of another tool into observed traces, without arguments, outputs or other content.

arguments and options:
  FORMAT                     what wrote the file: one of the list below
  FILE                       the file to import; - is standard input
  --case-id FIELD            the field of a trace that names its case (default: trace)
  --overlap start-order      accept calls that ran in parallel, in order of their start
  --no-output succeeded|superseded  count an ended call without error and output as succeeded,
                             or leave it out when its tool is called again later
  --unnamed skip|span-name   leave out what looks like a tool call and is none, or count it
  --runs                     accept several traces of one case, each as a run of it
  --output FILE              write there, whole or not at all, instead of to standard output
  --version                  show the version and the SHA-256 of this script's own bytes
  --help                     show this help

formats, and what --case-id may name besides trace:
{"".join(f"  {name:14} {', '.join(FORMATS[name].fields)}" + chr(10) for name in FORMATS)}{WRITTEN_STATUSES}"""

COMMANDS["import"] = Command("turn another tool's trace file into recorded traces", IMPORT_HELP, run_import)

# ---- facts of imports: what a call's content establishes, kept as names alone (uses the importers)

PATH = re.compile(r"(?:args|output)(?:\.[^.]+){0,16}")
PATH_FORM = "args or output, then up to 16 times a point and a key or an index"
NUMERAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]{1,1000}))?")
DIGITS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
# What a path can come to besides a value: no such key; content that is not there, or a way into what has no keys.
ABSENT, UNREAD = object(), object()


def opened(value: Any) -> Any:
    """Text that is a JSON object or array as that; anything else as it is."""
    if isinstance(value, str) and re.match(r"[ \t\r\n]*[\[{]", value):
        with contextlib.suppress(Refused):
            return read_json(within(value.encode("utf-8", "surrogatepass"), BOUNDS["size"]))
    return value


def member(holder: Any, step: str) -> Any:
    """Where a step of a path leads."""
    if isinstance(holder, dict):
        return holder.get(step, ABSENT)
    if isinstance(holder, list) and re.fullmatch("0|[1-9][0-9]*", step):
        index = int(step[:10])  # a longer one is beyond any array as well
        return holder[index] if index < len(holder) else ABSENT
    return ABSENT if holder is ABSENT else UNREAD


def plain(value: Any) -> Any:
    """A value that == compares as JSON: a number becomes a tuple, which neither true nor any text equals."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return exactly(value.text) if isinstance(value, Number) else value


def exactly(text: str) -> tuple[Any, ...]:
    """A number as sign, magnitude and digits: ordered, one for 1, 1.0 and 1e0, and small whatever the exponent."""
    parts = NUMERAL.fullmatch(text)
    if not parts:
        return (text,)  # the NaN that some tools write: equal to itself, on no side of another
    minus, whole, decimals, exponent = parts.groups("")
    digits = (whole + decimals).lstrip("0")
    number = Decimal(f"{minus}0.{digits.rstrip('0')}0") if digits else Decimal(0)
    sign = (number > 0) - (number < 0)
    return sign, sign * (int(exponent or 0) + len(digits) - len(decimals)), number


def at_most(value: Any, limit: Any) -> bool | None:
    """Number with number, text of digits with text of digits; anything else is on no side."""
    sizes = [exactly(side) if isinstance(side, str) and DIGITS.fullmatch(side) else side for side in (value, limit)]
    fit = type(value) is type(limit) and all(isinstance(size, tuple) and len(size) == 3 for size in sizes)
    return bool(sizes[0] <= sizes[1]) if fit else None


def among(value: Any, wanted: Any) -> bool | None:
    return True if value in wanted else None if UNREAD in wanted else False


def contains(value: Any, texts: Any) -> bool | None:
    if isinstance(value, str):
        folded = value.casefold()
        return all(text.casefold() in folded for text in texts)
    return all(text in value for text in texts) if isinstance(value, list) else None


def read_side(value: Any) -> Any:
    if at_most(plain(value), plain(value)) is None:
        raise Misfit
    return value


KINDS = {"string": str, "number": tuple, "boolean": bool, "array": list, "object": dict, "null": type(None)}
SIDE, TEXTS = 'a number, or text of digits such as "49.50"', "an array of one or more texts"
read_texts = array_of(text_that(lambda text: True, ""), BOUNDS["nodes"], least=1)
read_place = object_of({"tool": Key(read_identifier, True), "path": Key(text_that(PATH.fullmatch, ""), True)})
# What each wants, in words and as a reader, and whether a value meets it: true, false, or None for not established.
CONDITIONS: dict[str, tuple[str, Reader, Callable[[Any, Any], bool | None]]] = {
    "is": ("a value", lambda value: [opened(value)], among),
    "one_of": ("an array of one or more values", array_of(opened, BOUNDS["nodes"], least=1), among),
    "at_least": (SIDE, read_side, lambda value, limit: at_most(limit, value)),
    "at_most": (SIDE, read_side, at_most),
    "contains": (TEXTS, read_texts, contains),
    "only_keys": (TEXTS, read_texts, lambda value, keys: {*value} <= {*keys} if isinstance(value, dict) else None),
    "type": (f"one of {', '.join(KINDS)}", one_of(KINDS), lambda value, kind: type(value) is KINDS[kind]),
    "present": ("true or false", read_truth, lambda value, wanted: wanted),
    "same_as": (f"an object with tool, a tool name, and path, {PATH_FORM}", read_place, among),
}


def holds(name: str, value: Any, wanted: Any) -> bool | None:
    if value is UNREAD:
        return None
    if value is ABSENT:
        sure = name not in ("at_least", "at_most", "contains", "only_keys")
        return not wanted if name == "present" else False if sure else None
    return CONDITIONS[name][2](value, wanted)


def read_condition(value: Any) -> dict[str, Any]:
    """What each condition on a path wants. What is refused may be content: it is never named."""
    members, problems, checked = value if isinstance(value, dict) else {"is": value}, [], {}
    if not members or not members.keys() <= CONDITIONS.keys():
        form = f"must be a value, or an object with one or more of {', '.join(CONDITIONS)}"
        raise Misfit(("", f"{form}; an object that is wanted stands under is"))
    for name, wanted in members.items():
        try:
            checked[name] = plain(CONDITIONS[name][1](wanted))
        except Misfit:
            problems.append(("", f"{name} must be {CONDITIONS[name][0]}"))
    if problems:
        raise Misfit(*problems)
    return checked


def read_definitions(value: Any) -> list[SimpleNamespace]:
    read_when = named_members(PATH.fullmatch, PATH_FORM, Bound(20, "paths"), read_condition)
    names = {"fact": Key(read_identifier, True), "tool": Key(read_identifier, True), "case": Key(read_identifier)}
    read_members = object_of({**names, "when": Key(read_when, True)})
    facts: dict[str, dict[str | None, set[str]]] = {}  # of a tool in a case; under None those in any

    def read_definition(value: Any) -> SimpleNamespace:
        one, most = SimpleNamespace(**read_members(value)), BOUNDS["facts"]
        cases = facts.setdefault(one.tool, {None: set()})
        here = cases.setdefault(one.case, {*cases[None]})
        touched = [here] if one.case else list(cases.values())
        if any(len(known | {one.fact}) > most.value for known in touched):
            raise Misfit(("", f"a tool may have at most {most} in a case"))
        for known in touched:
            known.add(one.fact)
        one.when = [(path, *each) for path, wanted in one.when.items() for each in wanted.items()]
        return one

    read = object_of({"facts": Key(array_of(read_definition, Bound(500, "definitions"), least=1), True)})
    try:
        return list(read(value)["facts"])
    except Misfit as misfit:
        raise Refused(*[f": ${place}: {text}" for place, text in misfit.args]) from None


def value_at(record: Any, path: str, link: bool = False) -> Any:
    """What was kept of a path, or the digest of it that links of calls compare."""
    return (getattr(record, path.partition(".")[0]) or {}).get((path, link), UNREAD)


def digest(value: Any) -> Any:
    """Equal for values that are: calls may hold megabytes, and each is compared with all before it."""
    import hashlib

    whole = value is not ABSENT and value is not UNREAD
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).digest() if whole else value


def meets(when: list[tuple[str, str, Any]], record: Any, earlier: list[tuple[str, Any]]) -> bool | None:
    """Whether a call meets all conditions, given the successful calls before it."""
    truths = []
    for path, name, wanted in when:
        if name == "same_as":
            wanted = [value_at(other, wanted["path"], link=True) for tool, other in earlier if tool == wanted["tool"]]
        truths.append(holds(name, value_at(record, path, link=name == "same_as"), wanted))
    return next(truth for truth in (False, None, True) if truth in truths)


class Facts:
    """What an import does with content instead of asking if it is there: it keeps what paths lead to, for facts."""

    def __init__(self, definitions: list[SimpleNamespace]) -> None:
        self.definitions = definitions
        self.tallies = {f"{one.tool}+{one.fact}": {True: 0, False: 0, None: 0} for one in definitions}
        wants = [(one.tool, *condition) for one in definitions for condition in one.when]
        self.paths = {(tool, path, name == "same_as") for tool, path, name, _ in wants}
        self.paths |= {(wanted["tool"], wanted["path"], True) for _, _, name, wanted in wants if name == "same_as"}

    def keep(self, tool: str | None, part: str, value: Any) -> Any:
        """What the paths of a tool lead to, without one those of every tool; None for no content."""
        written = tool and re.sub("[^A-Za-z0-9.:_-]", "_", tool)
        ways = [way for name, *way in self.paths if tool is None or name == written]
        paths = [(path, link) for path, link in ways if path.partition(".")[0] == part]
        reached = {part: opened(value)} if paths else {}

        def reach(path: str) -> Any:
            if path not in reached:
                holder, _, step = path.rpartition(".")
                reached[path] = opened(member(reach(holder), step))
            return reached[path]

        if value is None:
            return None
        return {(path, link): (digest if link else lambda kept: kept)(plain(reach(path))) for path, link in paths}

    def add(self, case: str, calls: list[Call], records: list[Any]) -> None:
        """Give the calls of a trace, which come in their final order, their facts."""
        earlier: list[tuple[str, Any]] = []  # the successful ones
        for call, record in zip(calls, records):
            judged: dict[str, list[bool | None]] = {}
            for one in self.definitions:
                if one.tool == call.tool and one.case in (None, case):
                    judged.setdefault(one.fact, []).append(meets(one.when, record, earlier))
            facts = {fact: next(t for t in (True, None, False) if t in truths) for fact, truths in judged.items()}
            for fact, truth in facts.items():
                self.tallies[f"{call.tool}+{fact}"][truth] += 1
            call.facts = {fact: truth for fact, truth in facts.items() if truth is not None} or None
            earlier += [(call.tool, record)] if call.status == SUCCEEDED else []

    def lines(self) -> list[str]:
        return [
            f"fact {step}: true of {counted(of[True], 'call')}, false of {of[False]:,}, not established of {of[None]:,}"
            for step, of in self.tallies.items()
        ]


# A key that stands twice, or a surrogate, within what a condition wants: its place would name keys of that.
WITHIN_WANTED = re.compile(r'(: \$.*?\.when(?:\.\w+|\["(?:[^"\\]|\\.)*"\])).*(?:duplicate key|unpaired surrogate).*')


def run_import_facts(options: dict[str, str]) -> Done:
    path, problems, definitions = options.get("--facts"), [], []
    if path is None:
        return run_import(options)
    if path == options["FILE"] == "-":
        raise Failure("standard input can serve FILE or --facts, not both")
    try:
        definitions = read_definitions(read_json(read_bounded(path, BOUNDS["size"])))
    except Refused as refused:
        hidden = r"\1: holds a duplicate key or an unpaired surrogate"
        shown = [quoted_word(path) + WITHIN_WANTED.sub(hidden, problem) for problem in refused.args]
        problems = list(dict.fromkeys(shown))
    try:
        done = run_import(options, Facts(definitions))
    except InputError as refused:
        raise InputError([*problems, *refused.problems], refused.more) from None
    if problems:
        raise InputError(problems)
    done.inputs.append(path)
    return done


if "import" in COMMANDS:
    command, line = COMMANDS["import"], f"  {'--facts FACTS':26} also record the facts that FACTS defines of content\n"
    with_facts = command.help.replace("  --output FILE", f"{line}  --output FILE", 1)
    COMMANDS["import"] = Command(command.about, with_facts, run_import_facts)

# ==== end of opt-in

if __name__ == "__main__":
    import gc

    sys.unraisablehook = lambda _: None  # when memory runs out, not every object can say its last words
    gc.disable()  # the inputs are bounded and the process is short: looking for garbage costs more than it frees
    try:
        for number in INTERRUPTS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup and background jobs of a shell want it
                signal.signal(number, interrupt)
        status = main()
    except KeyboardInterrupt:  # before anything was begun
        status = EXIT_NO_STATEMENT
    for number in INTERRUPTS:  # what comes while Python ends changes no status
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # nothing of it is looked through at the end
    sys.exit(status)
