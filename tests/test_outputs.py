"""The JUnit XML and the Markdown summary: they agree with the report, and no group can break out of them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import unittest
from decimal import Decimal
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple
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
        return self.made(pair)[2].decode("utf-8")


def cases_in(xml: bytes) -> List[ElementTree.Element]:
    return list(ElementTree.fromstring(xml).iter("testcase"))  # noqa: S314


def counts(element: ElementTree.Element) -> Tuple[int, int, int]:
    tests, failures, errors = (int(element.get(key, "-1")) for key in ("tests", "failures", "errors"))
    return tests, failures, errors


# What the schemas of Jenkins and of the common reporters know; nothing that tells when a file was written.
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
}

# Letters, marks, digits and signs of many scripts, known to every Python.
READABLE = [
    "\u00e9",
    "Stra\u00dfe 9 \u2013 \u201eA\u201c",
    "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e44\u0e17\u0e22",
    "\u4e2d\u6587",
    "\u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4",
    "a\u0301",
    "\U00020000",
]
# Controls, format characters, and those that turn the direction of what follows.
UNSEEN = [*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F)]
UNSEEN += [*range(0x2060, 0x2065), *range(0x2066, 0x206A), 0xFEFF, 0xFFF9, 0xE0001, 0xE0041]


def unseen(text: str) -> bool:
    """Whether a text but for its line feeds has a character that nobody sees."""
    return any(ord(character) in UNSEEN for character in text.replace("\n", ""))


class JUnit(OutputCase):
    def test_it_agrees_with_the_report(self) -> None:
        for pair in (example_pair(), hostile_pair(), hostile_pair("succeeded")):
            report, xml, _ = self.made(pair)
            root = ElementTree.fromstring(xml)  # noqa: S314
            failed = report["totals"]["failed"] + report["totals"]["unknown_cases"]
            total = report["totals"]["cases"] + report["totals"]["unknown_cases"]
            self.assertEqual("testsuites", root.tag)
            for element in (root, root[0]):
                self.assertEqual((total, failed, 0), counts(element))
            self.assertEqual("0", root[0].get("skipped"))
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

    def test_no_attribute_that_schemas_lack(self) -> None:
        for pair in (example_pair(), hostile_pair(), (workflows(), traces())):
            for element in ElementTree.fromstring(self.xml(pair)).iter():  # noqa: S314
                with self.subTest(element.tag):
                    self.assertLessEqual(set(element.attrib), ATTRIBUTES[element.tag])

    def test_time_is_the_known_tool_time(self) -> None:
        measured = [call(duration_ms=1), call("c2", duration_ms=1300), call("c3", status="pending"), call("c4")]
        cases = [case(f"r{number}") for number in range(4)]
        recorded = [trace("r0", measured), trace("r1", measured[3:]), trace("r3", [call(duration_ms=3_600_000)])]
        report, xml, _ = self.made((workflows(*cases), traces(*recorded)))
        root = ElementTree.fromstring(xml)  # noqa: S314
        times = [(element.get("time") or "none") for element in (root, root[0], *cases_in(xml))]
        for time in times:
            self.assertRegex(time, r"\A[0-9]+(\.[0-9]+)?\Z")
        wanted = [
            report["totals"]["tool_ms"],
            report["totals"]["tool_ms"],
            *(one["tool_ms"] for one in report["cases"]),
        ]
        self.assertEqual([Decimal(known["known_total"]) / 1000 for known in wanted], [*map(Decimal, times)])

    def test_time_of_an_unknown_case(self) -> None:
        element = cases_in(self.xml((EXPECTED, traces(trace("r9", [call(duration_ms=250)])))))[-1]
        self.assertEqual(("r9", Decimal("0.25")), (element.get("name"), Decimal(element.get("time", "-1"))))

    def test_groups_are_shown_as_written(self) -> None:
        cases = [case(f"r{number}", group=group) for number, group in enumerate(READABLE)]
        _, xml, text = self.made((workflows(*cases), b"[]"))
        self.assertEqual(READABLE, [element.get("classname") for element in cases_in(xml)])
        groups = [row[2] for row in rows_of(text.decode("utf-8"))[2:]]
        self.assertEqual([f"`{group}`" for group in READABLE], groups)

    def test_what_nobody_sees_in_a_group_is_escaped(self) -> None:
        cases = [case(f"r{number}", group=f"a{chr(code)}b") for number, code in enumerate(UNSEEN)]
        _, xml, text = self.made((workflows(*cases), b"[]"))
        for group in [element.get("classname", "") for element in cases_in(xml)]:
            self.assertRegex(group, r"\Aa\\.+b\Z")
            self.assertFalse(unseen(group) or "\n" in group, ascii(group))
        rows = rows_of(text.decode("utf-8"))[2:]
        self.assertEqual(len(UNSEEN), len(rows))
        for row in rows:
            self.assertRegex(row[2], r"\A`a\\.+b`\Z")
        self.assertFalse(unseen(text.decode("utf-8")))

    def test_hostile_groups_come_back_as_they_were(self) -> None:
        for group, element in zip(HOSTILE, cases_in(self.xml(hostile_pair()))):
            if re.fullmatch("[\x20-\x7e]*", group):
                self.assertEqual(group, element.get("classname"))

    def test_it_is_without_commands_or_dates(self) -> None:
        xml = self.xml(hostile_pair()).decode("utf-8")
        self.assertFalse(unseen(xml))
        self.assertNotIn("##", xml)
        self.assertFalse([line for line in xml.splitlines() if line.lstrip().startswith("::")])
        self.assertNotIn("timestamp", re.findall(r" (\w+)=", xml))

    def test_one_green_case_is_a_test(self) -> None:
        xml = self.xml((workflows(), traces()))
        self.assertEqual((1, 0, 0), counts(ElementTree.fromstring(xml)))  # noqa: S314


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
        rows = [row for row in rows_of(text.decode("utf-8")) if row[0] in ("FAIL", "PASS", "UNKNOWN-CASE")]
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
            self.assertFalse(unseen(text))
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

    def test_what_the_file_holds_already_counts(self) -> None:
        for held, pair in ((600_000, long_pair(300, 200)), (850_000, long_pair(0, 500))):
            with self.subTest(held=held):
                whole = self.add_to(held, pair)
                self.assertLessEqual(len(whole), 900_000)
                self.assertGreater(len(whole), 890_000)
                shown, more = shown_and_more(whole.decode("utf-8"))
                self.assertEqual(500, shown + more)
                self.assertGreater(more, 0)

    def test_a_file_that_is_full_does_not_grow(self) -> None:
        for held in (899_990, 900_000, 950_000):
            with self.subTest(held=held):
                self.assertLessEqual(len(self.add_to(held, example_pair())), max(held, 900_000))

    def add_to(self, held: int, pair: Pair) -> bytes:
        """A Markdown file that holds so many bytes, after a summary of the pair was added."""
        before = b"x" * (held - 1) + b"\n"
        path = self.put("held.md", before)
        self.put("workflows.json", pair[0])
        self.put("traces.json", pair[1])
        self.check("--markdown", "held.md")
        after = path.read_bytes()
        self.assertEqual(before, after[:held])
        return after

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
        self.assertEqual((1, 0, 0), counts(ElementTree.fromstring(done.stdout)))  # noqa: S314

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

    def test_no_output_is_half_there_when_the_report_fails(self) -> None:
        _, _, text = self.made((EXPECTED, OBSERVED))
        for before in ({}, {"j.xml": b"old xml", "m.md": b"old\n"}):
            for to in ("-", "/dev/full"):
                for name in ("j.xml", "m.md"):
                    with contextlib.suppress(FileNotFoundError):
                        (self.directory / name).unlink()
                for name, data in before.items():
                    self.put(name, data).chmod(0o640)
                with self.subTest(before=before, to=to), open("/dev/full", "wb") as full:
                    done = self.check("--junit-xml", "j.xml", "--markdown", "m.md", "--output", to, stdout=full)
                    self.assert_no_statement(done, "the report cannot be written")
                    # Streams, devices and appends come first in whatever order, renaming comes last.
                    self.assertIn(self.left("m.md"), (before.get("m.md"), self.appended(before.get("m.md"), text)))
                    self.assertEqual(before.get("j.xml"), self.left("j.xml"))
                    self.assertLessEqual(set(self.names()), {"j.xml", "m.md", "traces.json", "workflows.json"})
                    for name in before:
                        self.assertEqual(0o640, (self.directory / name).stat().st_mode & 0o777)

    def left(self, name: str) -> Optional[bytes]:
        path = self.directory / name
        return path.read_bytes() if path.exists() else None

    def appended(self, before: Optional[bytes], text: bytes) -> bytes:
        return before + b"\n" + text if before else text

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

    def test_a_cancellation_after_the_report_changes_no_status(self) -> None:
        self.after_the_report(signal.SIGTERM)

    def test_a_hangup_after_the_report_changes_no_status(self) -> None:
        self.after_the_report(signal.SIGHUP)

    def start_waiting(self) -> subprocess.Popen[bytes]:
        """A run with three outputs that waits for a reader of the pipe that takes the report."""
        os.mkfifo(str(self.directory / "fifo"))
        words = ("--output", "fifo", "--junit-xml", "j.xml", "--markdown", "m.md")
        process = self.start(*PAIR, *words, stdout=subprocess.DEVNULL)
        self.until(process, lambda: self.blocked(process))
        return process

    def cancelled(self, number: int) -> None:
        self.put("m.md", b"old\n")
        process = self.start_waiting()
        process.send_signal(number)
        done = self.ended(process)
        self.assertEqual((1, b"agent_trace_audit: error: interrupted\n"), (done.returncode, done.stderr))
        self.assertEqual(["fifo", "m.md", "traces.json", "workflows.json"], self.names())
        self.assertRegex((self.directory / "m.md").read_bytes(), b"\\Aold\n(\n## [^#]*)?\\Z")

    def test_an_interrupted_run_leaves_nothing(self) -> None:
        self.cancelled(signal.SIGINT)

    def test_a_cancelled_run_leaves_nothing(self) -> None:
        self.cancelled(signal.SIGTERM)

    def test_a_run_that_lost_its_terminal_leaves_nothing(self) -> None:
        self.cancelled(signal.SIGHUP)

    def test_two_runs_at_a_time_lose_nothing_of_each_other(self) -> None:
        process = self.start_waiting()
        self.assertFalse((self.directory / "j.xml").exists(), "renaming comes last")
        with open(str(self.directory / "m.md"), "ab") as other:  # what another run adds meanwhile
            other.write(b"# Other\n")
        reader = os.open(str(self.directory / "fifo"), os.O_RDONLY | os.O_NONBLOCK)
        done = self.ended(process)
        report = os.read(reader, 1 << 16)
        os.close(reader)
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        self.assertEqual(self.wanted(), report)
        text = (self.directory / "m.md").read_text("utf-8")
        self.assertEqual(["# Other", "## agent_trace_audit"], sorted(re.findall(r"^#+ \w+", text, re.MULTILINE)))
        self.assertTrue((self.directory / "j.xml").exists())


if __name__ == "__main__":
    unittest.main()
