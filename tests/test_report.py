"""The report: its bytes, the order of its keys, and that the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import unittest
from pathlib import Path
from typing import Any, Iterable, List, Tuple

from .support import PROGRAM, ROOT, Case, call, case, laid_out, load_vectors, trace, traces, workflows
from .test_vectors import spellings

GOLDEN = Path(__file__).resolve().parent / "golden_report.txt"

# Text that an encoder could get wrong: quotes, backslashes, controls, a line separator, a pair of surrogates.
AWKWARD = 'Caf\u00e9 "x" \\ / \t\u2028\u007f \U0001f600'
CASES = workflows(
    case("r1", ["lookup", "draft"], ["lookup", "draft"], group=AWKWARD, max_cost_usd="0.01"),
    case("r2", ["send"], ["lookup"], group="", max_total_tool_ms=2000.0),
    case("r3", [], [], max_failed_calls=1),
)
RECORDED = traces(
    trace("r9", []),
    trace(
        "r1",
        [
            {"duration_ms": 4e2, "cost_usd": "0.0030", "status": "succeeded", "tool": "draft", "id": "c1"},
            call("c2", "lookup", "failed", duration_ms=5),
            call("c3", "send", "pending", cost_usd="000.001"),
        ],
    ),
    trace("r3", []),
)


def key_orders(value: Any, path: str = "$") -> List[str]:
    """Every object of a report with its keys in order; list entries share a path."""
    if isinstance(value, dict):
        deeper = [line for key, member in value.items() for line in key_orders(member, f"{path}.{key}")]
        return [f"{path}: {' '.join(value)}", *deeper]
    if isinstance(value, list):
        return [line for member in value for line in key_orders(member, path + "[]")]
    return []


def pairs_of_vectors() -> Iterable[Tuple[bytes, bytes]]:
    """The inputs of one accepted vector of each file."""
    for content in load_vectors().values():
        for vector in [vector for vector in content["cases"] if vector["exit"] != 1][-1:]:
            yield spellings(vector)[0][1:3]


class Layout(Case):
    maxDiff = None

    def report(self, expected: bytes, observed: bytes) -> bytes:
        self.put("workflows.json", expected)
        self.put("traces.json", observed)
        return self.check().stdout

    def test_golden_report(self) -> None:
        wanted = GOLDEN.read_bytes().replace(b"\r\n", b"\n").decode("ascii")
        self.assertEqual(wanted, self.report(CASES, RECORDED).decode("ascii"))

    def test_laid_out_report_is_the_report(self) -> None:
        report = PROGRAM.audit(CASES, RECORDED)
        again = json.loads(self.report(CASES, RECORDED))
        self.assertEqual(report, again)
        self.assertEqual(key_orders(report), key_orders(again))

    def test_a_second_way_to_lay_it_out_gives_the_same_bytes(self) -> None:
        workflows_file, traces_file = (ROOT / f"{name}.example.json" for name in ("workflows", "traces"))
        pairs = [(CASES, RECORDED), (workflows_file.read_bytes(), traces_file.read_bytes()), *pairs_of_vectors()]
        for expected, observed in pairs:
            written = self.report(expected, observed)
            self.assertEqual(laid_out(json.loads(written)), written)

    def test_same_bytes_whatever_the_names(self) -> None:
        self.put("workflows.json", CASES)
        (self.directory / "other").mkdir()
        self.put("other/t", RECORDED)
        result = self.run_words("--expected", str(self.expected), "--observed", "other/t")
        self.assertEqual(self.wanted(CASES, RECORDED), result.stdout)

    def test_inputs_are_identified_by_their_bytes(self) -> None:
        for padding in (b"", b"\n"):
            inputs = PROGRAM.audit(CASES + padding, b"\xef\xbb\xbf" + RECORDED)["inputs"]
            for name, data in (("expected", CASES + padding), ("observed", b"\xef\xbb\xbf" + RECORDED)):
                with self.subTest(name, padding=padding):
                    self.assertEqual(len(data), inputs[name]["bytes"])
                    self.assertEqual(hashlib.sha256(data).hexdigest(), inputs[name]["sha256"])

    def test_limitations_are_three_or_four_sentences(self) -> None:
        limitations = PROGRAM.audit(CASES, RECORDED)["limitations"]
        self.assertIn(len(limitations), (3, 4))
        for word in ("status", "rguments", "outputs", "permissions", "business effects", "latency", "budget"):
            self.assertIn(word, " ".join(limitations))

    def test_message_on_fail_and_unknown_alone(self) -> None:
        for found in PROGRAM.audit(CASES, RECORDED)["cases"]:
            for check in found["checks"]:
                with self.subTest(check=check):
                    self.assertEqual(check["verdict"] in ("fail", "unknown"), bool(check.get("message")))
                    self.assertEqual("message" in check, bool(check.get("message")))

    def test_plain_values_alone(self) -> None:
        def types(value: Any) -> List[type]:
            if type(value) is dict:
                return [kind for pair in value.items() for member in pair for kind in types(member)]
            if type(value) is list:
                return [kind for member in value for kind in types(member)]
            return [type(value)]

        self.assertLessEqual(set(types(PROGRAM.audit(CASES, RECORDED))), {str, int, type(None)})


if __name__ == "__main__":
    unittest.main()
