"""The command line: options, exit statuses, streams that fail, files that are whole or absent.

What a call of `main` shows is tested by one; what only a process has, by real ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import termios
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

from .support import (
    DEADLINE,
    EXPECTED,
    FAILING,
    OBSERVED,
    PAIR,
    Case,
    ProcessCase,
    Program,
    Result,
    call,
    case,
    environment,
    file_mask,
    trace,
    traces,
    workflows,
)

# A report that no pipe's buffer holds.
LARGE_CASES = workflows(*(case(f"r{number}", ["a"] * 4) for number in range(300)))
LARGE_TRACES = traces(*(trace(f"r{number}", [call(f"c{index}") for index in range(4)]) for number in range(300)))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class Statuses(Case):
    def test_pass_is_0_with_and_without_the_gate(self) -> None:
        for more in ([], ["--fail-on-errors"]):
            with self.subTest(more):
                result = self.check(*more)
                self.assert_report(result, "pass", 0)
                self.assertEqual(b"", result.stderr)

    def test_fail_is_0_without_the_gate_and_2_with_it(self) -> None:
        self.put("traces.json", FAILING)
        result = self.check()
        self.assert_report(result, "fail", 0)
        self.assertEqual(b"", result.stderr)
        self.assert_report(self.check("--fail-on-errors"), "fail", 2)

    def test_an_unknown_case_alone_is_2(self) -> None:
        self.put("traces.json", traces(trace(), trace("r9")))
        self.assert_report(self.check("--fail-on-errors"), "fail", 2)

    def test_an_unknown_verdict_alone_is_2(self) -> None:
        self.put("workflows.json", workflows(case(max_cost_usd="1")))
        self.assert_report(self.check("--fail-on-errors"), "fail", 2)

    def test_refused_input_is_1_with_the_gate_too(self) -> None:
        self.put("traces.json", b"[")
        for more in ([], ["--fail-on-errors"], ["--fail-on-errors", "--summary"]):
            with self.subTest(more):
                self.assert_no_statement(self.check(*more), "traces.json:1:2: ")


# What is no right use of the options.
WRONG: Sequence[Sequence[str]] = (
    [],
    ["--expected", "workflows.json"],
    [*PAIR, "extra"],
    [*PAIR, "--unknown"],
    [*PAIR, "--fail"],
    [*PAIR, "--expected", "workflows.json"],
    [*PAIR, "--summary", "--summary"],
    [*PAIR, "--output", ""],
    ["--expected", "-", "--observed", "-"],
    [*PAIR, "::error::\x1b[31m\ncaf\u00e9"],
    ["--fail-on-errors"],
    ["--observed", "traces.json"],
    ["workflows.json", "traces.json"],
    [*PAIR, "--", "extra"],
    [*PAIR, ""],
    [*PAIR, "-x"],
    [*PAIR, "--fail-on-error"],
    [*PAIR, "--sum"],
    [*PAIR, "--out", "report.json"],
    [*PAIR, "--vers"],
    ["--expect", "workflows.json", "--observed", "traces.json"],
    ["--expected", "workflows.json", "--obs=traces.json"],
    [*PAIR, "--observed=traces.json"],
    [*PAIR, "--fail-on-errors", "--fail-on-errors"],
    [*PAIR, "--output", "a.json", "--output", "b.json"],
    [*PAIR, "--output"],
    [*PAIR, "--output="],
    [*PAIR, "--fail-on-errors=yes"],
    [*PAIR, "--summary="],
    ["--expected", "", "--observed", "traces.json"],
    ["--expected=", "--observed", "traces.json"],
    ["--expected", "workflows.json", "--observed", ""],
    ["--expected", "workflows.json", "--observed"],
    ["--expected", "--observed", "traces.json"],
    [*PAIR, "@workflows.json"],
)


class Usage(Case):
    def test_every_wrong_usage_is_1(self) -> None:
        for words in WRONG:
            with self.subTest(words):
                result = self.run_words(*words)
                self.assert_no_statement(result)
                self.assertEqual(1, result.stderr.count(b"\n"))
        self.assertEqual(["traces.json", "workflows.json"], self.names())

    def test_a_repeated_word_is_cut(self) -> None:
        name = "x" * 240
        (self.directory / name).mkdir()
        for words in (
            [*PAIR, name],
            [*PAIR, "--" + name],
            [*PAIR, f"--{name}=1"],
            ["--expected", name, "--observed", "traces.json"],
            ["--expected", "workflows.json", "--observed", f"{name}/{name}"],
            [*PAIR, "--output", name],
            [*PAIR, "--output", f"{name}/no/file"],
            [name],
        ):
            with self.subTest(words):
                result = self.run_words(*words)
                self.assert_no_statement(result)
                longest = max(len(run) for run in re.findall("x*", result.stderr.decode("ascii")))
                self.assertLessEqual(longest, 100)

    def test_values_after_an_equals_sign(self) -> None:
        self.assert_report(self.run_words("--expected=workflows.json", "--observed=traces.json"))

    def test_help(self) -> None:
        result = self.run_words("--help")
        self.assertEqual((0, b""), (result.returncode, result.stderr))
        text = result.stdout.decode("ascii")
        for option in ("--expected", "--observed", "--fail-on-errors", "--output", "--summary", "--version", "--help"):
            self.assertIn(option, text)
        self.assertRegex(text.lower(), r"without --fail-on-errors,? exit (status )?0 is no statement")
        for status in "012":
            self.assertRegex(text, rf"(?m)^ +{status}  ")
        self.assertNotIn("\x1b", text)

    def test_version_tells_copies_apart(self) -> None:
        changed = Program(self.put("copy.py", self.program.path.read_bytes() + b"# changed\n"))
        for program in (self.program, changed):
            with self.subTest(program.path.name):
                result = self.run_words("--version", program=program)
                self.assertEqual((0, b""), (result.returncode, result.stderr))
                text = result.stdout.decode("ascii")
                version = self.program.audit(EXPECTED, OBSERVED)["checker"]["version"]
                self.assertIn(version, text)
                self.assertIn(hashlib.sha256(program.path.read_bytes()).hexdigest(), text)


class Summary(Case):
    def setUp(self) -> None:
        super().setUp()
        self.put(
            "workflows.json",
            workflows(case("r1", max_cost_usd="1"), case("r2", ["a", "b"], ["a", "b"]), case("r3"), case("r4")),
        )
        self.put(
            "traces.json",
            traces(trace("r9"), trace("r1"), trace("r2", [call(tool="b"), call("c2", "a")]), trace("r3"), trace("r4")),
        )

    def lines(self, report: Any) -> List[str]:
        """The explanation that a report stands for, rebuilt from it."""
        lines = []
        for found in report["cases"]:
            for check in found["checks"]:
                if check["verdict"] in ("fail", "unknown"):
                    lines.append(f"{check['verdict'].upper()} {found['id']} {check['rule']}: {check['message']}")
        lines += [f"UNKNOWN-CASE {found['id']}: recorded, but no case expects it" for found in report["unknown_cases"]]
        return [*lines, "2 of 4 cases failed, 1 unknown case"]

    def test_a_failing_gate_says_why_once(self) -> None:
        for more in ([], ["--summary"]):
            with self.subTest(more):
                result = self.check("--fail-on-errors", *more)
                report = self.assert_report(result, "fail", 2)
                lines = result.stderr.decode("ascii").splitlines()
                self.assertEqual(self.lines(report), lines)
                self.assertIn("FAIL r2 sequence: step 1: expected a, got b", lines)
                self.assertIn("UNKNOWN-CASE r9: recorded, but no case expects it", lines)

    def test_a_failing_summary_without_the_gate_says_that_the_status_is_0(self) -> None:
        result = self.check("--summary")
        report = self.assert_report(result, "fail", 0)
        *lines, last = result.stderr.decode("ascii").splitlines()
        self.assertEqual(self.lines(report), lines)
        self.assertRegex(last, "exit status is 0")

    def test_a_passing_summary(self) -> None:
        self.put("workflows.json", workflows(case("r1"), case("r2")))
        self.put("traces.json", traces(trace("r1"), trace("r2")))
        for more in ([], ["--fail-on-errors"]):
            with self.subTest(more):
                result = self.check("--summary", *more)
                self.assert_report(result, "pass", 0)
                self.assertEqual(b"0 of 2 cases failed, 0 unknown cases\n", result.stderr)

    def test_warnings_stand_before_the_counts(self) -> None:
        self.put("workflows.json", workflows(case("r1", ["a"], []), case("r2", ["a", "b"], ["a"]), case("r3")))
        self.put("traces.json", traces(trace("r1", []), trace("r2"), trace("r3"), trace("r9")))
        result = self.check("--fail-on-errors")
        report = self.assert_report(result, "fail", 2)
        warnings = [f"WARNING {found['case']}: {found['message']}" for found in report["warnings"]]
        self.assertEqual(["r1", "r2"], [found["case"] for found in report["warnings"]])
        lines = result.stderr.decode("ascii").splitlines()
        self.assertEqual([*warnings, "2 of 3 cases failed, 1 unknown case"], lines[-3:])
        self.assertEqual(2, sum(line.startswith("WARNING ") for line in lines))
        self.assertTrue(lines[-4].startswith("UNKNOWN-CASE r9: "), lines)

    def test_warnings_of_a_report_that_passes(self) -> None:
        self.put("workflows.json", workflows(case("r1", require_prior={"b": ["a"]})))
        self.put("traces.json", OBSERVED)
        result = self.check("--summary")
        (warning,) = self.assert_report(result)["warnings"]
        lines = [f"WARNING r1: {warning['message']}", "0 of 1 case failed, 0 unknown cases"]
        self.assertEqual(lines, result.stderr.decode("ascii").splitlines())
        self.assertEqual(b"", self.check("--fail-on-errors").stderr)

    def test_standard_error_that_is_full_changes_no_status(self) -> None:
        self.put("bad.json", b"[")
        with open("/dev/full", "wb", buffering=0) as full:
            for words, status in (
                ([*PAIR, "--summary"], 0),
                ([*PAIR, "--fail-on-errors"], 2),
                ([*PAIR[:2], "--observed", "bad.json"], 1),
                (["--unknown"], 1),
            ):
                with self.subTest(words):
                    self.assertEqual(status, self.run_words(*words, stderr=full).returncode)

    def test_no_summary_of_a_report_that_was_not_written(self) -> None:
        with open("/dev/full", "wb") as full:
            result = self.check("--summary", "--fail-on-errors", stdout=full)
        self.assert_no_statement(result, "standard output")
        self.assertEqual(1, result.stderr.count(b"\n"))


class Processes(ProcessCase):
    """What the interpreter around `main` could change: its exit status, its buffers, its encodings, its options."""

    def test_hostile_words(self) -> None:
        self.assert_no_statement(self.run_words(*PAIR, "::error::\x1b[31m\ncaf\u00e9"))

    def test_standard_output_that_is_full(self) -> None:
        lines = [
            ([*PAIR], ""),
            ([*PAIR], "1"),
            ([*PAIR, "--fail-on-errors", "--output", "-"], ""),
            (["--help"], ""),
            (["--version"], "1"),
        ]
        with open("/dev/full", "wb") as full:
            for words, unbuffered in lines:
                with self.subTest(words, unbuffered=unbuffered):
                    result = self.run_words(*words, stdout=full, env=environment(PYTHONUNBUFFERED=unbuffered))
                    self.assert_no_statement(result, "standard output")

    def test_standard_output_that_is_closed(self) -> None:
        for words in ([*PAIR], ["--help"]):
            with self.subTest(words):
                self.assert_no_statement(self.run_words(*words, around='exec "$@" >&-'), "standard output")

    def test_closed_streams_are_of_no_matter_to_a_file(self) -> None:
        result = self.run_words(*PAIR, "--output", "report.json", around='exec "$@" <&- >&-')
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual("pass", json.loads((self.directory / "report.json").read_bytes())["verdict"])

    def test_closed_standard_input(self) -> None:
        result = self.run_words("--expected", "-", "--observed", "traces.json", around='exec "$@" <&-')
        self.assert_no_statement(result, "error: -: ")

    def test_standard_input_from_a_pipe(self) -> None:
        self.assert_report(self.run_words("--expected", "workflows.json", "--observed", "-", input=OBSERVED))

    def test_reader_that_leaves_early(self) -> None:
        self.put("workflows.json", LARGE_CASES)
        self.put("traces.json", LARGE_TRACES)
        for unbuffered in ("", "1"):
            with self.subTest(unbuffered=unbuffered):
                process = self.start(*PAIR, "--fail-on-errors", env=environment(PYTHONUNBUFFERED=unbuffered))
                assert process.stdout is not None
                assert process.stderr is not None
                with process.stdout, process.stderr:
                    self.assertEqual(b"{", process.stdout.read(1))
                    process.stdout.close()
                    error = process.stderr.read()
                status = process.wait(DEADLINE)
                self.assert_no_statement(subprocess.CompletedProcess([], status, b"", error), "standard output")

    def test_large_report_through_a_pipe(self) -> None:
        self.put("workflows.json", LARGE_CASES)
        self.put("traces.json", LARGE_TRACES)
        wanted = self.wanted(LARGE_CASES, LARGE_TRACES)
        self.assertGreater(len(wanted), 1 << 17)
        for unbuffered in ("", "1"):
            with self.subTest(unbuffered=unbuffered):
                result = self.check(env=environment(PYTHONUNBUFFERED=unbuffered))
                self.assertEqual((0, wanted), (result.returncode, result.stdout))

    def test_standard_error_that_cannot_be_written_changes_no_status(self) -> None:
        self.put("bad.json", b"[")
        self.put("failing.json", FAILING)
        failing = ["--expected", "workflows.json", "--observed", "failing.json", "--fail-on-errors"]
        for words, status, to in (
            ([*PAIR, "--summary"], 0, "&-"),
            (["--expected", "workflows.json", "--observed", "bad.json"], 1, "/dev/full"),
            (["--unknown"], 1, "&-"),
            (failing, 2, "/dev/full"),
            (failing, 2, "&-"),
        ):
            with self.subTest(words, to=to):
                result = self.run_words(*words, around=f'exec "$@" 2>{to}')
                self.assertEqual(status, result.returncode)
                if status != 1:
                    self.assert_report(result, "fail" if status else "pass", status)

    def test_interpreter_options_and_encodings(self) -> None:
        cases = workflows(case(group="Caf\u00e9 \U0001f600"))
        self.put("workflows.json", cases)
        self.put("traces.json", FAILING)
        wanted = self.wanted(cases, FAILING)
        surroundings: List[Tuple[List[str], Dict[str, str]]] = [
            (["-OO"], environment(PYTHONHASHSEED="1", TZ="Asia/Tokyo")),
            (["-W", "error", "-bb", "-X", "dev"], environment()),
            (["-I", "-S", "-E", "-s"], environment()),
            (["-u"], environment(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")),
            ([], environment(PYTHONIOENCODING="cp1252", PYTHONHASHSEED="2", COLUMNS="20")),
            ([], environment(PYTHONIOENCODING="ascii:strict", LC_ALL="C.UTF-8")),
            ([], environment(PYTHONIOENCODING="utf-16")),
        ]
        words = [*PAIR, "--fail-on-errors"]
        runs = self.run_each(*((words, {"python": python, "env": env}) for python, env in surroundings))
        for (python, env), result in zip(surroundings, runs):
            with self.subTest(python, env={key: env[key] for key in sorted(env) if "PYTHON" in key}):
                self.assertEqual((2, wanted), (result.returncode, result.stdout))
        reasons = {result.stderr for result in runs}
        (reason,) = reasons
        self.assertTrue(reason.startswith(b"FAIL r1 sequence: "), reason)

    def test_help_is_the_same_everywhere(self) -> None:
        plain = self.run_words("--help").stdout
        changes = {"COLUMNS": "30", "FORCE_COLOR": "1", "LC_ALL": "C", "LANGUAGE": "de"}
        self.assertEqual(plain, self.run_words("--help", env=environment(**changes)).stdout)

    def test_full_disk_keeps_the_old_file(self) -> None:
        self.assertGreater(len(self.wanted()), 1024)
        path = self.directory / "report.json"
        for old in (None, b"old"):
            with self.subTest(old=old):
                if old:
                    path.write_bytes(old)
                before = self.names()
                result = self.check("--output", "report.json", around='ulimit -f 1; exec "$@"')
                self.assert_no_statement(result, "report.json")
                self.assertEqual(before, self.names())
                self.assertEqual(old, path.read_bytes() if old else None)

    def test_names_beyond_ascii_under_the_c_locale(self) -> None:
        env = environment(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
        result = self.run_words("--expected", os.fsdecode(b"caf\xc3\xa9.json"), "--observed", "traces.json", env=env)
        self.assert_no_statement(result, ".json: ")

    def test_262_000_open_arrays(self) -> None:
        self.put("traces.json", b"[" * 262_000)
        self.assert_no_statement(self.check(), "traces.json", "32")

    def test_the_version_of_a_copy(self) -> None:
        changed = self.program.path.read_bytes() + b"# changed\n"
        self.put("copy.py", changed)
        result = self.run_words("--version", script=Path("copy.py"))
        self.assertEqual((0, b""), (result.returncode, result.stderr))
        self.assertIn(hashlib.sha256(changed).hexdigest(), result.stdout.decode("ascii"))

    def test_no_version_of_a_script_that_cannot_be_read_again(self) -> None:
        of_nothing = hashlib.sha256(b"").hexdigest()
        for script in ("/dev/stdin", "-"):
            with self.subTest(script):
                result = self.run_words("--version", script=Path(script), input=self.program.path.read_bytes())
                self.assertEqual((0, b""), (result.returncode, result.stderr))
                self.assertIn(b"agent_trace_audit", result.stdout)
                self.assertNotIn(of_nothing, result.stdout.decode("ascii"))


class Memory(ProcessCase):
    def run_out(self, data: bytes) -> None:
        """Import a file that takes more than 64 MiB in memory with no more than that."""
        self.put("large.json", data)
        before = self.names()
        result = self.run_words(
            *("import", "openai-agents", "large.json", "--output", "made.json"),
            around=f'ulimit -v {64 * 1024}; exec "$@"',
            env=environment(LC_ALL="C"),
        )
        self.assert_no_statement(result, "memory")
        self.assertEqual(1, result.stderr.count(b"\n"))
        self.assertEqual(before, self.names())

    def test_memory_that_a_text_fills(self) -> None:
        # One character beyond the first plane, so that each takes four bytes.
        self.run_out(b'["' + b"x" * 16_000_000 + "\U0001f600".encode() + b'"]')

    def test_memory_that_values_fill(self) -> None:
        self.run_out(b'[{"spans": [' + b'{"a":{}},' * 250_000 + b"1]}]")


class Waiting(ProcessCase):
    """Inputs that come slowly, and a run that is interrupted while it waits for one."""

    def open_fifo(self, process: subprocess.Popen[bytes]) -> int:
        """The writing end of `fifo`, as soon as the process reads from the other one."""
        found: List[int] = []

        def reader_came() -> bool:
            try:
                found.append(os.open(str(self.directory / "fifo"), os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # nobody reads yet
                return False
            return True

        self.until(process, reader_came)
        return found[0]

    def taken(self, writer: int) -> bool:
        """Whether the reader has taken what was written."""
        waiting = bytearray(4)
        fcntl.ioctl(writer, termios.FIONREAD, waiting)
        return not any(waiting)

    def start_waiting(self, *words: str, around: str = 'exec "$@"') -> Any:
        """A process that has read the first byte of the observed traces and sleeps in the next read."""
        os.mkfifo(str(self.directory / "fifo"))
        process = self.start("--expected", "workflows.json", "--observed", "fifo", *words, around=around)
        writer = self.open_fifo(process)
        os.write(writer, OBSERVED[:1])
        self.until(process, lambda: self.taken(writer) and self.blocked(process))
        return process, writer

    def test_fifo_in_pieces(self) -> None:
        process, writer = self.start_waiting()
        for index in range(1, len(OBSERVED)):
            os.write(writer, OBSERVED[index : index + 1])
        os.close(writer)
        result = self.ended(process)
        self.assertEqual((0, b"", self.wanted()), (result.returncode, result.stderr, result.stdout))

    def interrupted(self, number: int) -> None:
        self.put("report.json", b"old")
        process, writer = self.start_waiting("--output", "report.json")
        before = self.names()
        process.send_signal(number)
        result = self.ended(process)
        os.close(writer)
        self.assertEqual((1, b""), (result.returncode, result.stdout))
        self.assertEqual(b"agent_trace_audit: error: interrupted\n", result.stderr)
        self.assertEqual(before, self.names())
        self.assertEqual(b"old", (self.directory / "report.json").read_bytes())

    def test_interrupt_while_reading(self) -> None:
        self.interrupted(signal.SIGINT)

    def test_cancelled_while_reading(self) -> None:
        self.interrupted(signal.SIGTERM)

    def test_hangup_while_reading(self) -> None:
        self.interrupted(signal.SIGHUP)

    def test_an_ignored_hangup_stays_ignored(self) -> None:
        process, writer = self.start_waiting(around='trap "" HUP; exec "$@"')  # as nohup does it
        process.send_signal(signal.SIGHUP)
        os.write(writer, OBSERVED[1:])
        os.close(writer)
        result = self.ended(process)
        self.assertEqual((0, b"", self.wanted()), (result.returncode, result.stderr, result.stdout))

    def test_interrupted_while_the_program_loads(self) -> None:
        # A module that the program needs sends the signal itself.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                folder = self.directory / str(number.value)
                folder.mkdir()
                (folder / "json.py").write_text(f"import os\nos.kill(os.getpid(), {number.value})\n", "ascii")
                result = self.check("--output", "report.json", env=environment(PYTHONPATH=str(folder)))
                self.assertEqual(b"", result.stdout)
                silent_end, told = (-number, b""), (1, b"agent_trace_audit: error: interrupted\n")
                self.assertIn((result.returncode, result.stderr), (silent_end, told))
                self.assertNotIn("report.json", self.names())


class Inputs(Case):
    def test_standard_input_for_either(self) -> None:
        self.assert_report(self.run_words("--expected", "-", "--observed", "traces.json", input=EXPECTED))
        self.assert_report(self.run_words("--expected", "workflows.json", "--observed", "-", input=OBSERVED))

    def test_standard_input_is_named_by_a_dash(self) -> None:
        result = self.run_words("--expected", "workflows.json", "--observed", "-", input=b"[1]")
        self.assert_no_statement(result, "error: -: $[0]: ")

    def test_standard_input_serves_one_alone(self) -> None:
        self.assert_no_statement(self.run_words("--expected", "-", "--observed", "-", input=EXPECTED))

    def test_never_more_than_one_byte_beyond_the_bound_is_read(self) -> None:
        large = self.put("large", b" " * 600_000)
        with open(str(large), "rb", buffering=0) as file:
            result = self.run_words("--expected", "-", "--observed", "traces.json", stdin=file)
            self.assert_no_statement(result, "524,288")
            self.assertLessEqual(file.tell(), 524_289)


# Everything that the program, or a module that it imports, imports on some Python.
PLANTED = """
    abc argparse ast base64 codecs collections contextlib copy dataclasses datetime decimal enum
    functools gettext hashlib heapq io itertools json keyword linecache locale numbers operator os
    pathlib posixpath random re reprlib shutil signal site sre_compile sre_parse stat string struct
    subprocess tempfile textwrap threading tokenize traceback types typing unicodedata warnings
    weakref _collections_abc _decimal _hashlib _json _pydecimal _py_abc
"""


class Planted(ProcessCase):
    """Modules beside the script are not imported in place of the standard ones."""

    def setUp(self) -> None:
        super().setUp()
        self.copy = self.directory / "agent_trace_audit.py"
        shutil.copy(str(self.program.path), str(self.copy))
        for name in PLANTED.split():
            self.put(f"{name}.py", b"import sys\nsys.stdout.write('planted')\nsys.exit(3)\n")

    def test_in_every_run_by_every_path(self) -> None:
        self.put("failing.json", FAILING)
        pair = ["--expected", str(self.expected), "--observed", str(self.directory / "failing.json")]
        name, above = Path(self.copy.name), self.directory.parent
        for words, script, cwd, status in (
            ([*pair, "--fail-on-errors"], name, self.directory, 2),
            ([*pair, "--output", str(self.directory / "report.json")], self.directory.name / name, above, 0),
            (["--version"], self.copy, Path("/"), 0),
            (["--help"], name, self.directory, 0),
            (["--unknown"], name, self.directory, 1),
            ([*pair[:3], str(self.expected)], self.copy, Path("/"), 1),
        ):
            with self.subTest(words):
                result = self.run_words(*words, script=script, cwd=str(cwd))
                self.assertNotIn(b"planted", result.stdout + result.stderr)
                self.assertEqual(status, result.returncode)
        self.assertEqual(self.wanted(EXPECTED, FAILING), (self.directory / "report.json").read_bytes())


class Output(Case):
    def setUp(self) -> None:
        super().setUp()
        self.target = self.directory / "report.json"

    def assert_written(self, *more: str, to: str = "report.json", **options: Any) -> None:
        """The whole report in a file, nothing on either stream, and no file but the target is new."""
        before = {*self.names(), Path(to).name}
        result = self.check("--output", to, *more, **options)
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual(self.wanted(), (self.directory / to).read_bytes())
        self.assertLessEqual(set(self.names()), before)

    def contents(self) -> List[Any]:
        paths = [self.directory / name for name in self.names()]
        return [(path, path.is_symlink(), path.read_bytes() if path.is_file() else None) for path in paths]

    def assert_unchanged(self, run: Callable[[], Result[bytes]], *words: str) -> None:
        """Exit 1, and every file is as it was."""
        before = self.contents()
        self.assert_no_statement(run(), *words)
        self.assertEqual(before, self.contents())

    def test_new_file_has_the_permissions_of_a_plain_open(self) -> None:
        for mask, mode in ((0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0, 0o666)):
            with self.subTest(oct(mask)):
                with file_mask(mask):
                    self.assert_written()
                self.assertEqual(mode, mode_of(self.target))
                self.target.unlink()

    def test_replaced_file_keeps_its_permissions(self) -> None:
        for mode in (0o600, 0o644, 0o664, 0o755):
            with self.subTest(oct(mode)):
                self.target.write_bytes(b"old" * 10_000)
                self.target.chmod(mode)
                with file_mask(0o077):
                    self.assert_written()
                self.assertEqual(mode, mode_of(self.target))

    def test_written_beside_it_and_renamed(self) -> None:
        # Whoever has the old file open keeps reading the old bytes.
        self.target.write_bytes(b"old")
        with open(str(self.target), "rb") as reader:
            self.assert_written()
            self.assertEqual(b"old", reader.read())

    def test_in_another_directory(self) -> None:
        (self.directory / "results").mkdir()
        self.assert_written(to="results/report.json")
        self.assertEqual(["report.json"], os.listdir(str(self.directory / "results")))

    def test_symbolic_link_is_followed_and_stays(self) -> None:
        (self.directory / "results").mkdir()
        real = self.directory / "results" / "real.json"
        for name, before in (("to a file", b"old"), ("dangling", None)):
            with self.subTest(name):
                if before is not None:
                    real.write_bytes(before)
                    real.chmod(0o640)
                self.target.symlink_to(Path("results") / "real.json")
                self.assert_written()
                self.assertTrue(self.target.is_symlink())
                self.assertEqual(self.wanted(), real.read_bytes())
                self.assertEqual(["real.json"], os.listdir(str(real.parent)))
                if before is not None:
                    self.assertEqual(0o640, mode_of(real))
                self.target.unlink()
                real.unlink()

    def test_dash_is_standard_output(self) -> None:
        result = self.check("--output", "-")
        self.assertEqual((0, self.wanted(), b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual(["traces.json", "workflows.json"], self.names())

    def test_the_gate_writes_the_file_too(self) -> None:
        self.put("traces.json", FAILING)
        result = self.check("--output", "report.json", "--fail-on-errors")
        self.assertEqual((2, b""), (result.returncode, result.stdout))
        self.assertEqual(self.wanted(EXPECTED, FAILING), self.target.read_bytes())

    def test_no_input_is_the_target(self) -> None:
        (self.directory / "folder").mkdir()
        for name in ("workflows.json", "traces.json"):
            (self.directory / f"symbolic-{name}").symlink_to(name)
            os.link(str(self.directory / name), str(self.directory / f"hard-{name}"))
            targets = (
                name,
                f"./{name}",
                f"folder/../{name}",
                str(self.directory / name),
                f"symbolic-{name}",
                f"hard-{name}",
            )
            before = self.contents()
            for target in targets:
                with self.subTest(target):
                    self.assert_no_statement(self.check("--output", target), "--output")
            self.assertEqual(before, self.contents())

    def test_an_input_spelled_otherwise_is_no_target(self) -> None:
        (self.directory / "link").symlink_to("traces.json")
        words = ["--expected", "workflows.json", "--observed", "link", "--output", "traces.json"]
        self.assert_unchanged(lambda: self.run_words(*words))

    def test_standard_input_is_no_target(self) -> None:
        def run() -> Result[bytes]:
            with open(str(self.expected), "rb") as file:
                words = ["--expected", "-", "--observed", "traces.json", "--output", "workflows.json"]
                return self.run_words(*words, stdin=file)

        self.assert_unchanged(run)

    def test_standard_output_is_no_input_either(self) -> None:
        def run() -> Result[bytes]:
            with open(str(self.expected), "ab") as file:
                return self.check(stdout=file)

        self.assert_unchanged(run)

    def test_device(self) -> None:
        result = self.check("--output", "/dev/null")
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assert_no_statement(self.check("--output", "/dev/full"), "/dev/full")

    def test_fifo(self) -> None:
        os.mkfifo(str(self.target))
        reader = os.open(str(self.target), os.O_RDONLY | os.O_NONBLOCK)
        result = self.check("--output", "report.json")
        written = os.read(reader, 1 << 16)
        os.close(reader)
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual(self.wanted(), written)
        self.assertTrue(stat.S_ISFIFO(self.target.stat().st_mode))

    def test_targets_that_cannot_be_written(self) -> None:
        (self.directory / "folder").mkdir()
        targets = ("folder", "folder/", "nowhere/report.json", "traces.json/report.json", "x" * 300, "new/")
        before = self.contents()
        for target in targets:
            with self.subTest(target):
                self.assert_no_statement(self.check("--output", target), target[:90])
        self.assertEqual(before, self.contents())

    def test_no_statement_touches_no_file(self) -> None:
        self.put("bad.json", b"[")
        lines = (
            ["--expected", "workflows.json", "--observed", "bad.json", "--output", "report.json"],
            ["--expected", "nowhere.json", "--observed", "traces.json", "--output", "report.json"],
            [*PAIR, "--output", "report.json", "--unknown"],
        )
        for old in (None, b"old"):
            if old is not None:
                self.target.write_bytes(old)
            before = self.contents()
            for words in lines:
                with self.subTest(words, old=old):
                    self.assert_no_statement(self.run_words(*words))
            self.assertEqual(before, self.contents())


if __name__ == "__main__":
    unittest.main()
