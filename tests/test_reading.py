"""Reading: both sides of every bound, JSON read strictly, every problem with its place, never a value."""

from __future__ import annotations

import json
import time
import unittest
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .support import EXPECTED, OBSERVED, PROGRAM, ROOT, Case, call, case, to_bytes, trace, traces, workflows

Pair = Tuple[bytes, bytes]


class Bounded(NamedTuple):
    """A documented bound: its value, a pair of documents that counts to a number, where and how a refusal names it."""

    value: int
    build: Callable[[int], Pair]
    at: str


def padded(size: int) -> bytes:
    """Accepted documents of exactly this size."""
    return OBSERVED + b" " * (size - len(OBSERVED))


def with_nodes(count: int) -> bytes:
    """Observed traces of exactly this many JSON values: 1 for the array, 3 a trace, 4 to 6 a call."""
    left = count - 1 - 3 * 80 - 4 * 80 * 50
    recorded = []
    for number in range(80):
        calls = []
        for index in range(50):
            extra = min(2, left)
            left -= extra
            calls.append({**call(f"c{index}"), **dict(list({"cost_usd": "0", "duration_ms": 0}.items())[:extra])})
        recorded.append(trace(f"r{number}", calls))
    assert left == 0, "the numbers above no longer reach"
    return json.dumps(recorded, separators=(",", ":")).encode("ascii")


def number_of(length: int) -> bytes:
    """A whole number written with this many characters."""
    return b"1." + b"0" * (length - 2)


def many_calls(count: int) -> List[Dict[str, Any]]:
    return [call(f"c{number}") for number in range(count)]


BOUNDS: Dict[str, Bounded] = {
    "size of expected": Bounded(524_288, lambda n: (EXPECTED + b"\n" * (n - len(EXPECTED)), OBSERVED), "expected"),
    "size of observed": Bounded(524_288, lambda n: (EXPECTED, padded(n)), "observed"),
    "nodes": Bounded(20_000, lambda n: (EXPECTED, with_nodes(n)), "observed"),
    "cases": Bounded(500, lambda n: (workflows(*(case(f"r{i}") for i in range(n))), OBSERVED), "expected: $.cases"),
    "traces": Bounded(500, lambda n: (EXPECTED, traces(*(trace(f"r{i}", []) for i in range(n)))), "observed: $"),
    "calls": Bounded(50, lambda n: (EXPECTED, traces(trace(calls=many_calls(n)))), "observed: $[0].calls"),
    "sequence": Bounded(50, lambda n: (workflows(case(sequence=["a"] * n)), OBSERVED), "expected: $.cases[0].sequence"),
    "allowed_tools": Bounded(
        50, lambda n: (workflows(case(allowed=["a"] * n)), OBSERVED), "expected: $.cases[0].allowed_tools"
    ),
    "number": Bounded(
        100,
        lambda n: (EXPECTED, OBSERVED.replace(b'"tool"', b'"duration_ms": ' + number_of(n) + b', "tool"')),
        f"observed:1:{OBSERVED.index(b'tool') - 1 + len(b'_duration_ms_: _')}",
    ),
    "group": Bounded(80, lambda n: (workflows(case(group="\u00e9" * n)), OBSERVED), "expected: $.cases[0].group"),
    "identifier": Bounded(128, lambda n: (workflows(case("r" * n)), OBSERVED), "expected: $.cases[0].id"),
    "tool name": Bounded(
        128, lambda n: (EXPECTED, traces(trace(calls=[call(tool="t" * n)]))), "observed: $[0].calls[0].tool"
    ),
    "failed calls": Bounded(
        50, lambda n: (workflows(case(max_failed_calls=n)), OBSERVED), "expected: $.cases[0].max_failed_calls"
    ),
    "max_calls": Bounded(
        50, lambda n: (workflows(case(max_calls={"a": n})), OBSERVED), "expected: $.cases[0].max_calls.a"
    ),
    "runs": Bounded(
        500, lambda n: (workflows(case(max_failing_runs=n)), OBSERVED), "expected: $.cases[0].max_failing_runs"
    ),
    "facts": Bounded(
        20,
        lambda n: (EXPECTED, traces(trace(calls=[call(facts={f"f{i}": True for i in range(n)})]))),
        "observed: $[0].calls[0].facts",
    ),
    "total_tool_ms": Bounded(
        180_000_000,
        lambda n: (workflows(case(max_total_tool_ms=n)), OBSERVED),
        "expected: $.cases[0].max_total_tool_ms",
    ),
    "duration_ms": Bounded(
        3_600_000,
        lambda n: (EXPECTED, traces(trace(calls=[call(duration_ms=n)]))),
        "observed: $[0].calls[0].duration_ms",
    ),
}


# No valid document is deep, so both sides of this one are refused; see `test_depth`.
DEPTH = Bounded(32, lambda n: (EXPECTED, nested(n)), "observed")


def problems(expected: bytes, observed: bytes = OBSERVED) -> List[str]:
    """What a pair is refused for; empty when it is accepted."""
    return PROGRAM.problems(expected, observed)


def nested(depth: int, kinds: str = "[{") -> bytes:
    """Arrays and objects in turn, `depth` of them inside each other."""
    opened = [kinds[level % len(kinds)] for level in range(depth)]
    text = "".join("[" if kind == "[" else '{"k":' for kind in opened) + "1"
    return (text + "".join("]" if kind == "[" else "}" for kind in reversed(opened))).encode("ascii")


class Bounds(unittest.TestCase):
    def test_both_sides_of_each_bound(self) -> None:
        for name, bound in BOUNDS.items():
            with self.subTest(name):
                self.assertEqual([], problems(*bound.build(bound.value)))
                found = problems(*bound.build(bound.value + 1))
                self.assertEqual(1, len(found), found)
                self.assertEqual(bound.at + ": ", found[0][: len(bound.at) + 2], found[0])
                self.assertIn(f"{bound.value:,}", found[0])

    def test_depth(self) -> None:
        # No valid document is deep, so at the bound only the shape may be wrong.
        for kinds in ("[", "{", "[{"):
            with self.subTest(kinds):
                self.assertIn("observed: $", problems(EXPECTED, nested(32, kinds))[0])
                (problem,) = problems(EXPECTED, nested(33, kinds))
                self.assertIn("32", problem)
                self.assertNotIn("$", problem)

    def test_a_scalar_adds_no_depth(self) -> None:
        for scalar in (b'"x"', b"1", b"null", b"[]", b"{}"):
            with self.subTest(scalar):
                (problem, *_) = problems(EXPECTED, nested(31, "[").replace(b"1", scalar))
                self.assertIn("$", problem)

    def test_siblings_add_no_depth(self) -> None:
        self.assertIn("$", problems(EXPECTED, b"[" + b",".join([nested(31)] * 40) + b"]")[0])

    def test_brackets_in_strings_add_no_depth(self) -> None:
        for text in (
            "[" * 80,
            "{" * 80,
            '"[[' * 26,
            "\\[" * 40,
            '\\"[[' * 20,
            "[\\\\" * 26,
            '\\\\"[[[[' * 11,
            "]" * 40 + "[" * 40,
        ):
            with self.subTest(text):
                found = PROGRAM.audit(workflows(case(group=text)), OBSERVED)
                self.assertEqual(text, found["cases"][0]["group"])

    def test_strings_do_not_hide_depth(self) -> None:
        deep = nested(33)
        for start in (
            b'["a",',
            b'["\\"",',
            b'["\\\\",',
            b'["\\\\\\"",',
            b'["[",',
            b'["]]]]",',
            b'["\\u005b",',
            b'{"\\"":',
        ):
            with self.subTest(start):
                self.assertIn("32", problems(EXPECTED, start + deep)[0])

    def test_a_node_is_every_value_and_no_key(self) -> None:
        kinds = [b'"x,[]{}"', b"1", b"1.5", b"true", b"false", b"null", b"[]", b"{}", b"[ ]", b'{"k":', b"[1"]
        for kind in kinds:
            with self.subTest(kind):
                member = kind + {b'{"k":': b"1}", b"[1": b"]"}.get(kind, b"")
                values = 2 if member in (b'{"k":1}', b"[1]") else 1
                # The array, the trace, its id, its calls and the list around the members are five.
                accepted, refused = (
                    b'[{"id": "r1", "calls": [], "x": [' + b" ,\n".join([member] * count) + b"]}]"
                    for count in (19_995 // values, 19_995 // values + 1)
                )
                # An unknown key is a matter of shape; too many nodes end the input before that.
                self.assertIn("unknown key", problems(EXPECTED, accepted)[0])
                self.assertIn("20,000", problems(EXPECTED, refused)[0])

    def test_a_number_is_too_long_wherever_it_stands(self) -> None:
        for number in (b"1" * 101, b"-" + b"1" * 100, b"0." + b"1" * 99, b"1e" + b"1" * 99, b"1" * 5000):
            for document in (b"%s", b"[%s]", b'[{"note": %s}]', b'["' + b"1" * 200 + b'", %s]'):
                with self.subTest(number[:3], document=document[:12]):
                    (problem,) = problems(EXPECTED, document % number)
                    self.assertIn("100", problem)
                    self.assertEqual(f"observed:1:{document.index(b'%s') + 1}", problem[: problem.index(": ")])

    def test_a_long_number_within_the_bound_is_no_syntax_problem(self) -> None:
        for number in (b"1" * 100, b"-" + b"1" * 99, b"0." + b"1" * 98, b"1e" + b"1" * 98):
            with self.subTest(number[:3]):
                self.assertEqual(1, len(problems(EXPECTED, number)))
                self.assertIn("observed: $: ", problems(EXPECTED, number)[0])

    def test_bounds_are_independent(self) -> None:
        # 500 cases with full lists stay below the size, and far beyond the nodes.
        full = workflows(*(case(f"r{i}", ["a"] * 50, ["a"] * 50) for i in range(500)))
        self.assertLess(len(full), 524_288)
        self.assertIn("20,000", problems(full)[0])


class Stages(unittest.TestCase):
    """The first stage with a problem ends an input: size, UTF-8, depth, syntax, nodes, repeated keys, shape."""

    LARGE = b" " * 524_289
    DEEP = b"[" * 33
    MANY = b"[" + b"1," * 20_001 + b"1"

    def test_first_stage_ends_an_input(self) -> None:
        for name, document, word, other in (
            ("size before UTF-8", b"\xff" + self.LARGE, "524,288", "UTF-8"),
            ("UTF-8 before depth", self.DEEP + b"\xff", "UTF-8", "32"),
            ("depth before syntax", b"?" + self.DEEP, "32", "JSON"),
            ("syntax before nodes", self.MANY + b"?]", "JSON", "20,000"),
            ("nodes before shape", self.MANY + b"]", "20,000", "$"),
            ("nodes before duplicate keys", self.MANY + b',{"k":1,"k":1}]', "20,000", "duplicate"),
        ):
            with self.subTest(name):
                (problem,) = problems(EXPECTED, document)
                self.assertIn(word, problem)
                self.assertNotIn(other, problem)

    def test_shape_comes_after_duplicate_keys_and_surrogates(self) -> None:
        for document, word in (
            (b'[{"id": 1, "id": 2, "calls": [2]}]', "duplicate key"),
            (b'[{"id": "\\ud800", "calls": [2]}]', "surrogate"),
            (b'[{"id": 1, "calls": [2], "\\ud800": 1}]', "surrogate"),
        ):
            with self.subTest(document):
                (problem,) = problems(EXPECTED, document)
                self.assertIn(word, problem)

    def test_a_bad_first_input_does_not_spare_the_second(self) -> None:
        bad = {"size": self.LARGE, "UTF-8": b"\xff", "depth": self.DEEP, "syntax": b"{", "shape": b"1"}
        for one, expected in bad.items():
            for two, observed in bad.items():
                with self.subTest(expected=one, observed=two):
                    first, second = problems(expected, observed)
                    self.assertTrue(first.startswith("expected:"), first)
                    self.assertTrue(second.startswith("observed:"), second)


BOM = b"\xef\xbb\xbf"


class Bytes(unittest.TestCase):
    def test_one_byte_order_mark_is_tolerated(self) -> None:
        report = PROGRAM.audit(BOM + EXPECTED, BOM + OBSERVED)
        self.assertEqual("pass", report["verdict"])

    def test_a_second_byte_order_mark_is_not(self) -> None:
        self.assertIn("not valid JSON", problems(BOM + BOM + EXPECTED)[0])
        self.assertEqual("observed:1:2", problems(EXPECTED, b"[" + BOM + b"]")[0][:12])

    def test_utf_16_is_recognized(self) -> None:
        text = OBSERVED.decode("ascii")
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            with self.subTest(encoding):
                (problem,) = problems(EXPECTED, text.encode(encoding))
                self.assertIn("UTF-8", problem)
                self.assertIn("UTF-16", problem)
        with self.subTest("big-endian with a byte order mark"):
            self.assertIn("UTF-16", problems(EXPECTED, b"\xfe\xff" + text.encode("utf-16-be"))[0])

    def test_bytes_that_are_not_utf_8(self) -> None:
        for name, data in {
            "Latin-1": b'["caf\xe9"]',
            "cut short": b'["caf\xc3"]',
            "too long a form of /": b'["\xc0\xaf"]',
            "a surrogate": b'["\xed\xa0\x80"]',
            "beyond Unicode": b'["\xf4\x90\x80\x80"]',
            "after the document": b"[]\xff",
            "a lone continuation": b"\x80",
        }.items():
            with self.subTest(name):
                (problem,) = problems(EXPECTED, data)
                self.assertTrue(problem.startswith("observed: "), problem)
                self.assertIn("UTF-8", problem)

    def test_nul(self) -> None:
        for data in (b"[]\0", b'["\0"]', b'[\0"a"]', b"[\0]" + b" " * 5):
            with self.subTest(data):
                self.assertEqual(1, len(problems(EXPECTED, data)))

    def test_text_beyond_ascii_is_read_as_utf_8(self) -> None:
        group = "Caf\u00e9 \u4e2d \U0001f600"
        raw = json.dumps({"cases": [case(group=group)]}, ensure_ascii=False).encode("utf-8")
        self.assertEqual(group, PROGRAM.audit(raw, OBSERVED)["cases"][0]["group"])


class Syntax(unittest.TestCase):
    # Every Python says the same; the older ones put a trailing comma elsewhere by themselves.
    PLACES = (
        (" \n ", "2:2"),
        ("[", "1:2"),
        ("[1,]", "1:3"),
        ("[1 , ]", "1:4"),
        ("[1,\n\n]", "1:3"),
        ('{"a":1,}', "1:7"),
        ('{"a":1\n,\n}', "2:1"),
        ("[1,,2]", "1:4"),
        ("[,1]", "1:2"),
        ("{,}", "1:2"),
        ("[1 2]", "1:4"),
        ('{"a" 1}', "1:6"),
        ('{"a":}', "1:6"),
        ('{"a":1 "b":2}', "1:8"),
        ("{a:1}", "1:2"),
        ("{1:1}", "1:2"),
        ("{'a':1}", "1:2"),
        ("['a']", "1:2"),
        ("[tru]", "1:2"),
        ("[True]", "1:2"),
        ("[nulll]", "1:6"),
        ("[] []", "1:4"),
        ("[]\n[]\n", "2:1"),
        ("[]]", "1:3"),
        ("{}}", "1:3"),
        ("[}", "1:2"),
        ("]", "1:1"),
        ("[01]", "1:3"),
        ("[1.]", "1:3"),
        ("[.5]", "1:2"),
        ("[+1]", "1:2"),
        ("[0x10]", "1:3"),
        ("[1_0]", "1:3"),
        ("[-]", "1:2"),
        ('["a\nb"]', "1:4"),
        ('["a\tb"]', "1:4"),
        ("// x\n[]", "1:1"),
        ("[/* x */]", "1:2"),
        ("\f[]", "1:1"),
        ("\u00a0[]", "1:1"),
        ("\u2028[]", "1:1"),
        ('{"caf\u00e9 \U0001f600": 1 2}', "1:14"),
        ("[\r\n1,\r\n?]", "3:1"),
        ("[\r1 ?]", "1:5"),
        ('["a\u2028\x85", ?]', "1:9"),
        ("[NaN]", "1:2"),
        ("[1, Infinity]", "1:5"),
        ("[1,\n -Infinity]", "2:2"),
        ('["NaN", NaN]', "1:9"),
        ('["\\"Infinity", {"Infinity": Infinity}]', "1:29"),
        ("[-NaN]", "1:2"),
        ("[nan]", "1:2"),
    )

    # What a hint takes the place of these words in.
    HINTED = (" \n ", "// x\n[]", "[/* x */]", "[] []", "[]\n[]\n")

    def test_line_and_column(self) -> None:
        for text, place in self.PLACES:
            with self.subTest(text):
                (problem,) = problems(EXPECTED, text.encode("utf-8"))
                wanted = f"observed:{place}: " + ("" if text in self.HINTED else "not valid JSON: ")
                self.assertEqual(wanted, problem[: len(wanted)])

    def test_what_would_be_right(self) -> None:
        for text, words in (
            ("[1 2]", "expected ',' between members"),
            *(
                (f"[{number}]", "expected a number such as 0, 0.5 or 2e3")
                for number in ("01", "1.", "1e", "0x1", "1.e3", "2E")
            ),
            ('["a"x]', "expected ',' between members"),
            ("{'a': 1}", "expected a key in double quotes"),
            ("[1,]", "expected no ',' before the closing bracket"),
            ("[1] 2", "expected nothing after the document"),
        ):
            with self.subTest(text):
                (problem,) = problems(text.encode("ascii"))
                self.assertIn(f"not valid JSON: {words}", problem)

    def test_unfinished_text(self) -> None:
        # Where an unfinished text is wrong is a matter of taste; that it is, is not.
        for text in (
            '["a',
            '["a\\',
            '["\\u12',
            '["\\u12"]',
            '["\\x"]',
            '{"a"',
            '{"a":',
            '{"a":1',
            '{"a":1,',
            "[1",
            "[1,",
            "[-",
            "tru",
        ):
            with self.subTest(text):
                (problem,) = problems(EXPECTED, text.encode("ascii"))
                self.assertRegex(problem, r"\Aobserved:1:[0-9]+: not valid JSON: [ -~]+\Z")

    def test_every_prefix_of_a_document_is_refused(self) -> None:
        for end in range(1, len(OBSERVED)):
            (problem,) = problems(EXPECTED, OBSERVED[:end])
            self.assertRegex(problem, r"\Aobserved:1:[0-9]+: not valid JSON: [ -~]+\Z")

    def test_a_long_line_and_a_long_file(self) -> None:
        self.assertEqual("observed:1:500001", problems(EXPECTED, b" " * 500_000 + b"?")[0][:17])
        self.assertEqual("observed:500001:1", problems(EXPECTED, b"\n" * 500_000 + b"?")[0][:17])


RECORDINGS = ROOT / "tests" / "recordings"


class Hints(unittest.TestCase):
    """Mistakes that people make get the hint that ends them."""

    def assert_hint(self, data: bytes, words: str, absent: str = "$^") -> None:
        """On either input, in its only problem."""
        for found in (problems(data), problems(EXPECTED, data)):
            (problem,) = found
            self.assertRegex(problem, words)
            self.assertNotRegex(problem, absent)

    def test_an_empty_file(self) -> None:
        for data in (b"", BOM):
            self.assert_hint(data, "empty")

    def test_comments(self) -> None:
        for text in (
            "// x\n[]",
            "[/* x */]",
            "# x\n[]",
            "[1, // x\n 2]",
            "[1 // x\n]",
            "[1] // x",
            '{"a": 1, # x\n "b": 2}',
        ):
            with self.subTest(text):
                self.assert_hint(text.encode("ascii"), "comment")

    def test_single_quotes(self) -> None:
        for text in ("{'a': 1}", "['a']", "{\"a\": 'b'}", "[1, 'a']", "{\"a\": 1, 'b': 2}"):
            with self.subTest(text):
                self.assert_hint(text.encode("ascii"), "double quote")

    def test_a_string_that_is_cut_off(self) -> None:
        for text in ('{"a":"\\u00e9', '{"a":"\u00e9', '["x', '["x\\n', '["\\\\', '["a\\u00e9b'):
            with self.subTest(text):
                self.assert_hint(text.encode("utf-8"), "double quote", "escape")

    def test_json_lines(self) -> None:
        for data in (b'{"a": 1}\n{"b": 2}\n', b"[]\n[]\n", OBSERVED + b"\n" + OBSERVED):
            with self.subTest(data):
                self.assert_hint(data, "README")

    def test_trace_files_of_other_tools(self) -> None:
        for name in (
            "openai-agents/a_two_sequential_ok.jsonl",
            "generic-jsonl/1_all_types_ok.jsonl",
            "attest/v1_nested_agents.json",
            "otlp/semconv_success.jsonl",
            "traceix/run_success.json",
        ):
            data = (RECORDINGS / name).read_bytes()
            for found in (problems(data), problems(EXPECTED, data)):
                with self.subTest(name, found=found):
                    self.assertIn("README", "\n".join(found))
                    self.assertNotIn("SECRET", "\n".join(found))

    def test_inputs_that_are_swapped(self) -> None:
        found = problems(OBSERVED, EXPECTED)
        self.assertRegex("\n".join(found), "swap")


class Messages(unittest.TestCase):
    def test_a_problem_repeats_no_value(self) -> None:
        private = "pr1vate"
        places: Tuple[Tuple[bytes, bytes], ...] = (
            (workflows(case(private + " ")), OBSERVED),
            (workflows(case(group=private * 20)), OBSERVED),
            (workflows(case(sequence=[private + "/"])), OBSERVED),
            (workflows(case(max_cost_usd=private)), OBSERVED),
            (workflows(case(max_failed_calls=private)), OBSERVED),
            (workflows(case(note=private)), OBSERVED),
            (workflows(case(note={"deep": [private, {"k": "\ud800" + private}]})), OBSERVED),
            (workflows(case(private), case(private)), OBSERVED),
            (EXPECTED, traces(trace(private), trace(private))),
            (EXPECTED, traces(trace(calls=[call(status=private)]))),
            (EXPECTED, traces(trace(calls=[call(output=private)]))),
            (EXPECTED, to_bytes(private)),
            (EXPECTED, to_bytes({"a": private})),
            (EXPECTED, b"[" + private.encode("ascii") + b"]"),
            (EXPECTED, b'["' + private.encode("ascii") + b'\n"]'),
            (EXPECTED, b'["' + private.encode("ascii") + b'" "' + private.encode("ascii")),
            (EXPECTED, b'["\\' + private.encode("ascii") + b'"]'),
            (EXPECTED, b"[] " + private.encode("ascii")),
            (EXPECTED, b'["' + private.encode("ascii") + b'\xff"]'),
        )
        for pair in places:
            with self.subTest(pair):
                found = problems(*pair)
                self.assertTrue(found)
                self.assertNotIn(private, "\n".join(found))

    def test_numbers_are_not_repeated(self) -> None:
        for number in (b"4111111111111111", b"4111111111111111.5", b"4111111111111111" * 7):
            with self.subTest(number):
                found = problems(EXPECTED, b'[{"id": %s, "calls": []}]' % number)
                self.assertNotIn("4111", "\n".join(found))

    def test_input_error(self) -> None:
        with self.assertRaises(ValueError) as caught:
            PROGRAM.audit(b"", b"")
        assert isinstance(caught.exception, PROGRAM.refusal)
        found = caught.exception.problems
        self.assertEqual(["expected", "observed"], [problem[:8] for problem in found])
        self.assertEqual({str}, {type(problem) for problem in found})

    def test_every_problem_is_listed(self) -> None:
        found = problems(workflows(*[{}] * 10), to_bytes([1] * 30))
        self.assertEqual(10 * 3 + 30, len(found))


HOSTILE: Tuple[Tuple[str, bytes, Tuple[str, ...]], ...] = (
    ("400,000 digits", b"1" * 400_000, ("1:1", "100")),
    ("262,000 open arrays", b"[" * 262_000, ("32",)),
    ("one more byte than allowed", b" " * 524_289, ("524,288",)),
    ("a UTF-16 file", OBSERVED.decode("ascii").encode("utf-16"), ("UTF-8", "UTF-16")),
    ("400,000 digits in a list", b"[" + b"9" * 400_000 + b"]", ("1:2", "100")),
    ("131,000 open objects", b'{"":' * 131_000, ("32",)),
    ("262,000 pairs of brackets", b"[" * 262_000 + b"]" * 262_000, ("32",)),
    ("closed before opened", b"]" * 262_000 + b"[" * 262_000, ("1:1",)),
    ("quotes", b'"' * 524_288, ("1:3",)),
    ("backslashes", b'["' + b"\\" * 524_285, ("JSON",)),
    ("escaped quotes", b'["' + b'\\"' * 262_000, ("JSON",)),
    ("white space", b" " * 524_288, ("JSON",)),
    ("commas", b"[" + b"," * 524_000, ("1:2",)),
    ("nothing", b"", ("empty",)),
    ("NaN after many numbers", b"[" + b"1," * 250_000 + b"NaN]", ("1:500002", "NaN")),
    ("a long number after many", b"[" + b"1," * 200_000 + b"1" * 101 + b"]", ("1:400002", "100 characters")),
)


class Hostile(unittest.TestCase):
    def test_a_clear_line_within_a_second(self) -> None:
        for name, data, words in HOSTILE:
            with self.subTest(name):
                started = time.monotonic()
                (problem,) = problems(EXPECTED, data)
                self.assertLess(time.monotonic() - started, 1)
                self.assertLess(len(problem), 200)
                for word in words:
                    self.assertIn(word, problem)


class Files(Case):
    """What the command line says of inputs that a parser might choke on."""

    def test_hostile_files(self) -> None:
        for name, data, words in HOSTILE[:4]:
            with self.subTest(name):
                self.put("traces.json", data)
                started = time.monotonic()
                result = self.check()
                # Generous: the machine may be busy.
                self.assertLess(time.monotonic() - started, 3)
                self.assert_no_statement(result, "traces.json", *words)
                self.assertEqual(1, result.stderr.count(b"\n"))

    def test_endless_input(self) -> None:
        started = time.monotonic()
        result = self.run_words("--expected", "/dev/zero", "--observed", "/dev/zero")
        self.assertLess(time.monotonic() - started, 3)
        self.assert_no_statement(result, "/dev/zero: ", "524,288")
        self.assertEqual(2, result.stderr.count(b"\n"))

    def test_unreadable_inputs(self) -> None:
        (self.directory / "folder").mkdir()
        paths = ("nowhere.json", "folder", "workflows.json/x", "x" * 300)
        for path in paths:
            with self.subTest(path):
                result = self.run_words("--expected", path, "--observed", "traces.json")
                self.assert_no_statement(result, path + ": " if len(path) < 100 else path[:90])

    def test_file_names_are_escaped(self) -> None:
        for name, shown in (("caf\u00e9\n.json", "caf\\xe9\\n.json"), ("\x1b[31m::x", "\\x1b[31m::x")):
            with self.subTest(shown):
                result = self.run_words("--expected", name, "--observed", "traces.json")
                self.assert_no_statement(result, "error: " + shown + ": ")

    def test_twenty_lines_and_then_how_many_more(self) -> None:
        for count, more in ((20, None), (21, "and 1 more"), (500, "and 480 more")):
            with self.subTest(count):
                self.put("traces.json", to_bytes([1] * count))
                result = self.check()
                self.assert_no_statement(result)
                lines = result.stderr.decode("ascii").splitlines()
                self.assertEqual(min(count, 20) + (more is not None), len(lines))
                self.assertIn("traces.json: $[0]: ", lines[0])
                self.assertIn(f"traces.json: $[{min(count, 20) - 1}]: ", lines[min(count, 20) - 1])
                if more:
                    self.assertEqual(more, lines[-1])

    def test_twenty_lines_a_run_and_not_an_input(self) -> None:
        self.put("workflows.json", to_bytes([1]))
        self.put("traces.json", to_bytes([1] * 20))
        result = self.check()
        lines = result.stderr.decode("ascii").splitlines()
        self.assertIn("error: workflows.json: $: ", lines[0])
        self.assertIn("traces.json: $[18]: ", lines[19])
        self.assertEqual("and 1 more", lines[20])


if __name__ == "__main__":
    unittest.main()
