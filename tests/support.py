"""What the tests share: small documents, the program as a process, the vector files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "agent_trace_audit.py"
VECTORS = ROOT / "tests" / "vectors"
PREFIX = "agent_trace_audit: error: "

Json = Dict[str, Any]


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
FAILING = traces(trace(calls=[call(status="failed")]))


def environment(**changes: str) -> Dict[str, str]:
    """This process's environment without Python's own variables, which would change what is tested."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **changes}


def load_vectors() -> Dict[str, Json]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(VECTORS.glob("*.json"))}


def visible(text: str) -> bool:
    """Printable ASCII alone: nothing in it can act on a terminal."""
    return all(" " <= character <= "~" for character in text)


Result = subprocess.CompletedProcess  # of bytes


class ProcessCase(unittest.TestCase):
    """A directory with two small inputs that pass, and the program run in it as a process of its own."""

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

    def command(self, *arguments: str, script: Path = SCRIPT, python: Sequence[str] = ()) -> List[str]:
        return [sys.executable, *python, str(script), *arguments]

    def run_words(
        self, *arguments: str, script: Path = SCRIPT, python: Sequence[str] = (), **options: Any
    ) -> Result[bytes]:
        """Exactly these words on the command line, in the directory of the two inputs."""
        options.setdefault("env", environment())
        options.setdefault("cwd", str(self.directory))
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        words = self.command(*arguments, script=script, python=python)
        return subprocess.run(words, timeout=60, check=False, **options)

    def run_each(self, each: Iterable[Sequence[str]], **options: Any) -> Iterator[Tuple[Sequence[str], Result[bytes]]]:
        """Several command lines, a few at a time: most of a process is waiting for Python to start."""
        lines = list(each)
        with ThreadPoolExecutor(4) as pool:
            yield from zip(lines, pool.map(lambda words: self.run_words(*words, **options), lines))

    def start(self, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """The program left running, to be interrupted; it is killed at the end of the test."""
        process = subprocess.Popen(
            self.command(*arguments),
            cwd=str(self.directory),
            env=environment(),
            stdout=stdout,
            stderr=subprocess.PIPE,
            # A background job of a shell inherits an ignored SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self.addCleanup(process.kill)
        return process

    def check(self, *more: str, **options: Any) -> Result[bytes]:
        """A check of the two inputs."""
        return self.run_words("--expected", "workflows.json", "--observed", "traces.json", *more, **options)

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
