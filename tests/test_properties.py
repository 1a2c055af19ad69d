"""What holds for every document: a second evaluator agrees, damage never gets through, nothing is idle."""

from __future__ import annotations

import json
import unittest
from random import Random
from typing import Any, Dict, Iterable, List, Set, Tuple

from . import oracle
from .support import EXPECTED, OBSERVED, PROGRAM, Json, call, case, laid_out, load_vectors, to_bytes, trace, visible
from .test_reading import Pair
from .test_vectors import spellings


def without_messages(report: Json) -> Json:
    """The part of a report that `oracle.evaluate` gives."""
    for found in report["cases"]:
        for check in found["checks"]:
            check.pop("message", None)
    return {key: report[key] for key in ("verdict", "totals", "rules", "groups", "cases", "unknown_cases")}


class Oracle(unittest.TestCase):
    maxDiff = None

    def agree(self, pairs: Iterable[Tuple[Json, List[Json]]]) -> Dict[str, Set[str]]:
        """Compare both evaluators on every pair; the verdicts that each rule came to."""
        seen: Dict[str, Set[str]] = {}
        for number, (expected, observed) in enumerate(pairs):
            wanted = oracle.evaluate(expected, observed)
            for found in wanted["cases"]:
                for check in found["checks"]:
                    seen.setdefault(check["rule"], set()).add(check["verdict"])
                    if "match" in check:
                        seen.setdefault(check["match"], set()).add(check["verdict"])
            with self.subTest(number=number):
                report = PROGRAM.audit(to_bytes(expected), to_bytes(observed))
                self.assertEqual(wanted, without_messages(report))
        return seen

    def test_agrees_on_random_documents(self) -> None:
        seen = self.agree(oracle.random_pair(oracle.seeded(seed)) for seed in range(250))
        # The documents are no use unless every rule comes to every verdict that it has.
        for rule in oracle.RULES:
            with self.subTest(rule):
                self.assertLessEqual({"pass", "fail"}, seen[rule])
                self.assertEqual(rule != "trace_recorded", "not_checked" in seen[rule])
                self.assertEqual(rule in ("max_cost_usd", "max_total_tool_ms"), "unknown" in seen[rule])

    def test_agrees_on_ways_to_match_and_ordering_rules(self) -> None:
        seen = self.agree(oracle.random_richer_pair(oracle.seeded(seed)) for seed in range(250))
        for rule in (*oracle.MATCHES, *oracle.ORDERING):
            with self.subTest(rule):
                self.assertEqual({"pass", "fail", "not_checked"}, seen[rule])

    def test_order_of_the_traces_changes_no_verdict(self) -> None:
        for seed in range(30):
            expected, observed = oracle.random_pair(oracle.seeded(seed))
            one, other = (PROGRAM.audit(to_bytes(expected), to_bytes(traces)) for traces in (observed, observed[::-1]))
            for key in ("verdict", "totals", "rules", "groups", "cases"):
                self.assertEqual(one[key], other[key])

    def test_group_changes_no_verdict(self) -> None:
        for seed in range(30):
            expected, observed = oracle.random_pair(oracle.seeded(seed))
            one = PROGRAM.audit(to_bytes(expected), to_bytes(observed))
            for found in expected["cases"]:
                found["group"] = "another"
            other = PROGRAM.audit(to_bytes(expected), to_bytes(observed))
            self.assertEqual(one["totals"], other["totals"])
            self.assertEqual(one["rules"], other["rules"])


# No message may hold this, nor the piece of it that stays when a byte is changed.
PRIVATE = "zqxzqxzqxzqx"
PIECE = "zqxzqx"


def planted() -> Tuple[Json, List[Json]]:
    """Documents with secrets in every place that holds free text, or that could by mistake."""
    expected = {
        "cases": [
            case("r1", ["a", "b"], ["a", "b"], group=PRIVATE, max_cost_usd="1.5", max_failed_calls=1),
            case("r2", group=PRIVATE, max_total_tool_ms=20, notes=PRIVATE),
        ]
    }
    observed = [
        trace("r1", [call("c1", "a", cost_usd="0.5", duration_ms=3), call("c2", "b", "failed", output=PRIVATE)]),
        {
            **trace("r2", [call("c1", "a", "pending", cost_usd=PRIVATE, duration_ms=[PRIVATE])]),
            "meta": {"k": [PRIVATE]},
        },
        trace(PRIVATE + "/", [call(PRIVATE + " ", PRIVATE + "!", PRIVATE)]),
    ]
    return expected, observed


VALUES: Tuple[Any, ...] = (
    *(None, True, -1, 0.5, 1e300, 10**30, "", PRIVATE + "\n", "\ud800" + PRIVATE, "1e3"),
    *([], {}, [PRIVATE + "?"], {"k": PRIVATE}, [[[PRIVATE]]]),
)


def damage_value(random: Random, value: Any) -> Any:
    """A document with one value somewhere in it replaced, lost or doubled."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        if random.random() < 0.1:
            return {name: member for name, member in value.items() if name != key}
        return {**value, key: damage_value(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.9:
        index = random.randrange(len(value))
        kind = random.random()
        middle = [] if kind < 0.1 else [value[index]] * 2 if kind < 0.2 else [damage_value(random, value[index])]
        return value[:index] + middle + value[index + 1 :]
    return random.choice(VALUES)


def damage_bytes(random: Random, data: bytes) -> bytes:
    """A document with a few bytes flipped, cut, doubled, moved or put in."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        start, length = random.randrange(len(changed) + 1), random.randint(1, 12)
        piece = changed[start : start + length]
        kind = random.choice(["flip", "cut", "double", "swap", "insert", "truncate"])
        if kind == "flip":
            changed[start : start + 1] = bytes(byte ^ 1 << random.randrange(8) for byte in piece[:1])
        elif kind == "cut":
            del changed[start : start + length]
        elif kind == "double":
            changed[start:start] = piece
        elif kind == "swap":
            changed[start : start + length] = piece[::-1]
        elif kind == "insert":
            changed[start:start] = random.choice(
                (b"\\", b'"', b"[", b"}", b"\xef\xbb\xbf", b"\0", b"\xff", b",", b"1e9")
            )
        else:
            del changed[max(start, 2) :]
    return bytes(changed)


class Damage(unittest.TestCase):
    def refusal_or_report(self, expected: bytes, observed: bytes) -> bool:
        """Whether there was a report; a refusal must be printable and repeat no value."""
        try:
            report = PROGRAM.audit(expected, observed)
        except PROGRAM.refusal as refused:
            self.assertTrue(refused.problems)
            for problem in refused.problems:
                self.assertTrue(visible(problem), problem)
                self.assertRegex(problem, r"\A(expected|observed):")
                self.assertNotIn(PIECE, problem)
            return False
        laid_out(report)
        return True

    def test_damaged_bytes(self) -> None:
        expected, observed = (json.dumps(document, indent=1).encode("ascii") for document in planted())
        reports = 0
        for seed in range(300):
            random = oracle.seeded(seed)
            with self.subTest(seed=seed):
                self.refusal_or_report(damage_bytes(random, expected), damage_bytes(random, observed))
                reports += self.refusal_or_report(damage_bytes(random, EXPECTED), OBSERVED)
                reports += self.refusal_or_report(EXPECTED, damage_bytes(random, OBSERVED))
        # Some damage is harmless; if none were, the loop would only ever see syntax errors.
        self.assertGreater(reports, 0)

    def test_damaged_values(self) -> None:
        reports = 0
        for seed in range(300):
            random = oracle.seeded(seed)
            expected, observed = planted() if seed % 2 else oracle.random_pair(random)
            with self.subTest(seed=seed):
                reports += self.refusal_or_report(
                    to_bytes(damage_value(random, expected)), to_bytes(damage_value(random, observed))
                )
        self.assertGreater(reports, 0)


class KnockOut(unittest.TestCase):
    """Each rule decides something: were it left out, a vector would come to another verdict."""

    def test_each_rule_alone_fails_a_vector(self) -> None:
        alone, rules = set(), set()
        for expected, observed in accepted_vectors():
            report = PROGRAM.audit(expected, observed)
            rules |= set(report["rules"])
            wrong = [
                check["rule"]
                for found in report["cases"]
                for check in found["checks"]
                if check["verdict"] in ("fail", "unknown")
            ]
            if len(wrong) == 1 and not report["unknown_cases"]:
                self.assertEqual("fail", report["verdict"])
                alone.add(wrong[0])
        self.assertGreaterEqual(len(rules), 10)
        self.assertEqual(rules, alone)


def accepted_vectors() -> Iterable[Pair]:
    """The inputs of every vector that comes to a report."""
    for content in load_vectors().values():
        for vector in content["cases"]:
            if vector["exit"] != 1:
                for _, expected, observed, _, _ in spellings(vector):
                    yield expected, observed


if __name__ == "__main__":
    unittest.main()
