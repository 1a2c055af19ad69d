"""Facts of imports: conditions on arguments and outputs, content of each format, and that nothing else gets out."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any, Dict, List, Sequence

import agent_trace_audit as product
from tests.test_import import RECORDINGS, SECRETS, SKIP, START_ORDER, ImportTestCase, Json, Result, T, agents

VECTORS = Path(__file__).resolve().parent / "vectors" / "import_facts"


def fact(name: str, tool: str = "look", when: Any = None, **more: Any) -> Json:
    return {"fact": name, "tool": tool, "when": {"args.n": 1} if when is None else when, **more}


def span(id: str, args: Any, output: Any = "x", tool: str = "look", **more: Any) -> Json:
    """A call of generic-jsonl, which holds its content as it is."""
    record = {"trace_id": "t", "span_id": id, "type": "tool", "name": tool, "input": args, "output": output}
    return {**record, **more}


class FactsTestCase(ImportTestCase):
    def load_facts(self, format: str, content: Any, definitions: Any, *options: str) -> Result:
        path = self.path.with_name("facts.json")
        if not isinstance(definitions, (str, dict)):
            definitions = {"facts": list(definitions)}
        path.write_text(definitions if isinstance(definitions, str) else json.dumps(definitions), encoding="utf-8")
        return self.load(format, content, "--facts", str(path), *options)

    def facts(self, format: str, content: Any, definitions: Any, *options: str) -> Dict[str, Any]:
        """The facts of each call by its id."""
        result = self.load_facts(format, content, definitions, *options)
        self.assertEqual(result.status, 0, result.err)
        return {call["id"]: call.get("facts") for trace in result.traces for call in trace["calls"]}

    def refused_facts(self, definitions: Any) -> List[str]:
        result = self.load_facts("generic-jsonl", [span("a", {"n": 1})], definitions)
        self.assertEqual((1, ""), (result.status, result.out), result.err)
        return [line.partition("facts.json")[2] for line in result.err.splitlines()]


class Conditions(FactsTestCase):
    def test_vectors(self) -> None:
        vectors = json.loads((VECTORS / "conditions.json").read_text("utf-8"))
        rows: Sequence[Any] = vectors["conditions"]
        self.assertGreater(len(rows), 80)
        content = [span("a", vectors["arguments"], output=None)]
        for path, condition, wanted in rows:
            with self.subTest(path=path, condition=condition):
                definitions = [fact("f", when={path: condition})]
                if wanted == "refused":
                    self.assertEqual(1, len(self.refused_facts(definitions)))
                else:
                    found = self.facts("generic-jsonl", content, definitions)
                    self.assertEqual({"a": None if wanted == "not recorded" else {"f": wanted}}, found)
        accepted = [
            fact(f"f{index}", when={path: one}) for index, (path, one, wanted) in enumerate(rows) if wanted is True
        ]
        found = self.facts("generic-jsonl", content, accepted[:20])
        self.assertEqual({"a": {one["fact"]: True for one in accepted[:20]}}, found)

    def test_all_paths_must_hold_and_definitions_are_alternatives(self) -> None:
        true, false, unknown = {"args.n": 1}, {"args.n": 2}, {"output.n": 1}
        content = [span("a", {"n": 1, "m": 1}, output=None)]
        for whens, wanted in (
            ([{**true, "args.m": 1}], True),
            ([{**true, "args.m": 2}], False),
            ([{**true, **unknown}], None),
            ([{**false, **unknown}], False),
            ([false, true], True),
            ([unknown, true], True),
            ([unknown, false], None),
            ([false, false], False),
        ):
            with self.subTest(whens):
                found = self.facts("generic-jsonl", content, [fact("f", when=when) for when in whens])
                self.assertEqual({"a": None if wanted is None else {"f": wanted}}, found)

    def test_the_same_as_earlier(self) -> None:
        same = [fact("same", "pay", {"args.id": {"same_as": {"tool": "find", "path": "output.id"}}})]

        def one(id: str, output: Any, **more: Any) -> Json:
            return span(id, {}, output, tool="find", **more)

        pay = span("p", {"id": "A-1"}, tool="pay")
        for content, wanted in (
            ([one("a", {"id": "A-1"}), pay], True),
            ([one("a", '{"id": "A-1"}'), pay], True),
            ([one("a", {"id": "A-2"}), one("b", {"id": "A-1"}), pay], True),
            ([one("a", {"id": "A-2"}), pay], False),
            ([one("a", {}), pay], False),
            ([pay], False),
            ([pay, one("a", {"id": "A-1"})], False),
            ([one("a", {"id": "A-1"}, error="x"), pay], False),
            ([one("a", {"id": "A-1"}, trace_id="u"), pay], False),
            ([one("a", "text"), pay], None),
            ([one("a", "text"), one("b", {"id": "A-1"}), pay], True),
            ([one("a", "text"), one("b", {"id": "A-2"}), pay], None),
            ([one("a", {"id": "A-1"}), span("p", {}, tool="pay")], False),
            ([one("a", {"id": "A-1"}), span("p", None, tool="pay")], None),
            ([one("b", {"id": 7}), span("p", {"id": 7.0}, tool="pay")], True),
            ([one("b", {"id": 7}), span("p", {"id": "7"}, tool="pay")], False),
        ):
            with self.subTest(content):
                found = self.facts("generic-jsonl", content, same)["p"]
                self.assertEqual(None if wanted is None else {"same": wanted}, found)

    def test_earlier_is_by_start_and_not_by_the_file(self) -> None:
        same = [fact("same", "pay", {"args.id": {"same_as": {"tool": "find", "path": "args.id"}}})]
        late = span("p", {"id": 1}, tool="pay", started_at=T + "02Z")
        early = span("f", {"id": 1}, tool="find", started_at=T + "01Z")
        self.assertEqual({"same": True}, self.facts("generic-jsonl", [late, early], same)["p"])
        early["started_at"] = T + "03Z"
        self.assertEqual({"same": False}, self.facts("generic-jsonl", [late, early], same)["p"])

    def test_definitions_for_one_case_and_names_as_written(self) -> None:
        content = [span("a", {"n": 1}, tool="my tool"), span("b", {"n": 1}, tool="my tool", trace_id="u v")]
        definitions = [
            fact("f", "my_tool", case="u_v"),
            fact("g", "my_tool", case="none"),
            fact("h", "my tool".replace(" ", "_")),
        ]
        result = self.load_facts("generic-jsonl", content, definitions)
        facts = {call["id"]: call["facts"] for trace in result.traces for call in trace["calls"]}
        self.assertEqual({"a": {"h": True}, "b": {"f": True, "h": True}}, facts)
        lines = result.err.splitlines()[-3:]
        told = "agent_trace_audit: fact my_tool+{}: true of {}, false of 0, not established of 0"
        self.assertEqual([told.format(*row) for row in (("f", "1 call"), ("g", "0 calls"), ("h", "2 calls"))], lines)


class Definitions(FactsTestCase):
    def test_refusals(self) -> None:
        for definitions, problems in (
            ({}, ['$: missing key "facts"']),
            ({"facts": []}, ["$.facts: must be an array of 1 to 500 definitions"]),
            ([{"fact": "f"}], ['$.facts[0]: missing key "tool"', '$.facts[0]: missing key "when"']),
            ([fact("a b")], ["$.facts[0].fact: must be a string of 1 to 128"]),
            ([fact("f", "")], ["$.facts[0].tool: must be"]),
            ([fact("f", case=5)], ["$.facts[0].case: must be"]),
            ([fact("f", when={})], ["$.facts[0].when: must have 1 to 20 paths as keys"]),
            ([fact("f", when={"args.n": 1, "x": 1})], ['$.facts[0].when: the key "x" must be args or output, then']),
            (
                [fact("f"), fact("f", when={"args.n": {"SECRET": 1}})],
                ['$.facts[1].when["args.n"]: must be a value, or '],
            ),
            (
                [fact("f", when={"args": {"type": "SECRET"}})],
                ["$.facts[0].when.args: type must be one of string, number"],
            ),
            (
                [fact("f", when={"args.n": {"at_least": "SECRET"}})],
                ['$.facts[0].when["args.n"]: at_least must be a number'],
            ),
            (
                [fact("f", when={"args.n": {"one_of": "SECRET", "contains": ["SECRET", 1]}})],
                [
                    '$.facts[0].when["args.n"]: one_of must be an array',
                    '$.facts[0].when["args.n"]: contains must be an array',
                ],
            ),
        ):
            with self.subTest(definitions):
                found = self.refused_facts(definitions)
                self.assertEqual(len(problems), len(found), found)
                for line, wanted in zip(found, problems):
                    self.assertTrue(line.startswith(": " + wanted), line)
                    self.assertNotIn("SECRET", line)

    def test_wanted_values_are_told_without_their_keys(self) -> None:
        text = '{"facts": [{"fact": "f", "tool": "t", "when": {"args.n": VALUE}}]}'
        for value in ('{"SECRET": 1, "SECRET": 2}', '{"is": {"a": {"SECRET": 1, "SECRET": 2}}}', '["\\ud800SECRET"]'):
            (line,) = set(self.refused_facts(text.replace("VALUE", value)))
            self.assertEqual(': $.facts[0].when["args.n"]: a key stands twice, or a surrogate alone', line)
        (line,) = self.refused_facts(text.replace("VALUE", "1, 2").replace('"t"', '"t", "tool": "u"')[:-2])
        self.assertIn("not valid JSON", line)

    def test_bounds(self) -> None:
        content = [span("a", {"n": 1})]
        self.assertEqual(1, len(self.facts("generic-jsonl", content, [fact("f")] * 500)))
        self.assertIn("must be an array of 1 to 500 definitions", self.refused_facts([fact("f")] * 501)[0])
        paths = {f"args.k{n}": 1 for n in range(21)}
        self.assertIn("must have 1 to 20 paths", self.refused_facts([fact("f", when=paths)])[0])
        paths.popitem()
        self.facts("generic-jsonl", content, [fact("f", when=paths)])
        twenty = [fact(f"f{n}") for n in range(20)]
        self.assertEqual(20, len(self.facts("generic-jsonl", content, twenty)["a"]))
        for more in (fact("g"), fact("g", case="t")):
            (line,) = self.refused_facts([*twenty, more])
            self.assertEqual(": $.facts[20]: a tool may have at most 20 facts in a case", line)
        apart = [fact(f"f{n}", case=f"c{n}") for n in range(30)] + [fact("f0"), fact("g", "other")]
        self.facts("generic-jsonl", content, apart)
        (line,) = self.refused_facts([*[fact(f"f{n}", case="t") for n in range(20)], fact("f0"), fact("g")])
        self.assertIn("$.facts[21]", line)

    def test_usage(self) -> None:
        from tests.test_import import command

        result = command("import", "attest", "-", "--facts", "-")
        self.assertIn("standard input can serve FILE or --facts, not both", result.err)
        self.path.write_text("{}", encoding="utf-8")
        result = command("import", "attest", str(self.path), "--facts", str(self.path) + ".none")
        self.assertIn("in.jsonl.none: cannot be read", result.err)
        self.assertIn("--facts FACTS", command("import", "--help").out)
        path = self.path.with_name("facts.json")
        self.load_facts("generic-jsonl", [span("a", {})], [fact("f")])
        result = self.load("generic-jsonl", [span("a", {})], "--facts", str(path), "--output", str(path))
        self.assertEqual((1, "--output names an input" in result.err), (result.status, True), result.err)

    def test_at_most_twenty_lines(self) -> None:
        definitions = [fact(f"f{n}", f"t{n}") for n in range(40)]
        lines = self.load_facts("generic-jsonl", [span("a", {})], definitions).err.splitlines()
        self.assertEqual((20, True), (len(lines), lines[-1].endswith(": and 24 more")), lines[-1])


class Contents(FactsTestCase):
    """Where each format has its arguments and outputs; of two records of a call, the outer's where it has any."""

    SEEN = (fact("in", when={"args.q": "i"}), fact("out", when={"output.r": "o"}))
    BOTH = {"in": True, "out": True}  # noqa: RUF012
    IN, OUT = {"q": "i"}, {"r": "o"}

    def test_every_format(self) -> None:
        text, answer = json.dumps(self.IN), json.dumps(self.OUT)
        agent = agents("a", T + "00Z", T + "01Z", output=answer)
        agent["span_data"]["input"] = text
        block = {"type": "tool_use", "id": "a", "name": "look", "input": self.IN}
        result = {"type": "tool_result", "tool_use_id": "a", "content": answer}
        lines = [
            {"type": kind, "sessionId": "s", "message": {"content": [one]}}
            for kind, one in (("assistant", block), ("user", result))
        ]
        chat = {"id": "c", "function": {"name": "look", "arguments": text}}
        chain = {"id": "c", "name": "look", "args": self.IN}
        step = {"args": self.IN, "result": self.OUT}
        files: Dict[str, Any] = {
            "openai-agents": [agent],
            "generic-jsonl": [span("a", self.IN, self.OUT)],
            "attest": [
                {"trace_id": "t", "schema_version": 1, "steps": [{"type": "tool_call", "name": "look", **step}]}
            ],
            "traceix": [{"test_name": "t", "steps": [{"tool": "look", "error": None, **step}]}],
            "otlp": [self.otlp({"gen_ai.tool.call.arguments": text, "gen_ai.tool.call.result": answer})],
            "claude-code": lines,
            "openai-chat": [
                [{"role": "assistant", "tool_calls": [chat]}, {"role": "tool", "tool_call_id": "c", "content": answer}]
            ],
            "langchain": [
                [
                    {"type": "ai", "content": "", "tool_calls": [chain]},
                    {"type": "tool", "tool_call_id": "c", "content": answer},
                ]
            ],
        }
        self.assertEqual(set(product.FORMATS), set(files))
        for format, content in files.items():
            with self.subTest(format):
                self.assertEqual([self.BOTH], list(self.facts(format, content, self.SEEN).values()))
        # A result that stands before its call in the file.
        self.assertEqual([self.BOTH], list(self.facts("claude-code", lines[::-1], self.SEEN).values()))

    def otlp(self, *spans: Any) -> Json:
        listed = []
        for number, attributes in enumerate(spans):
            found = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", **attributes}
            values = [
                {"key": key, "value": value if isinstance(value, dict) else {"stringValue": value}}
                for key, value in found.items()
            ]
            inside = {"parentSpanId": str(number - 1)} if number else {}
            times = {"startTimeUnixNano": 1, "endTimeUnixNano": 2}
            listed.append({"traceId": "t", "spanId": str(number), **times, "attributes": values, **inside})
        return {"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}

    def test_attributes_of_every_kind(self) -> None:
        names = {
            "args": "gen_ai.tool.call.arguments tool_arguments ai.toolCall.args input.value traceloop.entity.input",
            "output": "gen_ai.tool.call.result tool_response ai.toolCall.result output.value traceloop.entity.output",
        }
        for part, keys in names.items():
            for key in keys.split():
                definitions = [fact("f", when={f"{part}.k": {"present": True}})]
                found = self.facts("otlp", [self.otlp({key: '{"k": 1}'})], definitions)
                self.assertEqual({"0": {"f": True}}, found, key)
        pairs = [
            {"key": "b", "value": {"boolValue": True}},
            {"key": "d", "value": {"doubleValue": 1.5}},
            {"key": "i", "value": {"intValue": "7"}},
            {"key": "l", "value": {"array_value": {"values": [{"string_value": "x"}, {"intValue": 2}]}}},
            {"key": "o", "value": {"kvlist_value": {"values": []}}},
            {"key": "n", "value": {}},
        ]
        wanted = {"b": True, "d": 1.5, "i": 7, "l": ["x", 2.0], "o": {}, "n": None}
        span_ = self.otlp({"input.value": {"kvlistValue": {"values": pairs}}})
        self.assertEqual({"0": {"f": True}}, self.facts("otlp", [span_], [fact("f", when={"args": {"is": wanted}})]))

    def test_records_that_are_one_call(self) -> None:
        both = {"gen_ai.tool.call.id": "c"}
        arguments, result = {"input.value": json.dumps(self.IN)}, {"output.value": json.dumps(self.OUT)}
        other = {"input.value": '{"q": "other"}'}
        for outer, inner, wanted in (
            ({**arguments, **result}, {}, self.BOTH),
            ({}, {**arguments, **result}, self.BOTH),
            (arguments, {**other, **result}, self.BOTH),
            (other, arguments, {"in": False}),
        ):
            found = self.facts("otlp", [self.otlp({**both, **outer}, {**both, **inner})], self.SEEN)
            self.assertEqual({"0": wanted}, found)
        start, end = agents("a", T + "00Z", output=""), agents("a", T + "00Z", T + "01Z", output=json.dumps(self.OUT))
        start["span_data"]["input"], end["span_data"]["input"] = "", json.dumps(self.IN)
        for records in ([start, end], [end, start]):
            self.assertEqual({"a": self.BOTH}, self.facts("openai-agents", records, self.SEEN))

    def test_no_content(self) -> None:
        wrapper = "FunctionToolResult(run_item=ToolApprovalItem())"
        for output in (None, wrapper):
            found = self.facts("openai-agents", [agents("a", None, T + "01Z", output)], self.SEEN)
            self.assertEqual({"a": None}, found)

    def test_what_is_written_goes_through_the_gate(self) -> None:
        content = [span("a", {"n": 1}), span("b", {"n": 2})]
        out = self.load_facts("generic-jsonl", content, [fact("one")]).out
        case = {"id": "t", "sequence": ["look+one", "look"], "allowed_tools": ["look"]}
        self.assertEqual("pass", product.audit(json.dumps({"cases": [case]}).encode(), out.encode())["verdict"])
        case["sequence"] = ["look+one", "look+one"]
        self.assertEqual("fail", product.audit(json.dumps({"cases": [case]}).encode(), out.encode())["verdict"])


class NothingGetsOut(FactsTestCase):
    def test_recordings_under_definitions_of_all_kinds(self) -> None:
        chance = random.Random(7)  # noqa: S311
        wanted = ["SECRET-INPUT-001", {"contains": ["SECRET"]}, {"present": True}, {"at_most": 5}, {"type": "string"}]
        paths = ["args", "args.q", "args.k", "args.city", "output", "output.note", "output.0.text", "args.command"]
        truths = set()
        for path in sorted(RECORDINGS.glob("*/*")):
            text = path.read_text(encoding="utf-8")
            tools = sorted(set(re.findall(r"[a-z]+_[a-z_]+|Bash|Read|verify|refund", text)))
            definitions = [
                fact(f"SECRET-{n}".replace("SECRET", "f"), tool, {chance.choice(paths): chance.choice(wanted)})
                for n, tool in enumerate(["any", *tools[:300]])
            ]
            with self.subTest(path.name):
                result = self.load_facts(path.parent.name, text, definitions, *START_ORDER, *SKIP)
                self.assertEqual(0, result.status, result.err)
                for secret in SECRETS:
                    self.assertNotIn(secret, result.out + result.err)
                truths |= {str(call.get("facts")) for trace in result.traces for call in trace["calls"]}
        self.assertGreater(len([one for one in truths if "True" in one]), 5)
        self.assertGreater(len([one for one in truths if "False" in one]), 5)
