#!/usr/bin/env python3
"""Compare expected agent workflows with recorded tool calls, offline, and write a JSON report.

    python agent_trace_audit.py --expected workflows.json --observed traces.json > report.json
    python agent_trace_audit.py --expected workflows.json --observed traces.json --fail-on-errors

Exit 0: a valid report was written in full. Without --fail-on-errors this says nothing about the
workflows. Exit 1: no statement at all (wrong usage, a refused input, an output that could not be
written). Exit 2: --fail-on-errors was given and the report's verdict is "fail".

One file, Python 3.8 or newer, standard library only. It runs no model, no tool and no network, and
needs no argument and no output of any call. It reads top-down along the trust boundary, and each
section uses only what stands above it:

    constants      bounds, vocabularies, exit codes
    records        what a case, a call, a trace and a check is; what a refusal is
    text           anything -> printable ASCII that is safe on a terminal and in a CI log
    reading        path -> bytes -> text -> JSON value
    validation     JSON value -> checked records
    rules          records -> verdicts
    report         records and verdicts -> the report
    audit          the bytes of two inputs -> the report, or every problem of both
    layout         the report -> the bytes of a JSON file
    streams        bytes -> standard output, standard error, files that are whole or absent
    snapshot       checked traces -> expected workflows that they pass
    summaries      the report -> what a person, a test reporter and a job page read
    importers      trace files of other tools -> observed traces, without content
    command line   options, exit codes
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # A stray json.py beside a copied script must not be imported in place of the standard one.
    sys.path[:] = [entry for entry in sys.path[1:] if entry != sys.path[0]]

import contextlib
import errno
import functools
import gc
import io
import json
import os
import re
import signal
import stat
from decimal import Context, Decimal, DecimalException, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    NoReturn,
    Optional,
    Sequence,
    Set,
    TextIO,
    Tuple,
    Union,
)

__all__ = ["InputError", "audit"]

# ---- constants: the bounds and words of the inputs and the report ---------------------------------

NAME = "agent_trace_audit"
VERSION = "1.0.0"
REPORT_VERSION = 1

EXIT_REPORTED = 0
EXIT_NO_STATEMENT = 1
EXIT_VERDICT_FAIL = 2


class Bound(NamedTuple):
    """One inclusive upper bound: its value and what it counts."""

    value: int
    unit: str

    def __str__(self) -> str:
        return f"{self.value:,} {self.unit}"


BOUNDS = {
    "size": Bound(524_288, "bytes"),
    "nodes": Bound(20_000, "JSON values"),
    "depth": Bound(32, "levels"),
    "cases": Bound(500, "cases"),
    "traces": Bound(500, "traces"),
    "calls": Bound(50, "calls"),
    "tools": Bound(50, "tool names"),
    "number": Bound(100, "characters"),
    "group": Bound(80, "code points"),
    "failed_calls": Bound(50, "failed calls"),
    "max_calls": Bound(50, "calls of a tool"),
    "total_tool_ms": Bound(180_000_000, "milliseconds"),
    "duration_ms": Bound(3_600_000, "milliseconds"),
    "problems": Bound(20, "lines"),
}

SUCCEEDED, FAILED, PENDING = STATUSES = ("succeeded", "failed", "pending")
PASS, FAIL, UNKNOWN, NOT_CHECKED = VERDICTS = ("pass", "fail", "unknown", "not_checked")

IDENTIFIER = re.compile(r"[A-Za-z0-9.:_-]{1,128}")
MONEY = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
SURROGATE = re.compile("[\ud800-\udfff]")

# No sum of money is ever rounded: what does not fit is an error, and the bounds make everything fit.
EXACT = Context(prec=120, traps=[Inexact, Overflow, InvalidOperation, DivisionByZero])

LIMITATIONS = (
    "Recorded statuses, costs and durations are taken as given; nothing was run or measured again.",
    "Arguments, outputs, permissions and business effects are not examined.",
    "Tool time is the sum of the durations of calls, not end-to-end latency.",
    "A budget that is not set was not checked.",
)

# ---- records: what the checked inputs consist of ------------------------------------------------


class Call(NamedTuple):
    """One recorded tool call; a measurement is None when it is unknown. Money keeps its spelling."""

    id: str
    tool: str
    status: str
    cost_usd: Optional[str]
    duration_ms: Optional[int]


class Trace(NamedTuple):
    """The calls of one run, in the order in which they were made."""

    id: str
    calls: Tuple[Call, ...]


class Case(NamedTuple):
    """One expected workflow; `expects` holds the value, or the default, of every key that a rule reads."""

    id: str
    group: Optional[str]
    expects: Dict[str, Any]


class Measured(NamedTuple):
    """What is known of a cost or a time: the subtotal, and the ids of the calls whose part is not known."""

    known_total: Any
    unknown_calls: List[str]


class Run(NamedTuple):
    """A trace as rules look at it. For a missing trace `recorded` is false and everything else is empty."""

    recorded: bool
    calls: Tuple[Call, ...]
    succeeded: List[Call]
    failed: List[Call]
    pending: List[Call]
    cost_usd: Measured
    tool_ms: Measured


class Document(NamedTuple):
    """An accepted input: the size and SHA-256 of its bytes, and its records in file order."""

    size: int
    sha256: str
    records: Tuple[Any, ...]


class Check(NamedTuple):
    """What one rule says of one case: a verdict, its evidence in report order, and a sentence unless it passes."""

    verdict: str
    evidence: Dict[str, Any]
    message: Optional[str] = None


class InputError(ValueError):
    """A refused input; `problems` lists every message, each starting with the name of its document.

    `more` is how many are left out, where listing all would fill the memory.
    """

    def __init__(self, problems: Sequence[str], more: int = 0) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        self.more = more


class Refused(Exception):
    """One problem that ends the reading of a document: its place in the document, and what would be right."""


class Failure(Exception):
    """Anything that ends the command with exit 1; the text is the message."""


# ---- text: anything -> printable ASCII that is safe on a terminal and in a CI log ---------------


def printable(text: str) -> str:
    """Escape everything but printable ASCII; `##` is parted because CI systems obey `##[...]` anywhere in a line."""
    return text.encode("unicode_escape").decode("ascii").replace("##", "#\\x23")


def quoted_key(key: str) -> str:
    """A document's key as a message may show it: escaped, and cut so that a key cannot carry content."""
    shown = key[:40]
    while len(escaped := printable(shown).replace('"', '\\"')) > 40:  # never cut within an escape
        shown = shown[:-1]
    return f'"{escaped}"'


def member_path(path: str, key: str) -> str:
    """The JSON path of an object's member."""
    return f"{path}.{key}" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,39}", key) else f"{path}[{quoted_key(key)}]"


def counted(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listing(items: Sequence[str], most: int = 6) -> str:
    """`a, b and c`; a long list ends with how many more there are."""
    shown = [*items[:most], f"{len(items) - most:,} more"] if len(items) > most else list(items)
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


# ---- reading: path -> bytes -> text -> JSON value, every bound kept before any checking ---------


def read_bounded(path: str, limit: int) -> bytes:
    """At most `limit` + 1 bytes of a file, or of standard input for `-`: endless inputs end here too."""
    try:
        with open(0 if path == "-" else path, "rb", buffering=0, closefd=path != "-") as file:
            chunks: List[bytes] = []
            wanted = limit + 1
            while wanted > 0:
                # os.read raises where a raw file would return None for "no data yet", which looks like an end.
                chunk = os.read(file.fileno(), min(wanted, 1 << 20))
                if not chunk:
                    break
                chunks.append(chunk)
                wanted -= len(chunk)
            return b"".join(chunks)
    except (OSError, ValueError) as error:
        raise Refused(f": cannot be read: {reason(error)}") from None


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
    """A document without white space and with one letter for every string. Linear, and no backtracking."""
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"s".join(unescaped.translate(None, b" \t\r\n").split(b'"')[::2])


def exceeds_depth(bones: bytes, limit: int) -> bool:
    """Whether arrays and objects nest deeper than `limit`; decided before a parser can run out of stack."""
    level = 0
    for bracket in bones.translate(None, ALL_BUT_BRACKETS):
        level += 1 if bracket in b"[{" else -1
        if level > limit:
            return True
    return False


def count_nodes(bones: bytes) -> int:
    """The JSON values of a valid document: the root, one per comma, one per container that is not empty."""
    filled = bones.count(b"[") + bones.count(b"{") - bones.count(b"[]") - bones.count(b"{}")
    return 1 + bones.count(b",") + filled


class NumberText:
    """A number kept as written: with a point or an exponent it never becomes a float."""

    def __init__(self, text: str) -> None:
        self.text = text


class RepeatedKeys(Dict[str, Any]):
    """An object with a duplicate key; `pairs` keeps every member, so that the place can be named later."""

    pairs: List[Tuple[str, Any]]


class BadLexeme(ValueError):
    """A token that Python's parser accepts and JSON, or a bound, does not."""


def keep_int(text: str) -> int:
    check_number(text)
    return int(text)


def keep_number_text(text: str) -> NumberText:
    check_number(text)
    return NumberText(text)


def check_number(text: str) -> None:
    if len(text) > BOUNDS["number"].value:
        raise BadLexeme(f"a number may have at most {BOUNDS['number']}")


def refuse_constant(_: str) -> NoReturn:
    raise BadLexeme("not valid JSON: NaN and Infinity are no JSON numbers")


def keep_object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = RepeatedKeys(members)
    repeated.pairs = pairs
    return repeated


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
LEXEME = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(-?Infinity|NaN|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)', re.DOTALL)


def parse_json(text: str) -> Any:
    """Text -> JSON value. Duplicate keys and surrogates stay in it, marked, for the walk that knows their paths."""
    decoder = json.JSONDecoder(
        object_pairs_hook=keep_object,
        parse_int=keep_int,
        parse_float=keep_number_text,
        parse_constant=refuse_constant,
    )
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused(syntax_problem(text, error)) from None
    except BadLexeme as error:
        raise Refused(f"{line_and_column(text, bad_lexeme_position(text))}: {error}") from None


def syntax_problem(text: str, error: json.JSONDecodeError) -> str:
    position, words = error.pos, error.msg
    before = text[:position].rstrip(" \t\r\n")
    if before.endswith(",") and words.startswith(("Expecting value", "Expecting property")):
        # Newer Pythons tell a trailing comma apart; the older ones are brought to say the same.
        closing = "]" if words.startswith("Expecting value") else "}"
        if text[position : position + 1] == closing:
            position, words = len(before) - 1, "Illegal trailing comma"
    advice = next((ours for theirs, ours in SYNTAX_ADVICE if words.startswith(theirs)), "expected a value")
    if words.startswith("Expecting ','") and re.match("[0-9][0-9.xXeE]", text[position - 1 : position + 1]):
        advice = "expected a number such as 0, 0.5 or 2e3"
    elif not text[position:].strip(" \t\r\n"):
        advice = "the document ends too early"
    return f"{line_and_column(text, position)}: not valid JSON: {advice}"


def bad_lexeme_position(text: str) -> int:
    limit = BOUNDS["number"].value
    for lexeme in LEXEME.finditer(text):
        token = lexeme.group(1)
        if token and (len(token) > limit or token.endswith(("NaN", "Infinity"))):
            return lexeme.start()
    return 0


def line_and_column(text: str, position: int) -> str:
    """`:LINE:COLUMN` in characters from 1; lines end at LF."""
    return f":{text.count(chr(10), 0, position) + 1}:{position - text.rfind(chr(10), 0, position)}"


def read_json(data: bytes) -> Any:
    """Bytes -> JSON value, stage by stage; the first stage with a problem ends it."""
    if len(data) > BOUNDS["size"].value:
        raise Refused(f": larger than {BOUNDS['size']} (512 KiB)")
    text = decode(data)
    bones = skeleton(data)
    if exceeds_depth(bones, BOUNDS["depth"].value):
        raise Refused(f": arrays and objects nested deeper than {BOUNDS['depth']}")
    value = parse_json(text)
    if count_nodes(bones) > BOUNDS["nodes"].value:
        raise Refused(f": holds more than {BOUNDS['nodes']} (nodes)")
    return value


# ---- validation: JSON value -> checked records, every problem collected with its JSON path ------

# Takes a JSON value, its path and the list of problems so far; gives the checked value. What it
# gives after adding a problem is never used.
Reader = Callable[[Any, str, List[str]], Any]


class Key(NamedTuple):
    """A key of an object: how its value is read, whether it must be there, what its absence means."""

    read: Reader
    required: bool = False
    default: Any = None


def refuse(problems: List[str], path: str, text: str) -> None:
    problems.append(f": {path}: {text}")


def members_of(value: Dict[str, Any]) -> Iterable[Tuple[str, Any]]:
    return value.pairs if isinstance(value, RepeatedKeys) else value.items()


def refuse_own_keys(value: Dict[str, Any], path: str, problems: List[str]) -> None:
    """The problems that any object can have, whatever is expected in its place."""
    if isinstance(value, RepeatedKeys):
        seen: Dict[str, int] = {}
        for key, _ in value.pairs:
            seen[key] = seen.get(key, 0) + 1
            if seen[key] == 2:
                refuse(problems, path, f"duplicate key {quoted_key(key)}")
    for key in value:
        if SURROGATE.search(key):
            refuse(problems, path, f"the key {quoted_key(key)} holds an unpaired surrogate")


def refuse_within(value: Any, path: str, problems: List[str]) -> None:
    """Duplicate keys and surrogates anywhere in a value that is of no use otherwise."""
    if isinstance(value, str) and SURROGATE.search(value):
        refuse(problems, path, "holds an unpaired surrogate")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            refuse_within(item, f"{path}[{index}]", problems)
    elif isinstance(value, dict):
        refuse_own_keys(value, path, problems)
        for key, member in members_of(value):
            refuse_within(member, member_path(path, key), problems)


def refuse_value(problems: List[str], path: str, must: str, value: Any) -> None:
    """One problem for the value itself, a surrogate before its form, and those within it."""
    if not (isinstance(value, str) and SURROGATE.search(value)):
        refuse(problems, path, must)
    refuse_within(value, path, problems)


def text_that(fits: Callable[[str], Any], must: str) -> Reader:
    """A reader of strings that fit; what it gives for others is never used."""

    def read(value: Any, path: str, problems: List[str]) -> Any:
        if isinstance(value, str) and fits(value):
            return value
        refuse_value(problems, path, must, value)
        return None

    return read


def array_of(read_item: Reader, bound: Bound, least: int = 0) -> Reader:
    """A reader of arrays with `least` to `bound` entries."""
    must = f"must be an array of {f'{least} to' if least else 'at most'} {bound}"

    def read(value: Any, path: str, problems: List[str]) -> Any:
        if not isinstance(value, list):
            refuse_value(problems, path, must, value)
            return ()
        if not least <= len(value) <= bound.value:
            refuse(problems, path, must)
        return tuple([read_item(item, f"{path}[{index}]", problems) for index, item in enumerate(value)])

    return read


def object_of(keys: Dict[str, Key]) -> Reader:
    """A reader of objects with these keys and no others; it gives every key's value or default."""
    needed = ", ".join(name for name, key in keys.items() if key.required)
    optional = ", ".join(name for name, key in keys.items() if not key.required)
    names = f"{needed}, and optionally {optional}" if optional else needed
    defaults = {name: key.default for name, key in keys.items()}
    required = {name for name, key in keys.items() if key.required}

    def refuse_keys(value: Dict[str, Any], path: str, problems: List[str]) -> None:
        refuse_own_keys(value, path, problems)
        for name in value:
            if name not in keys and not SURROGATE.search(name):
                refuse(problems, path, f"unknown key {quoted_key(name)}; the keys are: {names}")
        for name in keys:
            if name in required and name not in value:
                refuse(problems, path, f"missing key {quoted_key(name)}")

    def read(value: Any, path: str, problems: List[str]) -> Any:
        if not isinstance(value, dict):
            refuse_value(problems, path, f"must be an object with the keys: {names}", value)
            return defaults
        if isinstance(value, RepeatedKeys) or not required <= value.keys() <= keys.keys():
            refuse_keys(value, path, problems)
        checked = dict(defaults)
        for name, member in members_of(value):
            if name not in keys:
                refuse_within(member, member_path(path, name), problems)
            elif member is None and name not in required:
                advice = "null is not accepted: leave the key out when it is unknown or not wanted"
                refuse(problems, f"{path}.{name}", advice)
            else:
                checked[name] = keys[name].read(member, f"{path}.{name}", problems)
        return checked

    return read


def policy_of(read_member: Reader) -> Reader:
    """A reader of objects that have tool names as keys, at least one: an empty one would check nothing."""
    bound = BOUNDS["tools"]

    def read(value: Any, path: str, problems: List[str]) -> Any:
        if not isinstance(value, dict):
            refuse_value(problems, path, f"must be an object whose keys are 1 to {bound}", value)
            return None
        refuse_own_keys(value, path, problems)
        for name in value:
            if not (IDENTIFIER.fullmatch(name) or SURROGATE.search(name)):
                refuse(problems, path, f"the key {quoted_key(name)} must be a tool name: {IDENTIFIER_FORM}")
        if not 1 <= len(value) <= bound.value:
            refuse(problems, path, f"must have 1 to {bound} as keys")
        return {name: read_member(member, member_path(path, name), problems) for name, member in members_of(value)}

    return read


def exact_whole(value: Any) -> Optional[int]:
    """The value of a JSON number that is whole, exactly: 2000, 2000.0 and 2e3 are the same; None for all else."""
    if type(value) is int:  # not isinstance: true and false are no numbers here
        return value
    if not isinstance(value, NumberText):
        return None
    try:
        number = EXACT.create_decimal(value.text)
    except DecimalException:
        return None
    if not number:
        return 0
    whole = number.adjusted() < BOUNDS["number"].value and number == EXACT.to_integral_value(number)
    return int(number) if whole else None


def whole_number(name: str) -> Reader:
    """A reader of whole numbers from 0 to a bound of the table."""
    most = BOUNDS[name].value

    def read(value: Any, path: str, problems: List[str]) -> Any:
        number = exact_whole(value)
        if number is not None and 0 <= number <= most:
            return number
        refuse_value(problems, path, f"must be a whole number from 0 to {most:,}", value)
        return None

    return read


def one_of(words: Iterable[str]) -> Reader:
    """A reader of one of some fixed words."""
    known = tuple(words)
    quoted = [f'"{word}"' for word in known]
    return text_that(known.__contains__, f"must be {', '.join(quoted[:-1])} or {quoted[-1]}")


def fits_group(text: str) -> bool:
    return len(text) <= BOUNDS["group"].value and not SURROGATE.search(text)


MONEY_FORM = '1 to 9 digits, optionally a point and 1 to 6 digits, such as "0.25"'
IDENTIFIER_FORM = "1 to 128 characters out of A-Z a-z 0-9 . : _ -"

read_identifier = text_that(IDENTIFIER.fullmatch, f"must be a string of {IDENTIFIER_FORM}")
read_money = text_that(MONEY.fullmatch, f"must be a string of {MONEY_FORM}")
read_status = one_of(STATUSES)
read_group = text_that(fits_group, f"must be a string of at most {BOUNDS['group']}")
read_tools = array_of(read_identifier, BOUNDS["tools"])
read_some_tools = array_of(read_identifier, BOUNDS["tools"], least=1)


def unique_id() -> Reader:
    """A reader of ids that must differ from all others in the objects of the same array."""
    places: Dict[Tuple[str, str], str] = {}

    def read(value: Any, path: str, problems: List[str]) -> Any:
        identifier = read_identifier(value, path, problems)
        array = path.rpartition("[")[0]
        if identifier is not None and places.setdefault((array, identifier), path) != path:
            refuse(problems, path, f"must be unique, but repeats the id at {places[array, identifier]}")
        return identifier

    return read


def read_expected(value: Any, rule_keys: Dict[str, Key], problems: List[str]) -> Tuple[Case, ...]:
    """The expected workflows; `rule_keys` are the keys of a case that rules read."""
    read_members = object_of({"id": Key(unique_id(), required=True), "group": Key(read_group), **rule_keys})

    def read_case(value: Any, path: str, problems: List[str]) -> Case:
        members = read_members(value, path, problems)
        return Case(members["id"], members["group"], {name: members[name] for name in rule_keys})

    # At least one: a gate that checks nothing must not look green.
    read_cases = array_of(read_case, BOUNDS["cases"], least=1)
    cases: Tuple[Case, ...] = object_of({"cases": Key(read_cases, required=True)})(value, "$", problems)["cases"]
    return cases


def read_observed(value: Any, problems: List[str]) -> Tuple[Trace, ...]:
    """The recorded traces."""
    read_call = object_of(
        {
            "id": Key(unique_id(), required=True),
            "tool": Key(read_identifier, required=True),
            "status": Key(read_status, required=True),
            "cost_usd": Key(read_money),
            "duration_ms": Key(whole_number("duration_ms")),
        }
    )
    read_calls = array_of(lambda *place: Call(**read_call(*place)), BOUNDS["calls"])
    read_trace = object_of({"id": Key(unique_id(), required=True), "calls": Key(read_calls, required=True)})
    read_traces = array_of(lambda *place: Trace(**read_trace(*place)), BOUNDS["traces"])
    traces: Tuple[Trace, ...] = read_traces(value, "$", problems)
    return traces


# ---- rules: records -> verdicts; no rule raises, and none sees a report or a stream --------------


def add_money(amounts: Iterable[Decimal]) -> Decimal:
    """An exact sum with as many decimals as its most precise term."""
    return functools.reduce(EXACT.add, amounts, Decimal(0))


def run_of(trace: Optional[Trace]) -> Run:
    calls = trace.calls if trace else ()
    # A pending call may still grow: what it has used so far counts, but it is never fully known.
    unpriced = [call.id for call in calls if call.cost_usd is None or call.status == PENDING]
    untimed = [call.id for call in calls if call.duration_ms is None or call.status == PENDING]
    return Run(
        recorded=trace is not None,
        calls=calls,
        succeeded=[call for call in calls if call.status == SUCCEEDED],
        failed=[call for call in calls if call.status == FAILED],
        pending=[call for call in calls if call.status == PENDING],
        cost_usd=Measured(add_money([Decimal(call.cost_usd) for call in calls if call.cost_usd is not None]), unpriced),
        tool_ms=Measured(sum([call.duration_ms for call in calls if call.duration_ms is not None]), untimed),
    )


def plain_money(amount: Decimal) -> str:
    """A decimal without exponent, with all the decimals of its most precise term."""
    return format(amount, "f")


def ids(calls: Iterable[Call]) -> List[str]:
    return [call.id for call in calls]


def judge_trace_recorded(expects: Dict[str, Any], run: Run) -> Check:
    if run.recorded:
        return Check(PASS, {})
    return Check(FAIL, {}, "expected a recorded trace with the id of this case, got none")


class Comparison(NamedTuple):
    """An expected sequence beside the successful calls, and what each of them has beyond the other."""

    expected: List[str]
    observed: List[str]
    missing: List[str]
    unexpected: List[str]
    succeeded: List[Call]


# Why a sequence that differs does not match, and the step that could not be placed, where a mode places steps; None
# when it matches all the same. Lists that are equal match in every mode.
Mismatch = Optional[Tuple[str, Optional[int]]]


def match_exact(both: Comparison) -> Mismatch:
    expected, observed = both.expected, both.observed
    index = first_difference(expected, observed)
    step = f"step {index + 1}: expected"
    if index >= len(observed):
        end = counted(len(observed), "successful call") if observed else "no successful call"
        return f"{step} {expected[index]}, but the run stopped after {end}", index
    if index >= len(expected):
        end = f"the end after {counted(len(expected), 'successful call')}" if expected else "no successful call"
        return f"{step} {end}, got {listing(observed[index:])}", index
    return f"{step} {expected[index]}, got {observed[index]}", index


def first_difference(expected: Sequence[str], observed: Sequence[str]) -> int:
    """The first index, from 0, at which two lists differ; the shorter length when one starts the other."""
    for index, (wanted, got) in enumerate(zip(expected, observed)):
        if wanted != got:
            return index
    return min(len(expected), len(observed))


def match_within(both: Comparison) -> Mismatch:
    expected, observed, steps = both.expected, both.observed, len(both.expected)
    if any(observed[start : start + steps] == expected for start in range(len(observed) - steps + 1)):
        return None
    import difflib

    matcher = difflib.SequenceMatcher(None, expected, observed, autojunk=False)
    block = matcher.find_longest_match(0, steps, 0, len(observed))
    found = "no call of any of them succeeded"
    if block.size:
        placed = f"{stretch('step', block.a, block.size)} at {stretch('successful call', block.b, block.size)}"
        found = f"the longest matching block is {placed} of {len(observed)}"
    return f"expected {listing(expected, steps)} as one block, but {found}", None


def stretch(noun: str, start: int, size: int) -> str:
    """`step 2`, `steps 2 to 4`; counted from 1."""
    return f"{noun} {start + 1}" if size == 1 else f"{noun}s {start + 1} to {start + size}"


def match_contains(both: Comparison) -> Mismatch:
    start, after = 0, ""
    for index, tool in enumerate(both.expected):
        found = next((place for place in range(start, len(both.observed)) if both.observed[place] == tool), None)
        if found is None:
            later = "later call" if after else "call"
            return f"step {index + 1}: expected {tool}{after}, but no {later} of it succeeded", index
        start, after = found + 1, f" after {tool} in call {both.succeeded[found].id}"
    return None


def tally(tools: Sequence[str]) -> str:
    """`lookup (2 times) and draft (once)`."""
    times = {tool: tools.count(tool) for tool in tools}
    most = BOUNDS["tools"].value
    return listing([f"{tool} ({'once' if n == 1 else f'{n} times'})" for tool, n in times.items()], most)


def match_permutation(both: Comparison) -> Mismatch:
    pairs = (("missing", both.missing), ("surplus", both.unexpected))
    wrong = [f"{word} {tally(tools)}" for word, tools in pairs if tools]
    whole = tally(both.expected) or "no successful call"
    return (f"expected in any order {whole}; {'; '.join(wrong)}", None) if wrong else None


def match_superset(both: Comparison) -> Mismatch:
    message = f"expected in any order at least {tally(both.expected)}; missing {tally(both.missing)}"
    return (message, None) if both.missing else None


def match_subset(both: Comparison) -> Mismatch:
    most = f"at most {tally(both.expected)}" if both.expected else "no successful call"
    return (f"expected in any order {most}; surplus {tally(both.unexpected)}", None) if both.unexpected else None


MATCHES: Dict[str, Callable[[Comparison], Mismatch]] = {
    "exact": match_exact,
    "permutation": match_permutation,
    "within": match_within,
    "contains": match_contains,
    "superset": match_superset,
    "subset": match_subset,
}


def surplus(some: Sequence[str], others: Sequence[str]) -> List[str]:
    """`some` less `others`, repeats counted, the earlier occurrences matched first, in the order of `some`."""
    unmatched: Dict[str, int] = {}
    for tool in others:
        unmatched[tool] = unmatched.get(tool, 0) + 1
    rest = []
    for tool in some:
        if unmatched.get(tool):
            unmatched[tool] -= 1
        else:
            rest.append(tool)
    return rest


def judge_sequence(expects: Dict[str, Any], run: Run) -> Check:
    expected, mode = list(expects["sequence"]), expects["match"]
    observed = [call.tool for call in run.succeeded]
    alike = expected == observed or not run.recorded
    missing, unexpected = ([], []) if alike else (surplus(expected, observed), surplus(observed, expected))
    both = Comparison(expected, observed, missing, unexpected, run.succeeded)
    message, step = (None if alike else MATCHES[mode](both)) or (None, None)
    evidence = {
        "expected": expected,
        "observed": observed,
        "match": mode,
        "missing": missing,
        "unexpected": unexpected,
        "first_difference": step,
    }
    return Check(PASS if message is None else FAIL, evidence, message)


def judge_allowed_tools(expects: Dict[str, Any], run: Run) -> Check:
    allowed = list(expects["allowed_tools"])
    wrong = [call for call in run.calls if call.tool not in allowed]
    violations = [{"call": call.id, "tool": call.tool, "status": call.status} for call in wrong]
    evidence = {"allowed": allowed, "violations": violations}
    if not wrong:
        return Check(PASS, evidence)
    got = listing([f"{call.tool} in {call.status} call {call.id}" for call in wrong])
    tools = listing(list(dict.fromkeys(allowed)), BOUNDS["tools"].value)
    return Check(FAIL, evidence, f"expected {f'only {tools}' if tools else 'no call of any tool'}, got {got}")


def judge_no_pending_calls(expects: Dict[str, Any], run: Run) -> Check:
    pending = ids(run.pending)
    if not pending:
        return Check(PASS, {"calls": pending})
    got = counted(len(pending), "pending call")
    return Check(FAIL, {"calls": pending}, f"expected every call to have ended, got {got}: {listing(pending)}")


def judge_max_failed_calls(expects: Dict[str, Any], run: Run) -> Check:
    limit, failed = expects["max_failed_calls"], ids(run.failed)
    evidence = {"limit": limit, "observed": len(failed), "calls": failed}
    if len(failed) <= limit:
        return Check(PASS, evidence)
    most = counted(limit, "failed call")
    return Check(FAIL, evidence, f"expected at most {most}, got {len(failed)}: {listing(failed)}")


def judge_budget(limit: Any, amount: Any, run: Measured, shown: Callable[[Any], Any], unit: str) -> Check:
    """A budget with an unknown part is unknown, unless the known part alone is already over it."""
    total, unknown = shown(run.known_total), run.unknown_calls
    evidence = {"limit": limit, "known_total": total, "unknown_calls": unknown}
    if limit is None:
        return Check(NOT_CHECKED, evidence)
    message = f"expected at most {limit} {unit}, got {total} {unit}"
    if unknown:
        message += f" so far and {counted(len(unknown), 'call')} not measured or not ended: {listing(unknown)}"
    if run.known_total > amount:
        return Check(FAIL, evidence, message)
    if unknown:
        return Check(UNKNOWN, evidence, message)
    return Check(PASS, evidence)


def judge_max_cost_usd(expects: Dict[str, Any], run: Run) -> Check:
    limit = expects["max_cost_usd"]
    return judge_budget(limit, Decimal(limit or 0), run.cost_usd, plain_money, "USD")


def judge_max_total_tool_ms(expects: Dict[str, Any], run: Run) -> Check:
    limit = expects["max_total_tool_ms"]
    return judge_budget(limit, limit, run.tool_ms, int, "ms of tool time")


def judge_require_prior(expects: Dict[str, Any], run: Run) -> Check:
    policy = expects["require_prior"]
    latest: Dict[str, Call] = {}  # tool -> its latest attempt, or the first that succeeded
    violations, reasons = [], []
    for call in run.calls:
        unmet = [tool for tool in dict.fromkeys(policy.get(call.tool, ())) if not has_succeeded(latest.get(tool))]
        if unmet:
            violations.append({"call": call.id, "tool": call.tool, "status": call.status, "missing": unmet})
            attempts = listing([attempt(tool, latest.get(tool)) for tool in unmet])
            reasons.append(f"{listing(unmet)} before {call.tool} in call {call.id}, but {attempts}")
        if not has_succeeded(latest.get(call.tool)):
            latest[call.tool] = call
    evidence = {"limit": tool_lists(policy), "violations": violations}
    if not violations:
        return Check(PASS, evidence)
    return Check(FAIL, evidence, f"expected a successful {first_of(reasons)}")


def has_succeeded(call: Optional[Call]) -> bool:
    return call is not None and call.status == SUCCEEDED


def attempt(tool: str, call: Optional[Call]) -> str:
    """What had become, by then, of a tool that has not succeeded."""
    if call is None:
        return f"{tool} had not been called"
    return f"{tool} was attempted in call {call.id} and {'failed' if call.status == FAILED else 'is pending'}"


def first_of(reasons: Sequence[str]) -> str:
    return reasons[0] + (f"; {counted(len(reasons) - 1, 'more violation')}" if len(reasons) > 1 else "")


def judge_forbid_after(expects: Dict[str, Any], run: Run) -> Check:
    policy = expects["forbid_after"]
    forbidden: Dict[str, Call] = {}  # tool -> the first successful call after which it may not be called
    violations, reasons = [], []
    for call in run.calls:
        after = forbidden.get(call.tool)
        if after:
            violations.append({"call": call.id, "tool": call.tool, "status": call.status, "after": after.id})
            cause = f"the successful {after.tool} in call {after.id}"
            reasons.append(f"expected no {call.tool} after {cause}, got {call.status} call {call.id}")
        if call.status == SUCCEEDED:
            for tool in policy.get(call.tool, ()):
                forbidden.setdefault(tool, call)
    evidence = {"limit": tool_lists(policy), "violations": violations}
    return Check(FAIL, evidence, first_of(reasons)) if violations else Check(PASS, evidence)


def judge_max_calls(expects: Dict[str, Any], run: Run) -> Check:
    policy = expects["max_calls"]
    called = [call.tool for call in run.calls]
    over = {tool: called.count(tool) for tool, most in policy.items() if called.count(tool) > most}
    evidence = {"limit": dict(policy), "violations": [{"tool": tool, "calls": calls} for tool, calls in over.items()]}
    if not over:
        return Check(PASS, evidence)
    reasons = [f"expected at most {counted(policy[tool], 'call')} of {tool}, got {n}" for tool, n in over.items()]
    return Check(FAIL, evidence, first_of(reasons))


def tool_lists(policy: Dict[str, Sequence[str]]) -> Dict[str, List[str]]:
    return {tool: list(tools) for tool, tools in policy.items()}


class Rule(NamedTuple):
    """One line of the table: the name in reports, the function, the keys of a case that it reads.

    A rule that is not always in force is so for the cases that set the key of its name.
    """

    name: str
    judge: Callable[[Dict[str, Any], Run], Check]
    keys: Dict[str, Key]
    always: bool = True


RULES: Tuple[Rule, ...] = (
    Rule("trace_recorded", judge_trace_recorded, {}),
    Rule(
        "sequence", judge_sequence, {"sequence": Key(read_tools, True), "match": Key(one_of(MATCHES), default="exact")}
    ),
    Rule("allowed_tools", judge_allowed_tools, {"allowed_tools": Key(read_tools, True)}),
    Rule("no_pending_calls", judge_no_pending_calls, {}),
    Rule(
        "max_failed_calls", judge_max_failed_calls, {"max_failed_calls": Key(whole_number("failed_calls"), default=0)}
    ),
    Rule("max_cost_usd", judge_max_cost_usd, {"max_cost_usd": Key(read_money)}),
    Rule("max_total_tool_ms", judge_max_total_tool_ms, {"max_total_tool_ms": Key(whole_number("total_tool_ms"))}),
    Rule("require_prior", judge_require_prior, {"require_prior": Key(policy_of(read_some_tools))}, always=False),
    Rule("forbid_after", judge_forbid_after, {"forbid_after": Key(policy_of(read_some_tools))}, always=False),
    Rule("max_calls", judge_max_calls, {"max_calls": Key(policy_of(whole_number("max_calls")))}, always=False),
)


def rule_keys() -> Dict[str, Key]:
    """The keys of a case that rules read, in the order of the table."""
    return {name: key for rule in RULES for name, key in rule.keys.items()}


def in_force(rule: Rule, case: Case) -> bool:
    """Whether a rule is for every case, or for those that set the key of its name and this one does."""
    return rule.always or case.expects[rule.name] is not None


def judge_case(case: Case, run: Run) -> List[Tuple[str, Check]]:
    """The check of every rule in force, in the order of the table; without a trace only the first has a verdict."""
    checks = [(rule.name, rule.judge(case.expects, run)) for rule in RULES if in_force(rule, case)]
    if run.recorded:
        return checks
    return checks[:1] + [(name, check._replace(verdict=NOT_CHECKED, message=None)) for name, check in checks[1:]]


def case_passes(checks: Sequence[Tuple[str, Check]]) -> bool:
    """No check failed or is unknown, and at least one passed."""
    verdicts = {check.verdict for _, check in checks}
    return PASS in verdicts and verdicts <= {PASS, NOT_CHECKED}


# Warnings: each function names one kind of expectation that no trace could meet, or gives None.


def policies(case: Case) -> Dict[str, Any]:
    """What a case sets of the rules that are not always in force, by rule."""
    return {rule.name: case.expects[rule.name] for rule in RULES if not rule.always and case.expects[rule.name]}


def unlisted(case: Case, tools: Iterable[str]) -> List[str]:
    """The tools that allowed_tools leaves out, each once."""
    allowed = set(case.expects["allowed_tools"])
    return [tool for tool in dict.fromkeys(tools) if tool not in allowed]


def warn_unlisted_steps(case: Case) -> Optional[str]:
    tools = unlisted(case, case.expects["sequence"])
    if not tools or case.expects["match"] == "subset":
        return None
    return f"no trace can pass: allowed_tools leaves out {listing(tools)}, which sequence expects"


def warn_unlisted_policies(case: Case) -> Optional[str]:
    found = []
    for name, policy in policies(case).items():
        listed = [tool for tools in policy.values() if isinstance(tools, tuple) for tool in tools]
        tools = unlisted(case, [*policy, *listed])
        if tools:
            found.append(f"{listing(tools)}, which {name} names")
    return f"allowed_tools leaves out {'; '.join(found)}" if found else None


def warn_impossible_sequence(case: Case) -> Optional[str]:
    """Judge the run that is the sequence and nothing else: further calls can only add violations."""
    set_here = policies(case)
    if not set_here or case.expects["match"] != "exact":
        return None
    steps = enumerate(case.expects["sequence"], start=1)
    run = run_of(Trace(case.id, tuple([Call(f"step-{number}", tool, SUCCEEDED, None, None) for number, tool in steps])))
    broken = [rule.name for rule in RULES if rule.name in set_here and rule.judge(case.expects, run).verdict == FAIL]
    return f"no trace can pass: the exact sequence itself breaks {listing(broken)}" if broken else None


WARNINGS: Tuple[Callable[[Case], Optional[str]], ...] = (
    warn_unlisted_steps,
    warn_unlisted_policies,
    warn_impossible_sequence,
)

# ---- report: records and verdicts -> the report, without clock, path or environment -------------


def report_call(call: Call) -> Dict[str, Any]:
    shown: Dict[str, Any] = {"id": call.id, "tool": call.tool, "status": call.status}
    if call.cost_usd is not None:
        shown["cost_usd"] = call.cost_usd
    if call.duration_ms is not None:
        shown["duration_ms"] = call.duration_ms
    return shown


def report_counts(runs: Sequence[Run]) -> Dict[str, Any]:
    """The three entries that describe the calls of one or more runs."""
    return {
        "calls": {
            "total": sum([len(run.calls) for run in runs]),
            SUCCEEDED: sum([len(run.succeeded) for run in runs]),
            FAILED: sum([len(run.failed) for run in runs]),
            PENDING: sum([len(run.pending) for run in runs]),
        },
        "cost_usd": {
            "known_total": plain_money(add_money([run.cost_usd.known_total for run in runs])),
            "unknown_calls": sum([len(run.cost_usd.unknown_calls) for run in runs]),
        },
        "tool_ms": {
            "known_total": sum([run.tool_ms.known_total for run in runs]),
            "unknown_calls": sum([len(run.tool_ms.unknown_calls) for run in runs]),
        },
    }


def report_check(name: str, check: Check) -> Dict[str, Any]:
    message = {} if check.message is None else {"message": check.message}
    return {"rule": name, "verdict": check.verdict, **check.evidence, **message}


def report_case(case: Case, run: Run) -> Dict[str, Any]:
    checks = judge_case(case, run)
    return {
        "id": case.id,
        "group": case.group,
        "verdict": PASS if case_passes(checks) else FAIL,
        "trace": "recorded" if run.recorded else "missing",
        "checks": [report_check(name, check) for name, check in checks],
        **report_counts([run]),
        "recorded_calls": [report_call(call) for call in run.calls],
    }


def report_unknown_case(trace: Trace) -> Dict[str, Any]:
    run = run_of(trace)
    return {"id": trace.id, **report_counts([run]), "recorded_calls": [report_call(call) for call in run.calls]}


def report_rules(cases: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """How often each rule came to each verdict; a rule that is in force nowhere is left out."""
    rules = {rule.name: dict.fromkeys(VERDICTS, 0) for rule in RULES}
    for case in cases:
        for check in case["checks"]:
            rules[check["rule"]][check["verdict"]] += 1
    return {rule.name: rules[rule.name] for rule in RULES if rule.always or any(rules[rule.name].values())}


def report_groups(cases: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    groups: Dict[Optional[str], Dict[str, Any]] = {}
    for case in cases:
        name = case["group"]
        group = groups.setdefault(name, {"group": name, "cases": 0, "passed": 0, "failed": 0})
        group["cases"] += 1
        group["passed" if case["verdict"] == PASS else "failed"] += 1
    return list(groups.values())


def report_warnings(cases: Sequence[Case]) -> List[Dict[str, Any]]:
    found = [(case.id, warn(case)) for case in cases for warn in WARNINGS]
    return [{"case": case, "message": message} for case, message in found if message is not None]


def build_report(expected: Document, observed: Document) -> Dict[str, Any]:
    """The report, as plain dicts, lists, strings and whole numbers, in the order of its keys."""
    traces = {trace.id: trace for trace in observed.records}
    runs = [run_of(traces.pop(case.id, None)) for case in expected.records]
    cases = [report_case(case, run) for case, run in zip(expected.records, runs)]
    passed = sum(case["verdict"] == PASS for case in cases)
    return {
        "report_version": REPORT_VERSION,
        "checker": {"name": NAME, "version": VERSION},
        "inputs": {
            "expected": {"bytes": expected.size, "sha256": expected.sha256, "cases": len(cases)},
            "observed": {"bytes": observed.size, "sha256": observed.sha256, "traces": len(observed.records)},
        },
        "verdict": PASS if passed == len(cases) > 0 and not traces else FAIL,
        "totals": {
            "cases": len(cases),
            "passed": passed,
            "failed": len(cases) - passed,
            "missing_traces": sum(not run.recorded for run in runs),
            "unknown_cases": len(traces),
            **report_counts(runs),
        },
        "rules": report_rules(cases),
        "groups": report_groups(cases),
        "warnings": report_warnings(expected.records),
        "cases": cases,
        "unknown_cases": [report_unknown_case(trace) for trace in traces.values()],
        "limitations": list(LIMITATIONS),
    }


# ---- audit: the bytes of two inputs -> the report, or every problem of both -----------------------


def accept(
    problems: List[str], name: str, read: Callable[[], bytes], check: Callable[[Any, List[str]], Any]
) -> Document:
    """Take one input through every stage; its problems join the list, each behind the document's name."""
    import hashlib

    found: List[str] = []
    data, records = b"", ()
    try:
        data = read()
        records = check(read_json(data), found)
    except Refused as refused:
        found.append(str(refused))
    problems.extend(name + problem for problem in found)
    return Document(len(data), hashlib.sha256(data).hexdigest(), records)


def audit_inputs(
    expected: Tuple[str, Callable[[], bytes]], observed: Tuple[str, Callable[[], bytes]]
) -> Dict[str, Any]:
    """The report for two inputs, each a name for messages and a function that reads its bytes."""
    problems: List[str] = []
    cases = accept(problems, *expected, lambda value, found: read_expected(value, rule_keys(), found))
    traces = accept(problems, *observed, read_observed)
    if problems:
        raise InputError(problems)
    return build_report(cases, traces)


def with_headroom(function: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
    """Call again with a higher recursion limit when the caller's leaves too little for 32 levels."""
    try:
        return function()
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + 400)
    try:
        return function()
    finally:
        # Python 3.8 refuses to lower the limit close to the depth that its caller stands at.
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(limit)


def audit(expected: bytes, observed: bytes) -> Dict[str, Any]:
    """Compare expected workflows with recorded traces, both given as the bytes of their JSON files.

    Returns the report that the command line writes, as plain dict, list, str, int and None: money is
    a decimal string in US dollars, time is whole milliseconds. Raises InputError when either
    document is refused; its `problems` name the documents `expected` and `observed`.
    """
    if not (isinstance(expected, bytes) and isinstance(observed, bytes)):
        raise TypeError("audit takes the bytes of two JSON files")
    return with_headroom(lambda: audit_inputs(("expected", lambda: expected), ("observed", lambda: observed)))


# ---- layout: a JSON value -> the bytes of its file, for a person and for diff -------------------

# A report's checks and recorded calls are the fifth level; from there on a container is one line.
OPEN_LEVELS = 4

encode_line = json.JSONEncoder(separators=(", ", ": "), check_circular=False).encode
encode_key = functools.lru_cache(maxsize=None)(encode_line)


def lay_out(value: Any, level: int = 1) -> str:
    """JSON text in which a container opens over lines when it holds another, down to OPEN_LEVELS."""
    keyed = isinstance(value, dict)
    members = value.values() if keyed else value
    if level > OPEN_LEVELS or not any(isinstance(member, (dict, list)) for member in members):
        return encode_line(value)
    if level == OPEN_LEVELS:
        lines = [encode_line(member) for member in members]
    else:
        lines = [
            lay_out(member, level + 1) if isinstance(member, (dict, list)) else encode_line(member)
            for member in members
        ]
    if keyed:
        lines = [f"{encode_key(key)}: {line}" for key, line in zip(value, lines)]
    opening, closing = "{}" if keyed else "[]"
    indent = "  " * level
    between = ",\n" + indent
    return f"{opening}\n{indent}{between.join(lines)}\n{indent[2:]}{closing}"


def json_bytes(value: Any) -> bytes:
    """ASCII, a newline at the end, the same bytes on every platform and Python."""
    return (lay_out(value) + "\n").encode("ascii")


# ---- streams: bytes -> standard output, standard error, files that are whole or absent ----------


def write_all(descriptor: int, data: bytes) -> None:
    """Write until every byte is taken. No buffer of Python's stands between, so none can fail at exit."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def put(stream: Optional[TextIO], data: bytes) -> None:
    """Write ASCII bytes to standard output or standard error; raises OSError or ValueError."""
    if stream is None:
        raise ValueError("it is closed")
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:  # the caller has put a text stream of its own in place
        stream.write(data.decode("ascii"))
        return
    stream.flush()
    write_all(descriptor, data)


def say(lines: Sequence[str]) -> None:
    """Lines for standard error. When they cannot be written, or that is interrupted, what was done stands."""
    with contextlib.suppress(OSError, ValueError, KeyboardInterrupt):
        put(sys.stderr, "".join(line + "\n" for line in lines).encode("ascii"))


class Output(NamedTuple):
    """Bytes to be written: the option and the thing as a message names them, the path (`-`: standard output)."""

    option: str
    what: str
    path: str
    append: bool = False
    data: bytes = b""


def identity(path: str, descriptor: int) -> Optional[os.stat_result]:
    """The file behind a path, or behind the descriptor that `-` stands for; None when there is none."""
    try:
        return os.fstat(descriptor) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return None


def same_file(one: Optional[os.stat_result], other: Optional[os.stat_result]) -> bool:
    """Whether two are one file, however spelled or linked; terminals and sockets may well serve both ways."""
    if one is None or other is None or stat.S_ISCHR(one.st_mode) or stat.S_ISSOCK(one.st_mode):
        return False
    return os.path.samestat(one, other)


def refuse_clashes(inputs: Sequence[str], outputs: Sequence[Output]) -> None:
    """Refuse an output that would replace an input, and two outputs that name one file."""
    taken = [identity(path, 0) for path in inputs]
    for index, output in enumerate(outputs):
        found = identity(output.path, 1)
        if any(same_file(found, other) for other in taken):
            raise Failure(f"{output.option} names an input; name a file that is not read")
        for other in outputs[:index]:
            alike = output.path == other.path or (found is None and same_path(output.path, other.path))
            if alike or same_file(found, identity(other.path, 1)):
                raise Failure(f"{other.option} and {output.option} name one file; name two")


def same_path(one: str, other: str) -> bool:
    """Whether two paths to a file that is not there yet name one; `-` is no path."""
    return "-" not in (one, other) and os.path.normcase(os.path.realpath(one)) == os.path.normcase(
        os.path.realpath(other)
    )


def stage(output: Output, cleanup: contextlib.ExitStack, undo: bool) -> Callable[[], None]:
    """Make an output ready and return the step that puts it in place; `cleanup` undoes what a failure leaves.

    With `undo` it also undoes the step itself, should a later one fail.
    """
    path, data = output.path, output.data
    try:
        found: Optional[os.stat_result] = None if path == "-" else os.stat(path)
    except FileNotFoundError:
        found = None
    if path == "-" or same_file(found, identity("-", 1)):
        return lambda: put(sys.stdout, data)
    if found and not stat.S_ISREG(found.st_mode):
        return lambda: write_directly(path, data)
    if found and output.append:
        return stage_append(path, data, cleanup)
    # A symbolic link stays; what it points to is replaced.
    target = os.path.realpath(path) if os.path.islink(path) else path
    return stage_replace(target, data, found, cleanup, undo)


def stage_replace(
    target: str, data: bytes, found: Optional[os.stat_result], cleanup: contextlib.ExitStack, undo: bool
) -> Callable[[], None]:
    """Write beside the target, then rename: it is whole or as it was, with `undo` also when a later output fails."""
    if found and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    name = os.path.join(os.path.dirname(target), f".{NAME}.{os.urandom(8).hex()}")
    new, old = name + ".tmp", name + ".old.tmp"
    cleanup.callback(remove, new)
    write_beside(new, [data], found)
    if found and undo:
        cleanup.callback(remove, old)
        with open(target, "rb", buffering=0) as file:
            # A copy, not a link: in a directory such as /tmp the link to another's file could not be removed.
            write_beside(old, iter(lambda: file.read(1 << 20) or b"", b""), found)

    def replace() -> None:
        os.replace(new, target)
        if undo:
            cleanup.push(lambda error, *_: put_back(old if found else None, target) if error else None)

    return replace


def write_beside(path: str, chunks: Iterable[bytes], like: Optional[os.stat_result]) -> None:
    """Write a new file, with the owner and permissions of another or, without one, those of a plain open."""
    # Until it has the permissions of the file that it stands for, nobody else may look into it.
    mode = 0o600 if like else 0o666
    with open(path, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, mode)) as file:
        for chunk in chunks:
            write_all(file.fileno(), chunk)
        os.fsync(file.fileno())
    if like:
        keep_permissions(path, like)


def put_back(old: Optional[str], target: str) -> None:
    """Undo a replacement: the old content under its name again, or no file where there was none."""
    if old is None:
        remove(target)
    else:
        with contextlib.suppress(OSError):
            os.replace(old, target)


def stage_append(path: str, data: bytes, cleanup: contextlib.ExitStack) -> Callable[[], None]:
    """Append after a blank line; whatever fails from then on, the file is cut back to its former length."""
    with open(path, "r+b", buffering=0) as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - 1))
        last = file.read(1)
    blank = b"" if not last else b"\n" if last == b"\n" else b"\n\n"

    def append() -> None:
        cleanup.push(lambda error, *_: cut_back(path, length) if error else None)
        with open(path, "ab", buffering=0) as file:
            write_all(file.fileno(), blank + data)

    return append


def cut_back(path: str, length: int) -> None:
    with contextlib.suppress(OSError):
        os.truncate(path, length)


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def write_directly(path: str, data: bytes) -> None:
    """Write to what is no regular file: a device, a named pipe."""
    with open(path, "wb", buffering=0) as file:
        write_all(file.fileno(), data)


def keep_permissions(path: str, old: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # only root may give a file away
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


@contextlib.contextmanager
def naming(output: Output) -> Iterator[None]:
    """Turn whatever the operating system refuses into a failure that names the output."""
    try:
        yield
    except (OSError, ValueError) as error:
        place = "standard output" if output.path == "-" else printable(output.path)
        raise Failure(f"the {output.what} cannot be written to {place}: {reason(error)}") from None


def deliver(outputs: Sequence[Output]) -> None:
    """Make every output ready, then put them in place in order; raises Failure, and no stray file stays."""
    with contextlib.ExitStack() as cleanup:
        steps: List[Callable[[], None]] = []
        for output in outputs:
            with naming(output):
                steps.append(stage(output, cleanup, undo=output is not outputs[-1]))
        for output, put_in_place in zip(outputs, steps):
            with naming(output):
                put_in_place()


# ---- snapshot: checked traces -> expected workflows that they pass ------------------------------


MAX_HEADROOM = 1_000  # percent


def refuse_unfit(traces: Sequence[Trace], problems: List[str]) -> None:
    """What no expectation can be made of: no trace at all, a call that has not ended."""
    if not traces:
        refuse(problems, "$", "must hold at least one trace: without one there is nothing to expect")
    for index, trace in enumerate(traces):
        for place, call in enumerate(trace.calls):
            if call.status == PENDING:
                advice = "a pending call cannot be expected: record the run again once it has ended"
                refuse(problems, f"$[{index}].calls[{place}].status", advice)


def raised(amount: int, percent: int) -> int:
    """A whole amount plus so many percent, rounded up."""
    return -(-amount * (100 + percent) // 100)


def cost_budget(total: Decimal, percent: int) -> Optional[str]:
    """Money for a known cost plus headroom, rounded up to 6 decimals; None when money cannot say it."""
    millionths = raised(int(EXACT.scaleb(total, 6)), percent)
    text = f"{millionths // 10**6}.{millionths % 10**6:06}".rstrip("0").rstrip(".")
    return text if MONEY.fullmatch(text) else None


def expect_run(trace: Trace, percent: Optional[int], unpriced: List[str]) -> Dict[str, Any]:
    """The case that a trace passes; budgets for what is measured in every call, when a headroom is given.

    The id of a trace that costs more than money can say joins `unpriced`.
    """
    run = run_of(trace)
    case: Dict[str, Any] = {
        "id": trace.id,
        "sequence": [call.tool for call in run.succeeded],
        "allowed_tools": list(dict.fromkeys(call.tool for call in run.calls)),
    }
    if run.failed:
        case["max_failed_calls"] = len(run.failed)
    if percent is not None and not run.cost_usd.unknown_calls:
        budget = cost_budget(run.cost_usd.known_total, percent)
        if budget is None:
            unpriced.append(trace.id)
        else:
            case["max_cost_usd"] = budget
    if percent is not None and not run.tool_ms.unknown_calls:
        case["max_total_tool_ms"] = min(raised(run.tool_ms.known_total, percent), BOUNDS["total_tool_ms"].value)
    return case


def snapshot(traces: Sequence[Trace], percent: Optional[int], unpriced: List[str]) -> bytes:
    """A workflows file for recorded traces; raises Refused when it would be beyond the bounds of an input."""
    data = json_bytes({"cases": [expect_run(trace, percent, unpriced) for trace in traces]})
    read_json(data)
    return data


# ---- summaries: the report -> what a person, a test reporter and a job page read -----------------

UNEXPECTED = "recorded, but no case expects it"


def wrong_checks(case: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The checks of a reported case that keep it from passing; each has a message."""
    return [check for check in case["checks"] if check["verdict"] in (FAIL, UNKNOWN)]


def counts_line(report: Dict[str, Any]) -> str:
    totals = report["totals"]
    cases, unknown = counted(totals["cases"], "case"), counted(totals["unknown_cases"], "unknown case")
    return f"{totals['failed']} of {cases} failed, {unknown}"


def explain(report: Dict[str, Any]) -> List[str]:
    """A line per check that does not pass, a line per unknown case, a line of counts."""
    lines = [
        f"{check['verdict'].upper()} {case['id']} {check['rule']}: {check['message']}"
        for case in report["cases"]
        for check in wrong_checks(case)
    ]
    lines += [f"UNKNOWN-CASE {case['id']}: {UNEXPECTED}" for case in report["unknown_cases"]]
    return [*lines, counts_line(report)]


def failing_checks(case: Dict[str, Any]) -> List[str]:
    """One sentence per check that does not pass, behind the rule's name; `unknown` is said, `fail` goes without."""
    words = {FAIL: "", UNKNOWN: " (unknown)"}
    return [f"{check['rule']}{words[check['verdict']]}: {check['message']}" for check in wrong_checks(case)]


def xml_attribute(text: str) -> str:
    """A quoted attribute value of XML 1.0: what XML cannot hold at all is shown as an escape."""
    from xml.sax.saxutils import quoteattr

    shown = re.sub(
        "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", lambda found: printable(found[0]), text
    )
    return quoteattr(shown).replace("##", "#&#35;")


def junit_case(classname: str, name: str, failures: Sequence[str]) -> str:
    """One test case; the failure element holds a line per failing check, which is plain ASCII already."""
    opening = f"    <testcase classname={xml_attribute(classname)} name={xml_attribute(name)}"
    if not failures:
        return opening + "/>\n"
    from xml.sax.saxutils import escape

    failure = f"      <failure type={xml_attribute(FAIL)} message={xml_attribute('; '.join(failures))}>"
    lines = escape("\n".join(failures))
    return f"{opening}>\n{failure}{lines}</failure>\n    </testcase>\n"


def junit_xml(report: Dict[str, Any]) -> bytes:
    """One test case per workflow and one failing one per unknown case; no clock, so that equal runs are equal."""
    cases = [
        junit_case(NAME if case["group"] is None else case["group"], case["id"], failing_checks(case))
        for case in report["cases"]
    ]
    cases += [junit_case(NAME, case["id"], [UNEXPECTED]) for case in report["unknown_cases"]]
    failures = report["totals"]["failed"] + report["totals"]["unknown_cases"]
    suite = f'name="{NAME}" tests="{len(cases)}" failures="{failures}" errors="0" skipped="0"'
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {suite}>\n  <testsuite {suite}>\n'
        f"{''.join(cases)}  </testsuite>\n</testsuites>\n"
    )
    return text.encode("ascii", "xmlcharrefreplace")


MARKDOWN_LIMIT = 900_000  # bytes; a job page of GitHub takes 1 MiB in all


def code_span(text: str) -> str:
    """Text that can be no markup: nothing is a tag, a link, an image or a mention inside a code span."""
    return "`" + printable(text).replace("`", "\\x60").replace("|", "\\x7c") + "`" if text else "(empty)"


def markdown_row(verdict: str, name: str, group: Optional[str], failures: Sequence[str]) -> str:
    shown = "" if group is None else code_span(group)
    return f"| {verdict} | {code_span(name)} | {shown} | {'<br>'.join(map(code_span, failures))} |\n"


def markdown_table(rows: Sequence[str], limit: int) -> str:
    """As many rows as the limit leaves room for, then how many more there are."""
    text = ["| verdict | case | group | failed on |\n| --- | --- | --- | --- |\n"]
    room = limit - len(text[0]) - len("\nand 1,000 more\n")
    for index, row in enumerate(rows):
        room -= len(row)
        if room < 0:
            return "".join([*text, f"\nand {len(rows) - index:,} more\n"])
        text.append(row)
    return "".join(text)


def markdown_head(report: Dict[str, Any]) -> str:
    totals = report["totals"]
    calls, cost, time = totals["calls"], totals["cost_usd"], totals["tool_ms"]
    text = (
        f"## {NAME}: {report['verdict']}, {counts_line(report)}\n\n"
        f"{counted(calls['total'], 'call')}: {calls[SUCCEEDED]} succeeded, {calls[FAILED]} failed, "
        f"{calls[PENDING]} pending. Known cost {cost['known_total']} USD (not known for "
        f"{counted(cost['unknown_calls'], 'call')}), known tool time {time['known_total']:,} ms "
        f"(not known for {counted(time['unknown_calls'], 'call')}).\n"
    )
    if report["warnings"]:
        text += f"\nThe report holds {counted(len(report['warnings']), 'warning')} about expectations.\n"
    return text


def markdown(report: Dict[str, Any]) -> bytes:
    """The verdict with its counts, the failing and the unknown cases, and the passing ones folded away."""
    failing: List[str] = []
    passing: List[str] = []
    for case in report["cases"]:
        rows = passing if case["verdict"] == PASS else failing
        rows.append(markdown_row(case["verdict"].upper(), case["id"], case["group"], failing_checks(case)))
    failing += [markdown_row("UNKNOWN-CASE", case["id"], None, [UNEXPECTED]) for case in report["unknown_cases"]]
    text = markdown_head(report)
    if failing:
        text += "\n" + markdown_table(failing, MARKDOWN_LIMIT - len(text) - 1_000)
    if passing:
        opening = f"\n<details><summary>{counted(len(passing), 'case')} passed</summary>\n\n"
        closing = "\n</details>\n"
        room = MARKDOWN_LIMIT - len(text) - len(opening) - len(closing)
        text += opening + markdown_table(passing, room) + closing
    return text.encode("ascii")


class CiOutput(NamedTuple):
    """One further output of a check: its option, its name in messages, and the function that makes it of a report."""

    option: str
    what: str
    help: str
    make: Callable[[Dict[str, Any]], bytes]
    append: bool = False


CI_OUTPUTS = (
    CiOutput("--junit-xml", "JUnit XML", "also write JUnit XML for a test reporter", junit_xml),
    CiOutput(
        "--markdown", "Markdown", "also write a Markdown summary, appended when the file exists", markdown, append=True
    ),
)

# ---- importers: another tool's trace file -> observed traces without content, or a refusal by line --

# Per imported file: more than observed traces may have, since most of it is not kept.
IMPORT_SIZE = Bound(16_777_216, "bytes")
IMPORT_DEPTH = Bound(64, "levels")
IMPORT_NODES = Bound(1_000_000, "JSON values")
TOO_MANY_NODES = f": holds more than {IMPORT_NODES} (nodes)"

BLANK = " \t\r\n"
BLANKS = re.compile(f"[{BLANK}]*")
NOT_KEPT = r"[^A-Za-z0-9.:_-]"
ISO_TIME = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)?"
)


class Place(NamedTuple):
    """Where something stands: the offset of its document, and the keys and indices that lead to it from there."""

    offset: int
    path: Tuple[Any, ...] = ()

    def inside(self, *steps: Any) -> Place:
        return Place(self.offset, self.path + steps)


class Record(NamedTuple):
    """What every reader yields: one span, call or not, or (without a span) what a file says of a whole trace.

    Times are nanoseconds: integers, or fractions where a file gives more decimals. Of content it holds at most
    whether it was there. The defaults are what a format leaves open.
    """

    trace: str  # its id; empty for a record that belongs to none
    at: Place
    span: Any = None  # its id, or its place in the trace, from 1, where it has none
    parent: Any = None
    tool: Optional[str] = None  # None for a span that is no call
    start: Any = None
    end: Any = None
    failed: bool = False
    ended: bool = False
    output: bool = False
    waits: bool = False  # for an approval: pending, whatever else is recorded
    call_id: Optional[str] = None  # a direct child of the same tool and call id is the same call
    measured_ms: Optional[int] = None  # stands in where a start or an end is missing
    cost: Optional[Decimal] = None
    given: Tuple[Tuple[str, str], ...] = ()  # fields that must agree within a trace; --case-id picks one
    word: Optional[bytes] = None  # equal for records that are equal as JSON; None: such are no repeats
    whole: bool = False  # the records that follow are the whole trace
    agentic: bool = True  # whether it is any evidence of an agent


class Unfit(Exception):
    """A record that is not what its format says: its place, and what would be right."""

    def __init__(self, at: Place, text: str) -> None:
        super().__init__(text)
        self.at = at


class Foreign(Unfit):
    """A value that is no record of the format at all."""

    def __init__(self, at: Place) -> None:
        super().__init__(at, "no record of this format")


class Gathered:
    """One trace while its records come in: each span once, at the place of its first record."""

    def __init__(self, at: Place) -> None:
        self.at = at
        self.records: List[Record] = []
        self.spans: Dict[Any, int] = {}  # span -> its index in `records`
        self.completed: Set[Any] = set()  # spans whose start and end were recorded one by one
        self.words: Set[Optional[bytes]] = set()
        self.given: Dict[str, str] = {}


class Found:
    """What a file holds: its traces by their ids, in order, what is wrong, and how often what occurred."""

    def __init__(self, field: str) -> None:
        self.field = field  # the one that names the case
        self.traces: Dict[str, Gathered] = {}
        self.skipping = False  # the records of a whole trace that was recorded before
        self.problems: List[Tuple[Place, str]] = []
        self.counts: Dict[Any, int] = {}

    def tally(self, what: Any, number: int = 1) -> None:
        if number:
            self.counts[what] = self.counts.get(what, 0) + number

    def refuse(self, at: Place, text: str) -> None:
        # A file may hold a million of them; those beyond the bound are only counted.
        if len(self.problems) < BOUNDS["problems"].value:
            self.problems.append((at, text))
        else:
            self.tally("hidden")

    def reject(self, unfit: Unfit) -> None:
        if not isinstance(unfit, Foreign):
            self.tally("known")
        self.refuse(unfit.at, str(unfit))


def keep_short_int(text: str) -> Any:
    return int(text) if len(text) <= BOUNDS["number"].value else NumberText(text)


def blanks_end(text: str, position: int) -> int:
    blanks = BLANKS.match(text, position)
    return blanks.end() if blanks else position


Decode = Callable[[str, int], Tuple[Any, int]]


def import_documents(text: str) -> Iterator[Tuple[int, Any]]:
    """Every JSON document with its offset, and in place of an array its entries; raises Unfit or a syntax error.

    Nothing is sliced, so that many documents cost no more than one.
    """
    repeated: List[bool] = []

    def keep_members(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            repeated.append(True)
        return members

    decode_any = json.JSONDecoder(
        object_pairs_hook=keep_members, parse_int=keep_short_int, parse_float=NumberText, parse_constant=NumberText
    ).raw_decode

    def decode_one(text: str, position: int) -> Tuple[Any, int]:
        value, end = decode_any(text, position)
        if repeated:
            offset = duplicate_key_position(text, position)
            raise Unfit(Place(offset), "a key stands twice in one object; keys must be unique")
        return value, end

    position = blanks_end(text, 0)
    while position < len(text):
        if text[position] == "[":
            position = yield from array_entries(text, position, decode_one)
        else:
            value, end = decode_one(text, position)
            yield position, value
            position = end
        position = blanks_end(text, position)


def array_entries(text: str, position: int, decode_one: Decode) -> Generator[Tuple[int, Any], None, int]:
    """The entries of an array with their offsets, one at a time; gives where the array ends."""
    position = blanks_end(text, position + 1)
    while text[position : position + 1] != "]":
        value, end = decode_one(text, position)
        yield position, value
        position = blanks_end(text, end)
        if text[position : position + 1] == ",":
            position = blanks_end(text, position + 1)
            if text[position : position + 1] == "]":
                raise json.JSONDecodeError("Expecting value", text, position)
        elif text[position : position + 1] != "]":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
    return position + 1


def duplicate_key_position(text: str, position: int) -> int:
    """Where the first key stands that its object already has; only walked when there is one."""
    open_objects: List[Set[str]] = []
    tokens = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*(:?)|([\[{])|[\]}]', re.DOTALL)
    for token in tokens.finditer(text, position):
        string, colon, opening = token.groups()
        if colon:
            key = json.loads(string)
            if key in open_objects[-1]:
                return token.start()
            open_objects[-1].add(key)
        elif opening:
            open_objects.append(set())
        elif string is None:
            open_objects.pop()
    return position


def line_of(text: str, at: Place) -> int:
    """The line of a place, from 1; looked up only for what is refused, by skipping all that stands before it."""
    skip = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
    position = at.offset
    for step in at.path:
        index, in_object = 0, text[position] == "{"
        position = blanks_end(text, position + 1)
        while True:
            found: Any = index
            if in_object:
                found, position = skip(text, position)
                position = blanks_end(text, blanks_end(text, position) + 1)
            if found == step:
                break
            position = blanks_end(text, blanks_end(text, skip(text, position)[1]) + 1)
            index += 1
    return text.count("\n", 0, position) + 1


def import_text(path: str) -> str:
    """Path -> text, every bound kept on it before a parser sees it."""
    data = read_bounded(path, IMPORT_SIZE.value)
    if len(data) > IMPORT_SIZE.value:
        raise Refused(f": larger than {IMPORT_SIZE} (16 MiB)")
    text = decode(data)
    # Piece by piece, since the skeleton of the whole takes ten times its memory on the way. A piece that starts
    # within a string is given the quote that it lacks; escaped quotes go first, so that none is cut in two.
    bare, pieces, within = data.replace(b"\\\\", b"").replace(b'\\"', b""), [], False
    for start in range(0, len(bare), 1 << 18):
        piece = b'"' * within + bare[start : start + (1 << 18)]
        within = piece.count(b'"') % 2 == 1
        pieces.append(skeleton(piece))
    bones = b"".join(pieces)
    if exceeds_depth(bones, IMPORT_DEPTH.value):
        raise Refused(f": arrays and objects nested deeper than {IMPORT_DEPTH}")
    # Without a comma between them two brackets stand in two documents, and each document is a value.
    documents = sum(bones.count(joint) for joint in (b"}{", b"}[", b"]{", b"]["))
    if count_nodes(bones) + documents > IMPORT_NODES.value:
        raise Refused(TOO_MANY_NODES)
    return text


def fingerprint(value: Any) -> bytes:
    """The same for values that are equal as JSON, whatever the order of their keys; numbers as written."""
    import hashlib

    # NaN, which no JSON value can become in `import_documents`, sets a number apart from an array of its text.
    canonical = json.dumps(
        value, sort_keys=True, check_circular=False, default=lambda number: [float("nan"), number.text]
    )
    return hashlib.sha256(canonical.encode("ascii")).digest()[:16]


# What readers read values with. Each raises Unfit, which names the format's key and never the value.


def text_of(value: Any, what: str, at: Place) -> str:
    if isinstance(value, str) and value and not SURROGATE.search(value):
        return value
    raise Unfit(at, f"{what} must be a non-empty string without unpaired surrogates")


def text_or_none(value: Any, what: str, at: Place) -> Optional[str]:
    return None if value is None else text_of(value, what, at)


def object_or_none(value: Any, what: str, at: Place) -> Dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unfit(at, f"{what} must be an object")
    return value


def objects_in(value: Dict[str, Any], at: Place, *names: str) -> Iterator[Tuple[Dict[str, Any], Place]]:
    """The objects of the arrays under these keys, each with its place; a key that is missing or null has none."""
    for name in names:
        entries = value.get(name)
        if not isinstance(entries, list) and entries is not None:
            raise Unfit(at.inside(name), f"{name} must be an array")
        for index, entry in enumerate(entries or ()):
            place = at.inside(name, index)
            if not isinstance(entry, dict):
                raise Unfit(place, f"an entry of {name} must be an object")
            yield entry, place


# Keeps 100 characters exactly; beyond the exponents of Decimal, rounds up to infinity, or to more than nothing.
ANY_NUMBER = Context(prec=120, rounding="ROUND_CEILING", traps=[])


def number_of(value: Any, what: str, at: Place) -> Optional[Decimal]:
    """A JSON number exactly, None for null."""
    if value is None:
        return None
    text = value.text if isinstance(value, NumberText) else str(value) if type(value) is int else ""
    if not text[-1:].isdigit() or len(text) > BOUNDS["number"].value:
        raise Unfit(at, f"{what} must be a number of at most {BOUNDS['number']}, or null")
    return ANY_NUMBER.create_decimal(text)


def milliseconds(value: Any, what: str, at: Place) -> Any:
    """A point in time in milliseconds -> nanoseconds, exactly."""
    number = number_of(value, what, at)
    if number is None:
        return None
    _, digits, exponent = number.as_tuple()
    # Beyond these an exact number is of no clock, and could be made to fill the memory.
    if not isinstance(exponent, int) or exponent < -100 or exponent + len(digits) > 30:
        raise Unfit(at, f"{what} must be a point in time in milliseconds")
    if exponent >= -6:
        return int(number.scaleb(6, EXACT))
    from fractions import Fraction

    return Fraction(number) * 1_000_000


def duration_of(value: Any, what: str, at: Place) -> Optional[int]:
    """A number of milliseconds, rounded up; what is out of bounds stays out of bounds."""
    number = number_of(value, what, at)
    if number is None:
        return None
    bound = BOUNDS["duration_ms"].value
    if not 0 <= number <= bound:
        return -1 if number < 0 else bound + 1
    return int(number.to_integral_value("ROUND_CEILING", ANY_NUMBER))


def iso_time(value: Any, what: str, at: Place) -> Optional[int]:
    """An ISO 8601 time -> nanoseconds since 1970, exactly; without an offset it is UTC."""
    if value is None:
        return None
    parts = re.fullmatch(ISO_TIME, value) if isinstance(value, str) else None
    if parts:
        import datetime

        with contextlib.suppress(ValueError):  # there is no such day or hour
            moment = datetime.datetime(*map(int, parts.group(1, 2, 3, 4, 5, 6)))  # type: ignore[arg-type]
            passed = moment - datetime.datetime(1970, 1, 1)
            hours, minutes = [int(part or 0) for part in parts.group(9, 10)]
            offset = (hours * 60 + minutes) * 60
            whole = passed.days * 86_400 + passed.seconds - (-offset if parts.group(8) == "-" else offset)
            return whole * 10**9 + int((parts.group(7) or "").ljust(9, "0"))
    raise Unfit(at, f"{what} must be an ISO 8601 time such as 2026-01-05T10:00:00.250Z, or null")


def unix_nano(value: Any, what: str, at: Place) -> Optional[int]:
    """Nanoseconds since 1970, as a number or a string of digits."""
    if value is None:
        return None
    digits = isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value)
    number = int(value) if digits else whole_of(value)
    if number is None or not 0 <= number < 2**64:
        raise Unfit(at, f"{what} must be a whole number of nanoseconds, as a number or a string of digits")
    return number


def whole_of(value: Any) -> Optional[int]:
    """The value of a JSON number that is whole; NaN and what is too long to be one are none."""
    if isinstance(value, NumberText) and not (value.text[-1:].isdigit() and len(value.text) <= BOUNDS["number"].value):
        return None
    return exact_whole(value)


def field_given(name: str, value: Any, at: Place) -> Tuple[Tuple[str, str], ...]:
    """A field that may name the case, as text; nothing when the record does not give it."""
    if value is None:
        return ()
    if not isinstance(value, str):
        number = whole_of(value)
        if number is None or number < 0:
            raise Unfit(at, f"what --case-id {printable(name)} names must be a string or a whole number")
        value = str(number)
    return ((name, text_of(value, f"what --case-id {printable(name)} names", at)),)


def field_asked(found: Found, fields: Dict[str, Any], metadata: Any, at: Place) -> Tuple[Tuple[str, str], ...]:
    """The field that --case-id names, where the record gives it; no other is looked at."""
    if found.field.startswith("metadata."):
        return field_given(found.field, object_or_none(metadata, "metadata", at).get(found.field[9:]), at)
    return field_given(found.field, fields.get(found.field), at)


# The readers: one document -> its records, None for what is passed over. What is not of the format raises Foreign.

Read = Union[Record, Unfit, None]
Importer = Callable[[Any, Place, Found], Iterator[Read]]


def each(read: Callable[..., Record], *arguments: Any) -> Read:
    """One of several records in a document: a problem with it is no reason to pass over the others."""
    try:
        return read(*arguments)
    except Unfit as unfit:
        return unfit


def read_openai_agents(value: Any, at: Place, found: Found) -> Iterator[Read]:
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        for index, item in enumerate(value["data"]):
            yield each(openai_record, item, at.inside("data", index), found)
    else:
        yield openai_record(value, at, found)


def openai_record(value: Any, at: Place, found: Found) -> Record:
    kind = value.get("object") if isinstance(value, dict) else None
    if kind == "trace":
        fields = {"workflow": value.get("workflow_name"), "group": value.get("group_id")}
        given = field_asked(found, fields, value.get("metadata"), at)
        return Record(text_of(value.get("id"), "id", at), at, given=given, word=fingerprint(value))
    if kind != "trace.span":
        raise Foreign(at)
    data = object_or_none(value.get("span_data"), "span_data", at)
    called = text_of(data.get("type"), "span_data.type", at) == "function"
    end = iso_time(value.get("ended_at"), "ended_at", at)
    return Record(
        trace=text_of(value.get("trace_id"), "trace_id", at),
        at=at,
        span=text_of(value.get("id"), "id", at),
        parent=text_or_none(value.get("parent_id"), "parent_id", at),
        tool=text_of(data.get("name"), "span_data.name", at) if called else None,
        start=iso_time(value.get("started_at"), "started_at", at),
        end=end,
        failed=value.get("error") is not None,
        ended=end is not None,
        output=data.get("output") is not None,
        word=fingerprint(value),
    )


GENERIC_CALLS = ("tool", "function")
GENERIC_TYPES = (*GENERIC_CALLS, "agent", "generation", "guardrail", "handoff", "custom")


def read_generic_jsonl(value: Any, at: Place, found: Found) -> Iterator[Read]:
    missing = {"trace_id", "span_id", "type"} - value.keys() if isinstance(value, dict) else ()
    if not isinstance(value, dict) or len(missing) > 1:
        raise Foreign(at)
    if missing:
        raise Unfit(at, f"a span must have trace_id, span_id and type; it has no {''.join(missing)}")
    if value["type"] not in GENERIC_TYPES:
        raise Unfit(at, f"type must be one of {', '.join(GENERIC_TYPES)}")
    trace = text_of(value["trace_id"], "trace_id", at)
    given = field_given("workflow", value.get("workflow_name"), at) + field_given("group", value.get("group_id"), at)
    if found.field.startswith("metadata.") and trace not in found.traces:
        given += field_asked(found, {}, object_or_none(value.get("trace_metadata"), "trace_metadata", at), at)
    end, output = iso_time(value.get("ended_at"), "ended_at", at), value.get("output") is not None
    yield Record(
        trace=trace,
        at=at,
        span=text_of(value["span_id"], "span_id", at),
        parent=text_or_none(value.get("parent_id"), "parent_id", at),
        tool=text_of(value.get("name"), "name", at) if value["type"] in GENERIC_CALLS else None,
        start=iso_time(value.get("started_at"), "started_at", at),
        end=end,
        failed=value.get("error") is not None,
        ended=end is not None or output,
        output=output,
        given=given,
        word=fingerprint(value),
    )


def read_attest(value: Any, at: Place, found: Found) -> Iterator[Read]:
    if not isinstance(value, dict) or "steps" not in value or not {"schema_version", "trace_id"} & value.keys():
        raise Foreign(at)
    trace = text_of(value.get("trace_id"), "trace_id", at)
    fields = {"agent": value.get("agent_id"), "conversation": value.get("conversation_id")}
    yield Record(trace, at, given=field_asked(found, fields, None, at), word=fingerprint(value), whole=True)
    if "schema_version" not in value:
        raise Unfit(at, "schema_version must be 1 or 2")
    steps = list(attest_steps(value, at, iter(range(1, sys.maxsize)), None))
    spans = {span for _, span, _, _ in steps}
    for step, span, around, place in steps:
        parent = step.get("parent_span_id")
        inside = parent if isinstance(parent, str) and parent in spans else around
        yield each(attest_record, step, trace, span, inside, place)


def attest_steps(trace: Dict[str, Any], at: Place, places: Iterator[int], around: Any) -> Iterator[Tuple[Any, ...]]:
    """Every step with its span, the span of the step around it, and its place; those of a sub_trace after its own."""
    if whole_of(trace.get("schema_version", 1)) not in (1, 2):
        raise Unfit(at, "schema_version must be 1 or 2")
    if trace.get("steps") is None:
        raise Unfit(at, "steps must be an array")
    for step, place in objects_in(trace, at, "steps"):
        in_trace, id = next(places), text_or_none(step.get("span_id"), "span_id", place)
        span: Any = in_trace if id is None else id
        yield step, span, around, place
        inner = step.get("sub_trace")
        if inner is not None:
            yield from attest_steps(object_or_none(inner, "sub_trace", place), place.inside("sub_trace"), places, span)


def attest_record(step: Dict[str, Any], trace: str, span: Any, parent: Any, at: Place) -> Record:
    text_or_none(step.get("parent_span_id"), "parent_span_id", at)
    if text_of(step.get("type"), "type", at) != "tool_call":
        return Record(trace, at, span, parent)
    metadata = object_or_none(step.get("metadata"), "metadata", at)
    end, result = milliseconds(step.get("ended_at_ms"), "ended_at_ms", at), step.get("result")
    soft_error = isinstance(result, dict) and result.get("error") is not None
    return Record(
        trace=trace,
        at=at,
        span=span,
        parent=parent,
        tool=text_of(step.get("name"), "name", at),
        start=milliseconds(step.get("started_at_ms"), "started_at_ms", at),
        end=end,
        failed=step.get("error") is not None or soft_error,
        ended=end is not None or result is not None,
        output=result is not None,
        measured_ms=duration_of(metadata.get("duration_ms"), "metadata.duration_ms", at),
        cost=number_of(metadata.get("cost_usd"), "metadata.cost_usd", at),
    )


OTLP_SPANS = ("resourceSpans", "resource_spans", "batches")
OTLP_OTHERS = ("resourceMetrics", "resource_metrics", "resourceLogs", "resource_logs")
OTLP_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
OTLP_STATUS_NAMES = ("STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR")
OTLP_NAMES = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
OTLP_DEFERRED = "pydantic_ai.tool.deferral.name"
# What tells a call from other spans: of another type, it must not make a call vanish.
OTLP_KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
OTLP_READ = {*OTLP_KINDS, *OTLP_NAMES, "gen_ai.tool.call.id", "gen_ai.conversation.id", "error.type", OTLP_DEFERRED}


def read_otlp(value: Any, at: Place, found: Found) -> Iterator[Read]:
    if isinstance(value, dict) and isinstance(value.get("trace"), dict):
        value, at = value["trace"], at.inside("trace")
    if not isinstance(value, dict) or value.keys().isdisjoint(OTLP_SPANS + OTLP_OTHERS):
        raise Foreign(at)
    for _ in objects_in(value, at, *OTLP_OTHERS):
        yield None
    read = OTLP_READ | ({found.field[9:]} if found.field.startswith("metadata.") else set())
    for group, group_at in objects_in(value, at, *OTLP_SPANS):
        resource = object_or_none(group.get("resource"), "resource", group_at)
        shared, _ = otlp_attributes(resource, group_at.inside("resource"), read)
        for scope, scope_at in objects_in(group, group_at, *OTLP_SCOPES):
            for span, span_at in objects_in(scope, scope_at, "spans"):
                yield each(otlp_record, span, shared, span_at, found, read)


def otlp_attributes(holder: Dict[str, Any], at: Place, read: Set[str]) -> Tuple[Dict[str, Any], bool]:
    """The attributes that are read, and whether any one at all tells of an agent."""
    found: Dict[str, Any] = {}
    agentic = False
    for entry, _ in objects_in(holder, at, "attributes"):
        key = entry.get("key")
        if not isinstance(key, str):
            raise Unfit(at, "an attribute must have a key that is a string")
        agentic = agentic or key.startswith(("gen_ai.", "openinference.", "traceloop."))
        if key in read:
            value = otlp_value(object_or_none(entry.get("value"), "the value of an attribute", at), at)
            if value is not None and key in OTLP_KINDS:
                text_of(value, key, at)
            if found.setdefault(key, value) != value:
                raise Unfit(at, "an attribute is given twice, with two values")
    return {key: value for key, value in found.items() if value is not None}, agentic


def otlp_value(value: Dict[str, Any], at: Place) -> Any:
    """A string or a whole number; anything else stays what it is, and an empty value is None."""
    text, number = either(value, at, "stringValue", "string_value"), either(value, at, "intValue", "int_value")
    if isinstance(number, str):
        if not re.fullmatch("-?[0-9]{1,20}", number):
            raise Unfit(at, "intValue must be a whole number, as a number or a string of digits")
        number = int(number)
    return text if text is not None else number if number is not None else value or None


def either(value: Dict[str, Any], at: Place, camel: str, snake: str) -> Any:
    """The value of a key in one of its two spellings."""
    one, other = value.get(camel), value.get(snake)
    if one is not None and other is not None:
        raise Unfit(at, f"{camel} and {snake} are two spellings of one key; only one may be there")
    return other if one is None else one


def otlp_record(span: Dict[str, Any], resource: Dict[str, Any], at: Place, found: Found, read: Set[str]) -> Record:
    own, agentic = otlp_attributes(span, at, read)
    tool = otlp_tool(own, span.get("name"), at)
    end = unix_nano(either(span, at, "endTimeUnixNano", "end_time_unix_nano"), "endTimeUnixNano", at) or None
    parent = either(span, at, "parentSpanId", "parent_span_id")
    call_id = own.get("gen_ai.tool.call.id") if tool else None
    given: Tuple[Tuple[str, str], ...] = ()
    for holder in (own, resource):
        fields = {"conversation": holder.get("gen_ai.conversation.id") if holder is own else None}
        given += field_asked(found, fields, holder, at)
    return Record(
        trace=text_of(either(span, at, "traceId", "trace_id"), "traceId", at),
        at=at,
        span=text_of(either(span, at, "spanId", "span_id"), "spanId", at),
        parent=None if parent == "" else text_or_none(parent, "parentSpanId", at),
        tool=tool,
        start=unix_nano(either(span, at, "startTimeUnixNano", "start_time_unix_nano"), "startTimeUnixNano", at),
        end=end,
        failed=otlp_failed(span, at) or "error.type" in own,
        ended=end is not None,
        output=True,
        waits=OTLP_DEFERRED in own,
        call_id=None if call_id in (None, "", "<not specified>") else text_of(call_id, "gen_ai.tool.call.id", at),
        given=given,
        word=fingerprint(span),
        agentic=agentic or tool is not None,
    )


def otlp_failed(span: Dict[str, Any], at: Place) -> bool:
    code = object_or_none(span.get("status"), "status", at).get("code")
    if code is None:
        return False
    number = OTLP_STATUS_NAMES.index(code) if code in OTLP_STATUS_NAMES else whole_of(code)
    if number not in (0, 1, 2):
        raise Unfit(at, f"status.code must be 0, 1, 2 or one of {', '.join(OTLP_STATUS_NAMES)}")
    return number == 2


def otlp_tool(found: Dict[str, Any], name: Any, at: Place) -> Optional[str]:
    """The tool of a span that is a call, by any of the conventions; None for every other span."""
    if name is not None and not isinstance(name, str):
        raise Unfit(at, "name must be a string")
    named = name[13:] if name is not None and name.startswith("execute_tool ") else ""
    operation = found.get("gen_ai.operation.name")
    called = (
        operation == "execute_tool"
        or (found.get("openinference.span.kind") == "TOOL" and "tool.name" in found)
        or found.get("traceloop.span.kind") == "tool"
        or (operation is None and (named != "" or (name == "running tool" and "gen_ai.tool.name" in found)))
    )
    if not called:
        return None
    tool = next((found[key] for key in OTLP_NAMES if key in found), named)
    if not isinstance(tool, str) or not tool or SURROGATE.search(tool):
        raise Unfit(at, f"a tool call must name its tool in {listing(OTLP_NAMES)} or as execute_tool NAME")
    # ADK sums up parallel calls in a span of their kind.
    return None if tool == "(merged tools)" or name == "execute_tool (merged)" else tool


def read_traceix(value: Any, at: Place, _: Found) -> Iterator[Read]:
    if isinstance(value, dict) and "trajectories" in value:
        if value["trajectories"] is None or "steps" in value:
            raise Unfit(at, "trajectories must be an array, in a record without steps of its own")
        yield Record("", at)  # a payload without trajectories is a record all the same
        for trajectory, place in objects_in(value, at, "trajectories"):
            try:
                yield from traceix_trajectory(trajectory, place)
            except Unfit as unfit:
                yield unfit
    elif isinstance(value, dict) and {"test_name", "steps"} <= value.keys():
        yield from traceix_trajectory(value, at)
    else:
        raise Foreign(at)


def traceix_trajectory(value: Dict[str, Any], at: Place) -> Iterator[Read]:
    test = text_of(value.get("test_name"), "test_name", at)
    if value.get("steps") is None:
        raise Unfit(at, "steps must be an array")
    yield Record(test, at, word=fingerprint(value), whole=True)
    for index, (step, place) in enumerate(objects_in(value, at, "steps")):
        yield each(traceix_step, step, test, index + 1, place)


def traceix_step(step: Dict[str, Any], test: str, number: int, at: Place) -> Record:
    if "error" not in step:
        raise Unfit(at, "a step must have the key error; a golden snapshot records no outcome")
    return Record(
        trace=test,
        at=at,
        span=number,
        tool=text_of(step.get("tool"), "tool", at),
        failed=step["error"] is not None,
        ended=True,
        output=step.get("result") is not None,
        measured_ms=duration_of(step.get("latency_ms"), "latency_ms", at),
    )


# Each format: its reader, and the fields that may name the case besides `trace`.
FORMATS: Dict[str, Tuple[Importer, Tuple[str, ...]]] = {
    "openai-agents": (read_openai_agents, ("workflow", "group", "metadata.KEY")),
    "generic-jsonl": (read_generic_jsonl, ("workflow", "group", "metadata.KEY")),
    "attest": (read_attest, ("agent", "conversation")),
    "otlp": (read_otlp, ("conversation", "metadata.KEY")),
    "traceix": (read_traceix, ("test",)),
}
# One reads as `trace` what other formats do not have: a name that stays the same from run to run.
TRACE_FIELDS = ("trace", "test")


def gather(documents: Iterable[Tuple[int, Any]], name: str, found: Found) -> None:
    """Find all records of a file; raises Refused for a file of another format."""
    looks_like: List[str] = []
    tries = 10_000  # of documents that are of another format; the rest are hardly of yet another
    for number, (offset, value) in enumerate(documents):
        if number == IMPORT_NODES.value:  # numbers and strings, one after another, which no bracket shows
            raise Refused(TOO_MANY_NODES)
        place = Place(offset)
        try:
            for record in FORMATS[name][0](value, place, found):
                if isinstance(record, Unfit):
                    found.reject(record)
                elif record is None:
                    found.tally(PASSED_OVER)
                else:
                    found.tally("known")
                    gather_record(record, found)
        except Unfit as unfit:
            found.reject(unfit)
        if "known" not in found.counts and tries and not looks_like:
            tries -= 1
            looks_like = [other for other in FORMATS if other != name and knows(other, value, place)]
    if "known" not in found.counts:
        advice = f"; it looks like {looks_like[0]}" if looks_like else ", nor of any other known format"
        advice = "; it holds metrics or logs alone" if PASSED_OVER in found.counts else advice
        raise Refused(f": holds no record of the format {name}{advice}")


def knows(name: str, value: Any, place: Place) -> bool:
    """Whether a document is of the format, be it a flawed one."""
    try:
        first = next(FORMATS[name][0](value, place, Found("trace")), None)
    except Unfit as unfit:
        first = unfit
    return first is not None and not isinstance(first, Foreign)


def gather_record(record: Record, found: Found) -> None:
    """Add a record to its trace; a repeat counts once or is a problem."""
    if not record.trace:
        return
    trace = found.traces.get(record.trace)
    if record.whole:
        found.skipping = trace is not None
        if trace is not None and record.word not in trace.words:
            found.refuse(record.at, "a different trace with the same id was recorded before")
    if found.skipping:
        found.tally(REPEATED_TRACE, int(record.whole))
        return
    if not record.whole:
        found.tally("records")
    if trace is None:
        trace = found.traces[record.trace] = Gathered(record.at)
    for field, value in record.given:
        if trace.given.setdefault(field, value) != value:
            text = f"gives another {printable(field)} than an earlier record of its trace; they must agree"
            found.refuse(record.at, text)
    if record.word is not None and record.word in trace.words:
        found.tally(REPEATED)
        return
    trace.words.add(record.word)
    if record.span is not None:
        add_span(record, trace, found)


def add_span(record: Record, trace: Gathered, found: Found) -> None:
    index = trace.spans.setdefault(record.span, len(trace.records))
    if index == len(trace.records):
        trace.records.append(record)
        return
    first = trace.records[index]
    same = (first.parent, first.tool, first.start) == (record.parent, record.tool, record.start)
    if same and (first.end is None) != (record.end is None) and record.span not in trace.completed:
        trace.completed.add(record.span)
        found.tally(REPEATED)
        trace.records[index] = either_of(first, record, record if first.end is None else first)
    else:
        text = "repeats a span id of its trace; only a record word for word the same, or the end of a span, may follow"
        found.refuse(record.at, text)


def either_of(one: Record, other: Record, kept: Record) -> Record:
    """Two records of one call, at the place of the first: failed, waiting or with an output if either is."""
    return kept._replace(
        at=one.at,
        failed=one.failed or other.failed,
        output=one.output or other.output,
        waits=one.waits or other.waits,
        agentic=one.agentic or other.agentic,
    )


Nesting = Tuple[List[Optional[int]], List[Optional[int]]]


def nest(trace: Gathered) -> Nesting:
    """By index of record: the call that it is, itself or the one it doubles, and the call around it.

    A call lies in another through whatever spans stand between. Linear, and without recursion.
    """
    records, total = trace.records, len(trace.records)
    calls: List[Optional[int]] = [None] * total
    around: List[Optional[int]] = [None] * total
    state = bytearray(total)  # 1: on the way up from the present record, 2: done
    for index in range(total):
        way: List[int] = []
        step: Optional[int] = index
        while step is not None and not state[step]:
            state[step] = 1
            way.append(step)
            step = trace.spans.get(records[step].parent)
        if step is not None and state[step] == 1:
            raise Unfit(records[step].at, "a span lies inside itself, by way of its parents")
        for inner in reversed(way):
            state[inner] = 2
            outer = trace.spans.get(records[inner].parent)
            call = None if outer is None else calls[outer]
            around[inner] = call if outer is None or call is not None else around[outer]
            if records[inner].tool is not None:
                doubles = outer is not None and is_double(records[inner], records[outer])
                calls[inner] = call if doubles else inner
    return calls, around


def is_double(inner: Record, outer: Record) -> bool:
    return inner.call_id is not None and (inner.tool, inner.call_id) == (outer.tool, outer.call_id)


def in_order(records: Sequence[Record], nesting: Nesting) -> List[int]:
    """The calls by start time, then by place in the file, but none before the call around it."""
    import heapq

    ready: List[Tuple[bool, Any, int]] = []
    inner: Dict[int, List[Tuple[bool, Any, int]]] = {}
    start: Any = None
    for index, (call, around) in enumerate(zip(*nesting)):
        if call == index:
            start = start if records[index].start is None else records[index].start
            turns = ready if around is None else inner.setdefault(around, [])
            turns.append((start is not None, start or 0, index))
    heapq.heapify(ready)
    order: List[int] = []
    while ready:
        order.append(heapq.heappop(ready)[2])
        for turn in inner.pop(order[-1], ()):
            heapq.heappush(ready, turn)
    return order


def overlapping(order: Sequence[int], records: Sequence[Record], around: Sequence[Optional[int]]) -> List[int]:
    """The calls that ran beside another that they do not lie in; called with few enough to compare all."""

    def inside(index: int, outer: int) -> bool:
        step = around[index]
        while step is not None and step != outer:
            step = around[step]
        return step == outer

    timed = [index for index in order if records[index].start is not None and records[index].end is not None]
    beside: Set[int] = set()
    for position, one in enumerate(timed):
        for other in timed[position + 1 :]:
            overlap = records[one].start < records[other].end and records[other].start < records[one].end
            if overlap and not inside(one, other) and not inside(other, one):
                beside |= {one, other}
    return [index for index in timed if index in beside]


def clean(text: str, taken: Dict[str, str], what: str, at: Place) -> str:
    """A name with the characters that may be written; `taken` holds what each clean name was before."""
    cleaned = re.sub(NOT_KEPT, "_", text)
    if not IDENTIFIER.fullmatch(cleaned):
        raise Unfit(at, f"the {what} must have 1 to 128 characters")
    if taken.setdefault(cleaned, text) != text:
        advice = "becomes the same as another when all but A-Z a-z 0-9 . : _ - becomes _; they must differ in those"
        raise Unfit(at, f"the {what} {advice}")
    return cleaned


def call_cost(record: Record, found: Found) -> Optional[str]:
    """The cost digit for digit, rounded up to six decimals; None, and counted, where money cannot say it."""
    cost = record.cost
    if cost is None:
        return None
    exponent = cost.as_tuple().exponent
    if 0 <= cost < 10**9 and isinstance(exponent, int):
        if not -6 <= exponent <= 0:
            # Neither EXACT, which refuses to round, nor the caller's context.
            step = Decimal("0.000001") if exponent < 0 else Decimal(1)
            cost = cost.quantize(step, "ROUND_CEILING", ANY_NUMBER)
        text = plain_money(cost.copy_abs())
        if MONEY.fullmatch(text):
            return text
    found.tally(NO_COST)
    return None


def call_duration(record: Record, found: Found) -> Optional[int]:
    """From start to end in milliseconds, rounded up; None, and counted, where that says nothing."""
    duration, backwards = record.measured_ms, record.measured_ms is not None and record.measured_ms < 0
    if record.start is not None and record.end is not None:
        duration, backwards = -int((record.start - record.end) // 1_000_000), record.end < record.start
    if duration is None:
        found.tally(NOT_TIMED)
    elif backwards:
        found.tally(BACKWARDS)
    elif duration > BOUNDS["duration_ms"].value:
        found.tally(TOO_LONG)
    else:
        return duration
    return None


def call_status(record: Record, found: Found, no_output: bool) -> str:
    if record.waits:
        return PENDING
    if record.failed:
        return FAILED
    if not record.ended:
        return PENDING
    if not record.output:
        found.tally("without output")
    return SUCCEEDED if record.output or no_output else PENDING


def shape_calls(trace: Gathered, found: Found, options: Dict[str, str], tools: Dict[str, str]) -> List[Call]:
    """The calls of one trace as they are written; raises Unfit when they cannot be."""
    nesting = nest(trace)
    records = list(trace.records)
    for index, call in enumerate(nesting[0]):
        if call is not None and call != index:
            found.tally(DOUBLED)
            records[call] = either_of(records[call], records[index], records[call])
    order = in_order(records, nesting)
    if len(order) > BOUNDS["calls"].value:
        raise Unfit(
            trace.at, f"the trace holds {counted(len(order), 'call')}, and at most {BOUNDS['calls']} can be written"
        )
    ids: Dict[str, str] = {}
    calls: Dict[int, Call] = {}
    for index in order:
        record = records[index]
        span = record.span if isinstance(record.span, str) else f"step-{record.span}"
        calls[index] = Call(
            id=clean(span, ids, "call id", record.at),
            tool=clean(str(record.tool), tools, "tool name", record.at),
            status=call_status(record, found, "--no-output" in options),
            cost_usd=call_cost(record, found),
            duration_ms=call_duration(record, found),
        )
    if len(ids) < len(calls):
        raise Unfit(trace.at, "the id of a call must not look like the step-N of a call without one")
    beside = [] if "--overlap" in options else overlapping(order, records, nesting[1])
    if beside:
        named = listing([f"{calls[index].id} ({calls[index].tool})" for index in beside])
        advice = "--overlap start-order accepts them in order of their start"
        raise Unfit(
            records[beside[0]].at, f"calls ran in parallel with others: {named}; a trace is serial, and {advice}"
        )
    found.tally(REPLACED, sum(before != cleaned for cleaned, before in ids.items()))
    for status in STATUSES:
        found.tally(status, sum(call.status == status for call in calls.values()))
    return list(calls.values())


def shape_traces(found: Found, options: Dict[str, str]) -> List[Trace]:
    """The traces as they are written, in order of their first records; problems join those of `found`."""
    traced, field = found.traces.items(), found.field
    kept = {id: trace for id, trace in traced if not trace.records or any(record.agentic for record in trace.records)}
    found.tally(LEFT_OUT, len(found.traces) - len(kept))
    if found.traces and not kept:
        raise Refused(": holds no trace of an agent: no tool call, no gen_ai., openinference. or traceloop. attribute")
    if len(kept) > BOUNDS["traces"].value:
        most = f"and at most {BOUNDS['traces']} can be written; import fewer at once"
        raise Refused(f": holds {counted(len(kept), 'trace')}, {most}")
    cases: Dict[str, str] = {}
    tools: Dict[str, str] = {}
    traces: List[Trace] = []
    for id, trace in kept.items():
        try:
            case = id if field in TRACE_FIELDS else trace.given.get(field)
            if case is None:
                raise Unfit(trace.at, f"the trace has no {printable(field)}; every trace must, or another --case-id")
            if case in cases.values():
                raise Unfit(trace.at, "another trace has the same case id; import one, or choose another --case-id")
            case = clean(case, cases, "case id", trace.at)
            traces.append(Trace(case, tuple(shape_calls(trace, found, options, tools))))
        except Unfit as unfit:
            found.reject(unfit)
    for names in (cases, tools):
        found.tally(REPLACED, sum(before != cleaned for cleaned, before in names.items()))
    return traces


# What is counted on the way: the noun, and what the note says of so many.
NOT_TIMED = ("call", "without times: no duration")
BACKWARDS = ("call", "with a negative duration: left out")
TOO_LONG = ("call", f"of more than {BOUNDS['duration_ms']}: no duration")
NO_COST = ("cost", "left out: money cannot say it")
REPEATED = ("record", "of a span recorded before: counted once")
DOUBLED = ("record", "of the same call as the span around it: counted once")
REPEATED_TRACE = ("trace", "recorded before, word for word: counted once")
LEFT_OUT = ("trace", "left out: no tool call and no attribute of an agent")
PASSED_OVER = ("resource", "of metrics or logs: passed over")
REPLACED = ("name", "with characters replaced by _ (of tools, cases and calls)")
NOTES = (REPEATED, DOUBLED, REPEATED_TRACE, LEFT_OUT, PASSED_OVER, REPLACED, NOT_TIMED, BACKWARDS, TOO_LONG, NO_COST)


def import_notes(found: Found, name: str, traces: Sequence[Trace], options: Dict[str, str]) -> List[str]:
    """What standard error says of an import: a line of counts, and one for whatever a reader should know."""
    count: Dict[Any, int] = {**dict.fromkeys(("records", *STATUSES), 0), **found.counts}
    calls = sum(len(trace.calls) for trace in traces)
    others = count["records"] - count.get(REPEATED, 0) - count.get(DOUBLED, 0) - calls
    lines = [
        f"{counted(count['records'], 'record')}: {counted(len(traces), 'trace')}, {counted(calls, 'call')} "
        f"({', '.join(f'{count[status]:,} {status}' for status in STATUSES)}), "
        f"{counted(others, 'record')} that {'is no call' if others == 1 else 'are no calls'}"
    ]
    fields = FORMATS[name][1]
    if found.field == "trace" and not set(fields) <= set(TRACE_FIELDS):
        others_named = listing(fields)
        lines.append(f"note: trace ids change with every run; --case-id can name a case by {others_named}")
    silent = count.get("without output", 0)
    if silent:
        advice = "counted as succeeded" if "--no-output" in options else "pending unless --no-output succeeded is given"
        lines.append(f"note: {counted(silent, 'call')} ended without an error and without an output: {advice}")
    return lines + [f"note: {counted(count[note], note[0])} {note[1]}" for note in NOTES if note in count]


def import_traces(path: str, name: str, options: Dict[str, str]) -> Tuple[bytes, List[str]]:
    """A file -> the bytes of its observed traces, and what to say of them; raises InputError."""
    text, shown = "", printable(path)
    found, traces = Found(options.get("--case-id", "trace")), []
    try:
        text = import_text(path)
        gather(import_documents(text), name, found)
        traces = [] if found.problems else shape_traces(found, options)
    except Unfit as unfit:
        found.reject(unfit)
    except json.JSONDecodeError as error:
        # What ends too early is reported where it ends, not after the blank lines that follow.
        if error.pos >= len(text.rstrip(BLANK)) or error.msg.startswith("Expecting ','"):
            error.pos = len(text[: error.pos].rstrip(BLANK))
        raise InputError([shown + syntax_problem(text, error)]) from None
    except Refused as refused:
        raise InputError([f"{shown}{refused}"]) from None
    if found.problems:
        places = sorted((line_of(text, at), problem) for at, problem in found.problems)
        raise InputError([f"{shown}:{line}: {problem}" for line, problem in places], found.counts.get("hidden", 0))
    data = json_bytes([{"id": trace.id, "calls": [report_call(call) for call in trace.calls]} for trace in traces])
    problems: List[str] = []
    accept(problems, f"{shown}: the traces cannot be written", lambda: data, read_observed)
    if problems:
        raise InputError(problems)
    return data, import_notes(found, name, traces, options)


# ---- command line: options, exit codes -----------------------------------------------------------


class Option(NamedTuple):
    """One option: its flag, the word for its value (empty for a switch), its help, the values it may have."""

    flag: str
    value: str
    help: str
    required: bool = False
    choices: Tuple[str, ...] = ()


class Command(NamedTuple):
    """One way to call the program: its name, its arguments without a flag, its options, and what runs it."""

    name: str
    arguments: Tuple[Option, ...]
    options: Tuple[Option, ...]
    run: Callable[[Dict[str, str]], int]
    about: str
    notes: str


def report_output(what: str, options: Dict[str, str]) -> Output:
    """The output that --output or, without it, standard output takes."""
    return Output("--output" if "--output" in options else "standard output", what, options.get("--output", "-"))


def source(path: str) -> Tuple[str, Callable[[], bytes]]:
    """An input's name in messages, and the function that reads it."""
    return printable(path), lambda: read_bounded(path, BOUNDS["size"].value)


def run_check(options: Dict[str, str]) -> int:
    expected, observed = options["--expected"], options["--observed"]
    if expected == observed == "-":
        raise Failure("standard input can serve --expected or --observed, not both")
    wanted = [kind for kind in CI_OUTPUTS if kind.option in options]
    outputs = [Output(kind.option, kind.what, options[kind.option], kind.append) for kind in wanted]
    outputs.append(report_output("report", options))
    refuse_clashes([expected, observed], outputs)
    report = audit_inputs(source(expected), source(observed))
    made = [kind.make(report) for kind in wanted] + [json_bytes(report)]
    deliver([output._replace(data=data) for output, data in zip(outputs, made)])
    gate, failing = "--fail-on-errors" in options, report["verdict"] == FAIL
    if "--summary" in options or (gate and failing):
        say(explain(report))
    if failing and not gate and "--summary" in options:
        say(["the exit status is 0 all the same: --fail-on-errors was not given"])
    return EXIT_VERDICT_FAIL if gate and failing else EXIT_REPORTED


def headroom(text: Optional[str]) -> Optional[int]:
    """The percentage of --budget-headroom, if it was given."""
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,4}", text) or int(text) > MAX_HEADROOM:
        raise Failure(f"--budget-headroom must be a whole number from 0 to {MAX_HEADROOM:,}")
    return int(text)


def run_snapshot(options: Dict[str, str]) -> int:
    path, percent = options["FILE"], headroom(options.get("--budget-headroom"))
    output = report_output("expected workflows", options)
    refuse_clashes([path], [output])
    problems: List[str] = []
    traces = accept(problems, *source(path), read_observed).records
    name = printable(path)
    if not problems:
        unfit: List[str] = []
        refuse_unfit(traces, unfit)
        problems += [name + problem for problem in unfit]
    if problems:
        raise InputError(problems)
    unpriced: List[str] = []
    try:
        data = snapshot(traces, percent, unpriced)
    except Refused as refused:
        raise Failure(
            f"{name}: the workflows of these traces would be refused{refused}; give fewer at a time"
        ) from None
    deliver([output._replace(data=data)])
    if unpriced:
        say([f"{NAME}: note: max_cost_usd is left out for {listing(unpriced)}: it needs more digits than money has"])
    return EXIT_REPORTED


def run_import(options: Dict[str, str]) -> int:
    name, path = options["FORMAT"], options["FILE"]
    fields = ("trace", *FORMATS[name][1])
    field = options.get("--case-id", "trace")
    named = "metadata.KEY" if field.startswith("metadata.") and field != "metadata." else field
    if named not in fields:
        key = ", with a key of its metadata for KEY" if "metadata.KEY" in fields else ""
        raise Failure(f"--case-id must be one of {', '.join(fields)} for {name}{key}")
    output = report_output("list of traces", options)
    refuse_clashes([path], [output])
    data, lines = import_traces(path, name, options)
    deliver([output._replace(data=data)])
    say([f"{NAME}: {line}" for line in lines])
    return EXIT_REPORTED


OUTPUT_OPTION = Option("--output", "FILE", "write there, whole or not at all, instead of to standard output")

CHECK = Command(
    "",
    (),
    (
        Option("--expected", "FILE", "the expected workflows (required)", required=True),
        Option("--observed", "FILE", "the recorded traces (required)", required=True),
        Option("--fail-on-errors", "", "exit 2 when the report's verdict is fail"),
        OUTPUT_OPTION,
        Option("--summary", "", "also explain the result on standard error, passing or not"),
        *(Option(kind.option, "FILE", kind.help) for kind in CI_OUTPUTS),
    ),
    run_check,
    "Compare expected agent workflows with recorded tool calls, and write a JSON report.",
    """\
A FILE of - is standard input (for one of the two) or standard output.

WITHOUT --fail-on-errors, EXIT STATUS 0 IS NO STATEMENT ABOUT THE WORKFLOWS.

exit status:
  0  a valid report was written in full
  1  no statement at all: wrong usage, a refused input, an output that could not be written
  2  with --fail-on-errors: a valid report was written in full and its verdict is fail

further commands, each with a --help of its own:
  snapshot   write expected workflows that recorded traces pass
  import     turn another tool's trace file into recorded traces
""",
)

COMMAND_STATUSES = """
exit status:
  0  what was asked for was written in full
  1  nothing was written: wrong usage, a refused input, an output that could not be written
"""

SNAPSHOT = Command(
    "snapshot",
    (Option("FILE", "FILE", "the recorded traces; - is standard input", required=True),),
    (
        OUTPUT_OPTION,
        Option(
            "--budget-headroom",
            "PERCENT",
            f"add budgets: what was measured plus 0 to {MAX_HEADROOM:,} percent, rounded up",
        ),
    ),
    run_snapshot,
    "Write expected workflows that the given traces pass, to be edited by hand.",
    COMMAND_STATUSES,
)

IMPORT = Command(
    "import",
    (
        Option("FORMAT", "", f"what wrote the file: {', '.join(FORMATS)}", required=True, choices=tuple(FORMATS)),
        Option("FILE", "FILE", "the file to import; - is standard input", required=True),
    ),
    (
        Option("--case-id", "FIELD", "the field of a trace that names its case (default: trace)"),
        Option(
            "--overlap", "ORDER", "accept calls that ran in parallel, in order of their start", choices=("start-order",)
        ),
        Option(
            "--no-output", "STATUS", "count an ended call without error and output as succeeded", choices=("succeeded",)
        ),
        OUTPUT_OPTION,
    ),
    run_import,
    "Turn a trace file of another tool into observed traces, without arguments, outputs or other content.",
    "fields for --case-id, besides trace:\n"
    + "".join(f"  {name:14} {', '.join(FORMATS[name][1])}\n" for name in FORMATS)
    + COMMAND_STATUSES,
)

# Every command by its first word; the check has none.
COMMANDS = {command.name: command for command in (CHECK, SNAPSHOT, IMPORT)}

COMMON_OPTIONS = (
    Option("--version", "", "show the version and the SHA-256 of this script's own bytes"),
    Option("--help", "", "show this help"),
)


def usage(option: Option) -> str:
    return f"{option.flag} {'|'.join(option.choices) or option.value}".strip()


def help_text(command: Command) -> str:
    """What --help prints: the same on every Python and every width of terminal."""
    import textwrap

    synopsis = [usage(option) if option.required else f"[{usage(option)}]" for option in command.options]
    words = [command.name, *(argument.flag for argument in command.arguments), *synopsis]
    lines = [f"usage: {NAME}.py {' '.join(filter(None, words))}", "", command.about, "", "options:"]
    rows = [(argument.flag, argument.help) for argument in command.arguments]
    rows += [(usage(option), option.help) for option in command.options + COMMON_OPTIONS]
    for use, text in rows:
        first, rest = f"  {use}".ljust(29), " " * 29
        lines += textwrap.wrap(text, 98, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return "\n".join([*lines, "", command.notes.lstrip("\n")])


def version_text(_: Command) -> str:
    import hashlib

    try:
        with open(__file__, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except (OSError, NameError):  # run from standard input, or no longer there
        digest = "unknown"
    return f"{NAME} {VERSION}\nsha256 {digest}\n"


SHOWN = {"--help": help_text, "--version": version_text}


def read_options(command: Command, words: Sequence[str]) -> Dict[str, str]:
    """The given options and arguments by flag, each with its value; raises Failure on wrong usage."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise Failure(f"{printable(message)}; --help shows the usage")

    # A fixed width keeps argparse from loading half a dozen modules to ask the terminal for one.
    plain = functools.partial(argparse.HelpFormatter, width=80)
    parser = Parser(prog=NAME, usage="", add_help=False, allow_abbrev=False, formatter_class=plain)
    for option in command.options + COMMON_OPTIONS:
        if option.value:
            parser.add_argument(option.flag, dest=option.flag, action="append")
        else:
            parser.add_argument(option.flag, dest=option.flag, action="append_const", const="")
    # Short options that could be joined, arguments between options and what follows -- are read differently from one
    # Python to the next, so argparse is shown none of them.
    plain_words = list(words)
    end = plain_words.index("--") if "--" in plain_words else len(plain_words)
    parsed, others = parser.parse_known_args(["--help" if word == "-h" else word for word in plain_words[:end]])
    given: Dict[str, List[str]] = {flag: values for flag, values in vars(parsed).items() if values}
    if not SHOWN.keys().isdisjoint(given):
        return dict.fromkeys(given, "")
    strange = [word for word in others if word.startswith("-") and word != "-"]
    arguments = [word for word in others if word not in strange] + plain_words[end + 1 :]
    strange += arguments[len(command.arguments) :]
    if strange:
        parser.error(f"unrecognized arguments: {' '.join(strange)}")
    given.update({argument.flag: [word] for argument, word in zip(command.arguments, arguments)})
    for option in command.arguments + command.options:
        check_option(option, given.get(option.flag, []), parser.error)
    return {flag: values[0] for flag, values in given.items()}


def check_option(option: Option, values: Sequence[str], error: Callable[[str], NoReturn]) -> None:
    if option.required and not values:
        error(f"{option.flag} is required")
    if len(values) > 1:
        error(f"{option.flag} may be given only once")
    if option.choices and not set(values) <= set(option.choices):
        error(f"{option.flag} must be {' or '.join(option.choices)}")
    if option.value and "" in values:
        error(f"{option.flag} must not be empty")


def run(words: Sequence[str]) -> int:
    """Find the command, read its options, run it."""
    command = COMMANDS.get(words[0], CHECK) if words else CHECK
    options = read_options(command, words[1:] if command.name else words)
    for flag, text in SHOWN.items():
        if flag in options:
            deliver([Output(flag, flag[2:], "-", data=text(command).encode("ascii"))])
            return EXIT_REPORTED
    return command.run(options)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command line, by default the process's own, and return its exit status."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except InputError as refused:
        most = BOUNDS["problems"].value
        lines = [f"{NAME}: error: {problem}" for problem in refused.problems[:most]]
        hidden = len(refused.problems) - most + refused.more
        say([*lines, f"and {hidden:,} more"] if hidden > 0 else lines)
    except Failure as failure:
        say([f"{NAME}: error: {failure}"])
    except KeyboardInterrupt:
        say([f"{NAME}: error: interrupted"])
    return EXIT_NO_STATEMENT


if __name__ == "__main__":
    # The inputs are bounded and the process is short: looking for garbage costs more than it frees.
    gc.disable()
    # A job that is cancelled cleans up like one that is interrupted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
