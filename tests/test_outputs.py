"""The JUnit XML and the Markdown summary: they agree with the report, and no group can break out of them."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple
from xml.etree import ElementTree

from .support import (
    EXPECTED,
    FAILING,
    OBSERVED,
    PAIR,
    ROOT,
    Case,
    Json,
    ProcessCase,
    call,
    case,
    to_bytes,
    trace,
    traces,
    workflows,
)

HOSTILE = [
    "plain",
    "",
    " ",
    "\u0000\u0001\u0008\u000b\u000c\u001b[31m\u007f\u0085",
    "\ufffe\uffff",
    "]]><failure/>",
    "\U0001f600 emoji",
    "quotes \" and ' and &amp; <b>",
    "line\r\nbreak\u2028and\u2029more",
    "| cell | cell |",
    "`code` ``more`` \\`",
    "\\",
    "\\|",
    "@team #12 GH-12 !7 user@example.com",
    "[link](https://example.com) ![image](https://example.com/a.png)",
    "https://example.com www.example.com",
    "<img src=x onerror=alert(1)><!-- -->",
    "**bold** _it_ ~~no~~ $x$ :smile:",
    "\n## heading\n\n- list\n",
    "##vso[task.complete result=Succeeded]x ##[error]x",
    "\n::error::x",
    "\u202eright to left",
    "<br>",
    "</details>",
    "0123456789abcdef0123456789abcdef01234567",
]


Pair = Tuple[bytes, bytes]


def hostile_pair(status: str = "failed") -> Pair:
    """Every group a different injection, on cases that fail, or pass."""
    cases = [case(f"r{number}", group=group) for number, group in enumerate(HOSTILE)]
    recorded = [trace(f"r{number}", [call(status=status)]) for number in range(len(HOSTILE))]
    return workflows(*cases), traces(*recorded)


def example_pair() -> Pair:
    expected, observed = ((ROOT / f"{name}.example.json").read_bytes() for name in ("workflows", "traces"))
    return expected, observed


class OutputCase(Case):
    def made(self, pair: Pair) -> Tuple[Json, bytes, bytes]:
        """The report of a pair, its JUnit XML and its Markdown."""
        self.put("workflows.json", pair[0])
        self.put("traces.json", pair[1])
        done = self.check("--junit-xml", "made.xml", "--markdown", "made.md")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        paths = [self.directory / name for name in ("made.xml", "made.md")]
        xml, text = (path.read_bytes() for path in paths)
        for path in paths:
            path.unlink()
        return json.loads(done.stdout), xml, text

    def xml(self, pair: Pair) -> bytes:
        return self.made(pair)[1]

    def markdown(self, pair: Pair) -> str:
        return self.made(pair)[2].decode("ascii")


def cases_in(xml: bytes) -> List[ElementTree.Element]:
    return list(ElementTree.fromstring(xml).iter("testcase"))  # noqa: S314


def counts(element: ElementTree.Element) -> Tuple[int, int, int, int]:
    tests, failures, errors, skipped = (
        int(element.get(key, "-1")) for key in ("tests", "failures", "errors", "skipped")
    )
    return tests, failures, errors, skipped


class JUnit(OutputCase):
    def test_it_agrees_with_the_report(self) -> None:
        for pair in (example_pair(), hostile_pair(), hostile_pair("succeeded")):
            report, xml, _ = self.made(pair)
            root = ElementTree.fromstring(xml)  # noqa: S314
            failed = report["totals"]["failed"] + report["totals"]["unknown_cases"]
            total = report["totals"]["cases"] + report["totals"]["unknown_cases"]
            self.assertEqual("testsuites", root.tag)
            for element in (root, root[0]):
                self.assertEqual((total, failed, 0, 0), counts(element))
            self.assertEqual(total, len(root[0].findall("testcase")))
            self.assertEqual(failed, len(root[0].findall("testcase/failure")))
            names = [one["id"] for one in report["cases"] + report["unknown_cases"]]
            self.assertEqual(names, [element.get("name") for element in cases_in(xml)])

    def test_a_failure_holds_every_failing_check(self) -> None:
        report, xml, _ = self.made(example_pair())
        elements = cases_in(xml)
        for reported, element in zip(report["cases"], elements):
            wrong = [check for check in reported["checks"] if "message" in check]
            failures = element.findall("failure")
            self.assertEqual(1 if wrong else 0, len(failures))
            for check in wrong:
                for text in (failures[0].text or "", failures[0].get("message", "")):
                    self.assertIn(check["message"], text)
                    self.assertIn(check["rule"], text)

    def test_the_unknown_case_is_a_failing_test(self) -> None:
        element = cases_in(self.xml(example_pair()))[-1]
        self.assertEqual("refund-2099", element.get("name"))
        self.assertIn("no case expects it", element.findall("failure")[0].get("message", ""))

    def test_the_group_is_the_class_name(self) -> None:
        xml = self.xml((workflows(case("r1", group="Desk"), case("r2"), case("r3", group="")), b"[]"))
        names = [element.get("classname") for element in cases_in(xml)]
        self.assertEqual(["Desk", "agent_trace_audit", ""], names)

    def test_what_xml_can_hold_comes_back_as_it_was(self) -> None:
        for group, element in zip(HOSTILE, cases_in(self.xml(hostile_pair()))):
            legal = re.fullmatch("[\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*", group)
            if legal:
                self.assertEqual(group, element.get("classname"))
            else:
                self.assertIn("\\", element.get("classname", ""))

    def test_it_is_plain_ascii_without_commands_or_times(self) -> None:
        xml = self.xml(hostile_pair()).decode("ascii")
        self.assertRegex(xml, r"\A[\n\x20-\x7e]*\Z")
        self.assertNotIn("##", xml)
        self.assertFalse([line for line in xml.splitlines() if line.lstrip().startswith("::")])
        self.assertFalse({"time", "timestamp"} & set(re.findall(r" (\w+)=", xml)))

    def test_one_green_case_is_a_test(self) -> None:
        xml = self.xml((workflows(), traces()))
        self.assertEqual((1, 0, 0, 0), counts(ElementTree.fromstring(xml)))  # noqa: S314


def rows_of(text: str) -> List[List[str]]:
    """The cells of every table row, split where GitHub splits them: at each bar that no backslash escapes."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def outside_code(text: str) -> str:
    """The text without its code spans, which hold no backtick."""
    return re.sub(r"`[^`\n]*`", "", text)


def long_pair(failing: int, passing: int) -> Pair:
    """Cases whose failures say as much as the inputs have room for, and cases that pass."""
    steps = [letter * 124 for letter in "stu"]
    calls = [call(f"c{number}", letter * 62) for number, letter in enumerate("abcdefg")]
    cases = [case(f"f{number}", steps, steps, match="permutation") for number in range(failing)]
    cases += [case(f"p{number}" + "x" * 120, group="\u00e9" * 70) for number in range(passing)]
    recorded = [trace(one["id"], calls if number < failing else None) for number, one in enumerate(cases)]
    return to_bytes({"cases": cases}), to_bytes(recorded)


def shown_and_more(text: str) -> Tuple[int, int]:
    """The rows of a summary, and how many it says that it leaves out."""
    more = re.findall(r"^and ([\d,]+) more$", text, re.MULTILINE)
    return len(re.findall(r"^\| (?:FAIL|PASS) \| ", text, re.MULTILINE)), sum(int(n.replace(",", "")) for n in more)


class Markdown(OutputCase):
    def test_the_first_line_is_the_verdict_with_its_counts(self) -> None:
        first = self.markdown(example_pair()).splitlines()[0]
        self.assertEqual("## agent_trace_audit: fail, 2 of 4 cases failed, 1 unknown case", first)

    def test_failing_cases_come_first_with_all_sentences(self) -> None:
        report, _, text = self.made(example_pair())
        rows = [row for row in rows_of(text.decode("ascii")) if row[0] in ("FAIL", "PASS", "UNKNOWN-CASE")]
        self.assertEqual(["FAIL", "FAIL", "UNKNOWN-CASE", "PASS", "PASS"], [row[0] for row in rows])
        self.assertEqual(["`refund-2001`", "`Refund desk`"], rows[0][1:3])
        for check in report["cases"][2]["checks"]:
            if "message" in check:
                self.assertIn(check["message"], rows[0][3])
                self.assertIn(check["rule"], rows[0][3])
        self.assertIn("max_cost_usd (unknown): ", rows[0][3])

    def test_the_totals_are_the_report_s(self) -> None:
        text = self.markdown(example_pair())
        self.assertIn("8 calls: 6 succeeded, 1 failed, 1 pending.", text)
        self.assertIn(
            "Known cost 0.0115 USD (not known for 2 calls), known tool time 4,450 ms (not known for 1 call).", text
        )

    def test_passing_cases_are_folded_away(self) -> None:
        text = self.markdown(example_pair())
        before, _, after = text.partition("<details><summary>2 cases passed</summary>\n\n")
        self.assertNotIn("support-1001", before)
        self.assertIn("support-1001", after)
        self.assertTrue(text.endswith("\n</details>\n"))

    def test_no_table_without_failures(self) -> None:
        text = self.markdown((workflows(), traces()))
        self.assertTrue(text.startswith("## agent_trace_audit: pass, 0 of 1 case failed, 0 unknown cases\n"))
        self.assertEqual(["PASS"], [row[0] for row in rows_of(text)[2:]])

    def test_every_row_has_the_same_cells(self) -> None:
        for pair in (hostile_pair(), hostile_pair("succeeded"), example_pair()):
            self.assertEqual({4}, {len(row) for row in rows_of(self.markdown(pair))})

    def test_no_group_becomes_markup(self) -> None:
        for status, tags in (
            ("failed", {"<br>"}),
            ("succeeded", {"<details>", "<summary>", "</summary>", "</details>"}),
        ):
            text = self.markdown(hostile_pair(status))
            self.assertRegex(text, r"\A[\n\x20-\x7e]*\Z")
            self.assertEqual(0, text.count("`") % 2)
            outside = outside_code(text)
            self.assertLessEqual(set(re.findall(r"<[^>]*>?", outside)), tags)
            for sign in ("@", "[", "](", "http", "www.", "**", "::", "$"):
                self.assertNotIn(sign, outside)
            self.assertEqual(["## agent_trace_audit"], re.findall(r"^#+ \w+", text, re.MULTILINE))
            self.assertNotIn("##vso", text)
            self.assertNotIn("##[", text)

    def test_a_long_summary_is_cut(self) -> None:
        text = self.markdown(long_pair(500, 0))
        self.assertLessEqual(len(text), 900_000)
        self.assertGreater(len(text), 890_000)
        shown, more = shown_and_more(text)
        self.assertEqual(500, shown + more)
        self.assertGreater(more, 0)

    def test_a_short_summary_is_not_cut(self) -> None:
        self.assertNotIn("more", self.markdown(example_pair()))


class Files(OutputCase):
    def test_the_files_are_those_of_the_report(self) -> None:
        self.put("traces.json", FAILING)
        done = self.check("--junit-xml", "j.xml", "--markdown", "m.md", "--fail-on-errors")
        report = self.assert_report(done, "fail", 2)
        again, xml, text = self.made((EXPECTED, FAILING))
        self.assertEqual(again, report)
        self.assertEqual(xml, Path(self.directory, "j.xml").read_bytes())
        self.assertEqual(text, Path(self.directory, "m.md").read_bytes())
        self.assertEqual(["j.xml", "m.md", "traces.json", "workflows.json"], self.names())

    def test_markdown_is_appended_after_a_blank_line(self) -> None:
        _, _, text = self.made((EXPECTED, OBSERVED))
        for before, blank in ((b"", b""), (b"# Job\n", b"\n"), (b"# Job", b"\n\n")):
            with self.subTest(before=before):
                path = self.put("m.md", before)
                self.assert_report(self.check("--markdown", "m.md"))
                self.assertEqual(before + blank + text, path.read_bytes())

    def test_xml_is_replaced(self) -> None:
        path = self.put("j.xml", b"old")
        self.assert_report(self.check("--junit-xml", "j.xml"))
        self.assertEqual(self.xml((EXPECTED, OBSERVED)), path.read_bytes())

    def test_nothing_is_written_on_a_refused_input(self) -> None:
        self.put("traces.json", b"{}")
        self.put("m.md", b"kept")
        self.assert_no_statement(self.check("--junit-xml", "j.xml", "--markdown", "m.md", "--output", "r.json"))
        self.assertEqual(["m.md", "traces.json", "workflows.json"], self.names())
        self.assertEqual(b"kept", Path(self.directory, "m.md").read_bytes())

    def test_no_output_is_an_input_or_another_output(self) -> None:
        for words in (
            ["--junit-xml", "traces.json"],
            ["--markdown", "./workflows.json"],
            ["--junit-xml", "x", "--markdown", "./x"],
            ["--junit-xml", "x", "--output", "x"],
            ["--markdown", "x", "--output", f"{self.directory}/x"],
            ["--markdown", "-"],
            ["--junit-xml", "-", "--markdown", "-", "--output", "r.json"],
        ):
            with self.subTest(words):
                result = self.check(*words)
                self.assert_no_statement(result, words[0])
                self.assertEqual(["traces.json", "workflows.json"], self.names())

    def test_linked_outputs_are_one_file(self) -> None:
        self.put("a", b"")
        os.link(str(self.directory / "a"), str(self.directory / "hard"))
        self.assert_no_statement(self.check("--junit-xml", "a", "--output", "hard"), "--junit-xml", "--output")

    def test_one_of_them_may_go_to_standard_output(self) -> None:
        done = self.check("--junit-xml", "-", "--output", "r.json")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual((1, 0, 0, 0), counts(ElementTree.fromstring(done.stdout)))  # noqa: S314

    def test_a_failure_names_the_output_and_keeps_the_others(self) -> None:
        self.put("m.md", b"kept\n")
        self.put("r.json", b"kept")
        for words, named in (
            (["--junit-xml", "no/j.xml", "--markdown", "m.md", "--output", "r.json"], "JUnit XML"),
            (["--markdown", "no/m.md", "--junit-xml", "j.xml", "--output", "r.json"], "Markdown"),
            (["--junit-xml", "j.xml", "--markdown", "/dev/full", "--output", "r.json"], "Markdown"),
            (["--junit-xml", ".", "--output", "r.json"], "JUnit XML"),
            (["--markdown", "m.md", "--output", "no/r.json"], "report"),
        ):
            with self.subTest(words):
                self.assert_no_statement(self.check(*words), f"the {named} cannot be written to ")
                self.assertEqual(b"kept\n", Path(self.directory, "m.md").read_bytes())
                self.assertEqual(b"kept", Path(self.directory, "r.json").read_bytes())
                self.assertFalse([name for name in self.names() if name.endswith(".tmp")])

    def test_no_output_stays_when_the_report_fails(self) -> None:
        words = ("--junit-xml", "j.xml", "--markdown", "m.md")
        for before in ({}, {"j.xml": b"old xml", "m.md": b"old\n"}):
            for name, data in before.items():
                os.chmod(str(self.put(name, data)), 0o640)
            with self.subTest(before=before), open("/dev/full", "wb") as full:
                self.assert_no_statement(self.check(*words, stdout=full), "the report cannot be written")
                self.assert_no_statement(self.check(*words, "--output", "/dev/full"), "the report cannot be written")
                self.assertEqual(sorted([*before, "traces.json", "workflows.json"]), self.names())
                for name, data in before.items():
                    path = self.directory / name
                    self.assertEqual((data, 0o640), (path.read_bytes(), path.stat().st_mode & 0o777))

    def test_an_old_file_keeps_its_other_names(self) -> None:
        path = self.put("j.xml", b"old")
        os.link(str(path), str(self.directory / "other"))
        before = path.stat()
        done = self.check("--junit-xml", "j.xml", "--output", "no/r.json")  # fails before anything is in place
        self.assert_no_statement(done, "the report cannot be written")
        self.assertEqual((before.st_ino, 2), (path.stat().st_ino, path.stat().st_nlink))

    def test_standard_output_s_own_file_is_written_through_it(self) -> None:
        for words in (["--output", "r.json"], ["--output", "/dev/stdout"]):
            with self.subTest(words), open(str(self.directory / "r.json"), "wb") as log:
                log.write(b"before\n")
                log.flush()
                self.assertEqual(0, self.check(*words, stdout=log).returncode)
                log.write(b"after\n")
            lines = (self.directory / "r.json").read_bytes().splitlines()
            self.assertEqual((b"before", b"{", b"}", b"after"), (*lines[:2], *lines[-2:]))

    def test_a_hostile_example_end_to_end(self) -> None:
        cases = [case(f"r{number}", group=group) for number, group in enumerate(HOSTILE)]
        self.put("workflows.json", to_bytes({"cases": cases}))
        done = self.check("--junit-xml", "j.xml", "--markdown", "m.md")
        report = json.loads(done.stdout)
        self.assertEqual(HOSTILE, [group["group"] for group in report["groups"]])
        found: Dict[str, Any] = {
            element.get("name", ""): element for element in cases_in((self.directory / "j.xml").read_bytes())
        }
        self.assertEqual(len(HOSTILE), len(found))


class Processes(ProcessCase):
    def test_one_terminal_serves_as_input_and_output(self) -> None:
        ours, terminal = pty.openpty()
        self.addCleanup(os.close, ours)
        os.write(ours, self.observed.read_bytes() + b"\n\x04\x04")
        done = self.run_words("--expected", "workflows.json", "--observed", "-", stdin=terminal, stdout=terminal)
        os.close(terminal)
        self.assertEqual((0, b""), (done.returncode, done.stderr))

    def after_the_report(self, number: int) -> None:
        cases = [case(f"r{number}", ["a"] * 30, ["b"]) for number in range(500)]
        self.put("workflows.json", to_bytes({"cases": cases}))
        self.put("traces.json", traces(*(trace(f"r{number}") for number in range(500))))
        process = self.start(*PAIR, "--fail-on-errors", "--output", "r.json", stdout=subprocess.DEVNULL)
        assert process.stderr is not None
        process.stderr.read(1)  # the report is in place, and most of the reasons wait for a reader
        process.send_signal(number)
        self.assertEqual(2, self.ended(process).returncode)
        self.assertEqual("fail", json.loads((self.directory / "r.json").read_bytes())["verdict"])

    def test_an_interrupt_after_the_report_changes_no_status(self) -> None:
        self.after_the_report(signal.SIGINT)

    def cancelled(self, number: int) -> None:
        os.mkfifo(str(self.directory / "fifo"))
        self.put("m.md", b"old")
        words = ("--output", "fifo", "--junit-xml", "j.xml", "--markdown", "m.md")
        process = self.start(*PAIR, *words, stdout=subprocess.DEVNULL)
        self.until(process, (self.directory / "j.xml").exists)  # then it waits for a reader of the pipe
        process.send_signal(number)
        done = self.ended(process)
        self.assertEqual((1, b"agent_trace_audit: error: interrupted\n"), (done.returncode, done.stderr))
        self.assertEqual(["fifo", "m.md", "traces.json", "workflows.json"], self.names())
        self.assertEqual(b"old", (self.directory / "m.md").read_bytes())

    def test_an_interrupted_run_leaves_nothing(self) -> None:
        self.cancelled(signal.SIGINT)

    def test_a_cancelled_run_leaves_nothing(self) -> None:
        self.cancelled(signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
