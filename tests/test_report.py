"""The report: its bytes, the order of its keys, and that the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import unittest
from pathlib import Path
from typing import Any, List

import agent_trace_audit as product

from .support import ProcessCase, call, case, environment, trace, traces, workflows

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


class Layout(unittest.TestCase):
    maxDiff = None

    def test_golden_report(self) -> None:
        wanted = GOLDEN.read_bytes().replace(b"\r\n", b"\n").decode("ascii")
        self.assertEqual(wanted, product.json_bytes(product.audit(CASES, RECORDED)).decode("ascii"))

    def test_laid_out_report_is_the_report(self) -> None:
        report = product.audit(CASES, RECORDED)
        again = json.loads(product.json_bytes(report))
        self.assertEqual(report, again)
        self.assertEqual(key_orders(report), key_orders(again))

    def test_inputs_are_identified_by_their_bytes(self) -> None:
        for padding in (b"", b"\n"):
            inputs = product.audit(CASES + padding, b"\xef\xbb\xbf" + RECORDED)["inputs"]
            for name, data in (("expected", CASES + padding), ("observed", b"\xef\xbb\xbf" + RECORDED)):
                with self.subTest(name, padding=padding):
                    self.assertEqual(len(data), inputs[name]["bytes"])
                    self.assertEqual(hashlib.sha256(data).hexdigest(), inputs[name]["sha256"])

    def test_limitations_are_three_or_four_sentences(self) -> None:
        limitations = product.audit(CASES, RECORDED)["limitations"]
        self.assertIn(len(limitations), (3, 4))
        for word in ("status", "rguments", "outputs", "permissions", "business effects", "latency", "budget"):
            self.assertIn(word, " ".join(limitations))

    def test_message_on_fail_and_unknown_alone(self) -> None:
        for found in product.audit(CASES, RECORDED)["cases"]:
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

        self.assertLessEqual(set(types(product.audit(CASES, RECORDED))), {str, int, type(None)})


class SameBytes(ProcessCase):
    def test_same_bytes_whatever_the_surroundings(self) -> None:
        self.put("workflows.json", CASES)
        self.put("traces.json", RECORDED)
        wanted = product.json_bytes(product.audit(CASES, RECORDED))
        surroundings = {
            "hash seed 1": environment(PYTHONHASHSEED="1", LC_ALL="C", TZ="Asia/Tokyo"),
            "hash seed 2": environment(PYTHONHASHSEED="2", LC_ALL="C.UTF-8", COLUMNS="20"),
            "cp1252": environment(PYTHONIOENCODING="cp1252", PYTHONUTF8="0"),
            "ascii": environment(PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONCOERCECLOCALE="0"),
            "UTF-16": environment(PYTHONIOENCODING="utf-16"),
        }
        for name, env in surroundings.items():
            with self.subTest(name):
                result = self.check(env=env)
                self.assertEqual((0, wanted, b""), (result.returncode, result.stdout, result.stderr))
        with self.subTest("another directory and other names"):
            self.expected.rename(self.directory / "e")
            paths = ["--expected", str(self.directory / "e"), "--observed", str(self.observed)]
            self.assertEqual(wanted, self.run_words(*paths, cwd="/").stdout)


if __name__ == "__main__":
    unittest.main()
