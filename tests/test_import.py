"""Importing: recordings of real tools, vectors, bounds, the order of calls, and that no content gets out."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import re
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import agent_trace_audit as product
from tests.support import PREFIX, ProcessCase, visible

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
SECRETS = ("SECRET", "sk-test", "DO-NOT-LEAK")
START_ORDER = ("--overlap", "start-order")
NO_OUTPUT = ("--no-output", "succeeded")
SKIP = ("--unnamed", "skip")
T = "2026-01-05T10:00:"

Json = Dict[str, Any]


class Result(NamedTuple):
    """What one command line came to."""

    status: int
    out: str
    err: str

    @property
    def traces(self) -> Any:
        return json.loads(self.out)


def command(*words: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = product.main(list(words))
    return Result(status, out.getvalue(), err.getvalue())


def agents(span: str, start: Any = None, end: Any = None, output: Any = "x", **more: Any) -> Json:
    """A call as openai-agents records it."""
    data = {"type": "function", "name": "look", "output": output}
    record = {"object": "trace.span", "id": span, "trace_id": "t", "started_at": start, "ended_at": end}
    return {**record, "span_data": data, **more}


def generic(span: str, start: Any = None, end: Any = None, **more: Any) -> Json:
    record = {"trace_id": "t", "span_id": span, "type": "tool", "name": "look", "started_at": start, "ended_at": end}
    return {**record, **more}


class ImportTestCase(unittest.TestCase):
    """A directory for the file to import."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name, "in.jsonl")

    def load(self, format: str, content: Any, *options: str) -> Result:
        """Import bytes, text, or values as JSON Lines."""
        if not isinstance(content, (bytes, str)):
            content = "".join(json.dumps(value) + "\n" for value in content)
        self.path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return command("import", format, str(self.path), *options)

    def accepted(self, format: str, content: Any, *options: str) -> Any:
        result = self.load(format, content, *options)
        self.assertEqual(result.status, 0, result.err)
        return result.traces

    def problems(self, result: Result) -> List[str]:
        """The messages without what they all start with; nothing else may have been written."""
        self.assertEqual((result.status, result.out), (1, ""), result.err)
        lines = result.err.splitlines()
        self.assertLessEqual(len(lines), 21)
        self.assertTrue(all(map(visible, lines)))
        prefix = f"{PREFIX}{self.path}"
        self.assertTrue(all(line.startswith((prefix, "and ")) for line in lines), result.err)
        return [line[len(prefix) :] if line.startswith(prefix) else line for line in lines]

    def refused(self, format: str, content: Any, *options: str) -> str:
        return "\n".join(self.problems(self.load(format, content, *options)))


def calls(trace: Json) -> List[str]:
    """Each call as `id tool status`, with its duration and cost where it has them."""
    return [
        " ".join(
            [call["id"], call["tool"], call["status"]]
            + [f"{call[key]}ms" for key in ("duration_ms",) if key in call]
            + [f"${call[key]}" for key in ("cost_usd",) if key in call]
        )
        for call in trace["calls"]
    ]


def each_call(traces: Any, key: str) -> List[Any]:
    return [call.get(key) for trace in traces for call in trace["calls"]]


class Vectors(ImportTestCase):
    """The tables of tests/vectors/import: format, options, input, and what comes of it."""

    EXPECTED = ("traces", "calls", "ids", "order", "tools", "statuses", "count", "notes", "err", "problems", "usage")

    def test_vectors(self) -> None:
        files = sorted((HERE / "vectors" / "import").glob("*.json"))
        self.assertGreater(len(files), 10)
        formats = set()
        for file in files:
            vectors = json.loads(file.read_text("utf-8"))["vectors"]
            self.assertTrue(vectors, file.name)
            for vector in vectors:
                with self.subTest(file=file.stem, vector=vector["name"]):
                    formats.add(vector["format"])
                    self.check(vector)
        self.assertEqual(formats, set(product.FORMATS))

    def check(self, vector: Json) -> None:
        expected = vector.keys() & set(self.EXPECTED)
        self.assertTrue(expected)
        self.assertLessEqual(vector.keys() - expected, {"name", "format", "options", "lines", "text"})
        content = vector["text"] if "text" in vector else vector["lines"]
        result = self.load(vector["format"], content, *vector.get("options", ()))
        if "usage" in vector:
            self.assertTrue(result.err.startswith(PREFIX + vector["usage"]), result.err)
        elif "problems" in vector:
            found = self.problems(result)
            self.assertEqual(len(found), len(vector["problems"]), found)
            for line, (place, words) in zip(found, vector["problems"]):
                self.assertTrue(line.startswith(place if place.endswith(":") else f"{place}: "), line)
                self.assertIn(words, line)
        else:
            self.assertEqual(result.status, 0, result.err)
            self.compare(vector, result)

    def compare(self, vector: Json, result: Result) -> None:
        traces, lines = result.traces, [line[len("agent_trace_audit: ") :] for line in result.err.splitlines()]
        shown = {
            "traces": traces,
            "calls": {trace["id"]: calls(trace) for trace in traces},
            "ids": [trace["id"] for trace in traces],
            "order": " ".join(each_call(traces, "id")),
            "tools": each_call(traces, "tool"),
            "statuses": each_call(traces, "status"),
            "count": len(each_call(traces, "id")),
            "err": lines,
        }
        for key in vector.keys() & shown.keys():
            self.assertEqual(shown[key], vector[key])
        for note in vector.get("notes", ()):
            self.assertTrue(any(line.startswith(f"note: {note}") for line in lines), result.err)


class Recordings(ImportTestCase):
    """Every recording against EXPECTED.json."""

    def recordings(self) -> Dict[str, Any]:
        found: Json = json.loads((RECORDINGS / "EXPECTED.json").read_text(encoding="utf-8"))
        self.assertEqual(set(found), {path.relative_to(RECORDINGS).as_posix() for path in RECORDINGS.glob("*/*")})
        self.assertEqual({name.split("/")[0] for name in found}, set(product.FORMATS))
        return found

    def load_recording(self, name: str, *options: str) -> Result:
        return command("import", name.split("/")[0], str(RECORDINGS / name), *options)

    def test_calls(self) -> None:
        for name, expected in self.recordings().items():
            with self.subTest(name):
                skip = SKIP if "unnamed" in expected else ()
                result = self.load_recording(name, *START_ORDER, *NO_OUTPUT, *skip)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual(len(result.traces), len(expected["traces"]))
                for trace, wanted in zip(result.traces, expected["traces"]):
                    self.compare(trace, wanted)
                    self.assert_green(trace)

    def compare(self, trace: Any, wanted: Any) -> None:
        def clean(text: str) -> str:
            return re.sub("[^A-Za-z0-9.:_-]", "_", text)

        self.assertEqual(trace["id"], clean(wanted["trace"]))
        rounded = [None if call["duration_ms"] is None else math.ceil(call["duration_ms"]) for call in wanted["calls"]]
        self.assertEqual(
            [(call["tool"], call["status"], call.get("duration_ms")) for call in trace["calls"]],
            [(clean(call["tool"]), call["status"], ms) for call, ms in zip(wanted["calls"], rounded)],
        )
        ids = [f"step-{n}" if call["key"] is None else clean(call["key"]) for n, call in enumerate(wanted["calls"], 1)]
        if not trace["id"].startswith(("trc_", "otel_")):  # Attest counts steps of every type
            self.assertEqual([call["id"] for call in trace["calls"]], ids)

    def assert_green(self, trace: Any) -> None:
        """What was written passes as observed traces, and checks green against itself."""
        statuses = [call["status"] for call in trace["calls"]]
        case = {
            "id": trace["id"],
            "sequence": [call["tool"] for call in trace["calls"] if call["status"] == "succeeded"],
            "allowed_tools": [call["tool"] for call in trace["calls"]],
            "max_failed_calls": statuses.count("failed"),
        }
        report = product.audit(json.dumps({"cases": [case]}).encode(), json.dumps([trace]).encode())
        self.assertEqual(report["verdict"], "fail" if "pending" in statuses else "pass")

    def test_parallel_calls_are_refused_without_the_option(self) -> None:
        parallel = 0
        for name, expected in self.recordings().items():
            with self.subTest(name):
                result = self.load_recording(name, *(SKIP if "unnamed" in expected else ()))
                beside = [call for trace in expected["traces"] for call in trace["calls"] if call["parallel"]]
                self.assertEqual(result.status, 1 if beside else 0, result.err)
                parallel += len(beside)
                for call in beside:
                    self.assertIn("--overlap start-order", result.err)
                    self.assertIn(f" ({call['tool']})", result.err)
                    self.assertIn((call["key"] or "").rstrip("="), result.err)
        self.assertGreater(parallel, 20)

    def test_look_alikes_and_waiting_calls(self) -> None:
        seen = set()
        for name, expected in self.recordings().items():
            with self.subTest(name):
                if "unnamed" in expected:
                    result = self.load_recording(name, *START_ORDER)
                    self.assertEqual(1, result.status)
                    for attribute in expected["unnamed"]:
                        self.assertIn(f"looks like a tool call by its {attribute}, ", result.err)
                    traces = self.load_recording(name, *START_ORDER, "--unnamed", "span-name").traces
                    self.assertEqual(self.outcomes(traces), expected["span_name"])
                if "by_default" in expected:
                    traces = self.load_recording(name, *START_ORDER).traces
                    statuses = [[status for _, status in trace] for trace in self.outcomes(traces)]
                    self.assertEqual(statuses, expected["by_default"])
                    traces = self.load_recording(name, *START_ORDER, "--no-output", "superseded").traces
                    self.assertEqual(self.outcomes(traces), expected["superseded"])
                seen |= expected.keys()
        self.assertLessEqual({"unnamed", "by_default"}, seen)

    def outcomes(self, traces: Any) -> List[List[List[str]]]:
        return [[[call["tool"], call["status"]] for call in trace["calls"]] for trace in traces]

    def test_recordings_of_other_formats_are_told_apart(self) -> None:
        smallest = {
            format: min(RECORDINGS.glob(f"{format}/*"), key=lambda path: path.stat().st_size)
            for format in product.FORMATS
        }
        for actual, path in smallest.items():
            for format in smallest.keys() - {actual}:
                with self.subTest(path.name, format=format):
                    result = command("import", format, str(path))
                    self.assertEqual((result.status, result.out), (1, ""))
                    self.assertIn(f"holds no record of the format {format}; it looks like {actual}\n", result.err)

    def test_costs(self) -> None:
        result = self.load_recording("attest/v1_nested_agents.json")
        self.assertEqual(each_call(result.traces, "cost_usd"), ["0.0001", None, None, None, None])

    def test_case_ids(self) -> None:
        for name, field, wanted in (
            ("attest/v2_errors_retry_turns.json", "agent", "orchestrator"),
            ("attest/v2_errors_retry_turns.json", "conversation", "conv-9"),
            ("generic-jsonl/1_all_types_ok.jsonl", "workflow", "Refund_workflow"),
            ("generic-jsonl/1_all_types_ok.jsonl", "group", "conv-1"),
            ("openai-agents/j_backend_batches.jsonl", "group", "grp-1"),
            ("otlp/semconv_success.jsonl", "conversation", "conv_5j66UpCpwteGg4YSxUnt7lPY"),
            ("otlp/semconv_success.jsonl", "metadata.service.name", "trace-gen"),
            ("traceix/run_success.json", "test", "book-flight-basic"),
            ("traceix/run_success.json", "trace", "book-flight-basic"),
            ("claude-code/session_one_error.jsonl", "metadata.gitBranch", "main"),
            ("openai-chat/tau_bench_repeated_call_id.json", "metadata.task_id", "39"),
            ("langchain/tool_raised_run_ended_thread_state.json", "metadata.thread_id", "thread-0007"),
        ):
            with self.subTest(name, field=field):
                result = self.load_recording(name, "--case-id", field, *START_ORDER)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual([trace["id"] for trace in result.traces], [wanted])
                self.assertNotIn("trace ids change", result.err)

    def test_runs_of_one_case(self) -> None:
        name = "openai-agents/g_many_traces_interleaved.jsonl"
        options = ("--case-id", "workflow", *START_ORDER, "--runs")
        self.assertIn("another trace has the same case id; --runs", self.load_recording(name, *options[:-1]).err)
        traces = self.load_recording(name, *options).traces
        self.assertEqual({"id", "case", "calls"}, set().union(*traces))
        self.assertLess(len({trace["case"] for trace in traces}), len(traces))


class NothingGetsOut(ImportTestCase):
    """No planted secret in any output or message, for recordings whole and damaged."""

    def check(self, format: str, data: bytes, *options: str) -> int:
        result = self.load(format, data, *options)
        self.assertIn(result.status, (0, 1))
        shown = result.out + result.err
        for secret in SECRETS:
            self.assertNotIn(secret, shown)
        if result.status == 0:
            self.assertIsInstance(result.traces, list)
        else:
            self.problems(result)
        return result.status

    def test_recordings(self) -> None:
        planted = [path for path in RECORDINGS.glob("*/*") if b"SECRET" in path.read_bytes()]
        self.assertGreater(len(planted), 45)
        for path in planted:
            for options in ((), (*START_ORDER, *NO_OUTPUT, *SKIP), (*START_ORDER, "--unnamed", "span-name")):
                with self.subTest(path.name, options=options):
                    self.check(path.parent.name, path.read_bytes(), *options)

    def test_damaged_bytes(self) -> None:
        chance = random.Random(9)  # noqa: S311
        came = [0, 0]
        paths = sorted(path for path in RECORDINGS.glob("*/*") if path.stat().st_size < 6_000)
        for _ in range(150):
            path = chance.choice(paths)
            data = bytearray(path.read_bytes())
            for _ in range(chance.choice((1, 1, 2, 5))):
                at, width = chance.randrange(len(data)), chance.choice((0, 1, 1, 10))
                data[at : at + width] = chance.choice((b"", b"\0", b'"', b"{", b"]", b",", b"\xff", b"1e9", b"\\ud800"))
            came[self.check(path.parent.name, bytes(data), *START_ORDER, *SKIP)] += 1
        self.assertGreater(min(came), 15)

    def test_damaged_values(self) -> None:
        chance = random.Random(5)  # noqa: S311
        came = [0, 0]
        paths = sorted(path for path in RECORDINGS.glob("*/*") if path.stat().st_size < 6_000)
        for _ in range(250):
            path = chance.choice(paths)
            text = path.read_text(encoding="utf-8")
            values = [json.loads(line) for line in (text.splitlines() if path.suffix == ".jsonl" else [text])]
            for _ in range(chance.choice((1, 2, 4))):
                self.damage(values, chance)
            data = "\n".join(map(json.dumps, values)).encode()
            came[self.check(path.parent.name, data, *START_ORDER, *SKIP)] += 1
        self.assertGreater(min(came), 30)

    def damage(self, values: List[Any], chance: random.Random) -> None:
        """Replace, drop or repeat one value somewhere; what replaces it may be a secret."""
        planted = SECRETS[0] + "-META-005"
        holder: Any = values
        while holder:
            key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
            inner = holder[key]
            if isinstance(inner, (dict, list)) and inner and chance.random() < 0.85:
                holder = inner
                continue
            what = chance.randrange(4)
            if what == 0:
                del holder[key]
            elif what == 1 and isinstance(holder, list):
                holder.insert(key, inner)
            elif what == 2 and isinstance(holder, dict):
                holder[planted] = holder.pop(key)
            else:
                other = [{planted: planted}, [planted], None, "", {}, [], -1, 0.5, True, 10**30, float("nan")]
                holder[key] = chance.choice(other)
            return


class Bounds(ImportTestCase):
    """Both sides of each, and time and memory in proportion."""

    def test_depth(self) -> None:
        for levels in (63, 64):
            content = json.dumps(agents("a")).replace('"x"', "[" * (levels - 2) + "]" * (levels - 2))
            self.accepted("openai-agents", content)
        content = json.dumps(agents("a")).replace('"x"', "[" * 63 + "]" * 63)
        self.assertEqual(self.refused("openai-agents", content), ": arrays and objects nested deeper than 64 levels")
        for bracket in "[{":
            self.refused("openai-agents", bracket * 100_000)
        # Brackets within strings, wherever the pieces are cut in which the text is looked at.
        for width in (262_050, 262_144, 262_200):
            for text in ("[" * width, '\\"[' * width, "\\\\" * width + "["):
                self.accepted("openai-agents", json.dumps(agents("a", output=[text] * 2)))
            self.refused("openai-agents", json.dumps(agents("a", output="[" * width)) + "[" * 70)

    def test_nodes(self) -> None:
        own = json.dumps(agents("a", output=[])).count(",") + 3  # the record, what its commas part, one container
        for beyond in (0, 1):
            filler = "[" + ",".join(["null"] * (1_000_000 - own - 1 + beyond)) + "]"
            content = json.dumps(agents("a")).replace('"x"', filler) + "\n[]"
            if beyond:
                text = self.refused("openai-agents", content)
                self.assertEqual(": holds more than 1,000,000 JSON values (nodes)", text)
            else:
                self.accepted("openai-agents", content)

    def test_scalars_one_after_another(self) -> None:
        # No bracket and no comma shows them beforehand; a lower bound spares a million of them.
        self.addCleanup(setattr, product, "IMPORT_NODES", product.IMPORT_NODES)
        product.IMPORT_NODES = product.Bound(1_000, "JSON values")
        self.assertIn("holds more than 1,000,000 JSON values", self.refused("traceix", "1 " * 1_001))
        self.assertIn("holds no record of the format", self.refused("traceix", "1 " * 1_000))

    def test_size(self) -> None:
        content = json.dumps(agents("a")).encode().ljust(16 * 1024 * 1024)
        self.accepted("openai-agents", content)
        self.assertEqual(self.refused("openai-agents", content + b" "), ": larger than 16,777,216 bytes (16 MiB)")

    def test_encodings(self) -> None:
        good = json.dumps(agents("a")).encode()
        for content, words in (
            (good.decode().encode("utf-16"), r": not UTF-8: it looks like UTF-16"),
            (good + b"\n\xff", r": not UTF-8: byte [\d,]+, in line 2, is not valid there"),
            (good + b'\n{"Zo\xc3', r": not UTF-8: the file is cut off within a character at byte [\d,]+, in line 2$"),
        ):
            self.assertRegex(self.refused("openai-agents", content), "^" + words)

    def test_what_can_be_written(self) -> None:
        many = [agents(str(n)) for n in range(51)]
        self.accepted("openai-agents", many[:50])
        text = self.refused("openai-agents", many)
        most = ":1: the trace holds 51 calls, and at most 50 calls can be written; cut the run into cases"
        self.assertEqual(text, most)
        traces = [agents(str(n), trace_id=f"t{n}") for n in range(501)]
        self.assertEqual(len(self.accepted("openai-agents", traces[:500])), 500)
        text = self.refused("openai-agents", traces)
        self.assertEqual(text, ": holds 501 traces, and at most 500 traces can be written; import fewer at once")
        # 20,000 values at most: the list, three per trace and five per call.
        many = [agents(f"{t}.{n}", T + "00Z", T + "00Z", trace_id=f"t{t}") for t in range(82) for n in range(49)]
        self.accepted("openai-agents", many[: 49 * 80])
        fewer = ": the traces cannot be written, import fewer at a time: "
        self.assertEqual(self.refused("openai-agents", many), fewer + "holds more than 20,000 JSON values (nodes)")
        wide = [agents(f"{n}".ljust(128, "x"), trace_id=f"{t}" * 9) for t in range(60) for n in range(49)]
        self.assertTrue(self.refused("openai-agents", wide).startswith(fewer + "larger than 524,288 bytes"))

    def test_more_problems_than_lines(self) -> None:
        lines = self.refused("generic-jsonl", [generic("a", type="x")] * 25).splitlines()
        self.assertEqual((21, "and 5 more"), (len(lines), lines[-1]))

    def test_a_long_chain_of_parents(self) -> None:
        total = 5_000
        chain = [f'{{"trace_id":"t","span_id":"{n}","type":"agent","parent_id":"{n - 1}"}}' for n in range(1, total)]
        chain.append(json.dumps(generic("last", T + "01Z", T + "02Z", parent_id=str(total - 1))))
        chain.insert(0, json.dumps(generic("0", T + "05Z", T + "06Z")))
        traces = self.accepted("generic-jsonl", "\n".join(chain))
        self.assertEqual(each_call(traces, "id"), ["0", "last"])

    def test_refusing_takes_no_longer_than_reading(self) -> None:
        spans = [{"traceId": "t", "spanId": f"{n:x}"} for n in range(6_000)]

        def seconds(*more: Json) -> float:
            document = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*spans, *more]}]}]})
            before = os.times()
            self.assertEqual(21 if more else 1, len(self.refused("otlp", document).splitlines()))
            after = os.times()
            return after.user + after.system - before.user - before.system

        self.assertLess(seconds(*[{}] * 25), 3 * seconds() + 0.1)


class Order(ImportTestCase):
    def test_order_against_a_slow_and_plain_one(self) -> None:
        chance = random.Random(3)  # noqa: S311
        lines: List[Json] = []
        wanted: Dict[str, List[str]] = {}
        while len(wanted) < 400:
            trace, spans = f"t{len(wanted)}", [str(number) for number in range(chance.randint(1, 7))]
            records = [
                generic(
                    span,
                    chance.choice((None, T + "01Z", T + "02Z", T + "03Z")),
                    trace_id=trace,
                    type=chance.choice(("tool", "agent")),
                    parent_id=chance.choice([None, *spans, "nowhere"]),
                )
                for span in spans
            ]
            around = [self.spans_around(index, records) for index in range(len(records))]
            if any(index in outer for index, outer in enumerate(around)):
                if len(wanted) % 20 == 0:
                    self.assertIn("a span lies inside itself", self.refused("generic-jsonl", records))
                continue
            lines += records
            wanted[trace] = [str(index) for index in self.slow_order(records, around)]
        traces = self.accepted("generic-jsonl", lines)
        self.assertEqual({trace["id"]: [call["id"] for call in trace["calls"]] for trace in traces}, wanted)

    def spans_around(self, index: int, records: Sequence[Json]) -> List[int]:
        """All spans around one; a circle is walked once, so that what leads into one holds a repeated span."""
        found: List[int] = []
        while records[index]["parent_id"] not in (None, "nowhere"):
            index = int(records[index]["parent_id"])
            if index in found:
                break
            found.append(index)
        return found

    def slow_order(self, records: Sequence[Json], around: Sequence[Sequence[int]]) -> List[int]:
        """Again and again the earliest of the calls that no waiting call is around."""
        waiting = [index for index, record in enumerate(records) if record["type"] == "tool"]
        starts: Dict[int, str] = {}
        for index in waiting:
            starts[index] = records[index]["started_at"] or ["", *starts.values()][-1]
        order: List[int] = []
        while waiting:
            free = [index for index in waiting if not set(around[index]) & set(waiting)]
            order.append(min(free, key=lambda index: (starts[index], index)))
            waiting.remove(order[-1])
        return order


class CommandLine(ImportTestCase):
    """Options and outputs."""

    TRACEIX = json.dumps({"test_name": "t", "steps": [{"tool": "a", "error": None}, {"tool": "b", "error": None}]})

    def test_wrong_usage(self) -> None:
        path = str(self.path)
        self.path.write_text(self.TRACEIX, encoding="utf-8")
        for words, message in (
            ((), "FORMAT is required"),
            (("otlp",), "FILE is required"),
            (("otlp", ""), "FILE needs a value"),
            (("otlp", "--", path, path), "unrecognized argument: "),
            (("otlp", "-x", path), "unrecognized argument: -x"),
            (
                ("json", path),
                "FORMAT must be openai-agents or generic-jsonl or attest or otlp or traceix or claude-code",
            ),
            (("otlp", path, "--overlap", "end-order"), "--overlap must be start-order"),
            (("otlp", path, "--no-output", "failed"), "--no-output must be succeeded or superseded"),
            (("otlp", path, "--unnamed", "no"), "--unnamed must be skip or span-name"),
            (("otlp", path, "--case-id", "workflow"), "--case-id must be one of trace, conversation, metadata.KEY"),
            (("otlp", path, "--case-id", "metadata."), "--case-id must be one of"),
            (("attest", path, "--case-id", "metadata.x"), "must be one of trace, agent, conversation for attest"),
            (("traceix", path, "--output", path), "--output names an input"),
            (("otlp", path + ".none"), "in.jsonl.none: cannot be read: No such file or directory"),
        ):
            with self.subTest(message):
                result = command("import", *words)
                self.assertEqual((result.status, result.out), (1, ""))
                self.assertIn(message, result.err)
        self.assertEqual(self.path.read_text(encoding="utf-8"), self.TRACEIX)

    def test_help(self) -> None:
        result = command("import", "--help")
        self.assertEqual((result.status, result.err), (0, ""))
        options = ("--case-id FIELD", "--overlap start-order", "--no-output succeeded|superseded", "--output FILE")
        for word in (*product.FORMATS, *options, "--unnamed skip|span-name", "--runs "):
            self.assertIn(word, result.out)

    def test_output_file(self) -> None:
        target = self.path.with_name("traces.json")
        target.write_text("old", encoding="utf-8")
        refused = self.load("traceix", [{}], "--output", str(target))
        self.assertEqual((refused.status, target.read_text(encoding="utf-8")), (1, "old"))
        result = self.load("traceix", self.TRACEIX, "--output", str(target))
        self.assertEqual((result.status, result.out), (0, ""))
        written = target.read_text(encoding="ascii")
        self.assertEqual(["a", "b"], each_call(json.loads(written), "tool"))
        self.assertEqual(2, len([line for line in written.splitlines() if '"tool"' in line]), "one call a line")
        self.assertEqual(["in.jsonl", "traces.json"], sorted(os.listdir(self.path.parent)))

    def test_a_further_format_is_one_function_and_one_line(self) -> None:
        def read_csvlike(item: product.Item, found: product.Found) -> None:
            item.require(item.has("run"))
            found.span(
                found.trace(item, item.text("run"), found.asked(item, job="job")),
                item,
                span=item.text("id"),
                tool=item.text("tool"),
                start=item.read(product.iso_time, "at"),
                ended=True,
                output=item.get("output"),
            )

        self.addCleanup(product.FORMATS.pop, "csvlike")
        product.FORMATS["csvlike"] = product.Format(read=read_csvlike, fields=("job",))
        second = {"run": "r", "id": "2", "tool": "b", "at": T + "02Z", "job": "j"}
        first = {"run": "r", "id": "1", "tool": "a", "at": T + "01Z", "output": 1}
        traces = self.accepted("csvlike", [second, first], "--case-id", "job")
        self.assertEqual(({"j": ["1 a succeeded", "2 b pending"]}), {trace["id"]: calls(trace) for trace in traces})
        self.assertIn(":2: tool must be", self.refused("csvlike", [first, {**first, "tool": ""}]))
        self.assertIn("it looks like csvlike", self.refused("otlp", [first]))


class Processes(ProcessCase):
    def test_standard_input(self) -> None:
        lines = ["import", "traceix", "-"]
        run = self.run_words(*lines, python=["-I"], input=CommandLine.TRACEIX.encode())
        self.assertEqual((0, "t"), (run.returncode, json.loads(run.stdout)[0]["id"]), run.stderr)
        self.assert_no_statement(self.run_words(*lines, input=b"  \x00"), "error: -:1:3: not valid JSON")

    def test_nothing_is_loaded_before_a_command_needs_it(self) -> None:
        late = ("datetime", "fractions", "hashlib", "textwrap", "xml")
        code = f"import sys, agent_trace_audit; print(sorted(set(sys.modules) & set({late})))"
        # Without site, which may load any of them.
        line = [sys.executable, "-S", "-c", code]
        self.assertEqual(b"[]", self.run_line(line).strip())

    def run_line(self, line: Sequence[str]) -> bytes:
        import subprocess

        return subprocess.run(line, cwd=HERE.parent, stdout=subprocess.PIPE, check=True, timeout=60).stdout


class EndToEnd(unittest.TestCase):
    """Recorded, imported, snapshotted, gated: green on its own run and red on a changed one."""

    SUITES: Sequence[Tuple[str, str, List[str]]] = (
        ("openai-agents", "b_fail_then_retry_ok.jsonl", ["--case-id", "workflow"]),
        ("generic-jsonl", "1_all_types_ok.jsonl", ["--case-id", "group"]),
        ("attest", "v1_nested_agents.json", ["--case-id", "agent"]),
        ("otlp", "pydantic_ai_fail_retry.jsonl", ["--case-id", "conversation"]),
        ("traceix", "run_many_trajectories.json", ["--no-output", "succeeded"]),
        ("claude-code", "session_and_its_subagent.jsonl", ["--case-id", "metadata.cwd"]),
        ("openai-chat", "tau_bench_repeated_call_id.json", ["--case-id", "metadata.task_id"]),
        ("langchain", "sequential_one_failed_flat.json", []),
    )

    def test_every_format_goes_straight_into_the_gate(self) -> None:
        self.assertEqual(set(product.FORMATS), {name for name, _, _ in self.SUITES})
        for name, recording, options in self.SUITES:
            with self.subTest(recording), tempfile.TemporaryDirectory() as folder:
                traces, workflows = str(Path(folder, "traces.json")), str(Path(folder, "workflows.json"))
                source = str(RECORDINGS / name / recording)
                self.assertEqual(0, command("import", name, source, *options, "--output", traces).status)
                self.assertEqual((0, "", ""), command("snapshot", traces, "--output", workflows))
                gate = ("--expected", workflows, "--observed", traces, "--fail-on-errors")
                self.assertEqual((0, ""), (command(*gate).status, command(*gate).err))
                recorded = json.loads(Path(traces).read_text("ascii"))
                changed = next(trace for trace in recorded if trace["calls"])
                changed["calls"].append({**changed["calls"][-1], "id": "one-more"})
                Path(traces).write_text(json.dumps(recorded), encoding="ascii")
                red = command(*gate)
                self.assertEqual(2, red.status)
                self.assertIn(f"FAIL {changed['id']} ", red.err)
