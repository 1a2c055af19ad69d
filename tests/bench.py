"""Whole-process medians as ratios, run by hand: python tests/bench.py

Each ratio compares two processes of one run under `python -I`, so that the machine cancels out:
the full load against a floor that only reads, parses and dumps the same two files, and the shipped
example against an interpreter that only imports the modules that any such program needs.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(ROOT / "agent_trace_audit.py")
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


def show(name: str, limit: float, measured: Tuple[float, float, float]) -> None:
    one, other, quotient = measured
    print(f"{name}: {one * 1000:.1f} ms / {other * 1000:.1f} ms = {quotient:.2f} (at most {limit})")


def main() -> None:
    isolated = [sys.executable, "-I"]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, document in zip(("workflows.json", "traces.json"), full_load()):
            files.append(str(Path(folder, name)))
            Path(folder, name).write_text(json.dumps(document), encoding="utf-8")
        check = [*isolated, PROGRAM, "--expected", files[0], "--observed", files[1]]
        seconds(check)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
        show("full load / floor", 3.0, ratio(check, [*isolated, "-c", FLOOR, *files]))
    names = [str(ROOT / name) for name in ("workflows.example.json", "traces.example.json")]
    example = [*isolated, PROGRAM, "--expected", names[0], "--observed", names[1]]
    show("example / imports", 1.5, ratio(example, [*isolated, "-c", IMPORTS]))
    print(f"peak memory of the full load: {peak:.1f} MiB (at most 40)")


if __name__ == "__main__":
    main()
