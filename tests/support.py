"""What the tests share: the program under test, small documents, and its runs in this process and in real ones.

The tests use the program through its public ways in alone, `audit`, `InputError` and `main`, and as a script. Which
file that is stands in one place, `PROGRAM`; a test class that is run against another one says so in `chosen`.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import functools
import json
import os
import py_compile
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "tests" / "vectors"
PREFIX = "agent_trace_audit: error: "
# No wait of a test is longer; a machine that is busy may need a while.
DEADLINE = 60

Json = Dict[str, Any]
Result = subprocess.CompletedProcess  # of bytes


def load(source: str, path: Path) -> Any:
    """Source text as a module of its own, as `import agent_trace_audit` would make it of this file."""
    module = types.ModuleType("agent_trace_audit")
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


class Program:
    """A script under test: as a file for processes, and as a module for calls in this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.read_text("utf-8")
        module = load(self.source, path)
        self.main: Callable[[List[str]], int] = module.main
        self.audit: Callable[[bytes, bytes], Json] = module.audit
        self.refusal: Any = module.InputError

    @functools.cached_property
    def compiled(self) -> Path:
        """The script compiled once: compiling it anew is the larger half of each of its processes."""
        folder = tempfile.TemporaryDirectory()
        atexit.register(folder.cleanup)
        path = Path(folder.name, "agent_trace_audit.pyc")
        py_compile.compile(str(self.path), str(path), doraise=True)
        return path

    def problems(self, expected: bytes, observed: bytes) -> List[str]:
        """What a pair is refused for; empty when it is accepted."""
        try:
            self.audit(expected, observed)
        except self.refusal as refused:
            problems: List[str] = refused.problems
            return problems
        return []


PROGRAM = Program(ROOT / "agent_trace_audit.py")


def case(id: str = "r1", sequence: Sequence[str] = ("a",), allowed: Sequence[str] = ("a",), **more: Any) -> Json:
    """An expected case; by default the smallest that `trace()` passes."""
    return {"id": id, "sequence": list(sequence), "allowed_tools": list(allowed), **more}


def call(id: str = "c1", tool: str = "a", status: str = "succeeded", **more: Any) -> Json:
    return {"id": id, "tool": tool, "status": status, **more}


def trace(id: str = "r1", calls: Optional[Sequence[Json]] = None) -> Json:
    return {"id": id, "calls": [call()] if calls is None else list(calls)}


def to_bytes(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")


def workflows(*cases: Json) -> bytes:
    return to_bytes({"cases": list(cases) or [case()]})


def traces(*recorded: Json) -> bytes:
    return to_bytes(list(recorded) or [trace()])


EXPECTED = workflows()
OBSERVED = traces()
ORDERING: Json = {"require_prior": {"a": ["a"]}, "forbid_after": {"a": ["a"]}, "max_calls": {"a": 1}}
FAILING = traces(trace(calls=[call(status="failed")]))
PAIR = ("--expected", "workflows.json", "--observed", "traces.json")


def environment(**changes: str) -> Dict[str, str]:
    """This process's environment without Python's own variables, which would change what is tested."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **changes}


def load_vectors() -> Dict[str, Json]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(VECTORS.glob("*.json"))}


def visible(text: str) -> bool:
    """Printable ASCII alone: nothing in it can act on a terminal."""
    return all(" " <= character <= "~" for character in text)


# Every entry of these lists stands on one line with all that it holds, and so does each of these members.
LINE_OF_ENTRY = ("checks", "recorded_calls", "calls")
LINE_OF_MEMBER = ("expects",)


def laid_out(value: Any) -> bytes:
    """A document as the contract lays it out, by a second and slow way."""
    return (text_of(value, "\n", "") + "\n").encode("ascii")


def text_of(value: Any, line: str, key: str) -> str:
    """A value whose own line starts with `line`, under this key of the object around it."""
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if key in LINE_OF_MEMBER or not any(isinstance(member, (dict, list)) for member in members):
        return json.dumps(value)
    inner = line + "  "
    if isinstance(value, dict):
        texts = [f"{json.dumps(name)}: {text_of(member, inner, name)}" for name, member in value.items()]
        return "{" + inner + ("," + inner).join(texts) + line + "}"
    texts = [json.dumps(entry) if key in LINE_OF_ENTRY else text_of(entry, inner, "") for entry in value]
    return "[" + inner + ("," + inner).join(texts) + line + "]"


@contextlib.contextmanager
def redirected(stdin: Any, stdout: Any, stderr: Any) -> Iterator[None]:
    """The three streams of this process, its descriptors and `sys`'s objects alike, led to open files."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ours = sys.stdin, sys.stdout, sys.stderr
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate((stdin, stdout, stderr)):
            os.dup2(file.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = STREAMS
        yield
        for stream in STREAMS[1:]:
            stream.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = ours
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextlib.contextmanager
def working_directory(path: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(str(path))
    try:
        yield
    finally:
        os.chdir(before)


# Held while a process starts, and while what it would inherit is not as it should be.
INHERITED = threading.Lock()


@contextlib.contextmanager
def file_mask(mask: int) -> Iterator[None]:
    with INHERITED:
        before = os.umask(mask)
        try:
            yield
        finally:
            os.umask(before)


def opened(file: Any) -> Any:
    """A file that stays open to the end of all tests; new ones would cost more than most runs in this process."""
    atexit.register(file.close)
    return file


STREAMS = [opened(open(number, mode, encoding="ascii", closefd=False)) for number, mode in enumerate("rww")]  # noqa: SIM115
NOTHING = opened(open(os.devnull, "rb"))  # noqa: SIM115
WRITTEN = [opened(tempfile.TemporaryFile()) for _ in range(2)]  # noqa: SIM115


def taken(file: Any) -> bytes:
    """What a run has left in a file, which is empty afterwards."""
    data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    os.ftruncate(file.fileno(), 0)
    return data


class Case(unittest.TestCase):
    """A directory with two small inputs that pass, and the program run in it, in this process."""

    program: ClassVar[Program] = PROGRAM

    @classmethod
    def chosen(cls) -> Program:
        """The program that the tests of this class are about."""
        return PROGRAM

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.program = cls.chosen()

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.expected = self.put("workflows.json", EXPECTED)
        self.observed = self.put("traces.json", OBSERVED)

    def put(self, name: str, data: bytes) -> Path:
        path = self.directory / name
        path.write_bytes(data)
        return path

    def names(self) -> List[str]:
        return sorted(os.listdir(str(self.directory)))

    def run_words(
        self,
        *words: str,
        input: bytes = b"",
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        program: Any = None,
    ) -> Result[bytes]:
        """Exactly these words on the command line, in the directory of the two inputs."""
        with contextlib.ExitStack() as files:
            if input:
                stdin = files.enter_context(tempfile.TemporaryFile())
                stdin.write(input)
                stdin.seek(0)
            files.enter_context(redirected(stdin or NOTHING, stdout or WRITTEN[0], stderr or WRITTEN[1]))
            files.enter_context(working_directory(self.directory))
            status = (program or self.program).main(list(words))
        return subprocess.CompletedProcess(words, status, *map(taken, WRITTEN))

    def check(self, *more: str, **options: Any) -> Result[bytes]:
        """A check of the two inputs."""
        return self.run_words(*PAIR, *more, **options)

    def wanted(self, expected: bytes = EXPECTED, observed: bytes = OBSERVED) -> bytes:
        """The bytes that the report of a pair should be."""
        return laid_out(self.program.audit(expected, observed))

    def assert_no_statement(self, result: Result[bytes], *words: str) -> None:
        """Exit 1: nothing on standard output, a plain reason on standard error."""
        error = (result.stderr or b"").decode("ascii")
        self.assertEqual(1, result.returncode, error)
        self.assertIn(result.stdout, (b"", None))
        self.assertNotIn("Traceback", error)
        lines = error.splitlines()
        self.assertTrue(lines, "no reason given")
        for line in lines:
            self.assertTrue(visible(line), line)
            self.assertTrue(line.startswith((PREFIX, "and ")), line)
        for word in words:
            self.assertIn(word, error)

    def assert_report(self, result: Result[bytes], verdict: str = "pass", exit: int = 0) -> Json:
        """A whole report on standard output, and nothing on standard error but what the verdict asks for."""
        self.assertEqual(exit, result.returncode, result.stderr)
        report: Json = json.loads(result.stdout)
        self.assertEqual(verdict, report["verdict"])
        return report


THREADS = ThreadPoolExecutor(2)


class ProcessCase(Case):
    """The same, with the program run as a process of its own.

    All tests of such a class are started together, and before all others where `Together` runs them: each in a thread
    and a directory of its own, for most of a process is waiting for another. So they leave alone what is this whole
    process's, such as its own directory, its mask and its streams.
    """

    running: ClassVar[Dict[str, Future[None]]] = {}
    started: ClassVar[List[subprocess.Popen[bytes]]] = []

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.addClassCleanup(cls.end)
        cls.begin()

    @classmethod
    def begin(cls) -> None:
        """Start every test of the class, unless that was done."""
        if "running" in vars(cls):
            return
        # A background job of a shell inherits an ignored SIGINT, which a process started from here would too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        cls.program = cls.chosen()
        cls.program.compiled  # noqa: B018 - before several threads ask for it
        cls.started = []
        names = unittest.TestLoader().getTestCaseNames(cls)
        cls.running = {name: THREADS.submit(cls.alone, name) for name in names}

    @classmethod
    def end(cls) -> None:
        """Wait for tests that nobody asked for, and kill what one has left running."""
        for test in cls.running.values():
            test.cancel()
        concurrent.futures.wait(cls.running.values(), DEADLINE)
        cls.kill()

    @classmethod
    def kill(cls) -> None:
        """End every process that is left, and with it whatever waits for one."""
        for process in cls.started:
            process.kill()

    @classmethod
    def alone(cls, name: str) -> None:
        """One test from its set-up to its clean-up."""
        test = cls(name)
        try:
            test.setUp()
            getattr(test, name)()
        finally:
            test.tearDown()
            test.doCleanups()

    def run(self, result: Optional[unittest.TestResult] = None) -> Optional[unittest.TestResult]:
        # What unittest runs as this test is the wait for its thread.
        setattr(self, self._testMethodName, self.outcome)
        self.setUp = lambda: None  # type: ignore[method-assign]
        return super().run(result)

    def outcome(self) -> None:
        """Wait for what the test of this name came to in its thread."""
        try:
            self.running[self._testMethodName].result(2 * DEADLINE)
        except concurrent.futures.TimeoutError:
            self.kill()
            raise

    @contextlib.contextmanager
    def subTest(self, msg: Any = "", **params: Any) -> Iterator[None]:
        """Name the part of a test that failed; in a thread there is no result to add it to."""
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"[{msg}] {params or ''}: {error}") from error

    def command(self, *words: str, script: Optional[Path] = None, python: Sequence[str] = ()) -> List[str]:
        # With options of the interpreter the script is what it compiles itself.
        chosen = script or (self.program.path if python else self.program.compiled)
        return [sys.executable, *python, str(chosen), *words]

    def start(
        self,
        *words: str,
        script: Optional[Path] = None,
        python: Sequence[str] = (),
        around: str = 'exec "$@"',
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """The program as a process; `around` is a shell command around it: a limit, a redirection.

        What is left running is killed when all tests of the class are over.
        """
        return self.start_command(
            ["/bin/sh", "-c", around, "sh", *self.command(*words, script=script, python=python)], **options
        )

    def start_command(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        options = {"stdin": subprocess.DEVNULL, **pipes, "env": environment(), "cwd": str(self.directory), **options}
        with INHERITED:
            process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)
        self.started.append(process)
        return process

    def ended(self, process: subprocess.Popen[bytes], input: Optional[bytes] = None) -> Result[bytes]:
        output, error = process.communicate(input, timeout=DEADLINE)
        return subprocess.CompletedProcess(process.args, process.returncode, output, error)

    def run_words(self, *words: str, input: Optional[bytes] = None, **options: Any) -> Result[bytes]:
        """The same as a process."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        return self.ended(self.start(*words, **options), input)

    def run_each(self, *runs: Tuple[Sequence[str], Dict[str, Any]]) -> List[Result[bytes]]:
        """Several runs at a time, each of its words and its options."""
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda run: self.run_words(*run[0], **run[1]), runs))

    def until(self, process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
        """Wait until a running process has come to something."""
        end = time.monotonic() + DEADLINE
        while not reached():
            self.assertLess(time.monotonic(), end, "it never came to that")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.fail(f"ended with {process.wait(0.002)} before it came to that")

    def blocked(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether a process sleeps, as in reading from a pipe."""
        return Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "S"


class Together(unittest.TestSuite):
    """Tests of which those with processes are started first and waited for last, the others run meanwhile."""

    def run(self, result: unittest.TestResult, debug: bool = False) -> unittest.TestResult:
        each = list(flat(self))
        for kind in {type(test): None for test in each}:
            if issubclass(kind, ProcessCase):
                with contextlib.suppress(AssertionError):  # which its own set-up raises again
                    kind.begin()
        return unittest.TestSuite(sorted(each, key=lambda test: isinstance(test, ProcessCase))).run(result, debug)


def flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            assert isinstance(test, unittest.TestCase)
            yield test
