"""Importing: recordings of real tools, every refusal, the order of calls, and that no content gets out."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import agent_trace_audit as product

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
SCRIPT = HERE.parent / "agent_trace_audit.py"
SECRETS = ("SECRET", "sk-test", "DO-NOT-LEAK")
START_ORDER = ("--overlap", "start-order")
NO_OUTPUT = ("--no-output", "succeeded")


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


class ImportTestCase(unittest.TestCase):
    """A directory for the file to import."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def load(self, name: str, content: Any, *options: str) -> Result:
        """Import bytes, text, or values as JSON Lines."""
        if not isinstance(content, (bytes, str)):
            content = "".join(json.dumps(value) + "\n" for value in content)
        data = content.encode("utf-8") if isinstance(content, str) else content
        path = self.directory / "in.jsonl"
        path.write_bytes(data)
        return command("import", name, str(path), *options)

    def accepted(self, name: str, content: Any, *options: str) -> Any:
        result = self.load(name, content, *options)
        self.assertEqual(result.status, 0, result.err)
        self.assert_valid(result.out)
        return result.traces

    def refused(self, name: str, content: Any, *options: str) -> str:
        """The messages, without what they all start with; nothing else may have been written."""
        result = self.load(name, content, *options)
        self.assertEqual((result.status, result.out), (1, ""), result.err)
        lines = result.err.splitlines()
        prefix = f"agent_trace_audit: error: {self.directory / 'in.jsonl'}"
        self.assertTrue(all(line.startswith((prefix, "and ")) for line in lines), result.err)
        self.assertLessEqual(len(lines), 21)
        self.assertTrue(all(32 <= ord(character) < 127 for line in lines for character in line))
        return "\n".join(line[len(prefix) :] if line.startswith(prefix) else line for line in lines)

    def assert_valid(self, out: str) -> None:
        """What was written passes as observed traces, whatever is expected of it, and checks green."""
        traces = json.loads(out)
        cases = [
            {
                "id": trace["id"],
                "sequence": [call["tool"] for call in trace["calls"] if call["status"] == "succeeded"],
                "allowed_tools": [call["tool"] for call in trace["calls"]],
                "max_failed_calls": sum(call["status"] == "failed" for call in trace["calls"]),
            }
            for trace in traces
        ]
        pending = any(call["status"] == "pending" for trace in traces for call in trace["calls"])
        expected = {"cases": cases or [{"id": "none", "sequence": [], "allowed_tools": []}]}
        report = product.audit(json.dumps(expected).encode(), out.encode())
        self.assertEqual(report["verdict"], "fail" if pending or not cases else "pass")


# ---- documents of each format, as small as they may be ------------------------------------------

T = "2026-01-05T10:00:"


def agents_trace(trace: str = "t", **more: Any) -> Dict[str, Any]:
    return {"object": "trace", "id": trace, "workflow_name": "w", "group_id": None, "metadata": None, **more}


def agents(span: str, start: Any = None, end: Any = None, **more: Any) -> Dict[str, Any]:
    data = {"type": more.pop("type", "function"), "name": more.pop("name", "look"), "output": more.pop("output", "x")}
    record = {"object": "trace.span", "id": span, "trace_id": "t", "parent_id": None, "started_at": start}
    return {**record, "ended_at": end, "span_data": data, "error": None, **more}


def generic(span: str, start: Any = None, end: Any = None, **more: Any) -> Dict[str, Any]:
    record = {"trace_id": "t", "workflow_name": "w", "span_id": span, "type": "tool", "name": "look", "output": "x"}
    return {**record, "started_at": start, "ended_at": end, **more}


def attest(*steps: Dict[str, Any], **more: Any) -> Dict[str, Any]:
    return {"schema_version": 2, "trace_id": "t", "agent_id": "a", "steps": list(steps), **more}


def step(start: Any = None, end: Any = None, **more: Any) -> Dict[str, Any]:
    times = {"started_at_ms": start, "ended_at_ms": end}
    return {"type": "tool_call", "name": "look", "result": {"x": 1}, **times, **more}


def value_of(value: Any) -> Dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def otlp_span(span: str, start: Any = None, end: Any = None, **more: Any) -> Dict[str, Any]:
    found = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    found = more.pop("attributes", {**found, **more.pop("also", {})})
    listed = [{"key": key, "value": value_of(value)} for key, value in found.items()]
    record = {"traceId": "t", "spanId": span, "name": "s", "startTimeUnixNano": start, "endTimeUnixNano": end}
    return {**record, "attributes": listed, **more}


def otlp(*spans: Dict[str, Any], **resource: Any) -> Dict[str, Any]:
    listed = [{"key": key, "value": value_of(value)} for key, value in resource.items()]
    return {"resourceSpans": [{"resource": {"attributes": listed}, "scopeSpans": [{"spans": list(spans)}]}]}


def traceix(*steps: Dict[str, Any], test: str = "t") -> Dict[str, Any]:
    return {"test_name": test, "steps": list(steps)}


def traceix_step(**more: Any) -> Dict[str, Any]:
    return {"tool": "look", "args": {}, "result": 1, "latency_ms": 1.5, "error": None, **more}


SMALLEST = {
    "openai-agents": agents("s", T + "00Z", T + "01Z"),
    "generic-jsonl": generic("s", T + "00Z", T + "01Z"),
    "attest": attest(step(1000, 2000), trace_id="first"),
    "otlp": otlp(otlp_span("s", "1000000000", "2000000000")),
    "traceix": traceix(traceix_step(), test="first"),
}


def ids(traces: Any) -> List[str]:
    return [call["id"] for trace in traces for call in trace["calls"]]


def statuses(traces: Any) -> List[str]:
    return [call["status"] for trace in traces for call in trace["calls"]]


class Recordings(ImportTestCase):
    """Every recording against EXPECTED.json."""

    def expectations(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads((RECORDINGS / "EXPECTED.json").read_text(encoding="utf-8"))
        recorded = {path.relative_to(RECORDINGS).as_posix() for path in RECORDINGS.glob("*/*")}
        self.assertEqual(set(found), recorded)
        self.assertEqual({name.split("/")[0] for name in found}, set(product.FORMATS))
        return found

    def test_calls(self) -> None:
        for name, expected in self.expectations().items():
            with self.subTest(name):
                result = command("import", name.split("/")[0], str(RECORDINGS / name), *START_ORDER, *NO_OUTPUT)
                self.assertEqual(result.status, 0, result.err)
                self.assert_valid(result.out)
                self.assertEqual(len(result.traces), len(expected["traces"]))
                for trace, wanted in zip(result.traces, expected["traces"]):
                    self.compare(trace, wanted)

    def compare(self, trace: Any, wanted: Any) -> None:
        clean = "".join(c if c.isascii() and (c.isalnum() or c in ".:_-") else "_" for c in wanted["trace"])
        self.assertEqual(trace["id"], clean)
        self.assertEqual(
            [(call["tool"], call["status"], call.get("duration_ms")) for call in trace["calls"]],
            [
                (call["tool"], call["status"], None if call["duration_ms"] is None else math.ceil(call["duration_ms"]))
                for call in wanted["calls"]
            ],
        )
        keys = [(call["key"] or "").translate(str.maketrans("/+=", "___")) for call in wanted["calls"]]
        if any(keys):
            self.assertEqual([call["id"] for call in trace["calls"]], keys)

    def test_parallel_calls_are_refused_without_the_option(self) -> None:
        parallel = 0
        for name, expected in self.expectations().items():
            with self.subTest(name):
                result = command("import", name.split("/")[0], str(RECORDINGS / name), *NO_OUTPUT)
                overlap = any(call["parallel"] for trace in expected["traces"] for call in trace["calls"])
                self.assertEqual(result.status, 1 if overlap else 0, result.err)
                if overlap:
                    parallel += 1
                    self.assertIn("--overlap start-order", result.err)
                    for call in (call for trace in expected["traces"] for call in trace["calls"] if call["parallel"]):
                        self.assertIn(call["tool"], result.err)
                        self.assertIn((call["key"] or "").rstrip("="), result.err)
        self.assertGreater(parallel, 5)

    def test_without_output_a_call_is_pending(self) -> None:
        path = RECORDINGS / "openai-agents" / "k_approval_pending_never_resumed.jsonl"
        result = command("import", "openai-agents", str(path))
        self.assertEqual(statuses(result.traces), ["pending", "pending", "succeeded"])
        self.assertIn("2 calls ended without an error and without an output", result.err)
        path = RECORDINGS / "traceix" / "run_success.json"
        self.assertEqual(statuses(command("import", "traceix", str(path)).traces), ["succeeded", "pending"])

    def test_costs(self) -> None:
        result = command("import", "attest", str(RECORDINGS / "attest" / "v1_nested_agents.json"))
        self.assertEqual(
            [call.get("cost_usd") for call in result.traces[0]["calls"]], ["0.0001", None, None, None, None]
        )

    def test_case_ids(self) -> None:
        many = RECORDINGS / "openai-agents" / "g_many_traces_interleaved.jsonl"
        vectors = (
            ("attest/v2_errors_retry_turns.json", "agent", ["orchestrator"]),
            ("attest/v2_errors_retry_turns.json", "conversation", ["conv-9"]),
            ("generic-jsonl/1_all_types_ok.jsonl", "workflow", ["Refund_workflow"]),
            ("generic-jsonl/1_all_types_ok.jsonl", "group", ["conv-1"]),
            ("openai-agents/j_backend_batches.jsonl", "group", ["grp-1"]),
            ("otlp/semconv_success.jsonl", "conversation", ["conv_5j66UpCpwteGg4YSxUnt7lPY"]),
            ("otlp/semconv_success.jsonl", "metadata.service.name", ["trace-gen"]),
            ("traceix/run_success.json", "test", ["book-flight-basic"]),
            ("traceix/run_success.json", "trace", ["book-flight-basic"]),
        )
        for name, field, wanted in vectors:
            with self.subTest(name, field=field):
                options = ("--case-id", field, *START_ORDER)
                result = command("import", name.split("/")[0], str(RECORDINGS / name), *options)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual([trace["id"] for trace in result.traces], wanted)
                self.assertEqual("trace ids change" in result.err, False)
        self.assertEqual(command("import", "openai-agents", str(many), "--case-id", "group").status, 1)

    def test_foreign_recordings_name_what_they_are(self) -> None:
        for name in self.expectations():
            for reader in product.FORMATS:
                actual = name.split("/")[0]
                if reader != actual:
                    with self.subTest(name, reader=reader):
                        result = command("import", reader, str(RECORDINGS / name))
                        self.assertEqual((result.status, result.out), (1, ""))
                        self.assertIn(f"holds no record of the format {reader}; it looks like {actual}\n", result.err)


class NothingGetsOut(ImportTestCase):
    """No planted secret in any output or message, for recordings whole and damaged."""

    def check(self, name: str, data: bytes, *options: str) -> int:
        result = self.load(name, data, *options)
        self.assertIn(result.status, (0, 1))
        shown = result.out + result.err
        for secret in SECRETS:
            self.assertNotIn(secret, shown)
        self.assertNotIn("Traceback", shown)
        if result.status == 0:
            product.audit(b'{"cases": [{"id": "none", "sequence": [], "allowed_tools": []}]}', result.out.encode())
        else:
            self.assertEqual(result.out, "")
            self.assertTrue(result.err.startswith("agent_trace_audit: error: "), result.err)
        return result.status

    def test_recordings(self) -> None:
        planted = [path for path in RECORDINGS.glob("*/*") if b"SECRET" in path.read_bytes()]
        self.assertGreater(len(planted), 25)
        for path in planted:
            for name in product.FORMATS:
                own = name == path.parent.name
                for options in ((), START_ORDER, NO_OUTPUT, (*START_ORDER, *NO_OUTPUT)) if own else ((),):
                    with self.subTest(path.name, format=name, options=options):
                        self.check(name, path.read_bytes(), *options)

    def test_damaged_bytes(self) -> None:
        chance = random.Random(9)  # noqa: S311
        came: Dict[int, int] = {0: 0, 1: 0}
        paths = sorted(path for path in RECORDINGS.glob("*/*") if path.stat().st_size < 20_000)
        for _ in range(250):
            path = chance.choice(paths)
            data = bytearray(path.read_bytes())
            for _ in range(chance.choice((1, 1, 2, 5))):
                at, width = chance.randrange(len(data)), chance.choice((0, 1, 1, 10))
                data[at : at + width] = chance.choice((b"", b"\0", b'"', b"{", b"]", b",", b"\xff", b"1e9", b"\\ud800"))
            came[self.check(path.parent.name, bytes(data), *START_ORDER)] += 1
        self.assertGreater(min(came.values()), 20)

    def test_damaged_values(self) -> None:
        chance = random.Random(5)  # noqa: S311
        came: Dict[int, int] = {0: 0, 1: 0}
        paths = sorted(path for path in RECORDINGS.glob("*/*") if path.stat().st_size < 20_000)
        for _ in range(250):
            path = chance.choice(paths)
            text = path.read_text(encoding="utf-8")
            values = [json.loads(line) for line in (text.splitlines() if path.suffix == ".jsonl" else [text])]
            for _ in range(chance.choice((1, 2, 4))):
                self.damage(values, chance)
            came[self.check(path.parent.name, "\n".join(map(json.dumps, values)).encode(), *START_ORDER)] += 1
        self.assertGreater(min(came.values()), 20)

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


class Reading(ImportTestCase):
    """Documents, bounds, and what is refused before a record is looked at."""

    def test_layouts_of_documents(self) -> None:
        first, second = agents("a", T + "00Z", T + "01Z"), agents("b", T + "02Z", T + "03Z")
        one, two = json.dumps(first), json.dumps(second)
        pretty = json.dumps(first, indent=1)
        for content in (
            one + "\n" + two,
            one + "\r\n\r\n\n \t" + two + "\n\n",
            "\ufeff" + one + "\n" + two + "\n",
            one + two,
            pretty + "\n" + json.dumps(second, indent=4),
            f"[{one}, {two}]",
            f"[{one}]\n[]\n[\n{two}\n]\n",
            json.dumps([first, second], indent=2),
            json.dumps({"data": [first, second]}),
            json.dumps([{"data": [first]}, {"data": []}, {"data": [second]}]),
        ):
            with self.subTest(content[:20]):
                self.assertEqual(ids(self.accepted("openai-agents", content)), ["a", "b"])

    def test_lines_end_at_line_feeds_alone(self) -> None:
        note = "a\u2028b\u2029c\u0085d"
        content = json.dumps(agents("a", T + "00Z", T + "01Z", output=note), ensure_ascii=False) + "\n{}\n"
        self.assertTrue(self.refused("openai-agents", content).startswith(":2: "))

    def test_tolerated_where_not_read(self) -> None:
        record = json.dumps(agents("a", T + "00Z", T + "01Z", output="OUT", more="MORE"))
        for written in ("NaN", "-Infinity", "1" * 5000, "1." + "1" * 5000, '"\\ud800"', '{"\\udfff": 1e999999999999}'):
            with self.subTest(written[:20]):
                self.accepted("openai-agents", record.replace('"OUT"', written).replace('"MORE"', written))

    def test_depth(self) -> None:
        for levels in (63, 64):
            content = json.dumps(agents("a")).replace('"x"', "[" * (levels - 2) + "]" * (levels - 2))
            self.accepted("openai-agents", content)
        content = json.dumps(agents("a")).replace('"x"', "[" * 63 + "]" * 63)
        self.assertEqual(self.refused("openai-agents", content), ": arrays and objects nested deeper than 64 levels")
        for bracket in "[{":
            self.refused("openai-agents", bracket * 1_000_000)
        self.accepted("openai-agents", json.dumps(agents("a", output="[" * 100 + '\\"' + "{" * 100)))
        # Wherever the pieces are cut in which the text is looked at.
        for width in (262_050, 262_144, 262_200, 524_288):
            for text in ("[" * width, '\\"[' * width, "\\\\" * width + "["):
                self.accepted("openai-agents", json.dumps(agents("a", output=[text] * 3)))
            self.refused("openai-agents", json.dumps(agents("a", output="[" * width)) + "[" * 70)

    def test_nodes(self) -> None:
        # A record of this shape has 12 values of its own, beside those of its output.
        own = product.count_nodes(product.skeleton(json.dumps(agents("a", output=[])).encode()))
        for beyond in (0, 1):
            filler = "[" + ",".join(["0"] * (1_000_000 - own - 2 + beyond)) + "]"
            content = json.dumps(agents("a", output="x")).replace('"x"', filler) + "\n" + '{"data": []}'
            with self.subTest(beyond=beyond):
                if beyond:
                    self.refused("openai-agents", content)
                # The container and its array are values too.
                content = content.replace('{"data": []}', "[]")
                self.accepted("openai-agents", content)

    def test_size(self) -> None:
        content = json.dumps(agents("a")).encode()
        content += b" " * (16 * 1024 * 1024 - len(content))
        self.accepted("openai-agents", content)
        message = ": larger than 16,777,216 bytes (16 MiB)"
        self.assertEqual(self.refused("openai-agents", content + b" "), message)

    def test_refused_texts(self) -> None:
        good = json.dumps(agents("a"))
        vectors: Sequence[Tuple[Any, str]] = (
            (good.encode("utf-16"), ": not UTF-8: it looks like UTF-16"),
            (good.encode() + b"\n\xff", ": not UTF-8"),
            (good + "\n" + good[:-1], ":2:"),
            (good + "\n" + good[:-1] + "\n\n\n", ":2:"),
            (good + "\n" + good[:-9], ":2:"),
            (good + "\n\0\0\0\0", ":2:"),
            (good + "\n\0\0\0\0\n", ":2:"),
            (good + "\n" + good[:-4] + "\0\0\0\0\n", ":2:"),
            (good[:-1] + "\n" + good + "\n" + good, ":1:"),
            (good[:-9] + "\n" + good + "\n" + good, ":1:"),
            ("[" + good, ":1:"),
            ("[\n" + good + ",\n", ":2:"),
            ("[\n" + good + ",]", ":2:"),
            ("[\n" + good + " 1]", ":2:"),
            (good + "]", ":1:"),
            ("hello", ":1:1: not valid JSON: expected a value"),
            (good + "\n" + good[: good.index(",") + 1] + "\n" + good, ":2:"),
            (good + "\n" + good[: good.index(":")] + "\n" + good, ":2:"),
            ("{\n" + good[1:].replace('"id"', "id"), ":2:"),
        )
        for content, message in vectors:
            with self.subTest(message, content=content[-30:]):
                self.assertTrue(self.refused("openai-agents", content).startswith(message))

    def test_duplicate_keys_by_place_alone(self) -> None:
        good = json.dumps(agents("a"))
        for content, place in (
            (good + '\n{"data": [\n{"SECRET": 1,\n"SECRET": 2}]}', ":2: $.data[0]"),
            (good + '\n{"object": "trace",\n"id": "x", "\\u006fbject": "trace"}', ":2"),
            (good + '\n[1, {"SECRET": 1, "SECRET": 2}]', ":2: $[1]"),
            (json.dumps(agents("a", output="x")).replace('"x"', '{"b": [{"SECRET": "}{", "SECRET": 2}]}'), ":1"),
        ):
            text = self.refused("openai-agents", content).splitlines()[-1]
            self.assertEqual(text, f"{place}: a key stands twice in one object; keys must be unique")

    def test_nothing_found(self) -> None:
        for name in product.FORMATS:
            empty = ["", "\n \n", "[]", "[]\n[]", "{}", '{"id": "x", "calls": []}', "[[]]", "1", "null", '"x"']
            empty += ['{"data": []}', '{"resourceSpans": []}', '{"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}']
            for content in empty:
                with self.subTest(name, content=content):
                    self.assertTrue(self.refused(name, content).startswith(f": holds no record of the format {name}"))

    def test_an_empty_payload_is_a_record(self) -> None:
        self.assertEqual(self.accepted("traceix", '{"trajectories": []}'), [])

    def test_every_foreign_record_by_its_line(self) -> None:
        for name, good in SMALLEST.items():
            others = [other for key, other in SMALLEST.items() if key != name]
            with self.subTest(name):
                text = self.refused(name, [good, others[0], others[1], 1])
                lines = [f":{line}: no record of this format" for line in (2, 3, 4)]
                self.assertEqual(text, "\n".join(lines))
        lines = self.refused("openai-agents", [agents("a"), *[{"object": "x"}] * 30]).split("\n")
        self.assertEqual((len(lines), lines[-1]), (21, "and 10 more"))

    def test_records_within_a_document_by_their_path(self) -> None:
        spans = json.dumps(otlp(otlp_span("a"), {"x": 1}), indent=0)
        for name, document, place in (
            ("openai-agents", '{"data": [\n' + json.dumps(agents("a")) + ",\n{}]}", "$.data[1]"),
            ("openai-agents", "[" + json.dumps(agents("a")) + ",\n{}]", "$[1]"),
            ("otlp", spans, "$.resourceSpans[0].scopeSpans[0].spans[1]"),
            ("otlp", '{"trace": {"batches": [{"resource": []}]}}', "$.trace.batches[0]"),
            ("traceix", '{"trajectories": [\n{"test_name": "a", "steps": [\n{}]}]}', "$.trajectories[0].steps[0]"),
            (
                "attest",
                '{"schema_version": 1, "trace_id": "t", "steps": [\n{"type": "agent_call",\n"sub_trace": '
                '{"steps": [{"type": "tool_call"}]}}]}',
                "$.steps[0].sub_trace.steps[0]",
            ),
        ):
            with self.subTest(name):
                text = self.refused(name, "\n" + document)
                self.assertTrue(text.startswith(f":2: {place}: "), text)

    def test_every_record_of_a_document(self) -> None:
        bad = {"tool": "x"}
        for name, document, lines in (
            ("openai-agents", {"data": [{}, agents("a"), agents(""), {"object": "x"}]}, 3),
            ("otlp", otlp(otlp_span(""), otlp_span("a"), otlp_span("b", status=1)), 2),
            ("attest", attest(step(name=""), step(), step(type=None), step(parent_span_id=1)), 3),
            ("traceix", {"trajectories": [traceix(bad, traceix_step(), bad), traceix(bad, test="u")]}, 3),
        ):
            with self.subTest(name):
                self.assertEqual(len(self.refused(name, [document]).splitlines()), lines)

    def test_speed_and_depth_of_parents(self) -> None:
        """Many spans, each in the one before it, and as many documents; more would only take longer."""
        total = 30_000
        chain = [f'{{"trace_id":"t","span_id":"{n}","type":"agent","parent_id":"{n - 1}"}}' for n in range(1, total)]
        chain.append(json.dumps(generic("last", T + "01Z", T + "02Z", parent_id=str(total - 1))))
        chain.insert(0, json.dumps(generic("0", T + "05Z", T + "06Z")))
        traces = self.accepted("generic-jsonl", "\n".join(chain))
        self.assertEqual(ids(traces), ["0", "last"])


def time_vectors() -> List[Tuple[str, int]]:
    base = 1_767_607_200 * 10**9  # 2026-01-05T10:00:00Z
    return [
        ("2026-01-05T10:00:00Z", base),
        ("2026-01-05 10:00:00", base),
        ("2026-01-05T10:00:00", base),
        ("2026-01-05T10:00:00+00:00", base),
        ("2026-01-05T10:00:00-00:00", base),
        ("2026-01-05T12:00:00+02:00", base),
        ("2026-01-05T12:00:00+0200", base),
        ("2026-01-05T12:00:00+02", base),
        ("2026-01-05T04:30:00-05:30", base),
        ("2026-01-05T23:59:00+13:59", base),
        ("2026-01-04T10:01:00-23:59", base),
        ("2026-01-05T10:00:00.1Z", base + 100_000_000),
        ("2026-01-05T10:00:00.000000001Z", base + 1),
        ("2026-01-05T10:00:00.123456789+00:00", base + 123_456_789),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * 10**9),
        ("0001-01-01T00:00:00Z", -62_135_596_800 * 10**9),
        ("9999-12-31T23:59:59Z", 253_402_300_799 * 10**9),
    ]


class Merging(ImportTestCase):
    """Two records of one span."""

    def test_a_third_record_of_a_span_is_no_end(self) -> None:
        start, end = generic("a", T + "01Z"), generic("a", T + "01Z", T + "02Z", output=1)
        self.assertEqual(["succeeded"], statuses(self.accepted("generic-jsonl", [start, end, start, end])))
        for third in ({**start, "error": "x"}, {**end, "output": 2}):
            self.assertIn(":3: repeats a span id", self.refused("generic-jsonl", [start, end, third]))

    def test_what_either_record_says_stays(self) -> None:
        start, end = generic("a", T + "01Z", output=None), generic("a", T + "01Z", T + "02Z", output=None)
        for one, other, wanted in (
            ({**start, "output": 0}, end, "succeeded"),
            (start, {**end, "output": ""}, "succeeded"),
            ({**start, "error": "x"}, {**end, "output": 1}, "failed"),
            (start, end, "pending"),
        ):
            for records in ([one, other], [other, one]):
                with self.subTest(records=records):
                    self.assertEqual([wanted], statuses(self.accepted("generic-jsonl", records)))

    def test_a_double_that_waits_or_tells_of_an_agent(self) -> None:
        waits = {"pydantic_ai.tool.deferral.name": "approval"}
        also = {"gen_ai.tool.call.id": "k"}
        for outer, inner in ((waits, {}), ({}, waits)):
            spans = (
                otlp_span("a", 1, 9, also={**also, **outer}),
                otlp_span("b", 2, 8, parentSpanId="a", also={**also, **inner}),
            )
            traces = self.accepted("otlp", [otlp(*spans)])
            self.assertEqual((["a"], ["pending"]), (ids(traces), statuses(traces)))
        plain, agentic = (
            otlp_span("a", 1, end, attributes=found) for end, found in ((None, {}), (2, {"gen_ai.x": "y"}))
        )
        for records in ([plain, agentic], [agentic, plain]):
            self.assertEqual(1, len(self.accepted("otlp", [otlp(*records)])))

    def test_the_conversation_is_the_span_s(self) -> None:
        span = otlp_span("a", 1, 2)
        resource = {"gen_ai.conversation.id": "c"}
        self.assertIn("no conversation", self.refused("otlp", [otlp(span, **resource)], "--case-id", "conversation"))

    def test_a_merged_span_by_its_name(self) -> None:
        merged = otlp_span("a", 1, 2, name="execute_tool (merged)")
        self.assertEqual(["b"], ids(self.accepted("otlp", [otlp(merged, otlp_span("b", 3, 4))])))


class Problems(ImportTestCase):
    """Every problem of a file is told, and none repeats a name."""

    def test_each_trajectory_has_its_own(self) -> None:
        wrong = {"trajectories": [{"steps": []}, {"test_name": "z", "steps": None}, traceix(traceix_step())]}
        self.assertEqual(2, len(self.refused("traceix", json.dumps(wrong)).splitlines()))

    def test_a_duplicate_key_does_not_hide_what_came_before(self) -> None:
        lines = [json.dumps({**generic("a"), "type": "x"}), '{"trace_id": 1, "trace_id": 2}']
        text = self.refused("generic-jsonl", "\n".join(lines)).splitlines()
        self.assertEqual(2, len(text))
        self.assertIn("a key stands twice", text[1])

    def test_names_that_fall_together_are_not_repeated(self) -> None:
        spans = [generic("a", name="jane@example"), generic("b", name="jane example")]
        self.assertNotIn("jane", self.refused("generic-jsonl", spans))

    def test_scalars_one_after_another_are_bounded(self) -> None:
        # No bracket and no comma shows them beforehand; a lower bound spares a million of them.
        self.addCleanup(setattr, product, "IMPORT_NODES", product.IMPORT_NODES)
        product.IMPORT_NODES = product.Bound(1_000, "JSON values")
        self.assertIn("holds more than 1,000,000 JSON values", self.refused("traceix", "1 " * 1_001))
        self.assertIn("holds no record of the format", self.refused("traceix", "1 " * 1_000))

    def test_more_problems_than_lines(self) -> None:
        lines = self.refused("generic-jsonl", [{**generic("a"), "type": "x"}] * 25).splitlines()
        self.assertEqual((21, "and 5 more"), (len(lines), lines[-1]))


class Endings(ImportTestCase):
    def test_a_file_that_ends_within_a_character(self) -> None:
        data = json.dumps(SMALLEST["traceix"]).encode("utf-8")
        text = self.refused("traceix", data + b'\n{"test_name": "Zo\xc3')
        self.assertRegex(text, r"^: not UTF-8: the file is cut off within a character at byte [\d,]+, in line 2$")
        text = self.refused("traceix", data + b'\n"\xc3("\n')
        self.assertRegex(text, r"^: not UTF-8: byte [\d,]+, in line 2, is not valid there")

    def test_a_span_that_lacks_one_key_is_told_which(self) -> None:
        for key in ("trace_id", "span_id", "type"):
            record = generic("a", 1, 2)
            del record[key]
            self.assertIn(f"it has no {key}", self.refused("generic-jsonl", [record]))

    def test_a_payload_with_steps_of_its_own(self) -> None:
        both = {**traceix(traceix_step()), "trajectories": []}
        self.assertIn("trajectories must be an array", self.refused("traceix", [both]))


class Values(ImportTestCase):
    """What is read must be what the format says."""

    def test_iso_times(self) -> None:
        for text, nanoseconds in time_vectors():
            with self.subTest(text):
                seconds, fraction = divmod(nanoseconds, 10**9)
                same = (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)).isoformat()
                same = f"{same}.{fraction:09}"
                # Neither is before the other.
                records = [generic("a", same, text), generic("b", text, same)]
                calls = self.accepted("generic-jsonl", records)[0]["calls"]
                self.assertEqual([0, 0], [call.get("duration_ms") for call in calls])
        refused = [
            "",
            "now",
            "2026-01-05",
            "2026-01-05T10:00Z",
            "2026-1-05T10:00:00Z",
            "2026-02-29T00:00:00Z",
            "x" * 99,
        ]
        refused += ["2026-01-05T24:00:00Z", "2026-01-05T10:60:00Z", "2026-01-05T10:00:60Z", "2026-13-05T10:00:00Z"]
        refused += ["2026-01-05T10:00:00.Z", "2026-01-05T10:00:00.1234567890Z", "2026-01-05T10:00:00+24:00"]
        refused += [
            "2026-01-05T10:00:00Z ",
            "2026-01-05T10:00:00z",
            "0000-01-05T10:00:00Z",
            "\u0662026-01-05T10:00:00Z",
        ]
        for value in (*refused, 0, 1.5, True, [], {}):
            with self.subTest(value):
                self.assertIn(
                    "started_at must be an ISO 8601 time", self.refused("openai-agents", [agents("a", value)])
                )

    def test_numbers_of_their_unit(self) -> None:
        for start, end, wanted in (
            ("0", "1", 1),
            ("1767225600123", "1767225600123.000001", 1),
            ("1767225600123.4567", "1767225600124.4567", 1),
            ("12.082050999879357", "13.082050999879357", 1),
            ("12.082050999879357", "13.082050999879358", 2),
            ("1e3", "2E+3", 1000),
            ("1000", "1000", 0),
            ("5", "4", None),
            ("0", "3600000", 3_600_000),
            ("0", "3600000.0000000001", None),
            ("-5", "5", 10),
        ):
            content = json.dumps(attest(step("S", "E"))).replace('"S"', start).replace('"E"', end)
            with self.subTest(start=start, end=end):
                self.assertEqual(self.accepted("attest", content)[0]["calls"][0].get("duration_ms"), wanted)
        for wrong in ('"1"', "true", "[]", "NaN", "1" * 101, "1e999999999", "1e99999", "1e-999"):
            with self.subTest(wrong):
                self.refused("attest", json.dumps(attest(step("S"))).replace('"S"', wrong))

    def test_nanoseconds(self) -> None:
        for start, end, wanted in (
            ('"1"', '"2"', 1),
            ("1", "1000001", 1),
            ("1796036057488972957", "1796036057488972958", 1),
            ("1", "1e6", 1),
            ('"0"', "1000001", 2),
            ("0", "18446744073709551615", None),
            ('"5"', '"4"', None),
        ):
            content = json.dumps(otlp(otlp_span("a", "S", "E"))).replace('"S"', start).replace('"E"', end)
            with self.subTest(start=start, end=end):
                self.assertEqual(self.accepted("otlp", content)[0]["calls"][0].get("duration_ms"), wanted)
        for wrong in ('""', '"-1"', "-1", "1.5", "true", "18446744073709551616", '"1e3"', '" 1"', "[]"):
            with self.subTest(wrong):
                self.refused("otlp", json.dumps(otlp(otlp_span("a", "S"))).replace('"S"', wrong))

    def test_measured_durations(self) -> None:
        vectors = ((1.0, 1), (0, 0), (1, 1), (0.0001, 1), (3_600_000, 3_600_000), (3_600_000.5, None))
        for latency, wanted in vectors:
            with self.subTest(latency):
                trace = self.accepted("traceix", [traceix(traceix_step(latency_ms=latency))])[0]
                self.assertEqual(trace["calls"][0].get("duration_ms"), wanted)
        for unknown in (-1, None, 1e300):
            trace = self.accepted("traceix", [traceix(traceix_step(latency_ms=unknown))])[0]
            self.assertNotIn("duration_ms", trace["calls"][0])
        for wrong in ("1", True, float("nan")):
            self.refused("traceix", [traceix(traceix_step(latency_ms=wrong))])
        for times, wanted in (((1000, None), 7), ((None, 1000), 7), ((1000, 1005), 5), ((1005, 1000), None)):
            trace = self.accepted("attest", [attest(step(*times, metadata={"duration_ms": 6.5}))])[0]
            self.assertEqual(trace["calls"][0].get("duration_ms"), wanted)

    def test_money(self) -> None:
        for written, wanted in (
            ("0.0001", "0.0001"),
            ("0.10", "0.10"),
            ("0", "0"),
            ("0.0", "0.0"),
            ("-0.0", "0.0"),
            ("5", "5"),
            ("1e3", "1000"),
            ("1E-3", "0.001"),
            ("1e-7", "0.000001"),
            ("1e-99999", "0.000001"),
            ("0.1234560", "0.123456"),
            ("0.12345600000001", "0.123457"),
            ("999999999.999999", "999999999.999999"),
            ("999999999.9999991", None),
            ("1000000000", None),
            ("-1", None),
            ("1e99", None),
            ("0e99", "0"),
            ("1e9999999", None),
            ("-1e9999999", None),
            ("1e-9999999", "0.000001"),
            ("1e99999999999999999999", None),
            ("null", None),
        ):
            content = json.dumps(attest(step(metadata={"cost_usd": "C"}))).replace('"C"', written)
            with self.subTest(written):
                self.assertEqual(self.accepted("attest", content)[0]["calls"][0].get("cost_usd"), wanted)
        for wrong in ('"0.1"', "true", "[]", "NaN", "0." + "1" * 100):
            self.refused("attest", json.dumps(attest(step(metadata={"cost_usd": "C"}))).replace('"C"', wrong))

    def test_wrong_values_by_their_line(self) -> None:
        vectors: Sequence[Tuple[str, Any]] = (
            ("openai-agents", agents("")),
            ("openai-agents", agents("a", id=1)),
            ("openai-agents", agents("a", id="\ud800")),
            ("openai-agents", agents("a", trace_id=None)),
            ("openai-agents", agents("a", parent_id="")),
            ("openai-agents", agents("a", name="")),
            ("openai-agents", agents("a", name=None)),
            ("openai-agents", agents("a", type=None)),
            ("openai-agents", agents("a", span_data=None)),
            ("openai-agents", agents("a", span_data=[])),
            ("openai-agents", agents_trace("")),
            ("openai-agents", {"data": [agents("a"), {"object": "other"}]}),
            ("generic-jsonl", generic("a", type="retrieval")),
            ("generic-jsonl", generic("a", type=None)),
            ("generic-jsonl", generic("a", type=[])),
            ("generic-jsonl", generic("a", name=None)),
            ("generic-jsonl", generic("a", parent_id=5)),
            ("generic-jsonl", generic("a", workflow_name="")),
            ("generic-jsonl", generic("a", group_id=[])),
            ("generic-jsonl", generic("")),
            ("attest", attest(schema_version=3)),
            ("attest", attest(schema_version="1")),
            ("attest", attest(trace_id="")),
            ("attest", {"trace_id": "t", "steps": []}),
            ("attest", attest(steps=None)),
            ("attest", attest(steps={})),
            ("attest", attest(step(name=""))),
            ("attest", attest(step(type=None))),
            ("attest", attest(step(span_id=""))),
            ("attest", attest(step(metadata=[]))),
            ("attest", attest(step(type="agent_call", sub_trace=attest(step(name=5))))),
            ("otlp", otlp(otlp_span(""))),
            ("otlp", otlp(otlp_span("a", traceId=None))),
            ("otlp", otlp(otlp_span("a", attributes={"gen_ai.operation.name": "execute_tool"}))),
            ("otlp", otlp(otlp_span("a", also={"gen_ai.tool.name": ""}))),
            ("otlp", otlp(otlp_span("a", also={"gen_ai.tool.name": 5}))),
            ("otlp", otlp(otlp_span("a", status={"code": 3}))),
            ("otlp", otlp(otlp_span("a", status={"code": "ERROR"}))),
            ("otlp", otlp(otlp_span("a", status={"code": True}))),
            ("otlp", otlp(otlp_span("a", status=2))),
            ("otlp", otlp(otlp_span("a", name=5))),
            ("otlp", otlp(otlp_span("a", trace_id="t"))),
            ("otlp", {"resourceSpans": {}}),
            ("otlp", {"resourceSpans": [1]}),
            ("otlp", {"resourceSpans": [{"scopeSpans": [{"spans": [None]}]}]}),
            ("traceix", traceix(traceix_step(tool=""))),
            ("traceix", traceix({"tool": "a", "args": {}})),
            ("traceix", traceix(test="")),
            ("traceix", {"trajectories": None}),
            ("traceix", {"trajectories": [1]}),
            ("traceix", {"test_name": "a", "steps": None}),
        )
        for name, wrong in vectors:
            with self.subTest(name, wrong=wrong):
                text = self.refused(name, [SMALLEST[name], wrong])
                self.assertTrue(text.startswith(":2: "), text)
                self.assertEqual(text.count("\n"), 0)


class Calls(ImportTestCase):
    """Order, nesting, repeats, overlap, status."""

    def test_order_of_starts(self) -> None:
        a, b, c = (
            ("a", T + "02.000000001Z", T + "03Z"),
            ("b", T + "02Z", T + "02Z"),
            ("c", "2026-01-05T11:00:01+01:00", None),
        )
        traces = self.accepted("openai-agents", [agents(*a), agents(*b), agents(*c)])
        self.assertEqual(ids(traces), ["c", "b", "a"])

    def test_order_where_starts_are_missing_or_equal(self) -> None:
        at = {1: T + "01Z", 2: T + "02Z", 3: T + "03Z", 0: None}
        vectors = (
            # span, start, parent
            ([("a", 2), ("b", 0), ("c", 1)], "c a b"),
            ([("a", 0), ("b", 0), ("c", 1)], "a b c"),
            ([("a", 3), ("b", 1), ("c", 0), ("d", 2)], "b c d a"),
            ([("a", 1), ("b", 1), ("c", 1)], "a b c"),
            ([("b", 1, "a"), ("a", 1)], "a b"),
            ([("b", 1, "a"), ("c", 1), ("a", 1)], "c a b"),
            ([("b", 1, "a"), ("a", 2)], "a b"),
            ([("b", 1, "a"), ("c", 2, "b"), ("a", 3), ("d", 3)], "a b c d"),
            ([("b", 0, "a"), ("a", 2), ("c", 3)], "a b c"),
            ([("c", 1, "b"), ("b", 1, "a"), ("a", 1), ("d", 1)], "a b c d"),
            ([("a", 1), ("b", 2, "a"), ("c", 0), ("d", 3)], "a b c d"),
        )
        for spans, wanted in vectors:
            with self.subTest(wanted, spans=spans):
                records = [
                    agents(str(span[0]), at[int(str(span[1]))], None, parent_id=span[2] if len(span) > 2 else None)
                    for span in spans
                ]
                self.assertEqual(ids(self.accepted("openai-agents", records)), wanted.split())

    def test_nested_through_other_spans(self) -> None:
        outer, inner = agents("outer", T + "03Z", T + "04Z"), agents("inner", T + "01Z", T + "09Z", parent_id="turn")
        between = [agents("turn", parent_id="agent", type="custom"), agents("agent", parent_id="outer", type="agent")]
        for order in ([inner, *between, outer], [outer, *between[::-1], inner], [between[0], inner, outer, between[1]]):
            self.assertEqual(ids(self.accepted("openai-agents", order)), ["outer", "inner"])
        # Without the spans between, nothing says that one lies in the other.
        self.assertIn("ran in parallel", self.refused("openai-agents", [outer, inner]))

    def test_order_against_a_slow_and_plain_one(self) -> None:
        chance = random.Random(3)  # noqa: S311
        lines: List[Any] = []
        wanted: Dict[str, List[str]] = {}
        while len(wanted) < 300:
            trace = f"t{len(wanted)}"
            spans = [str(number) for number in range(chance.randint(1, 7))]
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
                text = self.refused("generic-jsonl", records) if len(wanted) % 10 == 0 else "a span lies inside itself"
                self.assertIn("a span lies inside itself", text)
                continue
            lines += records
            wanted[trace] = [str(index) for index in self.slow_order(records, around)]
        traces = self.accepted("generic-jsonl", lines)
        self.assertEqual({trace["id"]: [call["id"] for call in trace["calls"]] for trace in traces}, wanted)

    def spans_around(self, index: int, records: List[Any]) -> List[int]:
        """All spans around one; a circle is walked once, so that what leads into one holds a repeated span."""
        found: List[int] = []
        while records[index]["parent_id"] not in (None, "nowhere"):
            index = int(records[index]["parent_id"])
            if index in found:
                break
            found.append(index)
        return found

    def slow_order(self, records: List[Any], around: List[List[int]]) -> List[int]:
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

    def test_parents_in_a_circle(self) -> None:
        for parents in ({"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}):
            records = [agents(span, parent_id=parent) for span, parent in parents.items()]
            self.assertIn("a span lies inside itself", self.refused("openai-agents", records))

    def test_overlap(self) -> None:
        vectors = (
            ((1, 3), (2, 4), True),
            ((1, 4), (2, 3), True),
            ((2, 2), (1, 3), True),
            ((1, 2), (2, 3), False),
            ((2, 2), (2, 2), False),
            ((2, 2), (2, 3), False),
            ((1, None), (1, 3), False),
            ((None, 3), (1, 3), False),
            ((6, 5), (4, 7), True),
            ((9, 1), (4, 5), False),
        )
        for one, other, wanted in vectors:
            for pair in ((one, other), (other, one)):
                with self.subTest(pair):
                    times = [[None if at is None else f"{T}0{at}Z" for at in span] for span in pair]
                    records = [agents(span, *time) for span, time in zip("ab", times)]
                    accepted = self.accepted("openai-agents", records, *START_ORDER)
                    self.assertEqual(sorted(ids(accepted)), ["a", "b"])
                    if wanted:
                        text = self.refused("openai-agents", records)
                        self.assertRegex(
                            text, r"^:[12]: calls ran in parallel with others: [ab] \(look\) and [ab] \(look\);"
                        )
                        self.assertIn("--overlap start-order", text)
                    else:
                        self.accepted("openai-agents", records)

    def test_repeats(self) -> None:
        start, end = agents("a", T + "01Z", None, output=None), agents("a", T + "01Z", T + "02Z")
        reordered = dict(reversed(list(end.items())))
        for records in ([end, end], [end, reordered, end], [start, end], [end, start], [start, end, start, end]):
            with self.subTest(records):
                result = self.load("openai-agents", records)
                self.assertEqual(statuses(result.traces), ["succeeded"])
                self.assertIn("of a span recorded before: counted once", result.err)
        for change in ({"parent_id": "b"}, {"name": "b"}, {"started_at": T + "00Z"}, {"type": "agent"}):
            for records in ([start, agents("a", T + "01Z", T + "02Z", **change)],):
                if "started_at" in change:
                    records[1].update(change)
                self.assertTrue(self.refused("openai-agents", records).startswith(":2: repeats a span id"))
        for other in (agents("a", T + "01Z", T + "03Z"), agents("a", T + "01Z", T + "02Z", output="y")):
            self.assertTrue(self.refused("openai-agents", [end, other]).startswith(":2: repeats a span id"))
            self.assertTrue(self.refused("openai-agents", [start, end, other]).startswith(":3: repeats a span id"))
        # 1 and 1.0, 1 and true, a number and a list of its text are not the same word for word.
        for left, right in ((1, 1.0), (1, True), (0.5, [float("nan"), "0.5"]), ("1", 1), ({}, []), (None, "")):
            self.refused("openai-agents", [agents("a", output=left), agents("a", output=right)])
        failed = agents("a", T + "01Z", None, error={})
        self.assertEqual(statuses(self.accepted("openai-agents", [failed, end])), ["failed"])
        # The same id in two traces is two spans.
        other = agents("a", T + "01Z", T + "02Z", trace_id="u")
        self.assertEqual(ids(self.accepted("openai-agents", [end, other])), ["a", "a"])

    def test_a_repeated_span_keeps_its_first_place(self) -> None:
        start, end, other = agents("a", T + "01Z"), agents("a", T + "01Z", T + "01Z"), agents("b", T + "01Z", T + "01Z")
        self.assertEqual(ids(self.accepted("openai-agents", [start, other, end])), ["a", "b"])

    def test_whole_repeats(self) -> None:
        one = attest(step(1, 2), step(3, 4, span_id="x"))
        self.assertEqual(ids(self.accepted("attest", [one, [one], one])), ["step-1", "x"])
        text = self.refused("attest", [one, attest(step(1, 3))])
        self.assertEqual(text, ":2: a different trace with the same id was recorded before")
        self.refused("attest", [attest(step(1, 2, span_id="x"), step(1, 2, span_id="x"))])
        self.assertEqual(
            len(self.accepted("attest", [attest(step(1, 2, span_id="x"), step(1, span_id="x"))])[0]["calls"]), 1
        )
        run = traceix(traceix_step(), traceix_step())
        self.assertEqual(ids(self.accepted("traceix", [run, {"trajectories": [run, run]}])), ["step-1", "step-2"])
        self.refused("traceix", [run, traceix(traceix_step())])

    def test_status(self) -> None:
        end = T + "01Z"
        vectors: Sequence[Tuple[str, Any, str, str]] = (
            # format, record, status, status with --no-output succeeded
            ("openai-agents", agents("a", None, end), "succeeded", "succeeded"),
            ("openai-agents", agents("a", None, end, output=None), "pending", "succeeded"),
            ("openai-agents", agents("a", None, end, output=""), "succeeded", "succeeded"),
            ("openai-agents", agents("a", None, end, output={}), "succeeded", "succeeded"),
            ("openai-agents", agents("a", None, end, output=False), "succeeded", "succeeded"),
            ("openai-agents", agents("a", None, end, output=0), "succeeded", "succeeded"),
            ("openai-agents", agents("a", None, None), "pending", "pending"),
            ("openai-agents", agents("a", None, None, error={}), "failed", "failed"),
            ("openai-agents", agents("a", None, end, error=""), "failed", "failed"),
            ("openai-agents", agents("a", None, end, error=False), "failed", "failed"),
            ("generic-jsonl", generic("a", None, None), "succeeded", "succeeded"),
            ("generic-jsonl", generic("a", None, None, output=False), "succeeded", "succeeded"),
            ("generic-jsonl", generic("a", None, None, output=None), "pending", "pending"),
            ("generic-jsonl", generic("a", None, end, output=None), "pending", "succeeded"),
            ("generic-jsonl", generic("a", None, end, error={}), "failed", "failed"),
            ("generic-jsonl", generic("a", None, None, output=None, error={"message": ""}), "failed", "failed"),
            ("generic-jsonl", generic("a", None, end, type="function"), "succeeded", "succeeded"),
            ("attest", attest(step()), "succeeded", "succeeded"),
            ("attest", attest(step(result={})), "succeeded", "succeeded"),
            ("attest", attest(step(result=None)), "pending", "pending"),
            ("attest", attest(step(None, 0, result=None)), "pending", "succeeded"),
            ("attest", attest(step(1, 2, result=None)), "pending", "succeeded"),
            ("attest", attest(step(result={"error": "x"})), "failed", "failed"),
            ("attest", attest(step(result={"error": None})), "succeeded", "succeeded"),
            ("attest", attest(step(result=None, error={})), "failed", "failed"),
            ("otlp", otlp(otlp_span("a", 1, 2)), "succeeded", "succeeded"),
            ("otlp", otlp(otlp_span("a", 1, 0)), "pending", "pending"),
            ("otlp", otlp(otlp_span("a", 1, "0")), "pending", "pending"),
            ("otlp", otlp(otlp_span("a", 1)), "pending", "pending"),
            ("otlp", otlp(otlp_span("a", 1, status={"code": 2})), "failed", "failed"),
            ("otlp", otlp(otlp_span("a", 1, 2, status={"code": "STATUS_CODE_ERROR"})), "failed", "failed"),
            ("otlp", otlp(otlp_span("a", 1, 2, status={"code": "STATUS_CODE_OK"})), "succeeded", "succeeded"),
            ("otlp", otlp(otlp_span("a", 1, 2, status={"code": 1, "message": "x"})), "succeeded", "succeeded"),
            ("otlp", otlp(otlp_span("a", 1, 2, also={"error.type": "E"})), "failed", "failed"),
            (
                "otlp",
                otlp(otlp_span("a", 1, 2, also={"pydantic_ai.tool.deferral.name": "X", "error.type": "E"})),
                "pending",
                "pending",
            ),
            ("traceix", traceix(traceix_step()), "succeeded", "succeeded"),
            ("traceix", traceix(traceix_step(result=None)), "pending", "succeeded"),
            ("traceix", traceix(traceix_step(result=False)), "succeeded", "succeeded"),
            ("traceix", traceix(traceix_step(error="")), "failed", "failed"),
        )
        for name, record, without, given in vectors:
            with self.subTest(name, record=record):
                self.assertEqual(statuses(self.accepted(name, [record])), [without])
                self.assertEqual(statuses(self.accepted(name, [record], *NO_OUTPUT)), [given])

    def test_errors_of_other_spans_are_not_the_calls(self) -> None:
        records = [
            agents("turn", type="custom", error={"message": "x"}),
            agents("a", T + "00Z", T + "01Z", parent_id="turn"),
        ]
        self.assertEqual(statuses(self.accepted("openai-agents", records)), ["succeeded"])

    def test_durations_are_rounded_up(self) -> None:
        for end, wanted in ((".000000000", 0), (".000000001", 1), (".001", 1), (".001000001", 2), ("", 0)):
            call = self.accepted("openai-agents", [agents("a", T + "00Z", f"{T}00{end}Z")])[0]["calls"][0]
            self.assertEqual(call["duration_ms"], wanted)
        hour = "2026-01-05T11:00:00"
        self.assertEqual(
            self.accepted("generic-jsonl", [generic("a", T + "00", hour)])[0]["calls"][0]["duration_ms"], 3_600_000
        )
        result = self.load("generic-jsonl", [generic("a", T + "00", hour + ".000000001")])
        self.assertNotIn("duration_ms", result.traces[0]["calls"][0])
        self.assertIn("1 call of more than 3,600,000 milliseconds", result.err)
        result = self.load("generic-jsonl", [generic("a", T + "00.000000002Z", T + "00.000000001Z")])
        self.assertNotIn("duration_ms", result.traces[0]["calls"][0])
        self.assertIn("1 call with a negative duration: left out", result.err)


class Traces(ImportTestCase):
    """Case ids, names, ids, limits."""

    def test_order_and_empty_traces(self) -> None:
        records = [
            agents("a", trace_id="t2"),
            agents_trace("t1"),
            agents("b", trace_id="t3", type="agent"),
            agents_trace("t2"),
        ]
        traces = self.accepted("openai-agents", records)
        self.assertEqual([(trace["id"], len(trace["calls"])) for trace in traces], [("t2", 1), ("t1", 0), ("t3", 0)])

    def test_case_ids(self) -> None:
        def case(name: str, field: str, *records: Any) -> str:
            traces = self.accepted(name, list(records), "--case-id", field)
            self.assertEqual(len(traces), 1)
            return str(traces[0]["id"])

        self.assertEqual(case("openai-agents", "workflow", agents("a"), agents_trace()), "w")
        self.assertEqual(case("openai-agents", "group", agents_trace(group_id=5), agents_trace(group_id=None)), "5")
        self.assertEqual(case("openai-agents", "metadata.k", agents_trace(metadata={"k": 2.0, "l": [1]})), "2")
        self.assertEqual(case("openai-agents", "metadata.a.b", agents_trace(metadata={"a.b": "x"})), "x")
        self.assertEqual(case("openai-agents", "metadata.KEY", agents_trace(metadata={"KEY": "x"})), "x")
        first = generic("a", trace_metadata={"k": "first"})
        self.assertEqual(
            case("generic-jsonl", "metadata.k", first, generic("b", trace_metadata={"k": "other"})), "first"
        )
        self.assertEqual(case("generic-jsonl", "group", generic("a", group_id="g"), generic("b")), "g")
        inner = attest(agent_id="inner", conversation_id="inner")
        self.assertEqual(case("attest", "agent", attest(step(type="agent_call", sub_trace=inner))), "a")
        talk = otlp_span("a", also={"gen_ai.conversation.id": "c"})
        self.assertEqual(case("otlp", "conversation", otlp(talk, otlp_span("b"))), "c")
        self.assertEqual(case("otlp", "metadata.k", otlp(otlp_span("a"), k=5)), "5")
        self.assertEqual(case("otlp", "metadata.k", otlp(otlp_span("a", also={"k": "v"}))), "v")

    def test_case_ids_refused(self) -> None:
        vectors: Sequence[Tuple[str, str, List[Any], str]] = (
            ("openai-agents", "workflow", [agents("a")], ":1: the trace has no workflow"),
            ("openai-agents", "group", [agents_trace()], ":1: the trace has no group"),
            ("openai-agents", "metadata.k", [agents_trace(metadata={"l": 1})], ":1: the trace has no metadata.k"),
            (
                "openai-agents",
                "workflow",
                [agents_trace(), agents_trace(workflow_name="v")],
                ":2: gives another workflow",
            ),
            (
                "openai-agents",
                "workflow",
                [agents_trace("t"), agents_trace("u")],
                ":2: another trace has the same case id",
            ),
            (
                "openai-agents",
                "workflow",
                [agents_trace(workflow_name="")],
                ":1: what --case-id workflow names must be",
            ),
            (
                "openai-agents",
                "workflow",
                [agents_trace(workflow_name=[1])],
                ":1: what --case-id workflow names must be a non-empty string or a whole",
            ),
            (
                "openai-agents",
                "group",
                [agents_trace(group_id=True)],
                ":1: what --case-id group names must be a non-empty string or a whole",
            ),
            (
                "openai-agents",
                "group",
                [agents_trace(group_id=1.5)],
                ":1: what --case-id group names must be a non-empty string or a whole",
            ),
            (
                "openai-agents",
                "group",
                [agents_trace(group_id=-1)],
                ":1: what --case-id group names must be a non-empty string or a whole",
            ),
            ("openai-agents", "metadata.k", [agents_trace(metadata=[])], ":1: metadata must be an object"),
            (
                "openai-agents",
                "workflow",
                [agents_trace(workflow_name="x" * 129)],
                ":1: the case id must have 1 to 128",
            ),
            (
                "openai-agents",
                "workflow",
                [agents_trace("t", workflow_name="a b"), agents_trace("u", workflow_name="a/b")],
                ":2: the case id becomes the same as another",
            ),
            ("generic-jsonl", "trace", [generic("a"), generic("b", workflow_name="v")], ":2: gives another workflow"),
            (
                "generic-jsonl",
                "trace",
                [generic("a", group_id="v"), generic("b", group_id=1)],
                ":2: gives another group",
            ),
            (
                "generic-jsonl",
                "metadata.k",
                [generic("a"), generic("b", trace_metadata={"k": 1})],
                ":1: the trace has no",
            ),
            (
                "otlp",
                "metadata.k",
                [otlp(otlp_span("a", also={"k": "v"}), otlp_span("b"), k="w")],
                ":1: $.resourceSpans[0].scopeSpans[0].spans[1]: gives another metadata.k",
            ),
            ("attest", "conversation", [attest()], ":1: the trace has no conversation"),
        )
        for name, field, records, message in vectors:
            with self.subTest(message):
                text = self.refused(name, records, "--case-id", field)
                self.assertTrue(text.startswith(message), text)
                self.assertEqual(text.count("\n"), 0)

    def test_cleaned_names(self) -> None:
        records = [agents("s p\u00e4n", T + "00Z", T + "00Z", name="\U0001f600!", trace_id="a/b")]
        result = self.load("openai-agents", records)
        self.assertEqual(result.traces[0]["id"], "a_b")
        self.assertEqual((result.traces[0]["calls"][0]["id"], result.traces[0]["calls"][0]["tool"]), ("s_p_n", "__"))
        self.assertIn("3 names with characters replaced by _", result.err)
        for one, other, message in (
            ({"name": "a b"}, {"name": "a_b"}, ":2: the tool name becomes the same as another"),
            ({"name": "a b", "trace_id": "u"}, {"name": "a/b"}, ":2: the tool name becomes the same as another"),
            ({"trace_id": "a b"}, {"trace_id": "a/b"}, ":2: the case id becomes the same as another"),
            ({"id": "a b"}, {"id": "a/b"}, ":2: the call id becomes the same as another"),
            ({"name": "x" * 129}, {}, ":1: the tool name must have 1 to 128 characters"),
            ({"id": "x" * 129}, {}, ":1: the call id must have 1 to 128 characters"),
            ({"trace_id": "x" * 129}, {}, ":1: the case id must have 1 to 128 characters"),
        ):
            with self.subTest(message):
                self.assertTrue(
                    self.refused("openai-agents", [agents("1", **one), agents("2", **other)]).startswith(message)
                )
        ok = [
            agents("a b", trace_id="t"),
            agents("a_b", trace_id="u"),
            agents("x" * 128, name="y" * 128, trace_id="z" * 128),
        ]
        self.accepted("openai-agents", ok)
        self.refused("attest", [attest(step(1, 2, span_id="step-2"), step(3, 4))])

    def test_steps_without_an_id(self) -> None:
        inner = attest(step(3, 4), step(5, 6, span_id="x"))
        trace = attest(step(1, 2), step(type="agent_call", sub_trace=inner), step(7, 8))
        self.assertEqual(ids(self.accepted("attest", [trace])), ["step-1", "step-3", "x", "step-5"])
        backwards = attest(step(7, 8), step(type="llm_call"), step(1, 2))
        self.assertEqual(ids(self.accepted("attest", [backwards])), ["step-3", "step-1"])

    def test_sub_traces_lie_inside(self) -> None:
        inner = attest(step(2, 3), step(2, 4, span_id="y", parent_span_id="nowhere"))
        caller = step(type="agent_call", span_id="agent", parent_span_id="outer", sub_trace=inner)
        trace = attest(step(1, 9, span_id="outer"), caller)
        self.assertIn("in parallel with others: step-3 (look) and y (look);", self.refused("attest", [trace]))
        self.assertEqual(ids(self.accepted("attest", [trace], *START_ORDER)), ["outer", "step-3", "y"])
        late = attest(step(5, 9, span_id="outer"), caller)
        self.assertEqual(ids(self.accepted("attest", [late], *START_ORDER)), ["outer", "step-3", "y"])

    def test_limits(self) -> None:
        for name, calls in (("openai-agents", [agents(str(n)) for n in range(51)]),):
            self.accepted(name, calls[:50])
            text = self.refused(name, calls)
            self.assertEqual(text, ":1: the trace holds 51 calls, and at most 50 calls can be written")
        traces = [agents(str(n), trace_id=f"t{n}") for n in range(501)]
        self.assertEqual(len(self.accepted("openai-agents", traces[:500])), 500)
        text = self.refused("openai-agents", traces)
        self.assertEqual(text, ": holds 501 traces, and at most 500 traces can be written; import fewer at once")
        # 20,000 values at most: the list, three per trace and five per call.
        many = [agents(f"{t}.{n}", T + "00Z", T + "00Z", trace_id=f"t{t}") for t in range(100) for n in range(49)]
        self.accepted("openai-agents", many[: 49 * 80])
        text = self.refused("openai-agents", many)
        self.assertIn("the traces cannot be written: holds more than 20,000 JSON values", text)
        wide = [
            agents(f"{t}.{n}".ljust(128, "x"), name="n" * 128, trace_id=f"t{t}") for t in range(40) for n in range(49)
        ]
        self.assertIn("the traces cannot be written: larger than 524,288 bytes", self.refused("openai-agents", wide))

    def test_notes(self) -> None:
        result = self.load("openai-agents", [agents("a", None, T + "01Z", output=None), agents("b", type="agent")])
        self.assertEqual(
            result.err.splitlines(),
            [
                "agent_trace_audit: 2 records: 1 trace, 1 call (0 succeeded, 0 failed, 1 pending), "
                "1 record that is no call",
                "agent_trace_audit: note: trace ids change with every run; "
                "--case-id can name a case by workflow, group and metadata.KEY",
                "agent_trace_audit: note: 1 call ended without an error and without an output: "
                "pending unless --no-output succeeded is given",
                "agent_trace_audit: note: 1 call without times: no duration",
            ],
        )


class Otlp(ImportTestCase):
    """Which spans are calls, and the spellings."""

    def test_calls(self) -> None:
        tool = "gen_ai.tool.name"
        vectors: Sequence[Tuple[str, Dict[str, Any], Any]] = (
            # span name, attributes, the tool or None for no call
            ("s", {"gen_ai.operation.name": "execute_tool", tool: "a"}, "a"),
            ("s", {"gen_ai.operation.name": "execute_tool", "tool.name": "b"}, "b"),
            ("s", {"gen_ai.operation.name": "execute_tool", "traceloop.entity.name": "c"}, "c"),
            ("execute_tool d", {"gen_ai.operation.name": "execute_tool"}, "d"),
            ("s", {"gen_ai.operation.name": "execute_tool", tool: "a", "tool.name": "b"}, "a"),
            ("s", {"openinference.span.kind": "TOOL", "tool.name": "b"}, "b"),
            ("s", {"openinference.span.kind": "TOOL", "tool.name": "b", tool: "a"}, "a"),
            ("handoff to Writer", {"openinference.span.kind": "TOOL"}, None),
            ("s", {"openinference.span.kind": "LLM", "tool.name": "b"}, None),
            ("s", {"traceloop.span.kind": "tool", "traceloop.entity.name": "c"}, "c"),
            ("s", {"traceloop.span.kind": "task", "traceloop.entity.name": "c"}, None),
            ("execute_tool e", {}, "e"),
            ("execute_tool e", {tool: "a"}, "a"),
            ("execute_tool ", {"gen_ai.x": "y"}, None),
            ("execute_tools", {"gen_ai.x": "y"}, None),
            ("execute_tool e", {"gen_ai.operation.name": "chat"}, None),
            ("running tool", {tool: "a"}, "a"),
            ("running tool", {"gen_ai.x": "a"}, None),
            ("running tool", {tool: "a", "gen_ai.operation.name": "chat"}, None),
            ("execute_tool (merged)", {"gen_ai.operation.name": "execute_tool", tool: "(merged tools)"}, None),
            ("s", {"gen_ai.operation.name": "execute_tool", tool: "transfer_to_agent"}, "transfer_to_agent"),
            ("s", {"gen_ai.operation.name": "invoke_agent", tool: "a", "gen_ai.tool.definitions": "[]"}, None),
            ("s", {"llm.tools.0.tool.name": "a", "openinference.span.kind": "LLM"}, None),
        )
        for name, attributes, wanted in vectors:
            with self.subTest(name, attributes=attributes):
                traces = self.accepted("otlp", [otlp(otlp_span("a", 1, 2, name=name, attributes=attributes))])
                self.assertEqual([call["tool"] for call in traces[0]["calls"]], [] if wanted is None else [wanted])

    def test_what_tells_a_call_is_text_or_refused(self) -> None:
        good = otlp_span("a", 1, 2)
        operation, span_kind, traceloop = "gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind"
        for key, also in (
            (operation, {"gen_ai.tool.name": "refund"}),
            (span_kind, {"tool.name": "refund"}),
            (traceloop, {"traceloop.entity.name": "refund"}),
            ("gen_ai.tool.call.id", {operation: "execute_tool", "gen_ai.tool.name": "refund"}),
            ("gen_ai.tool.name", {operation: "execute_tool"}),
        ):
            values: Tuple[Dict[str, Any], ...] = (
                {"intValue": "5"},
                {"boolValue": True},
                {"arrayValue": {"values": []}},
                {"stringValue": 5},
            )
            for value in values:
                wrong = otlp_span("b", 3, 4, name="execute_tool refund", attributes=also)
                wrong["attributes"].append({"key": key, "value": value})
                with self.subTest(key, value=value):
                    text = self.refused("otlp", json.dumps(otlp(good)) + "\n" + json.dumps(otlp(wrong)))
                    self.assertTrue(text.startswith(":2: "), text)

    def test_an_empty_attribute_is_not_given(self) -> None:
        span = otlp_span("a", 1, 2, name="execute_tool look", attributes={})
        span["attributes"].append({"key": "gen_ai.operation.name", "value": {}})
        self.assertEqual(["a"], ids(self.accepted("otlp", [otlp(span)])))

    def test_an_attribute_given_twice(self) -> None:
        for value, again, same in (
            ({"doubleValue": 5.0}, {"doubleValue": 5.0}, True),
            ({"intValue": "5"}, {"intValue": 5}, True),
            ({"stringValue": "5"}, {"intValue": "5"}, False),
            ({"doubleValue": 5.0}, {"doubleValue": 5.5}, False),
        ):
            span = otlp_span("a", 1, 2)
            span["attributes"] += [{"key": "error.type", "value": value}, {"key": "error.type", "value": again}]
            result = self.load("otlp", [otlp(span)])
            self.assertEqual(same, result.status == 0, result.err)
            self.assertEqual(same, "given twice, with two values" not in result.err)

    def test_whole_numbers_of_attributes(self) -> None:
        span = otlp_span("a", 1, 2)
        span["attributes"].append({"key": "gen_ai.conversation.id", "value": {"intValue": "12"}})
        self.assertEqual("12", self.accepted("otlp", [otlp(span)], "--case-id", "conversation")[0]["id"])
        span["attributes"][-1]["value"] = {"intValue": "no digits"}
        self.assertIn("intValue must be a whole number", self.refused("otlp", [otlp(span)]))

    def test_spellings(self) -> None:
        span = otlp_span("a", 1, 2)
        snake = {
            "trace_id": "t",
            "span_id": "a",
            "parent_span_id": "",
            "start_time_unix_nano": "1",
            "end_time_unix_nano": "2",
            "name": "execute_tool look",
            "attributes": [{"key": "gen_ai.tool.name", "value": {"string_value": "look"}}],
        }
        for content in (
            {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
            {"resource_spans": [{"scope_spans": [{"spans": [snake]}]}]},
            {"batches": [{"instrumentationLibrarySpans": [{"spans": [span]}]}]},
            {"trace": {"batches": [{"instrumentation_library_spans": [{"spans": [snake]}]}]}},
            {"trace": {"resourceSpans": [{"resource": None, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}},
            {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}], "resource_spans": None, "batches": []},
        ):
            with self.subTest(content):
                self.assertEqual(ids(self.accepted("otlp", [content])), ["a"])

    def test_the_same_call_twice(self) -> None:
        def spans(outer_id: Any, inner_id: Any, **inner: Any) -> List[Dict[str, Any]]:
            key = "gen_ai.tool.call.id"
            return [
                otlp_span("in", 3, 4, parentSpanId="out", also={} if inner_id is None else {key: inner_id}, **inner),
                otlp_span("out", 1, 9, also={} if outer_id is None else {key: outer_id}),
            ]

        self.assertEqual(ids(self.accepted("otlp", [otlp(*spans("c", "c"))])), ["out"])
        failed = self.accepted("otlp", [otlp(*spans("c", "c", status={"code": 2}))])
        self.assertEqual((ids(failed), statuses(failed)), (["out"], ["failed"]))
        for outer, inner in (("c", "d"), (None, None), ("c", None), ("<not specified>", "<not specified>"), ("", "")):
            with self.subTest((outer, inner)):
                self.assertEqual(ids(self.accepted("otlp", [otlp(*spans(outer, inner))])), ["out", "in"])
        other = spans("c", "c")
        other[0]["attributes"][1]["value"] = value_of("other")
        self.assertEqual(ids(self.accepted("otlp", [otlp(*other)])), ["out", "in"])
        between = [otlp_span("x", attributes={}, parentSpanId="out"), *spans("c", "c")]
        between[1]["parentSpanId"] = "x"
        self.assertEqual(ids(self.accepted("otlp", [otlp(*between)])), ["out", "in"])
        deep = [*spans("c", "c"), otlp_span("deeper", 3, 4, parentSpanId="in", also={"gen_ai.tool.call.id": "c"})]
        self.assertEqual(ids(self.accepted("otlp", [otlp(*deep)])), ["out"])
        within = [*spans("c", "c"), otlp_span("deeper", 2, 8, parentSpanId="in", also={"gen_ai.tool.name": "b"})]
        self.assertEqual(ids(self.accepted("otlp", [otlp(*within)])), ["out", "deeper"])

    def test_other_traces_are_left_out(self) -> None:
        plain = otlp_span("h", 1, 2, traceId="http", attributes={"http.method": "GET"})
        result = self.load("otlp", [otlp(otlp_span("a", 1, 2), plain)])
        self.assertEqual([trace["id"] for trace in result.traces], ["t"])
        self.assertIn("1 trace left out", result.err)
        for key in ("gen_ai.x", "openinference.x", "traceloop.x"):
            kept = self.accepted("otlp", [otlp(otlp_span("a", attributes={key: "x"}))])
            self.assertEqual(kept, [{"id": "t", "calls": []}])
        self.assertIn("no trace of an agent", self.refused("otlp", [otlp(plain)]))

    def test_metrics_and_logs(self) -> None:
        others = [{"resourceMetrics": [{}, {}]}, {"resourceLogs": [{}]}, {"resource_logs": []}]
        result = self.load("otlp", [others[0], otlp(otlp_span("a", 1, 2)), *others[1:]])
        self.assertEqual(ids(result.traces), ["a"])
        self.assertIn("3 resources of metrics or logs: passed over", result.err)
        self.assertIn("metrics or logs alone", self.refused("otlp", others))


class CommandLine(ImportTestCase):
    """Options, outputs, and real processes."""

    def test_wrong_usage(self) -> None:
        path = str(self.directory / "in")
        Path(path).write_text(json.dumps(SMALLEST["otlp"]), encoding="utf-8")
        for words, message in (
            ((), "FORMAT is required"),
            (("otlp",), "FILE is required"),
            (("otlp", ""), "FILE needs a value"),
            (("otlp", "--", path, path), "unrecognized argument"),
            (("otlp", "-x", path), "unrecognized argument: -x"),
            (("json", path), "FORMAT must be openai-agents or generic-jsonl or attest or otlp or traceix"),
            (("otlp", path, "--overlap", "end-order"), "--overlap must be start-order"),
            (("otlp", path, "--no-output", "failed"), "--no-output must be succeeded"),
            (("otlp", path, "--case-id", "workflow"), "--case-id must be one of trace, conversation, metadata.KEY"),
            (("otlp", path, "--case-id", "metadata."), "--case-id must be one of"),
            (
                ("attest", path, "--case-id", "metadata.x"),
                "--case-id must be one of trace, agent, conversation for attest",
            ),
            (("otlp", path, path), "unrecognized argument"),
            (("otlp", path, "--output", path), "--output names an input"),
            (("otlp", path + ".none"), "in.none: cannot be read: No such file or directory"),
        ):
            with self.subTest(message):
                result = command("import", *words)
                self.assertEqual((result.status, result.out), (1, ""))
                self.assertIn(message, result.err)
        self.assertEqual(json.loads(Path(path).read_text(encoding="utf-8")), SMALLEST["otlp"])

    def test_help(self) -> None:
        result = command("import", "--help")
        self.assertEqual((result.status, result.err), (0, ""))
        for word in (
            *product.FORMATS,
            "--case-id FIELD",
            "--overlap start-order",
            "--no-output succeeded",
            "--output FILE",
        ):
            self.assertIn(word, result.out)

    def test_output_file(self) -> None:
        target = self.directory / "traces.json"
        target.write_text("old", encoding="utf-8")
        refused = self.load("attest", [{}], "--output", str(target))
        self.assertEqual((refused.status, target.read_text(encoding="utf-8")), (1, "old"))
        result = self.load("attest", [SMALLEST["attest"]], "--output", str(target))
        self.assertEqual((result.status, result.out), (0, ""))
        self.assert_valid(target.read_text(encoding="utf-8"))
        self.assertEqual(sorted(os.listdir(self.directory)), ["in.jsonl", "traces.json"])

    def test_one_call_a_line(self) -> None:
        result = self.load("traceix", [traceix(traceix_step(), traceix_step(tool="b"))])
        self.assertEqual(len([line for line in result.out.splitlines() if '"tool"' in line]), 2)

    def test_processes(self) -> None:
        run = subprocess.run(
            [sys.executable, "-I", str(SCRIPT), "import", "traceix", "-"],
            input=json.dumps(SMALLEST["traceix"]).encode(),
            capture_output=True,
            check=False,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_valid(run.stdout.decode("ascii"))
        run = subprocess.run(
            [sys.executable, "-I", str(SCRIPT), "import", "traceix", "-"],
            input=b"  \x00",
            capture_output=True,
            check=False,
        )
        self.assertEqual((run.returncode, run.stdout), (1, b""))
        self.assertTrue(run.stderr.startswith(b"agent_trace_audit: error: -:1:3: not valid JSON"), run.stderr)

    def test_options_stand_anywhere(self) -> None:
        path, target = (str(self.directory / name) for name in ("in", "out"))
        Path(path).write_text(json.dumps(SMALLEST["otlp"]), encoding="utf-8")
        option = ("--output", target)
        for words in (
            (*option, "otlp", path),
            ("otlp", *option, path),
            ("otlp", path, *option),
            ("otlp", *option, "--overlap", "start-order", path),
            ("otlp", *option, "--", path),
            (*option, "--", "otlp", path),
        ):
            with self.subTest(words):
                self.assertEqual(0, command("import", *words).status)
                os.unlink(target)

    def test_nothing_is_loaded_before_a_command_needs_it(self) -> None:
        late = ("argparse", "datetime", "difflib", "fractions", "hashlib", "textwrap", "xml")
        code = f"import sys, agent_trace_audit; print(sorted(set(sys.modules) & set({late})))"
        # Without site, which may load any of them.
        run = subprocess.run([sys.executable, "-S", "-c", code], cwd=HERE.parent, stdout=subprocess.PIPE, check=True)
        self.assertEqual(b"[]", run.stdout.strip())


class SixthFormat(ImportTestCase):
    """One function and one line of the table are a whole importer."""

    def test_a_reader_of_one_function(self) -> None:
        def read_csvlike(item: product.Item, found: product.Found) -> None:
            if not item.has("run"):
                raise item.unfit(product.FOREIGN)
            found.span(
                found.trace(item, item.text("run"), found.asked(item, {"job": "job"})),
                item,
                span=item.text("id"),
                tool=item.text("tool"),
                start=item.read(product.iso_time, "at"),
                ended=True,
                output=True,
            )

        self.addCleanup(product.FORMATS.pop, "csvlike")
        product.FORMATS["csvlike"] = (read_csvlike, ("job",))
        second = {"run": "r", "id": "2", "tool": "b", "at": T + "02Z", "job": "j"}
        first = {"run": "r", "id": "1", "tool": "a", "at": T + "01Z"}
        traces = self.accepted("csvlike", [second, first], "--case-id", "job")
        self.assertEqual((traces[0]["id"], [call["tool"] for call in traces[0]["calls"]]), ("j", ["a", "b"]))
        self.assertIn(":2: tool must be", self.refused("csvlike", [first, {**first, "tool": ""}]))
        self.assertIn("it looks like csvlike", self.refused("otlp", [first]))


class EndToEnd(unittest.TestCase):
    """Recorded, imported, snapshotted, gated: green on its own run and red on a changed one."""

    SUITES = (
        ("openai-agents", "b_fail_then_retry_ok.jsonl", ["--case-id", "workflow"]),
        ("openai-agents", "g_many_traces_interleaved.jsonl", ["--overlap", "start-order", "--no-output", "succeeded"]),
        ("generic-jsonl", "1_all_types_ok.jsonl", ["--case-id", "group"]),
        ("attest", "v1_nested_agents.json", ["--case-id", "agent"]),
        ("otlp", "pydantic_ai_fail_retry.jsonl", ["--case-id", "conversation"]),
        ("traceix", "run_many_trajectories.json", ["--no-output", "succeeded"]),
    )

    def test_every_format_goes_straight_into_the_gate(self) -> None:
        self.assertEqual(set(product.FORMATS), {name for name, _, _ in self.SUITES})
        for name, recording, options in self.SUITES:
            with self.subTest(recording), tempfile.TemporaryDirectory() as folder:
                traces, workflows = str(Path(folder, "traces.json")), str(Path(folder, "workflows.json"))
                source = str(RECORDINGS / name / recording)
                self.assertEqual(0, command("import", name, source, *options, "--output", traces).status)
                snapshot = command("snapshot", traces, "--budget-headroom", "10", "--output", workflows)
                self.assertEqual((0, "", ""), snapshot)
                gate = ("--expected", workflows, "--observed", traces, "--fail-on-errors")
                self.assertEqual((0, ""), (command(*gate).status, command(*gate).err))
                recorded = json.loads(Path(traces).read_text("ascii"))
                changed = next(trace for trace in recorded if trace["calls"])
                changed["calls"].append({**changed["calls"][-1], "id": "one-more"})
                Path(traces).write_text(json.dumps(recorded), encoding="ascii")
                red = command(*gate)
                self.assertEqual(2, red.status)
                self.assertIn(f"FAIL {changed['id']} ", red.err)
