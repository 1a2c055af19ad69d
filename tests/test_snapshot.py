"""snapshot: expected workflows that the given traces pass, always."""

from __future__ import annotations

import json
import random
from typing import Any, Dict, List, Optional

from .support import Case, Json, call, laid_out, to_bytes, trace, traces


def numbered(*calls: Json) -> List[Json]:
    return [{**one, "id": f"c{number}"} for number, one in enumerate(calls, start=1)]


class SnapshotCase(Case):
    def snapshot(self, *words: str, **options: Any) -> Any:
        return self.run_words("snapshot", *words, **options)

    def snapshot_of(self, recorded: List[Json], percent: Optional[int] = None) -> Json:
        """The expected workflows of these traces."""
        self.put("traces.json", to_bytes(recorded))
        words = [] if percent is None else ["--budget-headroom", str(percent)]
        done = self.snapshot("traces.json", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(laid_out(json.loads(done.stdout)), done.stdout)
        made: Json = json.loads(done.stdout)
        return made

    def only_case(self, calls: List[Json], percent: Optional[int] = None) -> Json:
        case: Json = self.snapshot_of([trace(calls=calls)], percent)["cases"][0]
        return case


class Cases(SnapshotCase):
    def test_a_case_says_what_the_trace_did(self) -> None:
        calls = numbered(
            call(tool="b", status="failed"),
            call(tool="a"),
            call(tool="b"),
            call(tool="c", status="failed"),
            call(tool="a"),
        )
        wanted = {"id": "r1", "sequence": ["a", "b", "a"], "allowed_tools": ["b", "a", "c"], "max_failed_calls": 2}
        self.assertEqual(wanted, self.only_case(calls))
        self.assertEqual(list(wanted), list(self.only_case(calls)))

    def test_no_allowance_without_failures(self) -> None:
        self.assertEqual({"id": "r1", "sequence": ["a"], "allowed_tools": ["a"]}, self.only_case([call()]))

    def test_cases_are_in_file_order(self) -> None:
        made = self.snapshot_of([trace("z", []), trace("a", []), trace("m", [])])
        self.assertEqual(["z", "a", "m"], [case["id"] for case in made["cases"]])

    def test_headroom_is_exact_and_rounded_up(self) -> None:
        for costs, percent, wanted in (
            (["0.000001"], 0, "0.000001"),
            (["0.000001"], 1, "0.000002"),
            (["0.10"], 0, "0.1"),
            (["0.1", "0.2"], 0, "0.3"),
            (["0.1", "0.2"], 33, "0.399"),
            (["1.500000", "0.5"], 50, "3"),
            (["0"], 1000, "0"),
            (["0.333333"], 10, "0.366667"),
            (["10"], 1000, "110"),
            (["999999999.999999"], 0, "999999999.999999"),
        ):
            with self.subTest(costs=costs, percent=percent):
                calls = numbered(*(call(cost_usd=cost) for cost in costs))
                self.assertEqual(wanted, self.only_case(calls, percent)["max_cost_usd"])

    def test_time_headroom(self) -> None:
        for times, percent, wanted in (
            ([1], 1, 2),
            ([100], 25, 125),
            ([0], 1000, 0),
            ([3_600_000] * 50, 0, 180_000_000),
        ):
            with self.subTest(times=times, percent=percent):
                calls = numbered(*(call(duration_ms=time) for time in times))
                self.assertEqual(wanted, self.only_case(calls, percent)["max_total_tool_ms"])

    def test_time_headroom_stops_at_the_bound(self) -> None:
        calls = numbered(*[call(duration_ms=3_600_000)] * 50)
        self.assertEqual(180_000_000, self.only_case(calls, 1000)["max_total_tool_ms"])

    def test_budgets_only_when_asked(self) -> None:
        case = self.only_case([call(cost_usd="1", duration_ms=5)])
        self.assertFalse({"max_cost_usd", "max_total_tool_ms"} & set(case))

    def test_budgets_are_independent_and_need_every_call(self) -> None:
        both, no_cost, no_time = call(cost_usd="1", duration_ms=5), call(duration_ms=5), call(cost_usd="1")
        for calls, wanted in (
            ([both, both], {"max_cost_usd": "2", "max_total_tool_ms": 10}),
            ([both, no_cost], {"max_total_tool_ms": 10}),
            ([both, no_time], {"max_cost_usd": "2"}),
            ([no_cost, no_time], {}),
            ([], {"max_cost_usd": "0", "max_total_tool_ms": 0}),
        ):
            with self.subTest(calls=calls):
                case = self.only_case(numbered(*calls), 0)
                self.assertEqual(wanted, {key: value for key, value in case.items() if key.startswith("max_")})

    def test_a_cost_beyond_money_is_left_out_and_said(self) -> None:
        self.put("traces.json", traces(trace(calls=[call(cost_usd="999999999")])))
        done = self.snapshot("traces.json", "--budget-headroom", "1")
        self.assertNotIn("max_cost_usd", json.loads(done.stdout)["cases"][0])
        self.assertEqual((0, 1), (done.returncode, done.stderr.count(b"\n")))
        self.assertIn(b"max_cost_usd is left out for r1: ", done.stderr)

    def test_random_traces_pass_their_own_snapshot(self) -> None:
        for seed in range(120):
            chance = random.Random(seed)  # noqa: S311
            recorded = [trace(f"r{number}", random_calls(chance)) for number in range(chance.randint(1, 4))]
            percent = chance.choice([None, 0, 7, 1000])
            with self.subTest(seed=seed):
                self.put("traces.json", to_bytes(recorded))
                words = [] if percent is None else ["--budget-headroom", str(percent)]
                expected = self.snapshot("traces.json", *words).stdout
                self.assertEqual("pass", self.program.audit(expected, to_bytes(recorded))["verdict"])


def random_calls(chance: random.Random) -> List[Json]:
    calls = []
    for number in range(chance.randint(0, 6)):
        measured: Dict[str, Any] = {}
        if chance.random() < 0.8:
            measured["cost_usd"] = f"{chance.randint(0, 999999999)}.{chance.randint(0, 999999):06}"
        if chance.random() < 0.8:
            measured["duration_ms"] = chance.randint(0, 3_600_000)
        calls.append(call(f"c{number}", chance.choice("abc"), chance.choice(["succeeded", "failed"]), **measured))
    return calls


class SnapshotCommand(SnapshotCase):
    def test_its_layout_is_ready_to_be_edited(self) -> None:
        self.put("traces.json", traces(trace(calls=[call(cost_usd="0.02", duration_ms=4)])))
        done = self.snapshot("traces.json", "--budget-headroom", "50")
        wanted = """\
{
  "cases": [
    {
      "id": "r1",
      "sequence": ["a"],
      "allowed_tools": ["a"],
      "max_cost_usd": "0.03",
      "max_total_tool_ms": 6
    }
  ]
}
"""
        self.assertEqual((0, wanted.encode(), b""), (done.returncode, done.stdout, done.stderr))

    def test_from_standard_input_into_a_file(self) -> None:
        done = self.snapshot("-", "--output", "made.json", input=traces())
        self.assertEqual((0, b"", b""), (done.returncode, done.stdout, done.stderr))
        self.assert_report(self.run_words("--expected", "made.json", "--observed", "traces.json", "--fail-on-errors"))

    def test_the_note_on_a_cost_beyond_money_is_no_command(self) -> None:
        rich = [call(cost_usd="999999999.999999")]
        self.put("traces.json", traces(*(trace(f"::error::{number}", rich) for number in range(30))))
        done = self.snapshot("traces.json", "--budget-headroom", "1")
        lines = done.stderr.decode("ascii").splitlines()
        self.assertEqual((0, 1), (done.returncode, len(lines)))
        self.assertTrue(lines[0].startswith("agent_trace_audit: note: max_cost_usd is left out for ::error::0, "))
        self.assertIn("24 more", lines[0])

    def test_a_pending_call_is_refused_with_its_place(self) -> None:
        calls = [call("c1"), call("c2", status="pending")]
        self.put("traces.json", traces(trace(), trace("r2", calls)))
        self.assert_no_statement(self.snapshot("traces.json"), "traces.json: $[1].calls[1].status: ", "pending")

    def test_every_pending_call_is_named(self) -> None:
        calls = numbered(*[call(status="pending")] * 22)
        self.put("traces.json", traces(trace(calls=calls)))
        lines = self.snapshot("traces.json").stderr.decode().splitlines()
        self.assertEqual((21, "and 2 more"), (len(lines), lines[-1]))

    def test_nothing_to_expect_is_refused(self) -> None:
        self.put("traces.json", b"[]")
        self.assert_no_statement(self.snapshot("traces.json"), "traces.json: $: ", "at least one trace")

    def test_bad_traces_are_refused(self) -> None:
        self.put("traces.json", b'[{"id": 1}]')
        self.assert_no_statement(self.snapshot("traces.json"), '$[0]: missing key "calls"', "$[0].id: ")

    def test_a_result_beyond_the_bounds_is_refused(self) -> None:
        names = [f"{letter}" * 128 for letter in "abcdefghij"]
        calls = numbered(*(call(tool=tool) for tool in names))
        recorded = traces(*(trace(f"r{number}", calls) for number in range(200)))
        self.assertLess(len(recorded), 524_288)
        self.put("traces.json", recorded)
        self.assert_no_statement(self.snapshot("traces.json"), "524,288 bytes", "traces.json")
        self.assertEqual(["traces.json", "workflows.json"], self.names())

    def test_the_traces_are_never_the_target(self) -> None:
        before = self.observed.read_bytes()
        self.assert_no_statement(self.snapshot("traces.json", "--output", "./traces.json"), "--output", "input")
        self.assertEqual(before, self.observed.read_bytes())

    def test_wrong_usage(self) -> None:
        for words in (
            [],
            [""],
            ["traces.json", "more.json"],
            ["traces.json", "--expected", "workflows.json"],
            ["traces.json", "--output", "a", "--output", "b"],
            *(
                ["traces.json", "--budget-headroom", text]
                for text in ("", "-1", "1001", "5%", "1.0", "+1", " 1", "1e2")
            ),
            ["traces.json", "--budget-headroom"],
        ):
            with self.subTest(words):
                done = self.snapshot(*words)
                self.assert_no_statement(done)
                self.assertEqual(1, done.stderr.count(b"\n"))

    def test_help(self) -> None:
        done = self.snapshot("--help")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        self.assertIn(b"snapshot FILE [--output FILE] [--budget-headroom PERCENT]", done.stdout)
        self.assertIn(b"snapshot", self.run_words("--help").stdout)

    def test_a_full_disk_is_named(self) -> None:
        with open("/dev/full", "wb") as full:
            done = self.snapshot("traces.json", stdout=full)
        self.assert_no_statement(done, "expected workflows", "standard output")
