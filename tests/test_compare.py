"""compare: what got worse, better or otherwise different between two reports."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .support import EXPECTED, FAILING, OBSERVED, PREFIX, PROGRAM, ROOT, VECTORS, Case, Json, case, laid_out, to_bytes

PASSING_REPORT, FAILING_REPORT = PROGRAM.audit(EXPECTED, OBSERVED), PROGRAM.audit(EXPECTED, FAILING)
EXAMPLE = PROGRAM.audit(*[(ROOT / f"{name}.example.json").read_bytes() for name in ("workflows", "traces")])
# With a run of its own, and something of everything that a report may hold.
SMALL = PROGRAM.audit(
    to_bytes({"cases": [case(max_failing_runs=1, group="g", max_cost_usd="1", max_calls={"a": 1})]}),
    to_bytes([{"id": "run", "case": "r1", "calls": [{"id": "c", "tool": "b", "status": "failed"}]}]),
)
SAME = "the exit status is 0 all the same: --fail-on-regressions was not given"


def vectors(name: str) -> Any:
    return json.loads((VECTORS / "compare" / f"{name}.json").read_text("utf-8"))


def report_of(cases: Sequence[Json], recorded: Sequence[Json]) -> Json:
    return PROGRAM.audit(to_bytes({"cases": cases}), to_bytes(recorded))


class CompareCase(Case):
    def setUp(self) -> None:
        super().setUp()
        self.put_reports(PASSING_REPORT, FAILING_REPORT)

    def put_reports(self, before: Any, after: Any) -> None:
        self.put("before.json", to_bytes(before))
        self.put("after.json", to_bytes(after))

    def compare(self, *options: str, before: str = "before.json", after: str = "after.json", **more: Any) -> Any:
        return self.run_words("compare", before, after, *options, **more)

    def compared(self, before: Json, after: Json) -> Json:
        """The comparison of two reports."""
        self.put_reports(before, after)
        done = self.compare()
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        comparison: Json = json.loads(done.stdout)
        return comparison

    def problems_of(self, report: Any) -> List[str]:
        """What the later report is refused for, and nothing is said of the earlier."""
        self.put_reports(PASSING_REPORT, report)
        done = self.compare("--summary", "--fail-on-regressions")
        self.assert_no_statement(done)
        lines = done.stderr.decode("ascii").splitlines()
        start = PREFIX + "after.json: "
        self.assertEqual([], [line for line in lines if not line.startswith(start)])
        return [line[len(start) :] for line in lines]


class Changes(CompareCase):
    def test_every_kind_its_order_and_its_words(self) -> None:
        for name, vector in vectors("changes").items():
            with self.subTest(name):
                self.put_reports(report_of(*vector["before"]), report_of(*vector["after"]))
                done = self.compare("--summary", "--fail-on-regressions")
                comparison = json.loads(done.stdout)
                for key in set(vector) - {"before", "after", "lines"}:
                    self.assertEqual(vector[key], comparison[key], key)
                self.assertEqual(list(vector["totals"]), list(comparison["totals"]))
                self.assertEqual(vector["lines"], done.stderr.decode("ascii").splitlines())
                self.assertEqual({"pass": 0, "fail": 2}[vector["verdict"]], done.returncode)

    def test_the_whole_comparison(self) -> None:
        before = (self.directory / "before.json").read_bytes()
        after = (self.directory / "after.json").read_bytes()
        wanted = f"""\
{{
  "comparison_version": 1,
  "checker": {json.dumps(PASSING_REPORT["checker"])},
  "before": {{"bytes": {len(before)}, "sha256": "{hashlib.sha256(before).hexdigest()}", "verdict": "pass", \
"cases": 1, "passed": 1}},
  "after": {{"bytes": {len(after)}, "sha256": "{hashlib.sha256(after).hexdigest()}", "verdict": "fail", \
"cases": 1, "passed": 0}},
  "verdict": "fail",
  "totals": {{"unchanged": 0, "changed": 0, "fixed": 0, "regressed": 1, "added": 0, "removed": 0}},
  "cost_usd": {{"before": null, "after": null}},
  "tool_ms": {{"before": null, "after": null}},
  "changes": [
    {{
      "case": "r1",
      "change": "regressed",
      "before": {{"verdict": "pass", "not_passing": [], "cost_usd": null, "tool_ms": null}},
      "after": {{"verdict": "fail", "not_passing": ["sequence", "max_failed_calls"], "cost_usd": null, "tool_ms": null}}
    }}
  ]
}}
"""
        for _ in range(2):
            self.assertEqual(wanted, self.compare().stdout.decode("ascii"))

    def test_a_report_beside_itself(self) -> None:
        for report in (PASSING_REPORT, FAILING_REPORT, EXAMPLE):
            comparison = self.compared(report, report)
            totals = {**dict.fromkeys(comparison["totals"], 0), "unchanged": len(report["cases"])}
            self.assertEqual(("pass", totals, []), tuple(comparison[key] for key in ("verdict", "totals", "changes")))
        self.assertEqual(0, self.compare("--fail-on-regressions", after="before.json").returncode)

    def test_the_order_of_cases_alone_changes_nothing(self) -> None:
        turned = {**EXAMPLE, "cases": EXAMPLE["cases"][::-1]}
        self.assertEqual([], self.compared(EXAMPLE, turned)["changes"])

    def test_known_totals_are_null_where_a_call_is_not_measured(self) -> None:
        for key, known in (("cost_usd", "12345678901234.000001"), ("tool_ms", 90_000_000_000)):
            for unknown, wanted in ((0, known), (1, None), (20_000, None)):
                report = copy.deepcopy(EXAMPLE)
                report["cases"][0][key] = report["totals"][key] = {"known_total": known, "unknown_calls": unknown}
                report["cases"][0]["verdict"] = "fail"
                with self.subTest(key, unknown=unknown):
                    comparison = self.compared(EXAMPLE, report)
                    self.assertEqual(wanted, comparison["changes"][0]["after"][key])
                    self.assertEqual({"before": None, "after": wanted}, comparison[key])


class Verdicts(CompareCase):
    def test_exit_status_and_words(self) -> None:
        regressed = ["REGRESSED r1: sequence, max_failed_calls"]
        regressed.append("1 regressed, 0 removed, 0 added, 0 changed, 0 fixed, 0 unchanged; " + ANEW)
        fixed = ["FIXED r1: sequence, max_failed_calls"]
        fixed.append("0 regressed, 0 removed, 0 added, 0 changed, 1 fixed, 0 unchanged")
        gate, summary = "--fail-on-regressions", "--summary"
        one, other = ("before.json", "after.json"), ("after.json", "before.json")
        table: Sequence[Tuple[Tuple[str, str], Sequence[str], int, Sequence[str]]] = (
            (one, [], 0, []),
            (one, [summary], 0, [*regressed, SAME]),
            (one, [gate], 2, regressed),
            (one, [gate, summary], 2, regressed),
            (other, [], 0, []),
            (other, [summary], 0, fixed),
            (other, [gate], 0, []),
            (other, [gate, summary], 0, fixed),
        )
        for (before, after), options, status, lines in table:
            with self.subTest(before=before, options=options):
                done = self.compare(*options, before=before, after=after)
                self.assertEqual((status, list(lines)), (done.returncode, done.stderr.decode("ascii").splitlines()))
                self.assertEqual("fail" if before == "before.json" else "pass", json.loads(done.stdout)["verdict"])

    def test_what_fails_and_what_does_not(self) -> None:
        one = PROGRAM.audit(EXPECTED, OBSERVED)["cases"][0]
        bad = {**PROGRAM.audit(EXPECTED, FAILING)["cases"][0], "id": "bad"}
        other = {**one, "id": "r2"}
        for name, before, after, verdict in (
            ("a passing case is removed", ("fail", [one, other]), ("fail", [one]), "fail"),
            ("a failing case is removed", ("fail", [one, bad]), ("pass", [one]), "fail"),
            ("a case is renamed", ("fail", [one]), ("fail", [other]), "fail"),
            ("a case is added", ("pass", [one]), ("pass", [one, other]), "pass"),
            ("a failing case is added", ("fail", [one]), ("fail", [one, bad]), "pass"),
            (
                "one is fixed, one regressed",
                ("fail", [bad, other]),
                ("fail", [{**one, "id": "bad"}, {**bad, "id": "r2"}]),
                "fail",
            ),
            ("only the report fails anew", ("pass", [one]), ("fail", [one]), "fail"),
            ("it failed before", ("fail", [one]), ("fail", [one]), "pass"),
            ("only the report is better", ("fail", [one]), ("pass", [one]), "pass"),
        ):
            with self.subTest(name):
                reports = [{**EXAMPLE, "verdict": word, "cases": cases} for word, cases in (before, after)]
                self.assertEqual(verdict, self.compared(*reports)["verdict"])


ANEW = "the report passed before and fails now"


class Refusals(CompareCase):
    def test_each_compared_value_by_its_path(self) -> None:
        for vector in vectors("refusals"):
            with self.subTest(at=vector["at"], value=vector.get("value", "(left out)")):
                self.assertEqual(vector["problems"], self.problems_of(edited(EXAMPLE, **vector)))

    def test_the_keys_that_are_compared_and_no_others(self) -> None:
        """Whatever key is left out: the report is refused at its place, or the comparison is as it was."""
        wanted, met = without_input(self.compared(SMALL, SMALL)), set()
        for path, _ in places(SMALL):
            if not isinstance(path[-1], str):
                continue
            name = ".".join("*" if isinstance(step, int) else step for step in path)
            with self.subTest(name):
                self.put("after.json", to_bytes(edited(SMALL, path)))
                done = self.compare()
                if name in COMPARED:
                    met.add(name)
                    self.assert_no_statement(done, f"after.json: {spelled(path[:-1])}: ", f'"{path[-1]}"')
                else:
                    self.assertEqual(0, done.returncode)
                    self.assertEqual(wanted, without_input(json.loads(done.stdout)))
        self.assertEqual(COMPARED, met)

    def test_the_problems_of_both_are_told_and_at_most_twenty(self) -> None:
        few = {"report_version": 1, "verdict": "pass", "totals": EXAMPLE["totals"], "cases": [1, 2]}
        many = {**few, "cases": [1] * 30}
        self.put_reports(few, many)
        done = self.compare()
        self.assert_no_statement(done)
        lines = done.stderr.decode("ascii").splitlines()
        must = "must be an object with the keys: id, verdict, checks, cost_usd, tool_ms"
        self.assertEqual([f"{PREFIX}before.json: $.cases[{index}]: {must}" for index in range(2)], lines[:2])
        self.assertEqual([f"{PREFIX}after.json: $.cases[{index}]: {must}" for index in range(18)], lines[2:20])
        self.assertEqual(["and 12 more"], lines[20:])

    def test_strict_reading(self) -> None:
        text = json.dumps(PASSING_REPORT)
        for data, words in (
            (b"", ":1:1: not valid JSON: the file is empty"),
            (text[:-1].encode(), "not valid JSON: the document ends too early"),
            (text.encode("utf-16"), ": not UTF-8: it looks like UTF-16"),
            (b"\xff" + text.encode(), ": not UTF-8: byte 1"),
            ((text + text).encode(), "expected nothing after the document; JSON Lines, or another tool's trace file"),
            (text.replace("[", "[NaN, ", 1).encode(), "NaN and Infinity are no JSON numbers"),
            (
                text.replace('"cases": 1', '"cases": ' + "1" * 101, 1).encode(),
                "a number may have at most 100 characters",
            ),
            (text.replace('"verdict"', '"report_version"', 1).encode(), ': $: duplicate key "report_version"'),
            (
                text.replace('"limitations": [', '"limitations": ["\\ud800", ').encode(),
                "$.limitations[0]: holds an unpaired",
            ),
        ):
            with self.subTest(words):
                self.put("after.json", data)
                self.assert_no_statement(self.compare(), PREFIX + "after.json", words)
        self.put("after.json", b"\xef\xbb\xbf" + text.encode())
        self.assertEqual(0, self.compare().returncode)

    def test_bounds(self) -> None:
        def deep(levels: int) -> bytes:
            return filled(b"[" * levels + b"]" * levels)

        def filled(more: bytes) -> bytes:
            text = to_bytes({**PASSING_REPORT, "limitations": 0})
            return text.replace(b'"limitations": 0', b'"limitations": ' + more)

        # All values but the entries of the array that is filled.
        own = sum(1 for _ in places(PASSING_REPORT)) + 1 - len(PASSING_REPORT["limitations"])
        plain = to_bytes(PASSING_REPORT)
        for fits, beyond, words in (
            (deep(63), deep(64), "arrays and objects nested deeper than 64 levels"),
            (plain.ljust(16_777_216), plain.ljust(16_777_217), "larger than 16,777,216 bytes (16 MiB)"),
            (
                filled(b"[" + b"null," * (999_999 - own) + b"null]"),
                filled(b"[" + b"null," * (1_000_000 - own) + b"null]"),
                "holds more than 1,000,000 JSON values (nodes)",
            ),
        ):
            with self.subTest(words):
                self.put("after.json", fits)
                self.assertEqual(0, self.compare().returncode)
                self.put("after.json", beyond)
                done = self.compare()
                self.assert_no_statement(done)
                self.assertEqual(f"{PREFIX}after.json: {words}\n".encode(), done.stderr)

    def test_as_many_cases_as_a_report_has(self) -> None:
        one = PASSING_REPORT["cases"][0]
        cases = [{**one, "id": f"s{number}"} for number in range(501)]
        self.assertEqual(
            500, self.compared(PASSING_REPORT, {**PASSING_REPORT, "cases": cases[:500]})["totals"]["added"]
        )
        self.assertEqual(["$.cases: must be an array of 1 to 500 cases"], self.problems_of({**EXAMPLE, "cases": cases}))


USED = [f"{key}{member}" for key in ("cost_usd", "tool_ms") for member in ("", ".known_total", ".unknown_calls")]
COMPARED = {
    *("report_version", "verdict", "totals", "cases", "cases.*.id", "cases.*.verdict", "cases.*.checks"),
    *("cases.*.checks.*.rule", "cases.*.checks.*.verdict"),
    *(f"totals.{name}" for name in USED),
    *(f"cases.*.{name}" for name in USED),
}


def edited(report: Json, at: Sequence[Any], **more: Any) -> Any:
    """A report with another value at a place or, without `value`, nothing there."""
    if not at:
        return more["value"]
    changed = copy.deepcopy(report)
    around: Any = changed
    for step in at[:-1]:
        around = around[step]
    if "value" in more:
        around[at[-1]] = more["value"]
    else:
        del around[at[-1]]
    return changed


def places(value: Any, path: Sequence[Any] = ()) -> Iterator[Tuple[List[Any], Any]]:
    """Every value inside a document, with its path."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield [*path, step], member
        yield from places(member, [*path, step])


def spelled(path: Sequence[Any]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def without_input(comparison: Json) -> Json:
    """A comparison without the size and the SHA-256 of what was compared."""
    sides = {side: {**comparison[side], "bytes": 0, "sha256": ""} for side in ("before", "after")}
    return {**comparison, **sides}


class NotLookedAt(CompareCase):
    def test_what_is_not_compared_may_be_anything_or_missing(self) -> None:
        def bare(report: Json, **more: Any) -> Json:
            used = {key: {"known_total": report["totals"][key]["known_total"]} for key in ("cost_usd", "tool_ms")}
            for key, known in used.items():
                known["unknown_calls"] = report["totals"][key]["unknown_calls"]
            cases = [
                {
                    **{key: one[key] for key in ("id", "verdict", "cost_usd", "tool_ms")},
                    "checks": [{**more, "rule": check["rule"], "verdict": check["verdict"]} for check in one["checks"]],
                    **more,
                }
                for one in report["cases"]
            ]
            return {
                "report_version": 1,
                "verdict": report["verdict"],
                "totals": {**used, **more},
                "cases": cases,
                **more,
            }

        better = copy.deepcopy(EXAMPLE)
        better["cases"][0]["verdict"] = "fail"
        wanted = without_input(self.compared(EXAMPLE, better))
        self.assertEqual(1, wanted["totals"]["regressed"])
        for more in ({}, {"group": 5, "message": [], "checker": None, "a new key": {"": "##[x"}}):
            with self.subTest(more=more):
                found = self.compared(bare(EXAMPLE, **more), bare(better, **more))
                self.assertEqual(wanted, without_input(found))

    def test_another_version_of_the_program(self) -> None:
        other = {**PASSING_REPORT, "checker": {"name": "agent_trace_audit", "version": "0.9.0"}}
        self.assertEqual(PASSING_REPORT["checker"], self.compared(other, other)["checker"])


PRIVATE = "Jane Doe, zq4111"


class Damaged(CompareCase):
    def test_no_value_is_ever_repeated(self) -> None:
        self.put_reports(SMALL, SMALL)
        seen = set()
        for path, value in places(SMALL):
            planted = {"id": PRIVATE, "rule": [PRIVATE]} if isinstance(value, (dict, list)) else PRIVATE
            with self.subTest(path=path):
                self.put("after.json", to_bytes(edited(SMALL, path, value=planted)))
                done = self.compare("--summary")
                seen.add(done.returncode)
                for word in (b"Jane", b"zq4111"):
                    self.assertNotIn(word, done.stdout + done.stderr)
                if done.returncode:
                    self.assert_no_statement(done, PREFIX + "after.json: $")
        self.assertEqual({0, 1}, seen)

    def test_truncated(self) -> None:
        whole = laid_out(EXAMPLE)
        for length in range(0, len(whole) - 1, 131):
            self.put("after.json", whole[:length])
            self.assert_no_statement(self.compare(), "after.json:", ": not valid JSON: ")

    def test_flipped_bits(self) -> None:
        whole, chance = laid_out(EXAMPLE), random.Random(1)  # noqa: S311
        self.put("before.json", whole)
        statuses = []
        for _ in range(50):
            data = bytearray(whole)
            for _ in range(chance.choice((1, 1, 1, 5))):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            self.put("after.json", bytes(data))
            done = self.compare("--summary")
            statuses.append(done.returncode)
            if done.returncode:
                self.assert_no_statement(done, PREFIX + "after.json:")
            else:
                self.assertEqual(1, json.loads(done.stdout)["comparison_version"])
                self.assertTrue(done.stdout.isascii() and done.stderr.isascii())
        self.assertEqual({0, 1}, set(statuses))


class Files(CompareCase):
    def test_standard_input_serves_one(self) -> None:
        wanted = self.compare().stdout
        for place, name in (("before", "before.json"), ("after", "after.json")):
            with self.subTest(place):
                done = self.compare(input=(self.directory / name).read_bytes(), **{place: "-"})
                self.assertEqual((0, wanted), (done.returncode, done.stdout))
        done = self.compare(before="-", after="-", input=b"{}")
        self.assert_no_statement(done, "standard input can serve BEFORE or AFTER, not both")
        self.assert_no_statement(self.compare(after="-", input=b"[]"), PREFIX + "-: $: must be a report")

    def test_output_takes_what_standard_output_would(self) -> None:
        wanted = self.compare().stdout
        done = self.compare("--output", "made.json", "--fail-on-regressions")
        self.assertEqual((2, b""), (done.returncode, done.stdout))
        self.assertEqual(wanted, (self.directory / "made.json").read_bytes())
        self.assertEqual(wanted, self.compare("--output", "-").stdout)

    def test_an_input_is_no_output(self) -> None:
        os.symlink("after.json", str(self.directory / "linked.json"))
        os.link(str(self.directory / "before.json"), str(self.directory / "hard.json"))
        names, kept = self.names(), (self.directory / "after.json").read_bytes()
        for target in ("before.json", "after.json", "./after.json", "linked.json", "hard.json"):
            with self.subTest(target):
                done = self.compare("--output", target)
                self.assert_no_statement(done, "--output names an input; name a file that is not read")
        self.assertEqual((names, kept), (self.names(), (self.directory / "after.json").read_bytes()))

    def test_a_refusal_writes_nothing(self) -> None:
        self.put("after.json", b"{}")
        self.put("made.json", b"old")
        self.assert_no_statement(self.compare("--output", "made.json"))
        self.assertEqual(b"old", (self.directory / "made.json").read_bytes())

    def test_unreadable(self) -> None:
        done = self.compare(before="none.json", after=".")
        self.assert_no_statement(done, "none.json: cannot be read: ", ".: cannot be read: ")

    def test_usage(self) -> None:
        for words, message in (
            ([], "BEFORE is required"),
            (["before.json"], "AFTER is required"),
            (["before.json", "after.json", "third.json"], "unrecognized argument: third.json"),
            (["before.json", "after.json", "--fail-on-errors"], "unrecognized argument: --fail-on-errors"),
            (["before.json", "after.json", "--summary", "--summary"], "--summary may be given only once"),
            (["before.json", "after.json", "--output", ""], "--output needs a value"),
            (["before.json", ""], "AFTER needs a value"),
        ):
            with self.subTest(words):
                self.assert_no_statement(self.run_words("compare", *words), message)

    def test_help(self) -> None:
        done = self.run_words("compare", "--help")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        for word in (b"BEFORE", b"AFTER", b"--fail-on-regressions", b"--output FILE", b"--summary"):
            self.assertIn(word, done.stdout)


class Agreement(CompareCase):
    def test_with_a_second_comparison_on_random_reports(self) -> None:
        chance = random.Random(14)  # noqa: S311
        reports = [random_report(chance) for _ in range(30)]
        kinds, verdicts = set(), set()
        for number in range(40):
            before, after = chance.choice(reports), chance.choice(reports)
            with self.subTest(number=number):
                wanted, lines = slowly_compared(before, after)
                self.put_reports(before, after)
                done = self.compare("--summary", "--fail-on-regressions")
                comparison = json.loads(done.stdout)
                self.assertEqual(wanted, {key: comparison[key] for key in wanted})
                self.assertEqual(lines, done.stderr.decode("ascii").splitlines()[:-1])
                self.assertEqual(2 if wanted["verdict"] == "fail" else 0, done.returncode)
            kinds |= {change["change"] for change in wanted["changes"]}
            verdicts.add(wanted["verdict"])
        self.assertEqual({"regressed", "removed", "added", "changed", "fixed"}, kinds)
        self.assertEqual({"pass", "fail"}, verdicts)


def random_report(chance: random.Random) -> Json:
    """A report about some of a few cases, in any order, so that two of them have much in common."""
    ids = chance.sample(["r1", "r2", "r3", "r4"], chance.randint(1, 4))
    cases, recorded = [], []
    for id in ids:
        more: Json = {"max_cost_usd": "1"} if chance.random() < 0.3 else {}
        if chance.random() < 0.2:
            more["max_failing_runs"] = chance.randint(0, 1)
        cases.append(case(id, chance.choice([["a"], ["a"], ["a", "b"], []]), chance.choice(["a", "ab"]), **more))
        for run in range(chance.choice([0, 1, 1, 1, 1, 2]) if "max_failing_runs" in more else chance.randint(0, 4) > 0):
            named = {"case": id} if "max_failing_runs" in more else {}
            name = f"{id}-{run}" if named else id
            recorded.append(
                {"id": name, **named, "calls": [random_call(chance, n) for n in range(chance.randint(0, 2))]}
            )
    if chance.random() < 0.2:
        recorded.append({"id": "unknown", "calls": []})
    return report_of(cases, recorded)


def random_call(chance: random.Random, number: int) -> Json:
    made: Json = {
        "id": f"c{number}",
        "tool": chance.choice("aaab"),
        "status": chance.choice(["succeeded"] * 4 + ["failed", "pending"]),
    }
    if chance.random() < 0.8:
        made["cost_usd"] = chance.choice(["0.5", "0.250", "2"])
    if chance.random() < 0.8:
        made["duration_ms"] = chance.randint(0, 99)
    return made


def slowly_compared(before: Json, after: Json) -> Tuple[Json, List[str]]:
    """A second comparison, from the contract alone: every change is looked for in its turn. No counts line."""
    changes: List[Json] = []
    for kind in ("regressed", "removed", "added", "changed", "fixed"):
        for one in before["cases"] if kind == "removed" else after["cases"]:
            sides = [found(report, one["id"]) for report in (before, after)]
            if kind_of(*sides) == kind:
                shown = dict(zip(("before", "after"), map(side_of, sides)))
                changes.append({"case": one["id"], "change": kind, **shown})
    totals: Dict[str, int] = {}
    ids = {one["id"] for report in (before, after) for one in report["cases"]}
    kinds = [kind_of(found(before, id), found(after, id)) for id in ids]
    for kind in ("unchanged", "changed", "fixed", "regressed", "added", "removed"):
        totals[kind] = kinds.count(kind)
    worse = bool({"regressed", "removed"} & set(kinds)) or (before["verdict"], after["verdict"]) == ("pass", "fail")
    lines = []
    for change in changes:
        of = change["before"] if change["change"] in ("removed", "fixed") else change["after"]
        lines.append(f"{change['change'].upper()} {change['case']}: {', '.join(of['not_passing']) or 'passed'}")
    comparison: Json = {"verdict": "fail" if worse else "pass", "totals": totals, "changes": changes}
    for key in ("cost_usd", "tool_ms"):
        comparison[key] = {"before": total(before, key), "after": total(after, key)}
    for name, report in (("before", before), ("after", after)):
        data = to_bytes(report)
        comparison[name] = {
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "verdict": report["verdict"],
            "cases": report["totals"]["cases"],
            "passed": report["totals"]["passed"],
        }
    return comparison, lines


def found(report: Json, id: str) -> Optional[Json]:
    return next((one for one in report["cases"] if one["id"] == id), None)


def kind_of(before: Optional[Json], after: Optional[Json]) -> str:
    if not before:
        return "added"
    if not after:
        return "removed"
    words = before["verdict"], after["verdict"]
    if words[0] == words[1]:
        return "unchanged" if not_passing(before) == not_passing(after) else "changed"
    return "fixed" if words[1] == "pass" else "regressed"


def not_passing(one: Json) -> List[str]:
    return [check["rule"] for check in one["checks"] if check["verdict"] not in ("pass", "not_checked")]


def side_of(one: Optional[Json]) -> Optional[Json]:
    if one is None:
        return None
    used = {key: None if one[key]["unknown_calls"] else one[key]["known_total"] for key in ("cost_usd", "tool_ms")}
    return {"verdict": one["verdict"], "not_passing": not_passing(one), **used}


def total(report: Json, key: str) -> Any:
    """Added up anew from the recorded calls of all cases; null where one of them is not measured."""
    calls = [call for one in report["cases"] for run in one.get("runs", [one]) for call in run["recorded_calls"]]
    name = "cost_usd" if key == "cost_usd" else "duration_ms"
    if any(name not in call or call["status"] == "pending" for call in calls):
        return None
    if name == "duration_ms":
        return sum(call[name] for call in calls)
    places = max([len(call[name].partition(".")[2]) for call in calls], default=0)
    units = sum(
        int(whole + tail.ljust(places, "0")) for whole, _, tail in (call[name].partition(".") for call in calls)
    )
    digits = str(units).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits
