"""The command line, as real processes: options, exit statuses, streams that fail, files that are whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import termios
import unittest
from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Sequence

import agent_trace_audit as product

from .support import EXPECTED, FAILING, OBSERVED, SCRIPT, ProcessCase, call, case, environment, trace, traces, workflows

PAIR = ("--expected", "workflows.json", "--observed", "traces.json")
# A report that no pipe's buffer holds.
LARGE_CASES = workflows(*(case(f"r{number}", ["a"] * 4) for number in range(300)))
LARGE_TRACES = traces(*(trace(f"r{number}", [call(f"c{index}") for index in range(4)]) for number in range(300)))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class Statuses(ProcessCase):
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


# What is no right use of the options; the first ones stand for all in processes of their own.
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


class Usage(ProcessCase):
    def test_wrong_usage_is_1(self) -> None:
        for words, result in self.run_each(WRONG[:10]):
            with self.subTest(words):
                self.assert_no_statement(result)
                self.assertEqual(1, result.stderr.count(b"\n"))
        self.assertEqual(["traces.json", "workflows.json"], self.names())

    def test_every_wrong_usage_is_1(self) -> None:
        for words in WRONG:
            output, error = io.StringIO(), io.StringIO()
            with self.subTest(words):
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
                    status = product.main(words)
                self.assertEqual((1, ""), (status, output.getvalue()))
                self.assertRegex(error.getvalue(), r"\Aagent_trace_audit: error: [ -~]+\n\Z")

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

    def test_help_is_the_same_everywhere(self) -> None:
        plain = self.run_words("--help").stdout
        for changes in ({"COLUMNS": "30"}, {"FORCE_COLOR": "1"}, {"LC_ALL": "C", "LANGUAGE": "de"}):
            with self.subTest(changes):
                self.assertEqual(plain, self.run_words("--help", env=environment(**changes)).stdout)

    def test_version_tells_copies_apart(self) -> None:
        changed = self.put("copy.py", SCRIPT.read_bytes() + b"# changed\n")
        for script in (SCRIPT, changed):
            with self.subTest(script.name):
                result = self.run_words("--version", script=script)
                self.assertEqual((0, b""), (result.returncode, result.stderr))
                text = result.stdout.decode("ascii")
                self.assertIn(product.VERSION, text)
                self.assertIn(hashlib.sha256(script.read_bytes()).hexdigest(), text)


class Summary(ProcessCase):
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

    def wanted(self, report: Any) -> List[str]:
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
                self.assertEqual(self.wanted(report), lines)
                self.assertIn("FAIL r2 sequence: step 1: expected a, got b", lines)
                self.assertIn("UNKNOWN-CASE r9: recorded, but no case expects it", lines)

    def test_a_failing_summary_without_the_gate_says_that_the_status_is_0(self) -> None:
        result = self.check("--summary")
        report = self.assert_report(result, "fail", 0)
        *lines, last = result.stderr.decode("ascii").splitlines()
        self.assertEqual(self.wanted(report), lines)
        self.assertRegex(last, "exit status is 0")

    def test_a_passing_summary(self) -> None:
        self.put("workflows.json", workflows(case("r1"), case("r2")))
        self.put("traces.json", traces(trace("r1"), trace("r2")))
        for more in ([], ["--fail-on-errors"]):
            with self.subTest(more):
                result = self.check("--summary", *more)
                self.assert_report(result, "pass", 0)
                self.assertEqual(b"0 of 2 cases failed, 0 unknown cases\n", result.stderr)

    def test_no_summary_of_a_report_that_was_not_written(self) -> None:
        with open("/dev/full", "wb") as full:
            result = self.check("--summary", "--fail-on-errors", stdout=full)
        self.assert_no_statement(result, "standard output")
        self.assertEqual(1, result.stderr.count(b"\n"))


class Streams(ProcessCase):
    def in_shell(self, redirection: str, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """The program with a stream redirected as only a shell can."""
        command = ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *self.command(*words)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.run(
            command, cwd=str(self.directory), env=environment(), timeout=60, check=False, **{**pipes, **options}
        )

    def test_standard_output_that_is_full(self) -> None:
        lines = ([*PAIR], [*PAIR, "--fail-on-errors"], ["--help"], ["--version"], [*PAIR, "--output", "-"])
        for unbuffered in ("", "1"):
            with open("/dev/full", "wb") as full:
                for words, result in self.run_each(lines, stdout=full, env=environment(PYTHONUNBUFFERED=unbuffered)):
                    with self.subTest(words, unbuffered=unbuffered):
                        self.assert_no_statement(result, "standard output")

    def test_standard_output_that_is_closed(self) -> None:
        for words in ([*PAIR], ["--help"], ["--version"]):
            with self.subTest(words):
                self.assert_no_statement(self.in_shell(">&-", *words), "standard output")

    def test_closed_standard_output_is_of_no_matter_to_a_file(self) -> None:
        result = self.in_shell("<&- >&-", *PAIR, "--output", "report.json")
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual("pass", json.loads((self.directory / "report.json").read_bytes())["verdict"])

    def test_reader_that_leaves_early(self) -> None:
        self.put("workflows.json", LARGE_CASES)
        self.put("traces.json", LARGE_TRACES)
        for unbuffered in ("", "1"):
            with self.subTest(unbuffered=unbuffered):
                process = subprocess.Popen(
                    self.command(*PAIR, "--fail-on-errors"),
                    cwd=str(self.directory),
                    env=environment(PYTHONUNBUFFERED=unbuffered),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                assert process.stdout is not None
                assert process.stderr is not None
                with process.stdout, process.stderr:
                    self.assertEqual(b"{", process.stdout.read(1))
                    process.stdout.close()
                    error = process.stderr.read()
                status = process.wait(60)
                result = subprocess.CompletedProcess([], status, b"", error)
                self.assert_no_statement(result, "standard output")

    def test_large_report_through_a_pipe(self) -> None:
        self.put("workflows.json", LARGE_CASES)
        self.put("traces.json", LARGE_TRACES)
        wanted = product.json_bytes(product.audit(LARGE_CASES, LARGE_TRACES))
        self.assertGreater(len(wanted), 1 << 17)
        for unbuffered in ("", "1"):
            with self.subTest(unbuffered=unbuffered):
                result = self.check(env=environment(PYTHONUNBUFFERED=unbuffered))
                self.assertEqual((0, wanted), (result.returncode, result.stdout))

    def test_standard_error_that_cannot_be_written_changes_no_status(self) -> None:
        self.put("bad.json", b"[")
        lines = (
            [*PAIR],
            [*PAIR, "--summary"],
            ["--expected", "workflows.json", "--observed", "bad.json"],
            ["--unknown"],
        )
        with open("/dev/full", "wb") as full:
            statuses = [result.returncode for _, result in self.run_each(lines, stderr=full)]
        self.assertEqual([0, 0, 1, 1], statuses)
        self.assertEqual([0, 0, 1, 1], [self.in_shell("2>&-", *words).returncode for words in lines])
        self.put("traces.json", FAILING)
        with open("/dev/full", "wb") as full:
            self.assert_report(self.check("--fail-on-errors", stderr=full), "fail", 2)
        self.assert_report(self.in_shell("2>&-", *PAIR, "--fail-on-errors"), "fail", 2)

    def test_interpreter_options_and_encodings(self) -> None:
        self.put("workflows.json", workflows(case(group="Caf\u00e9 \U0001f600")))
        self.put("traces.json", FAILING)
        wanted = self.check("--fail-on-errors")
        self.assert_report(wanted, "fail", 2)
        for python, env in (
            (["-I"], environment()),
            (["-O"], environment()),
            (["-OO"], environment()),
            (["-W", "error", "-bb", "-X", "dev"], environment()),
            (["-S", "-E", "-s"], environment()),
            ([], environment(PYTHONUNBUFFERED="1")),
            ([], environment(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")),
            ([], environment(PYTHONIOENCODING="cp1252")),
            ([], environment(PYTHONIOENCODING="ascii:strict")),
        ):
            with self.subTest(python, env={name: value for name, value in env.items() if name.startswith("PYTHON")}):
                result = self.check("--fail-on-errors", python=python, env=env)
                self.assertEqual((2, wanted.stdout, wanted.stderr), (result.returncode, result.stdout, result.stderr))

    def test_names_beyond_ascii_under_the_c_locale(self) -> None:
        env = environment(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
        result = self.run_words("--expected", os.fsdecode(b"caf\xc3\xa9.json"), "--observed", "traces.json", env=env)
        self.assert_no_statement(result, ".json: ")


class Inputs(ProcessCase):
    def open_fifo(self, path: Path, process: subprocess.Popen[bytes]) -> int:
        """The writing end, as soon as the process reads from the other one."""
        while process.poll() is None:
            try:
                return os.open(str(path), os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads yet
                os.sched_yield()
        raise AssertionError(f"ended with {process.returncode} before it read")

    def wait_until_it_waits(self, process: subprocess.Popen[bytes], writer: int) -> None:
        """Until the process has taken what there was to read and sleeps in the next read."""
        os.write(writer, b"[")
        waiting = bytearray(4)
        fcntl.ioctl(writer, termios.FIONREAD, waiting)
        while any(waiting) or Path(f"/proc/{process.pid}/stat").read_text("ascii").split()[2] != "S":
            os.sched_yield()
            fcntl.ioctl(writer, termios.FIONREAD, waiting)

    def test_standard_input_for_either(self) -> None:
        self.assert_report(self.run_words("--expected", "-", "--observed", "traces.json", input=EXPECTED))
        self.assert_report(self.run_words("--expected", "workflows.json", "--observed", "-", input=OBSERVED))

    def test_standard_input_is_named_by_a_dash(self) -> None:
        result = self.run_words("--expected", "workflows.json", "--observed", "-", input=b"[1]")
        self.assert_no_statement(result, "error: -: $[0]: ")

    def test_standard_input_serves_one_alone(self) -> None:
        self.assert_no_statement(self.run_words("--expected", "-", "--observed", "-", input=EXPECTED))

    def test_closed_standard_input(self) -> None:
        command = [
            "/bin/sh",
            "-c",
            'exec "$@" <&-',
            "sh",
            *self.command("--expected", "-", "--observed", "traces.json"),
        ]
        result = subprocess.run(
            command, cwd=str(self.directory), env=environment(), capture_output=True, timeout=60, check=False
        )
        self.assert_no_statement(result, "error: -: ")

    def test_never_more_than_one_byte_beyond_the_bound_is_read(self) -> None:
        large = self.put("large", b" " * 600_000)
        with open(str(large), "rb", buffering=0) as file:
            result = self.run_words("--expected", "-", "--observed", "traces.json", stdin=file)
            self.assert_no_statement(result, "524,288")
            self.assertLessEqual(file.tell(), 524_289)

    def test_fifo_in_pieces(self) -> None:
        fifo = self.directory / "fifo"
        os.mkfifo(str(fifo))
        process = self.start("--expected", "workflows.json", "--observed", "fifo")
        writer = self.open_fifo(fifo, process)
        for index in range(len(OBSERVED)):
            os.write(writer, OBSERVED[index : index + 1])
        os.close(writer)
        output, error = process.communicate(timeout=60)
        self.assertEqual((0, b""), (process.returncode, error))
        self.assertEqual(product.json_bytes(product.audit(EXPECTED, OBSERVED)), output)

    def test_interrupt_while_reading(self) -> None:
        fifo = self.directory / "fifo"
        os.mkfifo(str(fifo))
        self.put("report.json", b"old")
        before = self.names()
        process = self.start("--expected", "workflows.json", "--observed", "fifo", "--output", "report.json")
        writer = self.open_fifo(fifo, process)
        self.wait_until_it_waits(process, writer)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
        os.close(writer)
        self.assert_no_statement(subprocess.CompletedProcess([], process.returncode, output, error))
        self.assertEqual(before, self.names())
        self.assertEqual(b"old", (self.directory / "report.json").read_bytes())


# Everything that the program, or a module that it imports, imports on some Python.
PLANTED = """
    abc argparse ast base64 codecs collections contextlib copy dataclasses datetime decimal enum
    functools gettext hashlib heapq io itertools json keyword linecache locale numbers operator os
    pathlib posixpath random re reprlib shutil signal site sre_compile sre_parse stat string struct
    subprocess tempfile textwrap threading tokenize traceback types typing unicodedata warnings
    weakref _collections_abc _decimal _hashlib _json _pydecimal _py_abc
"""


class Planted(ProcessCase):
    def setUp(self) -> None:
        super().setUp()
        self.copy = self.directory / "agent_trace_audit.py"
        shutil.copy(str(SCRIPT), str(self.copy))
        for name in PLANTED.split():
            self.put(f"{name}.py", b"import sys\nsys.stdout.write('planted')\nsys.exit(3)\n")

    def test_modules_beside_the_script_are_not_imported(self) -> None:
        wanted = product.json_bytes(product.audit(EXPECTED, OBSERVED))
        expected, observed = str(self.expected), str(self.observed)
        for name, script, cwd in (
            ("by its name", Path(self.copy.name), str(self.directory)),
            ("by a relative path", Path(self.directory.name) / self.copy.name, str(self.directory.parent)),
            ("by its full path", self.copy, "/"),
        ):
            with self.subTest(name):
                result = self.run_words("--expected", expected, "--observed", observed, script=script, cwd=cwd)
                self.assertEqual((0, wanted, b""), (result.returncode, result.stdout, result.stderr))

    def test_nor_in_any_other_run(self) -> None:
        self.put("traces.json", FAILING)
        lines = (
            ["--help"],
            ["--version"],
            ["--unknown"],
            [*PAIR, "--fail-on-errors"],
            [*PAIR, "--output", "report.json"],
            ["--expected", "traces.json", "--observed", "traces.json"],
        )
        statuses = []
        for words, result in self.run_each(lines, script=self.copy):
            with self.subTest(words):
                statuses.append(result.returncode)
                self.assertNotIn(b"planted", result.stdout + result.stderr)
        self.assertEqual([0, 0, 1, 2, 0, 1], statuses)


class Output(ProcessCase):
    def setUp(self) -> None:
        super().setUp()
        self.target = self.directory / "report.json"
        self.wanted = product.json_bytes(product.audit(EXPECTED, OBSERVED))

    def assert_written(self, *more: str, to: str = "report.json", **options: Any) -> None:
        """The whole report in a file, nothing on either stream, and no file but the target is new."""
        before = {*self.names(), Path(to).name}
        result = self.check("--output", to, *more, **options)
        self.assertEqual((0, b"", b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual(self.wanted, (self.directory / to).read_bytes())
        self.assertLessEqual(set(self.names()), before)

    def contents(self) -> List[Any]:
        paths = [self.directory / name for name in self.names()]
        return [(path, path.is_symlink(), path.read_bytes() if path.is_file() else None) for path in paths]

    def assert_unchanged(self, run: Callable[[], subprocess.CompletedProcess[bytes]], *words: str) -> None:
        """Exit 1, and every file is as it was."""
        before = self.contents()
        self.assert_no_statement(run(), *words)
        self.assertEqual(before, self.contents())

    def test_new_file_has_the_permissions_of_a_plain_open(self) -> None:
        for mask, mode in ((0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0, 0o666)):
            with self.subTest(oct(mask)):
                self.assert_written(preexec_fn=partial(os.umask, mask))
                self.assertEqual(mode, mode_of(self.target))
                self.target.unlink()

    def test_replaced_file_keeps_its_permissions(self) -> None:
        for mode in (0o600, 0o644, 0o664, 0o755):
            with self.subTest(oct(mode)):
                self.target.write_bytes(b"old" * 10_000)
                self.target.chmod(mode)
                self.assert_written(preexec_fn=partial(os.umask, 0o077))
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
                self.assertEqual(self.wanted, real.read_bytes())
                self.assertEqual(["real.json"], os.listdir(str(real.parent)))
                if before is not None:
                    self.assertEqual(0o640, mode_of(real))
                self.target.unlink()
                real.unlink()

    def test_dash_is_standard_output(self) -> None:
        result = self.check("--output", "-")
        self.assertEqual((0, self.wanted, b""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual(["traces.json", "workflows.json"], self.names())

    def test_the_gate_writes_the_file_too(self) -> None:
        self.put("traces.json", FAILING)
        result = self.check("--output", "report.json", "--fail-on-errors")
        self.assertEqual((2, b""), (result.returncode, result.stdout))
        self.assertEqual(product.json_bytes(product.audit(EXPECTED, FAILING)), self.target.read_bytes())

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
            for words, result in self.run_each([*PAIR, "--output", target] for target in targets):
                with self.subTest(words):
                    self.assert_no_statement(result, "--output")
            self.assertEqual(before, self.contents())

    def test_an_input_spelled_otherwise_is_no_target(self) -> None:
        (self.directory / "link").symlink_to("traces.json")
        words = ["--expected", "workflows.json", "--observed", "link", "--output", "traces.json"]
        self.assert_unchanged(lambda: self.run_words(*words))

    def test_standard_input_is_no_target(self) -> None:
        def run() -> subprocess.CompletedProcess[bytes]:
            with open(str(self.expected), "rb") as file:
                words = ["--expected", "-", "--observed", "traces.json", "--output", "workflows.json"]
                return self.run_words(*words, stdin=file)

        self.assert_unchanged(run)

    def test_standard_output_is_no_input_either(self) -> None:
        def run() -> subprocess.CompletedProcess[bytes]:
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
        self.assertEqual(self.wanted, written)
        self.assertTrue(stat.S_ISFIFO(self.target.stat().st_mode))

    def test_targets_that_cannot_be_written(self) -> None:
        (self.directory / "folder").mkdir()
        targets = ("folder", "folder/", "nowhere/report.json", "traces.json/report.json", "x" * 300, "new/")
        before = self.contents()
        for words, result in self.run_each([*PAIR, "--output", target] for target in targets):
            with self.subTest(words):
                self.assert_no_statement(result, words[-1])
        self.assertEqual(before, self.contents())

    def test_full_disk_keeps_the_old_file(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        for old in (b"old", None):
            with self.subTest(old=old):
                if old is None:
                    self.target.unlink()
                else:
                    self.target.write_bytes(old)
                self.assert_unchanged(lambda: self.check("--output", "report.json", preexec_fn=limit), "report.json")

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
            for words, result in self.run_each(lines):
                with self.subTest(words, old=old):
                    self.assert_no_statement(result)
            self.assertEqual(before, self.contents())


if __name__ == "__main__":
    unittest.main()
