"""Facts of imports: vectors, a second evaluator of the table of conditions, bounds, and that no content gets out."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from .support import PREFIX, PROGRAM, ROOT, VECTORS, Case, Json, Result, case, load, visible, workflows

FOLDER = VECTORS / "import_facts"
NOT_RECORDED = "not recorded"
SECRET = "SECRET"  # noqa: S105 - the planted one
TIME = "2026-01-05T10:00:%02dZ"


def as_written(text: str) -> str:
    return f"@{text}@"


def load_facts_vectors(name: str) -> List[Json]:
    """The vectors of a topic, with numbers kept as they are written."""
    text = (FOLDER / f"{name}.json").read_text("utf-8")
    vectors: List[Json] = json.loads(text, parse_float=as_written, parse_int=as_written)["vectors"]
    return vectors


def dump(value: Any) -> str:
    return re.sub('"@([^"@]*)@"', r"\1", json.dumps(value))


def definition(fact: str, when: Any, tool: str = "a", **more: Any) -> Json:
    return {"fact": fact, "tool": tool, **more, "when": when}


def span(number: int, tool: str = "a", **more: Any) -> Json:
    """A call as generic-jsonl records it."""
    place = {"trace_id": "t", "span_id": f"c{number}", "type": "tool", "name": tool}
    return {**place, "started_at": TIME % number, "ended_at": TIME % (number + 1), "output": "x", **more}


class FactsCase(Case):
    def load(self, lines: Sequence[Any], facts: Any, *options: str, format: str = "generic-jsonl") -> Result[bytes]:
        """Import values, or lines as they are written, with definitions or the text of a whole document."""
        text = "".join((line if isinstance(line, str) else dump(line)) + "\n" for line in lines)
        self.put("run.jsonl", text.encode("utf-8"))
        document = facts if isinstance(facts, str) else dump({"facts": facts})
        self.put("facts.json", document.encode("utf-8", "surrogatepass"))
        return self.run_words("import", format, "run.jsonl", "--facts", "facts.json", *options)

    def established(self, result: Result[bytes]) -> Dict[str, List[Json]]:
        """The facts of each call, by trace."""
        self.assertEqual(0, result.returncode, result.stderr)
        traces = json.loads(result.stdout)
        for trace in traces:
            self.assertTrue(all(call.get("facts") != {} for call in trace["calls"]))
        return {trace["id"]: [call.get("facts", {}) for call in trace["calls"]] for trace in traces}

    def problems(self, result: Result[bytes]) -> List[str]:
        """What FACTS is refused for."""
        self.assert_no_statement(result)
        lines = result.stderr.decode("ascii").splitlines()
        prefix = f"{PREFIX}facts.json: "
        return [line[len(prefix) :] if line.startswith(prefix) else line for line in lines]


class Vectors(FactsCase):
    def test_every_row_of_the_conditions(self) -> None:
        rows = [(vector, row) for vector in load_facts_vectors("conditions") for row in vector["rows"]]
        self.assertGreater(len(rows), 200)
        refused = [row for _, row in rows if row[2] == "refused"]
        for start in range(0, len(refused), 20):
            some = refused[start : start + 20]
            found = self.problems(self.load([span(1)], [definition("f", {row[0]: row[1]}) for row in some]))
            places = [re.match(r"\$\.facts\[([0-9]+)\]\.when", problem) for problem in found]
            self.assertEqual([str(number) for number in range(len(some))], [place and place[1] for place in places])
        kept = [(vector, row) for vector, row in rows if row[2] != "refused"]
        for start in range(0, len(kept), 50):
            some = [(vector["args"], row) for vector, row in kept[start : start + 50]]
            lines = [
                dump(span(n, f"t{n}", output=None))[:-1] + f', "input": {args}}}' for n, (args, _) in enumerate(some)
            ]
            facts = [definition("f", {row[0]: row[1]}, f"t{n}") for n, (_, row) in enumerate(some)]
            found_facts = self.established(self.load(lines, facts, "--overlap", "start-order"))["t"]
            for (_, row), recorded in zip(some, found_facts):
                with self.subTest(row):
                    self.assertEqual(row[2], recorded.get("f", NOT_RECORDED))

    def test_every_other_vector(self) -> None:
        for name in ("links", "definitions", "formats"):
            vectors = load_facts_vectors(name)
            self.assertGreater(len(vectors), 10)
            for vector in vectors:
                with self.subTest(vector["name"]):
                    format = vector.get("format", "generic-jsonl")
                    options = vector.get("options", [])
                    result = self.load(vector["lines"], vector["facts"], *options, format=format)
                    found = self.established(result)
                    self.assertEqual(vector["calls"], found)
                    # Each in the order in which its definitions stand.
                    order = [one["fact"] for one in vector["facts"]]
                    for facts in [facts for calls in found.values() for facts in calls]:
                        self.assertEqual(sorted(facts, key=order.index), list(facts))
                    said = result.stderr.decode("ascii").splitlines()
                    for note in vector.get("notes", []):
                        self.assertIn(f"agent_trace_audit: {note}", said)

    def test_every_refusal(self) -> None:
        for vector in load_facts_vectors("refusals"):
            with self.subTest(vector["name"]):
                result = self.load([span(1)], vector["facts"])
                self.assertEqual(vector["problems"], self.problems(result) if vector["problems"] else [])
                self.assertEqual(1 if vector["problems"] else 0, result.returncode, result.stderr)


# ---- a second evaluator: slow, obvious, written from the contract alone -----------------------------

OPEN, MISSING = "not established", "no such key"


def strict(text: str) -> Any:
    def members(pairs: List[Tuple[str, Any]]) -> Json:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    return json.loads(text, parse_float=Fraction, parse_int=Fraction, object_pairs_hook=members)


def read_text(value: Any) -> Any:
    if isinstance(value, str):
        try:
            inner = strict(value)
        except ValueError:
            return value
        return inner if isinstance(inner, (dict, list)) else value
    return value


def lead(content: Any, path: str) -> Tuple[str, Any]:
    """What a path comes to: ("value", it), (MISSING, None) or (OPEN, None)."""
    if content is None:
        return OPEN, None
    value = read_text(content)
    for step in path.split(".")[1:]:
        if isinstance(value, dict):
            if step not in value:
                return MISSING, None
            value = read_text(value[step])
        elif isinstance(value, list) and step in [str(n) for n in range(99)]:
            if int(step) >= len(value):
                return MISSING, None
            value = read_text(value[int(step)])
        else:
            return OPEN, None
    return "value", value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other))
    return type(one) is type(other) and bool(one == other)


def side(value: Any) -> Optional[Tuple[type, Fraction]]:
    if isinstance(value, Fraction):
        return Fraction, value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        return str, Fraction(value)
    return None


def meets(name: str, value: Any, wanted: Any) -> Optional[bool]:
    """A condition, of a value that is there."""
    if name == "is":
        return same(value, read_text(wanted))
    if name == "one_of":
        return any(same(value, read_text(entry)) for entry in wanted)
    if name in ("at_least", "at_most"):
        own, limit = side(value), side(wanted)
        if own is None or limit is None or own[0] is not limit[0]:
            return None
        return own[1] >= limit[1] if name == "at_least" else own[1] <= limit[1]
    if name == "contains":
        if isinstance(value, str):
            return all(text.casefold() in value.casefold() for text in wanted)
        return all(any(same(entry, text) for entry in value) for text in wanted) if isinstance(value, list) else None
    if name == "only_keys":
        return all(key in wanted for key in value) if isinstance(value, dict) else None
    kinds = {bool: "boolean", str: "string", Fraction: "number", list: "array", dict: "object", type(None): "null"}
    return bool(kinds[type(value)] == wanted if name == "type" else wanted is True)


ABSENT = dict.fromkeys(("is", "one_of", "type", "same_as"), False)


def second_opinion(one: Json, calls: List[Json], place: int) -> Optional[bool]:
    """Whether a definition holds of a call."""
    verdicts: List[Optional[bool]] = []
    for path, condition in one["when"].items():
        state, value = lead(calls[place].get("input" if path.startswith("args") else "output"), path)
        for name, wanted in (condition if isinstance(condition, dict) else {"is": condition}).items():
            if state == OPEN:
                verdicts.append(None)
            elif name == "present" and state == MISSING:
                verdicts.append(not wanted)
            elif state == MISSING:
                verdicts.append(ABSENT.get(name))
            elif name == "same_as":
                others = [other for other in calls[:place] if other["name"] == wanted["tool"] and other["succeeded"]]
                way = "input" if wanted["path"].startswith("args") else "output"
                led = [lead(other.get(way), wanted["path"]) for other in others]
                equal = any(state == "value" and same(value, found) for state, found in led)
                verdicts.append(True if equal else None if OPEN in [state for state, _ in led] else False)
            else:
                verdicts.append(meets(name, value, wanted))
    return False if False in verdicts else None if None in verdicts else True


class SecondEvaluator(FactsCase):
    LEAVES = (
        *("0", "-0", "1", "1.0", "10e-1", "-2.5", "-25e-1", "true", "false", "null"),
        *(
            '""',
            '"1"',
            '"1.50"',
            '"-2"',
            '"A k"',
            '"[1]"',
            '"[1.0, \\"k\\"]"',
            '"{\\"k\\": 1}"',
            '"{\\"k\\": \\"[1]\\"}"',
        ),
    )
    KEYS = ("k", "l", "0")

    def value(self, depth: int) -> str:
        kind = self.random.choice("oallll" if depth else "l")
        if kind == "l":
            return self.random.choice(self.leaves)
        inner = [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]
        text = f"[{', '.join(inner)}]"
        if kind == "o":
            pairs = dict(zip(self.random.sample(self.KEYS, 3), inner))
            text = "{" + ", ".join(f'"{key}": {member}' for key, member in pairs.items()) + "}"
        return json.dumps(text) if self.random.random() < 0.2 else text

    def path(self) -> str:
        steps = [
            self.random.choice([*self.KEYS, "k", "k", "1"]) for _ in range(self.random.choice((0, 1, 1, 1, 1, 1, 2, 3)))
        ]
        return ".".join([self.random.choice(("args", "args", "output")), *steps])

    def condition(self) -> str:
        leaf, value = self.random.choice(self.leaves), self.value(2)
        texts = self.random.choice(('["k", "l"]', '["a"]', '["K", "0", "l"]', '["1", ""]'))
        tool, path = self.random.choice("ab"), self.path()
        limit = self.random.choice(("1", "-2", "1.5", "0e5", '"1.5"', '"-02.0"', '"0"'))
        kind = self.random.choice(("string", "number", "boolean", "array", "object", "null"))
        return self.random.choice(
            (
                *([leaf] * 3),
                f'{{"is": {value}}}',
                f'{{"one_of": [{leaf}, {value}]}}',
                f'{{"one_of": [{", ".join(self.leaves)}]}}',
                f'{{"at_least": {limit}}}',
                f'{{"type": "{kind}", "at_most": {limit}}}',
                f'{{"contains": {texts}}}',
                f'{{"only_keys": {texts}}}',
                f'{{"type": "{kind}"}}',
                f'{{"present": {self.random.choice(("true", "false"))}}}',
                *([f'{{"same_as": {{"tool": "{tool}", "path": "{path}"}}}}'] * 4),
            )
        )

    def test_both_agree_on_random_definitions_and_content(self) -> None:
        counts: Dict[Optional[bool], int] = {True: 0, False: 0, None: 0}
        for seed in range(24):
            self.random = random.Random(f"facts {seed}")  # noqa: S311
            self.leaves = self.random.sample(self.LEAVES, 4)  # few, so that many are equal
            lines, facts = [], []
            for number in range(14):
                made = dump(span(number, self.random.choice("ab"), error=None, output=None))[:-1]
                made += ', "error": {}' * (self.random.random() < 0.1)
                for part in ("input", "output"):
                    members = ", ".join(f'"{key}": {self.value(2)}' for key in self.KEYS)
                    content = f"{{{members}}}" if self.random.random() < 0.8 else self.value(1)
                    made += f', "{part}": {content}' if self.random.random() < 0.95 else ""
                lines.append(made.replace(', "error": null', "", 1).replace(', "output": null', "", 1) + "}")
            for number in range(16):
                paths = {self.path() for _ in range(self.random.choice((1, 1, 1, 2)))}
                when = ", ".join(f'"{path}": {self.condition()}' for path in sorted(paths))
                tool, case = self.random.choice("ab"), self.random.choice(("", "", '"case": "t", ', '"case": "u", '))
                facts.append(f'{{"fact": "f{number // 2}", "tool": "{tool}", {case}"when": {{{when}}}}}')
            found = self.established(self.load(lines, f'{{"facts": [{", ".join(facts)}]}}', "--no-output", "succeeded"))
            calls = [strict(line) for line in lines]
            for call in calls:
                call["succeeded"] = call.get("error") is None
            definitions = [strict(text) for text in facts]
            for place, call in enumerate(calls):
                ours = [one for one in definitions if one["tool"] == call["name"] and one.get("case", "t") == "t"]
                opinions: Dict[str, List[Optional[bool]]] = {}
                for one in ours:
                    opinions.setdefault(one["fact"], []).append(second_opinion(one, calls, place))
                wanted = {
                    fact: True if True in each else None if None in each else False for fact, each in opinions.items()
                }
                for fact, truth in wanted.items():
                    counts[truth] += 1
                    told = [text for text, one in zip(facts, definitions) if one["fact"] == fact]
                    self.assertEqual(truth, found["t"][place].get(fact), (seed, lines[place], told))
        self.assertGreater(min(counts.values()), 150, counts)


class Ways(FactsCase):
    """The option, the two inputs, standard input, what is said."""

    def test_either_input_may_be_standard_input_but_not_both(self) -> None:
        whole = self.load([span(1, input={"x": 1})], [definition("f", {"args.x": 1})])
        for words, input in (
            (("-", "--facts", "facts.json"), "run.jsonl"),
            (("run.jsonl", "--facts", "-"), "facts.json"),
        ):
            given = (self.directory / input).read_bytes()
            result = self.run_words("import", "generic-jsonl", *words, input=given)
            self.assertEqual((0, whole.stdout), (result.returncode, result.stdout), result.stderr)
        result = self.run_words("import", "generic-jsonl", "-", "--facts", "-", input=b"{}")
        self.assert_no_statement(result, "standard input can serve FILE or --facts, not both")

    def test_facts_are_an_input_and_no_output(self) -> None:
        result = self.load([span(1)], [definition("f", {"args.x": 1})], "--output", "facts.json")
        self.assert_no_statement(result, "--output names an input")
        self.assertIn(b'"fact"', (self.directory / "facts.json").read_bytes())

    def test_a_refused_input_does_not_spare_the_other(self) -> None:
        result = self.load(["{}"], [definition("f", {"x": 1})])
        lines = self.problems(result)
        self.assertEqual(2, len(lines))
        self.assertTrue(lines[0].startswith("$.facts[0].when: the key"), lines)
        self.assertTrue(lines[1].startswith(f"{PREFIX}run.jsonl: "), lines)

    def test_at_most_twenty_lines_of_either_kind(self) -> None:
        bad = self.problems(self.load([span(1)], [definition("f", {"x": 1}) for _ in range(30)]))
        self.assertEqual((21, "and 10 more"), (len(bad), bad[-1]))
        result = self.load([span(1)], [definition("f", {"args": 1}, f"t{n}") for n in range(30)])
        said = result.stderr.decode("ascii").splitlines()
        self.assertEqual((20, "agent_trace_audit: and 13 more"), (len(said), said[-1]))
        self.assertEqual("agent_trace_audit: fact t0+f: true of 0 calls, false of 0, not established of 0", said[2])

    def test_a_checked_gate(self) -> None:
        lines = [span(n, input={"amount": amount}) for n, amount in ((1, 49.5), (3, 50.01))]
        traces = self.load(lines, [definition("at_most_50", {"args.amount": {"at_most": 50}})])
        self.put("traces.json", traces.stdout)
        self.put("workflows.json", workflows(case("t", ["a", "a"], ["a+at_most_50"])))
        result = self.check("--fail-on-errors")
        self.assertEqual(2, result.returncode)
        self.assertIn(b"expected only a+at_most_50, got a in succeeded call c3 (at_most_50 is false)", result.stderr)

    def test_help_and_rooms(self) -> None:
        text = self.run_words("import", "--help").stdout.decode("ascii")
        self.assertRegex(text, r"\n  --facts FACTS +\S.*\n  --output FILE ")
        room = r"(?ms)^# ---- %s.*?(?=^# ----|^# ==== end)"
        without = load(re.sub(room % "importers: ", "", PROGRAM.source), ROOT / "agent_trace_audit.py")
        with self.subTest("without the importers"):
            result = self.run_words("import", "--help", program=without)
            self.assertNotIn(b"--facts", result.stdout)
        plain: Any = load(re.sub(room % "facts of imports: ", "", PROGRAM.source), ROOT / "agent_trace_audit.py")
        with self.subTest("without the facts"):
            self.load([span(1)], [])
            self.assertNotIn(b"--facts", self.run_words("import", "--help", program=plain).stdout)
            self.assertEqual(0, self.run_words("import", "generic-jsonl", "run.jsonl", program=plain).returncode)


class Bounds(FactsCase):
    def fits(self, facts: Any, args: str = "{}") -> Json:
        line = dump(span(1))[:-1] + f', "input": {args}}}'
        return self.established(self.load([line], facts))["t"][0]

    def refuses(self, facts: Any, *words: str) -> None:
        (problem,) = self.problems(self.load([span(1)], facts))
        for word in words:
            self.assertIn(word, problem)

    def test_of_the_document(self) -> None:
        many = [definition("f", {"args.x": 1})] * 500
        self.assertEqual({"f": False}, self.fits(many))
        self.refuses([*many, many[0]], "$.facts: must be an array of 1 to 500 definitions")
        text = dump({"facts": [definition("f", {"args.x": "@"})]})
        self.assertEqual({"f": False}, self.fits(text.replace("@", "x" * (524_288 - len(text) + 1))))
        self.refuses(text.replace("@", "x" * (524_288 - len(text) + 2)), "larger than 524,288 bytes")
        nest = '{"facts": [{"fact": "f", "tool": "a", "when": {"args.x": %s}}]}'
        self.assertEqual({"f": False}, self.fits(nest % ("[" * 28 + "]" * 28)))
        self.refuses(nest % ("[" * 29 + "]" * 29), "nested deeper than 32 levels")
        self.assertEqual({"f": False}, self.fits(nest % ("[" + "1, " * 19_992 + "1]")))
        self.refuses(nest % ("[" + "1, " * 19_993 + "1]"), "holds more than 20,000 JSON values")
        self.assertEqual({"f": False}, self.fits(nest % ("1" * 100)))
        self.refuses(nest % ("1" * 101), "a number may have at most 100 characters")

    def test_of_text_that_is_json(self) -> None:
        kept = definition("text", {"args.j": {"type": "string"}})
        facts = [kept, definition("read", {"args.j.0": {"present": True}})]
        within, beyond = {"text": False, "read": True}, {"text": True}
        for fits, does_not in (
            ("[" + "1" * 100 + "]", "[" + "1" * 101 + "]"),
            ("[" * 32 + "]" * 32, "[" * 33 + "]" * 33),
            ("[" + "1," * 19_998 + "1]", "[" + "1," * 19_999 + "1]"),
            ('["' + "\u00e9" * 262_142 + '"]', '["' + "\u00e9" * 262_142 + '" ]'),
            ('["\\ud83d\\ude00"]', '["\\ud83d"]'),
            ("[1]", "[1,]"),
        ):
            with self.subTest(fits[:20]):
                self.assertEqual(within, self.fits(facts, json.dumps({"j": fits})))
                self.assertEqual(beyond, self.fits(facts, json.dumps({"j": does_not})))

    def test_what_a_key_that_stands_twice_says(self) -> None:
        inner = '{"SECRET": 1, "SECRET": {"SECRET": ["\\ud800"]}}'
        twice = f'{{"facts": [{{"fact": "f", "tool": "a", "when": {{"args.x": {{"is": {inner}}}}}}}]}}'
        self.refuses(twice, '$.facts[0].when["args.x"]: holds a duplicate key or an unpaired surrogate')
        self.refuses('{"facts": [{"fact": "f", "fact": "g"}]}', '$.facts[0]: duplicate key "fact"')
        self.refuses(
            '{"facts": [{"fact": "f", "tool": "a", "when": {"args.x": 1, "args.x": 2}}]}',
            '$.facts[0].when: duplicate key "args.x"',
        )


class Secrets(FactsCase):
    """Nothing of the content, and of FACTS no value and no key inside one, is ever said."""

    WANTED: Tuple[Any, ...] = (
        SECRET,
        {"is": {SECRET: [SECRET]}},
        {"one_of": [SECRET, {SECRET: 1}]},
        {"contains": [SECRET]},
        {"only_keys": [SECRET]},
        {"at_least": "94736251"},
        {"at_most": 94736251},
    )

    def silent(self, result: Result[bytes]) -> None:
        said = (result.stdout + result.stderr).decode("ascii")
        for secret in (SECRET, "94736251", "Traceback"):
            self.assertNotIn(secret, said)
        self.assertTrue(all(map(visible, said.splitlines())))

    def test_in_success_of_every_format(self) -> None:
        inner = {SECRET: {"x": SECRET, "n": "@94736251@"}, "y": [SECRET], "t": f'{{"{SECRET}": 94736251}}'}
        facts = [
            definition(f"f{number}", {path: wanted})
            for number, wanted in enumerate(self.WANTED)
            for path in (f"args.{SECRET}.x", "args.y.0", "args", "output", f"output.{SECRET}.n", "args.t", "args.x")
        ]
        formats = set()
        for vector in load_facts_vectors("formats"):
            formats.add(vector["format"])
            text = json.dumps(vector["lines"])
            for old in ('{\\"x\\": \\"@1@\\"}', '{\\"x\\": 1}', '{\\"y\\": 2}'):
                text = text.replace(old, json.dumps(dump(inner))[1:-1])
            for old in ('{"x": "@1@"}', '{"y": "@2@"}'):
                text = text.replace(old, json.dumps(inner))
            with self.subTest(vector["name"]):
                result = self.load(json.loads(text), facts, format=vector["format"])
                self.assertEqual(0, result.returncode, result.stderr)
                self.silent(result)
        self.assertEqual(8, len(formats))

    def damaged(self, wanted: Any) -> Iterator[Any]:
        """A condition made wrong in all the ways that people make it wrong."""
        value = next(iter(wanted.values())) if isinstance(wanted, dict) else wanted
        for name in ("one_of", "at_least", "contains", "only_keys", "type", "present", "same_as"):
            yield {name: {SECRET: value}}
            yield {name: [[value]]}
            yield {name: SECRET}
        yield {SECRET: value, "is": value}
        yield {"is": value, "same_as": {"tool": SECRET + " ", "path": f"args.{SECRET}"}}
        yield {"same_as": {"tool": "a", "path": SECRET, SECRET: SECRET}}

    def test_in_refusals(self) -> None:
        for wanted in self.WANTED:
            broken = [one for one in self.damaged(wanted) if "one_of" not in one or isinstance(one["one_of"], str)]
            facts = [definition("f", {"args.x": one}) for one in broken]
            accepted = [one for one in broken if one in ({"contains": SECRET}, {"only_keys": SECRET})]
            result = self.load([span(1, input={SECRET: SECRET})], facts)
            self.assertEqual([], [one for one in accepted if result.returncode == 0])
            self.assert_no_statement(result)
            self.silent(result)

    def test_in_bytes_that_are_damaged(self) -> None:
        whole = dump({"facts": [definition("f", {"args.x": wanted}) for wanted in self.WANTED]})
        generator = random.Random("damage")  # noqa: S311
        start = whole.index('{"args.x"')
        for _ in range(60):
            place = generator.randrange(start, len(whole))
            length = generator.choice((0, 1, 1, 3))
            new = generator.choice(("", "{", "}", '"', ",", "\\", "1", "\\ud800", "[", '"k": {', "\x00"))
            self.silent(self.load([span(1)], whole[:place] + new + whole[place + length :]))

    def test_in_keys_that_stand_twice(self) -> None:
        each: Tuple[Json, ...] = ({SECRET: {SECRET: 1}}, {"is": {SECRET: 2}}, {"is": [{SECRET: SECRET}]})
        for wanted in (*each, {"same_as": {SECRET: 1}}):
            text = dump({"facts": [definition("f", {"args.x": wanted})]})
            for damaged in (
                re.sub(r'("SECRET": )', r'"SECRET": 0, \1', text),
                re.sub('"SECRET"', r'"SECRET\\ud800"', text),
                re.sub('("is": )', r'"is": 0, \1', text),
                re.sub(r'("SECRET": )', r'"SECRET": 0, \1', text.replace('"facts": [', '"facts": ').replace("]}", "}")),
            ):
                if damaged != text:
                    result = self.load([span(1)], damaged)
                    self.assert_no_statement(result)
                    self.silent(result)
