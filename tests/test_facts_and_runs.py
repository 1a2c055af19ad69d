"""Facts and several runs of a case, on random documents: a second evaluator agrees, and what must hold does.

Many more rounds by hand: python -m tests.test_facts_and_runs 20000
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

import agent_trace_audit as product

from . import oracle, oracle_facts, oracle_runs
from .support import PROGRAM, Json, Program, call, case, load_vectors, to_bytes, visible
from .test_rooms import check_only
from .test_vectors import spellings

ROUNDS = 70
COMPARED = ("verdict", "totals", "rules", "groups", "cases", "unknown_cases")


def every_check(report: Json) -> Iterator[Tuple[str, Json]]:
    """All checks of a report, those of runs included, each with the name of what it judges."""
    for found in report["cases"]:
        for check in found["checks"]:
            yield found["id"], check
        for run in found.get("runs", []):
            for check in run["checks"]:
                yield f"{found['id']}/{run['id']}", check


def audited(expected: Json, observed: Sequence[Json]) -> Json:
    report: Json = product.audit(to_bytes(expected), to_bytes(list(observed)))
    return report


def compared(report: Json) -> str:
    """What the second evaluator gives of a report, as text: the order of keys counts."""
    for _, check in every_check(report):
        if check["rule"] not in oracle_runs.RUN_RULES:
            check.pop("message", None)
    return json.dumps({key: report[key] for key in COMPARED}, indent=1)


class SecondEvaluator(unittest.TestCase):
    maxDiff = None

    def verify(self, seed: int, seen: Dict[str, Set[str]]) -> None:
        expected, observed = oracle_runs.random_pair(oracle.seeded(seed))
        report = audited(expected, observed)
        self.verify_messages(report)
        self.assertEqual(json.dumps(oracle_runs.evaluate(expected, observed), indent=1), compared(report))
        for _, check in every_check(report):
            seen.setdefault(check["rule"], set()).add(check["verdict"])

    def verify_messages(self, report: Json) -> None:
        """A message where one belongs, in plain characters; an unknown says what was not recorded."""
        for place, check in every_check(report):
            message = check.get("message")
            self.assertEqual(check["verdict"] in ("fail", "unknown"), message is not None, (place, check))
            self.assertTrue(message is None or visible(message), message)
            if check["verdict"] == "unknown" and check["rule"] in oracle_facts.STEP_CHECKS:
                self.assertIn("not recorded", str(message), check)

    def test_agrees_on_random_documents(self) -> None:
        seen: Dict[str, Set[str]] = {}
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                self.verify(seed, seen)
        # The documents are no use unless every rule comes to every verdict that it has.
        for rule in oracle_facts.STEP_CHECKS:
            self.assertEqual({"pass", "fail", "unknown", "not_checked"}, seen[rule], rule)
        for rule in oracle_runs.RUN_RULES:
            self.assertEqual({"pass", "fail", "not_checked"}, seen[rule], rule)

    def test_agrees_with_the_first_evaluator_without_facts_and_runs(self) -> None:
        for seed in range(30):
            expected, observed = oracle.random_richer_pair(oracle.seeded(seed))
            with self.subTest(seed=seed):
                one, other = (which.evaluate(expected, observed) for which in (oracle, oracle_runs))
                self.assertEqual(json.dumps(one), json.dumps(other))


class Completed(unittest.TestCase):
    """A verdict holds however the facts that were left out turned out."""

    def test_verdicts_hold_for_a_completion(self) -> None:
        settled = 0
        for seed in range(30):
            random = oracle.seeded(seed)
            expected, observed = oracle_runs.random_pair(random)
            cases = {found["id"]: found for found in expected["cases"]}
            complete = []
            for trace in observed:
                of, calls = cases.get(oracle_runs.case_of(trace)), trace["calls"]
                facts = oracle_facts.open_facts(of, calls) if of else []
                truths = [random.random() < 0.5 for _ in facts]
                complete.append({**trace, "calls": oracle_facts.completed(calls, facts, truths)})
            before, after = (every_check(audited(expected, traces)) for traces in (observed, complete))
            for (place, check), (_, then) in zip(before, after):
                if check["rule"] in oracle_facts.STEP_CHECKS:
                    with self.subTest(seed=seed, place=place, rule=check["rule"]):
                        self.assertNotEqual("unknown", then["verdict"])
                        if check["verdict"] != "unknown":
                            self.assertEqual(check["verdict"], then["verdict"])
                    settled += check["verdict"] == "unknown"
        self.assertGreater(settled, 0)

    def test_two_readings_are_what_all_completions_come_to(self) -> None:
        """Of the second evaluator: so it is no misreading of its own that the program is held against."""
        for seed in range(60):
            random = oracle.seeded(seed)
            of = oracle_facts.random_case(random, "r")
            calls = oracle_facts.random_calls(random, of["sequence"])
            facts = oracle_facts.open_facts(of, calls)
            if len(facts) > 5:
                continue
            ways = [
                oracle_facts.completed(calls, facts, way) for way in itertools.product((True, False), repeat=len(facts))
            ]
            every = [
                {check["rule"]: check["verdict"] for check in oracle_facts.checks_of(of, {"calls": way})}
                for way in ways
            ]
            for check in oracle_facts.checks_of(of, {"calls": calls}):
                verdicts = {one[check["rule"]] for one in every}
                if check["rule"] not in oracle_facts.STEP_CHECKS:
                    continue
                with self.subTest(seed=seed, rule=check["rule"]):
                    if check["verdict"] != "unknown":
                        self.assertEqual({check["verdict"]}, verdicts)
                    elif check["rule"] != "require_prior":
                        self.assertEqual({"pass", "fail"}, verdicts)


class CommandLine(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.paths = [str(Path(directory.name, name)) for name in ("expected", "observed")]

    def run_command(self, expected: Json, observed: Sequence[Json], *more: str) -> Tuple[int, str, str]:
        for path, data in zip(self.paths, (to_bytes(expected), to_bytes(list(observed)))):
            Path(path).write_bytes(data)
        output, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
            status = product.main(["--expected", self.paths[0], "--observed", self.paths[1], *more])
        return status, output.getvalue(), error.getvalue()

    def test_lines_of_random_documents(self) -> None:
        words = set()
        for seed in range(20):
            expected, observed = oracle_runs.random_pair(oracle.seeded(seed))
            with self.subTest(seed=seed):
                status, output, error = self.run_command(expected, observed, "--fail-on-errors", "--summary")
                report = json.loads(output)
                self.assertEqual({"pass": 0, "fail": 2}[report["verdict"]], status)
                lines = [line for line in error.splitlines() if not line.startswith("WARNING ")]
                self.assertEqual(oracle_runs.text_lines(report), lines)
                words |= {line.split()[0] for line in lines}
        self.assertLessEqual({"FAIL", "UNKNOWN", "TOLERATED", "UNKNOWN-CASE"}, words)

    def test_lines_of_a_tolerated_run_and_an_unknown_case(self) -> None:
        expected = {"cases": [case("request-01", min_passing_runs=2, max_failing_runs=1)]}
        observed = [run("run-1", "a"), run("run-2", "b"), run("run-3", "a"), run("run-9", "a", "request-07")]
        status, _, error = self.run_command(expected, observed, "--fail-on-errors")
        self.assertEqual(2, status)
        wanted = [
            "TOLERATED request-01/run-2 sequence: step 1: expected a, got b",
            "TOLERATED request-01/run-2 allowed_tools: expected only a, got b in succeeded call c1",
            "UNKNOWN-CASE run-9 (case request-07): recorded, but no case expects it",
            "0 of 1 case failed, 1 unknown case, 1 of 3 runs failed",
        ]
        self.assertEqual(wanted, error.splitlines())

    def test_lines_of_a_failing_repeated_case(self) -> None:
        expected = {"cases": [case("request-01", ["a+f"], min_passing_runs=2, max_failing_runs=1)]}
        observed = [run("run-1", "a+f"), run("run-2", "a+-f"), run("run-3", "a")]
        status, _, error = self.run_command(expected, observed, "--fail-on-errors")
        self.assertEqual(2, status)
        wanted = [
            "FAIL request-01 min_passing_runs: expected at least 2 passing runs, got 1 of 3: run-1",
            "FAIL request-01 max_failing_runs: expected at most 1 failing run, got 2: run-2 and run-3",
            "FAIL request-01/run-2 sequence: step 1: expected a+f, got a in call c1 (f is false)",
            "UNKNOWN request-01/run-3 sequence: step 1: expected a+f, got a in call c1 (f is not recorded)",
            "1 of 1 case failed, 0 unknown cases, 2 of 3 runs failed",
        ]
        self.assertEqual(wanted, error.splitlines())

    def test_layout_of_a_repeated_case(self) -> None:
        expected = {"cases": [case("request-01", ["a+f"], max_calls={"a": 1}, max_failing_runs=1)]}
        status, output, _ = self.run_command(expected, [run("run-1", "a+f"), run("run-2", "")])
        self.assertEqual(0, status)
        start = output.index('  "cases": [\n')
        self.assertEqual(LAYOUT, output[start : output.rindex('  "unknown_cases"')])

    def test_layout_of_a_repeated_case_without_a_run(self) -> None:
        _, output, _ = self.run_command({"cases": [case(min_passing_runs=1)]}, [])
        self.assertIn('      "tool_ms": {"known_total": 0, "unknown_calls": 0},\n      "runs": []\n    }\n', output)

    def test_500_runs_of_one_case(self) -> None:
        expected = {"cases": [case("request-01", min_passing_runs=250, max_failing_runs=250)]}
        observed = [run(f"run-{number}", "b" if number % 2 else "a") for number in range(500)]
        status, output, error = self.run_command(expected, observed, "--summary")
        self.assertEqual(0, status)
        report = json.loads(output)
        self.assertEqual("pass", report["verdict"])
        self.assertEqual({"recorded": 500, "passed": 250, "failed": 250}, report["totals"]["runs"])
        self.assertEqual([f"run-{number}" for number in range(1, 500, 2)], report["cases"][0]["checks"][2]["runs"])
        self.assertEqual("0 of 1 case failed, 0 unknown cases, 250 of 500 runs failed", error.splitlines()[-1])
        self.assertEqual(501, len(error.splitlines()))

    def test_a_report_that_is_too_large_is_refused(self) -> None:
        # Fifty steps of 128 characters, missing before each of three thousand calls.
        steps = [f"{number:02d}" + "s" * 126 for number in range(50)]
        expected = {"cases": [case("r", [], [], require_prior={"a": steps})]}
        calls = [call(str(number), "a", "pending") for number in range(50)]
        observed = [{"id": str(number), "case": "r", "calls": calls} for number in range(60)]
        status, output, error = self.run_command(expected, observed)
        self.assertEqual((1, ""), (status, output))
        self.assertIn("16,777,216 bytes", error)
        self.assertIn("fewer runs", error)
        self.assertEqual(1, len(error.splitlines()))


class Refusals(unittest.TestCase):
    def test_no_refusal_repeats_a_value(self) -> None:
        private = "zqxzqx"
        steps = [
            f"{private}+",
            f"{private}++f",
            f"+{private}",
            f"a+{private}+{private}",
            f"a+{private} ",
            f"a+{private}!",
        ]
        pairs: List[Tuple[Json, List[Json]]] = []
        for step in steps:
            for broken in ({"sequence": [step]}, {"allowed_tools": [step]}, {"require_prior": {"a": [step]}}):
                pairs.append(({"cases": [{**case(), **broken}]}, []))
        for value in (private, [private], {"k": private}):
            for key in oracle_runs.RUN_RULES:
                pairs.append(({"cases": [{**case(), key: value}]}, []))
            for facts in (value, {"f": value}, {"f": True, "g": value}):
                pairs.append(({"cases": [case()]}, [{"id": "r1", "calls": [call(facts=facts)]}]))
            pairs.append(({"cases": [case()]}, [{"id": "r1", "case": [value], "calls": []}]))
        pairs.append(({"cases": [case()]}, [{"id": "r1", "case": private + " ", "calls": []}]))
        for expected, observed in pairs:
            with self.subTest(expected=expected, observed=observed), self.assertRaises(product.InputError) as caught:
                audited(expected, observed)
            self.assertEqual(1, len(caught.exception.problems))
            self.assertNotIn(private, caught.exception.problems[0])
            self.assertNotIn("unknown key", caught.exception.problems[0])


def run(id: str, step: str, of: str = "request-01") -> Json:
    """A run of a case, with one successful call or none; its facts are true, or false after a minus."""
    tool, *facts = step.split("+")
    more: Dict[str, Any] = {"facts": {fact.lstrip("-"): not fact.startswith("-") for fact in facts}} if facts else {}
    calls: List[Json] = [call(tool=tool, **more)] if tool else []
    return {"id": id, "case": of, "calls": calls}


LAYOUT = """\
  "cases": [
    {
      "id": "request-01",
      "group": null,
      "verdict": "pass",
      "trace": "recorded",
      "checks": [
        {"rule": "trace_recorded", "verdict": "pass"},
        {"rule": "min_passing_runs", "verdict": "pass", "limit": 1, "observed": 1},
        {"rule": "max_failing_runs", "verdict": "pass", "limit": 1, "observed": 1, "runs": ["run-2"]}
      ],
      "expects": {"sequence": ["a+f"], "match": "exact", "allowed_tools": ["a"], "max_failed_calls": 0, \
"max_calls": {"a": 1}},
      "calls": {"total": 1, "succeeded": 1, "failed": 0, "pending": 0},
      "cost_usd": {"known_total": "0", "unknown_calls": 1},
      "tool_ms": {"known_total": 0, "unknown_calls": 1},
      "runs": [
        {
          "id": "run-1",
          "verdict": "pass",
          "checks": [
            {"rule": "sequence", "verdict": "pass", "observed": ["a"], "missing": [], "unexpected": [], \
"first_difference": null},
            {"rule": "allowed_tools", "verdict": "pass", "violations": []},
            {"rule": "no_pending_calls", "verdict": "pass", "calls": []},
            {"rule": "max_failed_calls", "verdict": "pass", "observed": 0, "calls": []},
            {"rule": "max_cost_usd", "verdict": "not_checked", "known_total": "0", "unknown_calls": ["c1"]},
            {"rule": "max_total_tool_ms", "verdict": "not_checked", "known_total": 0, "unknown_calls": ["c1"]},
            {"rule": "max_calls", "verdict": "pass", "violations": []}
          ],
          "calls": {"total": 1, "succeeded": 1, "failed": 0, "pending": 0},
          "cost_usd": {"known_total": "0", "unknown_calls": 1},
          "tool_ms": {"known_total": 0, "unknown_calls": 1},
          "recorded_calls": [
            {"id": "c1", "tool": "a", "status": "succeeded", "facts": {"f": true}}
          ]
        },
        {
          "id": "run-2",
          "verdict": "fail",
          "checks": [
            {"rule": "sequence", "verdict": "fail", "observed": [], "missing": ["a+f"], "unexpected": [], \
"first_difference": 0, "message": "step 1: expected a+f, but the run stopped after no successful call"},
            {"rule": "allowed_tools", "verdict": "pass", "violations": []},
            {"rule": "no_pending_calls", "verdict": "pass", "calls": []},
            {"rule": "max_failed_calls", "verdict": "pass", "observed": 0, "calls": []},
            {"rule": "max_cost_usd", "verdict": "not_checked", "known_total": "0", "unknown_calls": []},
            {"rule": "max_total_tool_ms", "verdict": "not_checked", "known_total": 0, "unknown_calls": []},
            {"rule": "max_calls", "verdict": "pass", "violations": []}
          ],
          "calls": {"total": 0, "succeeded": 0, "failed": 0, "pending": 0},
          "cost_usd": {"known_total": "0", "unknown_calls": 0},
          "tool_ms": {"known_total": 0, "unknown_calls": 0},
          "recorded_calls": []
        }
      ]
    }
  ],
"""


# What a step is, piece by piece: each is damaged, and some vector must notice.
DAMAGED = (
    ("(call.facts or {}).get(fact, unknown)", "(call.facts or {}).get(fact, True)"),
    ("(call.facts or {}).get(fact, unknown)", "(call.facts or {}).get(fact, False)"),
    ("(call.facts or {}).get(fact, unknown)", "((call.facts or {}).get(fact) or unknown)"),
    ("tool == call.tool and all(", "tool == call.tool and any("),
    ("for call in fitting[step] if movable else []:", "for call in []:"),
    ("rule.judge(expects, run, False)", "rule.judge(expects, run, True)"),
    ("(UNKNOWN if verdict == FAIL else verdict), evidence, message", "verdict, evidence, message"),
)


class KnockOut(unittest.TestCase):
    def test_each_piece_of_a_step_is_noticed_by_a_vector(self) -> None:
        vectors = [
            pair[1:3]
            for name, content in load_vectors().items()
            if name.startswith("facts_")
            for vector in content["cases"]
            if vector["exit"] != 1
            for pair in spellings(vector)
        ]
        wanted = [PROGRAM.audit(*pair) for pair in vectors]
        with tempfile.TemporaryDirectory() as folder:
            for whole, damaged in DAMAGED:
                with self.subTest(damaged):
                    self.assertEqual(1, check_only().source.count(whole))
                    path = Path(folder, "damaged.py")
                    path.write_text(check_only().source.replace(whole, damaged), encoding="utf-8")
                    program = Program(path)
                    differs = (program.audit(*pair) != want for pair, want in zip(vectors, wanted))
                    self.assertTrue(any(differs))


if __name__ == "__main__":
    ROUNDS = int(sys.argv.pop(1)) if sys.argv[1:] else ROUNDS
    unittest.main()
