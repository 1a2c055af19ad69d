"""As a module: no side effects on import, and results that do not depend on the caller's surroundings."""

from __future__ import annotations

import decimal
import json
import sys
import unittest
from typing import Any

from .support import EXPECTED, OBSERVED, PROGRAM, Case, ProcessCase, call, case, trace, traces, workflows

COSTLY = workflows(case("r1", ["a"] * 3, max_cost_usd="999999999.999999", max_total_tool_ms=2000.0))
PAID = traces(
    trace(
        "r1", [call(f"c{index}", cost_usd=cost) for index, cost in enumerate(("333333333.333333", "0.1", "1.000000"))]
    )
)

# Nesting beyond the bound is refused before a parser, or the caller's stack, could run out.
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import agent_trace_audit as product

def stack():
    frame, count = sys._getframe(), 0
    while frame:
        frame, count = frame.f_back, count + 1
    return count

def problems():
    try:
        product.audit(b'{"k":' * 33, b"[" * 200000)
    except product.InputError as refused:
        return refused.problems

def below(levels):
    return below(levels - 1) if levels else problems()

wanted = problems()
assert len(wanted) == 2, wanted
for spare in (30, 60, 120):
    limit = stack() + spare
    sys.setrecursionlimit(limit)
    found = problems()
    assert sys.getrecursionlimit() == limit
    sys.setrecursionlimit(1000)
    assert found == wanted, (spare, found)
    assert below(1000 - stack() - spare) == wanted, spare
print("same")
"""


class Module(Case):
    def test_public_names(self) -> None:
        self.assertTrue(issubclass(self.program.refusal, ValueError))
        self.assertEqual("pass", self.program.audit(EXPECTED, OBSERVED)["verdict"])

    def test_problems_are_those_of_the_command_line(self) -> None:
        expected, observed = self.program.problems(b"[", b"\xff")
        self.assertEqual("expected:1:2: ", expected[:14])
        self.assertEqual("observed: ", observed[:10])
        self.assertNotIn("agent_trace_audit", expected + observed)
        self.put("expected", b"[")
        self.put("observed", b"\xff")
        lines = self.run_words("--expected", "expected", "--observed", "observed").stderr.decode("ascii").splitlines()
        self.assertEqual([f"agent_trace_audit: error: {problem}" for problem in (expected, observed)], lines)

    def test_problems_are_not_cut_to_twenty(self) -> None:
        self.assertEqual(33, len(self.program.problems(EXPECTED, json.dumps([1] * 33).encode("ascii"))))

    def test_the_callers_decimal_context(self) -> None:
        signals: Any = list(decimal.getcontext().traps)
        wanted = self.program.audit(COSTLY, PAID)
        self.assertEqual("333333334.433333", wanted["totals"]["cost_usd"]["known_total"])
        for name, context in {
            "one digit": decimal.Context(prec=1),
            "every trap": decimal.Context(prec=1, traps=signals),
            "no range": decimal.Context(prec=1, Emax=0, Emin=0, traps=signals),
            "rounding down": decimal.Context(prec=3, rounding=decimal.ROUND_DOWN, traps=[]),
            "capitals off": decimal.Context(prec=5, capitals=0, clamp=1),
        }.items():
            with self.subTest(name), decimal.localcontext(context):
                self.assertEqual(wanted, self.program.audit(COSTLY, PAID))

    def test_main_returns_its_status(self) -> None:
        limit = sys.getrecursionlimit()
        self.assertEqual(0, self.check("--output", "report.json").returncode)
        self.assertEqual(self.wanted(), (self.directory / "report.json").read_bytes())
        self.assertEqual(limit, sys.getrecursionlimit())

    def test_reports_are_the_callers_own(self) -> None:
        first = self.program.audit(EXPECTED, OBSERVED)
        first["limitations"].clear()
        first["cases"].clear()
        self.assertTrue(self.program.audit(EXPECTED, OBSERVED)["limitations"])


class Surroundings(ProcessCase):
    def test_deep_documents_on_a_small_stack(self) -> None:
        script = self.put("run.py", RUN.encode("ascii"))
        result = self.run_words(str(PROGRAM.path.parent), script=script)
        self.assertEqual((b"same\n", b""), (result.stdout, result.stderr))

    def test_import_has_no_side_effects(self) -> None:
        code = (
            "import decimal, os, signal, sys, threading; sys.path.insert(0, sys.argv[1]);"
            "look = lambda: (sys.path[:], repr(decimal.getcontext()), signal.getsignal(2), threading.active_count(),"
            " os.getcwd(), sys.getrecursionlimit(), sys.stdout, sys.stderr, sys.excepthook, dict(os.environ));"
            "before = look(); import agent_trace_audit; sys.exit(before != look())"
        )
        before = self.names()
        script = self.put("imports.py", code.encode("ascii"))
        result = self.run_words(str(PROGRAM.path.parent), script=script, python=["-B"])
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        script.unlink()
        self.assertEqual(before, self.names())


if __name__ == "__main__":
    unittest.main()
