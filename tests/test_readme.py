"""The README says what the program does: its commands run and print what it shows, its tables are the code's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

import agent_trace_audit as product

ROOT = Path(__file__).resolve().parent.parent
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


def verdict_of(rule: str, run: str, **keys: Any) -> Dict[str, Any]:
    """What a rule says of a run, for a case with these keys."""
    case = {"id": "r", "allowed_tools": ["a", "b", "c"], "max_failed_calls": 9, "sequence": [], "match": "superset"}
    trace = {"id": "r", "calls": calls(run)}
    report = product.audit(json.dumps({"cases": [{**case, **keys}]}).encode(), json.dumps([trace]).encode())
    check: Dict[str, Any] = next(check for check in report["cases"][0]["checks"] if check["rule"] == rule)
    return check


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        for name in FILES:
            shutil.copy(ROOT / name, self.folder)

    def shell(self, script: str) -> str:
        """The output of a shell script, standard error included; `python` is this interpreter."""
        prelude = f's=0; python() {{ "{sys.executable}" "$@"; }}\n'
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            ["/bin/bash", "-c", prelude + script],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        return done.stdout.decode("ascii")

    def test_the_first_command_prints_the_report(self) -> None:
        commands = re.findall(r"^    (python .*)$", README, re.MULTILINE)
        self.assertEqual("python -m unittest", commands[1])
        report = json.loads(self.shell(commands[0]))
        self.assertEqual(
            ("fail", 4, 2, 1),
            (report["verdict"], *(report["totals"][key] for key in ("cases", "passed", "unknown_cases"))),
        )

    def test_the_console_blocks_print_what_they_show(self) -> None:
        shown = blocks("console")
        self.assertGreaterEqual(len(shown), 2)
        for block in shown:
            lines = block.splitlines()
            commands = [line for line in lines if line.startswith("$ ")]
            # The status of each command is kept past the echo of the next, which may ask for it.
            script = "\n".join(f"printf '%s\\n' {quoted(line)}; (exit $s)\n{line[2:]}\ns=$?" for line in commands)
            with self.subTest(lines[0]):
                self.assertEqual(block, self.shell(script))

    def test_the_shell_step_keeps_the_exit_status_and_the_report(self) -> None:
        (step,) = blocks("sh")
        for name in ("workflows", "traces"):
            shutil.copy(ROOT / f"{name}.example.json", Path(self.folder, f"{name}.json"))
        printed = self.shell(f"mkdir kept; export ARTIFACTS=kept; (set -e\n{step}\n); echo $?")
        self.assertEqual("2", printed.splitlines()[-1])
        self.assertEqual("fail", json.loads(Path(self.folder, "kept", "report.json").read_text("ascii"))["verdict"])

    def test_the_import_commands_run_on_recordings(self) -> None:
        formats = set()
        for command in re.findall(r"^    (python agent_trace_audit.py import \S+ .*)$", README, re.MULTILINE):
            name, file = command.split()[3:5]
            formats.add(name)
            with self.subTest(name):
                shutil.copy(ROOT / "tests" / "recordings" / name / RECORDINGS[name], Path(self.folder, file))
                printed = self.shell(command)
                self.assertRegex(printed, r"\Aagent_trace_audit: \d+ records?: 1 trace, [1-9]")
                self.assertNotIn("error: ", printed)
                traces = Path(self.folder, "traces.json").read_bytes()
                self.assertEqual(1, len(product.read_observed(product.read_json(traces), [])))
        self.assertEqual(set(product.FORMATS), formats)

    def test_the_further_format_is_one_function_and_one_line(self) -> None:
        section = README.partition("### A further format\n")[2].partition("\n## ")[0]
        code = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    ") or not line)
        function, line = code.split('"mine": ')
        scope = dict(vars(product))
        exec("from __future__ import annotations\n" + function, scope)  # noqa: S102
        product.FORMATS["mine"] = eval(line.strip().rstrip(","), scope)  # noqa: S307
        self.addCleanup(product.FORMATS.pop, "mine")
        record = {"run": "r1", "id": "s1", "tool": "look up", "at": "2026-01-05T10:00:00Z", "job": "nightly"}
        Path(self.folder, "mine.json").write_text(json.dumps(record), encoding="utf-8")
        data, _ = product.import_traces(str(Path(self.folder, "mine.json")), "mine", {"--case-id": "job"})
        (trace,) = json.loads(data)
        self.assertEqual(
            ("nightly", "look_up", "succeeded"), (trace["id"], *(trace["calls"][0][key] for key in ("tool", "status")))
        )

    def test_the_steps_for_ci_servers_use_options_that_exist(self) -> None:
        known = {option.flag for command in product.COMMANDS.values() for option in command.options}
        for step in blocks("yaml"):
            used = set(re.findall(r"--[a-z-]+", step))
            self.assertIn("--fail-on-errors", used)
            self.assertLessEqual(used, known)
            self.assertIn("python -I agent_trace_audit.py", step)

    def test_the_module_example_runs(self) -> None:
        (example,) = (block for block in blocks("python") if "agent_trace_audit" in block)
        Path(self.folder, "example.py").write_text(example, encoding="utf-8")
        self.assertEqual(example.rpartition("# ")[2], self.shell("python example.py"))

    def test_the_json_blocks_are_documents_that_pass(self) -> None:
        expected, observed = blocks("json")[:2]
        self.assertEqual("pass", product.audit(expected.encode(), observed.encode())["verdict"])


def quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


class Tables(unittest.TestCase):
    def test_exit_statuses(self) -> None:
        rows = table("exit status", "meaning")
        self.assertEqual(["0", "1", "2"], [row[0] for row in rows])
        for status, meaning in rows:
            self.assertIn(f"  {status}  {meaning.replace('`', '')}\n", product.CHECK.notes)

    def test_bounds(self) -> None:
        rows = [row[:2] for row in table("bound", "at most", "of what")]
        self.assertEqual([[f"`{name}`", str(bound)] for name, bound in product.BOUNDS.items()], rows)

    def test_bounds_of_an_imported_file(self) -> None:
        section = " ".join(README.partition("## Getting traces in\n")[2].partition("\n### ")[0].split())
        size, depth, nodes = product.IMPORT_SIZE, product.IMPORT_DEPTH, product.IMPORT_NODES
        self.assertIn(f"A file may have {size} (16 MiB), {depth} a document and {nodes}.", section)
        self.assertIn(f"more than {product.BOUNDS['calls']} in a trace", section)

    def test_rules(self) -> None:
        self.assertEqual([f"`{rule.name}`" for rule in product.RULES], [row[0] for row in table("rule", "passes when")])

    def test_keys_of_a_case(self) -> None:
        named = [name for row in table("key of a case", "needed", "value") for name in re.findall(r"`(\w+)`", row[0])]
        self.assertEqual({"id", "group", *product.rule_keys()}, set(named))
        self.assertEqual(len(set(named)), len(named))

    def test_keys_of_a_call(self) -> None:
        rows = table("key of a call", "needed", "value")
        self.assertEqual([f"`{name}`" for name in product.Call._fields], [row[0] for row in rows])
        self.assertEqual(["yes"] * 3 + ["no, then unknown"] * 2, [row[1] for row in rows])

    def test_options(self) -> None:
        listed = re.findall(r"^\| `(--[^`]*)` \| (.*) \|$", README, re.MULTILINE)
        for command in product.COMMANDS.values():
            for option in command.options + product.COMMON_OPTIONS:
                with self.subTest(option.flag):
                    self.assertIn((product.usage(option), option.help), listed)
        known = {product.usage(o) for c in product.COMMANDS.values() for o in c.options + product.COMMON_OPTIONS}
        self.assertEqual(known, {use for use, _ in listed})

    def test_limitations(self) -> None:
        section = README.partition("## What it does not prove\n\n")[2].partition("\n\n")[0]
        self.assertEqual([f"- {sentence}" for sentence in product.LIMITATIONS], section.splitlines())

    def test_match_modes(self) -> None:
        rows = table(
            "`match`", "passes when the successful calls", "`sequence`", "passes with", "fails with", "because"
        )
        self.assertEqual([f"`{mode}`" for mode in product.MATCHES], [row[0] for row in rows])
        for mode, _, steps, good, bad, because in (map(unquoted, row) for row in rows):
            with self.subTest(mode):
                keys = {"match": mode, "sequence": steps.split()}
                self.assertEqual("pass", verdict_of("sequence", good, **keys)["verdict"])
                self.assertEqual(because, verdict_of("sequence", bad, **keys)["message"])

    def test_rules_of_tools(self) -> None:
        rows = table("rule", "set as", "passes with", "fails with", "because")
        self.assertEqual([f"`{rule.name}`" for rule in product.RULES if not rule.always], [row[0] for row in rows])
        for rule, value, good, bad, because in (map(unquoted, row) for row in rows):
            with self.subTest(rule):
                keys = {rule: json.loads(value)}
                self.assertEqual("pass", verdict_of(rule, good, **keys)["verdict"])
                self.assertEqual(because, verdict_of(rule, bad, **keys)["message"])

    def test_translations_name_what_exists(self) -> None:
        words = " ".join(row[1] for row in table("elsewhere", "here"))
        self.assertEqual(
            set(product.MATCHES), set(re.findall(r'"(exact|permutation|within|contains|superset|subset)"', words))
        )
        for name in re.findall(r'"(\w+)": \{', words):
            self.assertIn(name, product.rule_keys())
