"""The README says what the program does: its commands run and print what it shows, its tables are the code's."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List, Set

from .support import (
    EXPECTED,
    OBSERVED,
    ORDERING,
    PROGRAM,
    ROOT,
    Case,
    Json,
    ProcessCase,
    call,
    case,
    to_bytes,
    trace,
    traces,
    workflows,
)
from .test_reading import BOUNDS, DEPTH

README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDINGS = {
    "openai-agents": "a_two_sequential_ok.jsonl",
    "generic-jsonl": "1_all_types_ok.jsonl",
    "attest": "v1_nested_agents.json",
    "otlp": "semconv_success.jsonl",
    "traceix": "run_success.json",
}
FILES = ("agent_trace_audit.py", "workflows.example.json", "traces.example.json")


def table(*head: str) -> List[List[str]]:
    """The cells of the only table that has this head; escaped bars are undone."""
    lines = README.splitlines()
    starts = [number for number, line in enumerate(lines) if line == f"| {' | '.join(head)} |"]
    if len(starts) != 1:
        raise AssertionError(f"{len(starts)} tables have the head {head}")
    rows = []
    for line in lines[starts[0] + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def blocks(language: str) -> List[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def unquoted(cell: str) -> str:
    return cell.strip("`")


def calls(text: str) -> List[Dict[str, str]]:
    """`a b!` as calls: an exclamation mark is a failed one."""
    statuses = {"": "succeeded", "!": "failed"}
    found = [re.fullmatch(r"(\w+)(!?)", word) for word in text.split()]
    return [
        {"id": f"call-{number:02d}", "tool": match[1], "status": statuses[match[2]]}
        for number, match in enumerate(found, start=1)
        if match
    ]


def verdict_of(rule: str, run: str, **keys: Any) -> Json:
    """What a rule says of a run, for a case with these keys."""
    case = {"id": "r", "allowed_tools": ["a", "b", "c"], "max_failed_calls": 9, "sequence": [], "match": "superset"}
    recorded = {"id": "r", "calls": calls(run)}
    report = PROGRAM.audit(to_bytes({"cases": [{**case, **keys}]}), to_bytes([recorded]))
    check: Json = next(check for check in report["cases"][0]["checks"] if check["rule"] == rule)
    return check


class Commands(ProcessCase):
    def setUp(self) -> None:
        super().setUp()
        for name in FILES:
            shutil.copy(str(ROOT / name), str(self.directory))

    def shell(self, script: str) -> str:
        """The output of a shell script, standard error included; `python` is this interpreter."""
        prelude = f's=0; python() {{ "{sys.executable}" "$@"; }}\n'
        process = self.start_command(["/bin/bash", "-c", prelude + script], stderr=subprocess.STDOUT)
        return self.ended(process).stdout.decode("ascii")

    def test_the_first_command_prints_the_report(self) -> None:
        commands = re.findall(r"^    (python .*)$", README, re.MULTILINE)
        self.assertEqual("python -m unittest", commands[1])
        report = json.loads(self.shell(commands[0]))
        self.assertEqual(
            ("fail", 4, 2, 1),
            (report["verdict"], *(report["totals"][key] for key in ("cases", "passed", "unknown_cases"))),
        )

    def test_the_console_blocks_print_what_they_show(self) -> None:
        (program,) = (block for block in blocks("python") if "Recorder" in block)
        Path(self.directory, "agent.py").write_text(program, encoding="utf-8")
        shown = blocks("console")
        self.assertGreaterEqual(len(shown), 6)
        for block in shown:
            commands = re.findall(r"^\$ (.*<<'END'\n(?:.*\n)*?END|.*)\n", block, re.MULTILINE)
            # The status of each command is kept past the echo of the next, which may ask for it.
            script = "\n".join(
                f"printf '$ %s\\n' {quoted(command)}; (exit $s)\n{command}\ns=$?" for command in commands
            )
            with self.subTest(commands[0]):
                self.assertEqual(timeless(block), timeless(self.shell(script)))

    def test_the_shell_step_keeps_the_exit_status_and_the_report(self) -> None:
        (step,) = blocks("sh")
        for name in ("workflows", "traces"):
            shutil.copy(ROOT / f"{name}.example.json", Path(self.directory, f"{name}.json"))
        printed = self.shell(f"mkdir kept; export ARTIFACTS=kept; (set -e\n{step}\n); echo $?")
        self.assertEqual("2", printed.splitlines()[-1])
        self.assertEqual("fail", json.loads(Path(self.directory, "kept", "report.json").read_text("ascii"))["verdict"])

    def test_the_import_commands_run_on_recordings(self) -> None:
        commands = re.findall(r"^    (python agent_trace_audit.py import \S+ .*)$", README, re.MULTILINE)
        for number, command in enumerate(dict.fromkeys(commands)):
            name, file = command.split()[3:5]
            with self.subTest(command):
                folder = self.directory / str(number)
                folder.mkdir()
                shutil.copy(str(ROOT / "tests" / "recordings" / name / RECORDINGS[name]), str(folder / file))
                printed = self.shell(f"cd {number}; {command.replace('agent_trace_audit', '../agent_trace_audit')}")
                self.assertRegex(printed, r"\Aagent_trace_audit: \d+ records?: 1 trace, [1-9]")
                self.assertNotIn("error: ", printed)
                traces = (folder / "traces.json").read_bytes()
                self.assertEqual(1, PROGRAM.audit(EXPECTED, traces)["inputs"]["observed"]["traces"])

    def test_the_module_example_runs(self) -> None:
        (example,) = (block for block in blocks("python") if "import audit" in block)
        Path(self.directory, "example.py").write_text(example, encoding="utf-8")
        self.assertEqual(example.rpartition("# ")[2], self.shell("python example.py"))


def timeless(text: str) -> str:
    """With one duration for all: how long a call takes is not the README's to say."""
    return re.sub(r'"duration_ms": \d+', '"duration_ms": 1', text)


def quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


class Drift(Case):
    """What the README lists is what the program says of itself, in its help, a report or a refusal."""

    def help(self, *command: str) -> str:
        """The help of a command with every run of white space as one blank."""
        result = self.run_words(*command, "--help")
        self.assertEqual((0, b""), (result.returncode, result.stderr))
        return " ".join(result.stdout.decode("ascii").split())

    def commands(self) -> List[List[str]]:
        """Every command that the README runs, without what follows it; the check has no name."""
        named = re.findall(r"python (?:-I -S )?agent_trace_audit\.py ([a-z]+)\b", README)
        return [[], *([name] for name in dict.fromkeys(named))]

    def formats(self) -> Set[str]:
        """The formats of `import`: those of its own words that it takes for one."""
        words = self.help("import") + self.run_words("import", "nothing", "nowhere.json").stderr.decode("ascii")
        return {
            word
            for word in set(re.findall(r"[a-z]+(?:-[a-z]+)*", words))
            if b"nowhere.json: " in self.run_words("import", word, "nowhere.json").stderr
        }

    def test_every_format_has_its_row(self) -> None:
        rows = table("format", "source", "a call is", "case ids beside `trace`")
        self.assertEqual(self.formats(), {unquoted(row[0]) for row in rows})
        for row in rows:
            with self.subTest(row[0]):
                fields = ", ".join(map(unquoted, row[3].split(", ")))
                self.assertIn(f" {unquoted(row[0])} {fields} ", self.help("import"))

    def test_it_is_for_someone_with_five_minutes(self) -> None:
        self.assertLessEqual(README.count("\n"), 480)
        anchors = {
            re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in re.findall(r"(?m)^## (.*)$", README)
        }
        self.assertLessEqual(set(re.findall(r"\]\(#([^)]*)\)", README)), anchors)

    def test_the_steps_for_ci_servers_use_options_that_exist(self) -> None:
        known = set(re.findall(r"--[a-z][a-z-]+", self.help()))
        for step in blocks("yaml"):
            used = set(re.findall(r"--[a-z-]+", step))
            self.assertIn("--fail-on-errors", used)
            self.assertLessEqual(used, known)
            self.assertIn("python -I -S agent_trace_audit.py", step)

    def test_the_json_blocks_are_documents_that_pass(self) -> None:
        expected, observed = blocks("json")[:2]
        self.assertEqual("pass", PROGRAM.audit(expected.encode(), observed.encode())["verdict"])

    def test_exit_statuses(self) -> None:
        rows = table("exit status", "meaning")
        self.assertEqual(["0", "1", "2"], [row[0] for row in rows])
        for status, meaning in rows:
            self.assertIn(f" {status} {meaning.replace('`', '')}", self.help())

    def test_bounds(self) -> None:
        rows = bound_rows()
        self.assertEqual(set(rows), {*BOUND_NAMES, "problems", "report"})
        for name, ours in BOUND_NAMES.items():
            with self.subTest(name):
                bound = {**BOUNDS, "depth": DEPTH}[ours]
                (problem,) = PROGRAM.problems(*bound.build(bound.value + 1))
                self.assertIn(rows[name].split()[0], re.findall(r"[0-9,]+", problem))

    def test_the_bound_of_lines(self) -> None:
        rows = bound_rows()
        self.put("traces.json", to_bytes([1] * 60))
        lines = self.check().stderr.splitlines()
        self.assertEqual(rows["problems"], f"{len(lines) - 1} lines")
        self.assertEqual(f"and {60 - len(lines) + 1} more".encode(), lines[-1])

    def test_bounds_of_an_imported_file(self) -> None:
        section = " ".join(README.partition("## Getting traces in\n")[2].partition("\n## ")[0].split())
        with open(str(self.directory / "large"), "wb") as file:
            file.truncate((1 << 24) + 1)
        self.put("deep", b'{"a":' + b"[" * 64 + b"]" * 64 + b"}")
        self.put("many", b"[" + b"0," * 1_000_000 + b"0]")
        for name, words in (("large", "16,777,216 bytes"), ("deep", "64 levels"), ("many", "1,000,000 JSON values")):
            with self.subTest(name):
                self.assertIn(words, section)
                self.assert_no_statement(self.run_words("import", "traceix", name), words)
        self.assertIn("more than 50 calls in a trace", section)

    def test_rules(self) -> None:
        rules = PROGRAM.audit(workflows(case(**ORDERING)), OBSERVED)["rules"]
        self.assertEqual([f"`{rule}`" for rule in rules], [row[0] for row in table("rule", "passes when")])

    def test_keys_of_a_case(self) -> None:
        rows = table("key of a case", "needed", "value")
        named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
        self.assertEqual(sorted(EVERY_KEY), sorted(named))
        self.assertEqual([], PROGRAM.problems(workflows(EVERY_KEY), OBSERVED))
        needed = [unquoted(row[0]) for row in rows if row[1] == "yes"]
        for name in named:
            with self.subTest(name):
                found = PROGRAM.problems(
                    workflows({key: value for key, value in EVERY_KEY.items() if key != name}), OBSERVED
                )
                self.assertEqual([f'expected: $.cases[0]: missing key "{name}"'] if name in needed else [], found)

    def test_keys_of_a_call(self) -> None:
        rows = table("key of a call", "needed", "value")
        whole = call(cost_usd="1", duration_ms=1, facts={"f": True})
        recorded = PROGRAM.audit(EXPECTED, traces(trace(calls=[whole])))["cases"][0]["recorded_calls"][0]
        self.assertEqual([f"`{name}`" for name in recorded], [row[0] for row in rows])
        self.assertEqual(["yes"] * 3 + ["no, then unknown"] * 3, [row[1] for row in rows])

    def test_options(self) -> None:
        listed = re.findall(r"^\| `(--[^`]*)` \| (.*) \|$", README.replace("\\|", "|"), re.MULTILINE)
        texts = [self.help(*command) for command in self.commands()]
        for use, meaning in listed:
            with self.subTest(use):
                self.assertTrue(any(f" {use} {meaning}" in text for text in texts), meaning)
        # The usage repeats the options, so that all of them stand in the help once more.
        known = {option for text in texts for option in re.findall(r"--[a-z][a-z-]+", text)}
        self.assertEqual(known, {use.split()[0] for use, _ in listed})

    def test_limitations(self) -> None:
        section = README.partition("## What it does not prove\n\n")[2].partition("\n\n")[0]
        limitations = PROGRAM.audit(EXPECTED, OBSERVED)["limitations"]
        self.assertEqual([f"- {sentence}" for sentence in limitations], section.splitlines())

    def test_match_modes(self) -> None:
        rows = table(
            "`match`",
            "passes when the successful calls",
            "`sequence`",
            "passes with",
            "fails with",
            "because",
            "elsewhere",
        )
        self.assertEqual(modes(), [unquoted(row[0]) for row in rows])
        for mode, _, steps, good, bad, because, _ in (map(unquoted, row) for row in rows):
            with self.subTest(mode):
                keys = {"match": mode, "sequence": steps.split()}
                self.assertEqual("pass", verdict_of("sequence", good, **keys)["verdict"])
                self.assertEqual(because, verdict_of("sequence", bad, **keys)["message"])

    def test_rules_of_tools(self) -> None:
        rows = table("rule", "set as", "passes with", "fails with", "because")
        self.assertEqual(["require_prior", "forbid_after", "max_calls"], [unquoted(row[0]) for row in rows])
        for rule, value, good, bad, because in (map(unquoted, row) for row in rows):
            with self.subTest(rule):
                keys = {rule: json.loads(value)}
                self.assertEqual("pass", verdict_of(rule, good, **keys)["verdict"])
                self.assertEqual(because, verdict_of(rule, bad, **keys)["message"])


def bound_rows() -> Dict[str, str]:
    """What the table of bounds says of each: the number and what it counts."""
    rows = table("bound", "at most", "of what")
    return {unquoted(name): row[1] for row in rows for name in row[0].split(", ")}


def modes() -> List[str]:
    """The values of `match`, from the refusal of another."""
    (problem,) = PROGRAM.problems(workflows(case(match="none")), OBSERVED)
    return re.findall(r'"(\w+)"', problem)


# A case with every key that there is.
EVERY_KEY: Json = case(
    group="g",
    max_failed_calls=0,
    max_cost_usd="1",
    max_total_tool_ms=1,
    match="exact",
    min_passing_runs=1,
    max_failing_runs=0,
    **ORDERING,
)

# The bounds of the README, each with the name that `BOUNDS` has for one of its kind.
BOUND_NAMES = {
    "size": "size of observed",
    "nodes": "nodes",
    "depth": "depth",
    "cases": "cases",
    "traces": "traces",
    "runs": "runs",
    "facts": "facts",
    "calls": "calls",
    "tools": "sequence",
    "number": "number",
    "group": "group",
    "failed_calls": "failed calls",
    "max_calls": "max_calls",
    "total_tool_ms": "total_tool_ms",
    "duration_ms": "duration_ms",
}


if __name__ == "__main__":
    unittest.main()
