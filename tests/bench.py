"""Whole-process medians as ratios, run by hand: python tests/bench.py

Each ratio compares two processes of one run under `python -I`, so that the machine cancels out: the full load against
a floor that only reads, parses and dumps the same two files, and the shipped example against an interpreter that only
imports the modules that any such program needs. Both for the whole file and for the check-only copy of it.
"""

from __future__ import annotations

import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "agent_trace_audit.py"
ROUNDS = 25

FLOOR = """
import json, sys
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        sys.stdout.write(json.dumps(json.loads(file.read()), separators=(",", ":")))
"""
IMPORTS = "import argparse, decimal, hashlib, json, typing"


def full_load() -> Tuple[Any, Any]:
    """500 cases with four calls each; every rule has something to decide."""
    tools = ["lookup_order", "verify_identity", "draft_reply", "send_reply"]
    cases = [
        {
            "id": f"case-{number:04d}",
            "group": f"Desk {number % 7}",
            "sequence": tools,
            "allowed_tools": tools,
            "max_cost_usd": "0.01",
            "max_total_tool_ms": 5000,
        }
        for number in range(500)
    ]
    traces = [
        {
            "id": f"case-{number:04d}",
            "calls": [
                {"id": f"call-{step}", "tool": tool, "status": "succeeded", "cost_usd": "0.002", "duration_ms": 400}
                for step, tool in enumerate(tools)
            ],
        }
        for number in range(500)
    ]
    return {"cases": cases}, traces


def seconds(command: List[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def ratio(one: List[str], other: List[str]) -> Tuple[float, float, float]:
    """Medians of both commands, taken in turns, and their quotient."""
    pairs = [(seconds(one), seconds(other)) for _ in range(ROUNDS)]
    first, second = (statistics.median(column) for column in zip(*pairs))
    return first, second, first / second


def peak_of(command: List[str]) -> float:
    """The most memory that a process has had, in MiB; asked of a process in between that has no other child."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3)\n"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-I", "-c", code, *command], stdout=subprocess.PIPE, check=True)
    return int(done.stdout) / (1024 if sys.platform != "darwin" else 1024**2)


def show(name: str, limit: float, measured: Tuple[float, float, float]) -> None:
    one, other, quotient = measured
    print(f"  {name:18} {one * 1000:7.1f} ms / {other * 1000:6.1f} ms = {quotient:.2f} (at most {limit})")


def measure(program: Path, inputs: List[str], full: float, small: float) -> None:
    """The three rows of one file."""
    isolated = [sys.executable, "-I"]
    check = [*isolated, str(program), "--expected", inputs[0], "--observed", inputs[1]]
    show("full load / floor", full, ratio(check, [*isolated, "-c", FLOOR, *inputs]))
    names = [str(ROOT / name) for name in ("workflows.example.json", "traces.example.json")]
    example = [*isolated, str(program), "--expected", names[0], "--observed", names[1]]
    show("example / imports", small, ratio(example, [*isolated, "-c", IMPORTS]))
    print(f"  peak of the full load {peak_of(check):.1f} MiB (at most 40)")


def main() -> None:
    print(f"Python {platform.python_version()}, medians of {ROUNDS} rounds")
    source = PROGRAM.read_text("utf-8")
    copy, opted_out = re.subn(r"(?ms)^# ==== opt-in.*?^# ==== end of opt-in[^\n]*\n", "", source)
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for name, document in zip(("workflows.json", "traces.json"), full_load()):
            inputs.append(str(Path(folder, name)))
            Path(folder, name).write_text(json.dumps(document), encoding="utf-8")
        print(f"whole file, {source.count(chr(10)):,} lines")
        measure(PROGRAM, inputs, 4.0, 2.0)
        if not opted_out:
            print("no line starts with '# ==== opt-in', so there is no check-only copy")
            return
        check_only = Path(folder, "check.py")
        check_only.write_text(copy, encoding="utf-8")
        print(f"check-only copy, {copy.count(chr(10)):,} lines")
        measure(check_only, inputs, 3.2, 1.5)


if __name__ == "__main__":
    main()
