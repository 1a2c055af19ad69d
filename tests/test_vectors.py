"""The vectors: inputs beside the verdicts, messages and refusals that the contract gives them.

Each file of `vectors/` is `{"about": TEXT, "cases": [CASE, ...]}`. A case has

    name       what it shows
    expected   the expected document, as JSON
    observed   the observed document, as JSON
    each       optional: JSON texts, each put where a document says "@" (a pair also says
               what "@" is in `checks` and `report`); for spellings that JSON values cannot keep
    exit       the exit status under --fail-on-errors
    checks     optional: members that checks of the report have, each with `case` and `rule`;
               `message` is the exact text, or words in it; without one there is no message;
               `without` are words that the message must not have
    report     optional: values in the report, by dotted path
    problems   for exit 1: every problem in order, `at` is what it starts with, `words` are in it
"""

from __future__ import annotations

import json
import unittest
from typing import Any, List, Tuple

from .support import OBSERVED, ORDERING, PROGRAM, Case, Json, case, load_vectors, workflows


def substituted(value: Any, text: str) -> Any:
    """A part of a case with a JSON text in place of every "@"."""
    return json.loads(json.dumps(value).replace('"@"', text))


def spellings(vector: Json) -> List[Tuple[str, bytes, bytes, List[Json], Json]]:
    """The inputs of a case, one pair for every entry of `each`, with the checks and report values they lead to."""
    found = []
    for each in vector.get("each", ["null"]):
        text, shown = each if isinstance(each, list) else (each, None)
        expected, observed = (json.dumps(vector[key]).replace('"@"', text) for key in ("expected", "observed"))
        checks = substituted(vector.get("checks", []), json.dumps(shown))
        values = substituted(vector.get("report", {}), json.dumps(shown))
        found.append((text, expected.encode("utf-8"), observed.encode("utf-8"), checks, values))
    return found


def at_path(report: Any, path: str) -> Any:
    for step in path.split("."):
        report = report[int(step)] if isinstance(report, list) else report[step]
    return report


class Vectors(Case):
    def verify_check(self, report: Json, wanted: Json) -> None:
        wanted = dict(wanted)
        case = next(case for case in report["cases"] if case["id"] == wanted["case"])
        check = next(check for check in case["checks"] if check["rule"] == wanted["rule"])
        del wanted["case"]
        message, wanted_message = check.pop("message", None), wanted.pop("message", None)
        for word in wanted.pop("without", []):
            self.assertNotIn(word, message)
        self.assertEqual(wanted, {key: check[key] for key in wanted})
        if isinstance(wanted_message, list):
            for word in wanted_message:
                self.assertIn(word, message)
        else:
            self.assertEqual(wanted_message, message)

    def verify_refusal(self, expected: bytes, observed: bytes, wanted: List[Json]) -> None:
        problems = self.program.problems(expected, observed)
        self.assertEqual(len(wanted), len(problems), problems)
        for problem, want in zip(problems, wanted):
            self.assertEqual(want["at"] + ": ", problem[: len(want["at"]) + 2], problem)
            for word in want["words"]:
                self.assertIn(word, problem[len(want["at"]) :])

    def verify(self, vector: Json) -> None:
        for number, (text, expected, observed, checks, values) in enumerate(spellings(vector)):
            with self.subTest(vector["name"], text=text):
                if number == 0:  # the command line comes to the same, whatever the spelling
                    self.verify_status(expected, observed, vector["exit"])
                if vector["exit"] == 1:
                    self.verify_refusal(expected, observed, vector["problems"])
                    continue
                report = self.program.audit(expected, observed)
                self.assertEqual({0: "pass", 2: "fail"}[vector["exit"]], report["verdict"])
                for check in checks:
                    self.verify_check(report, check)
                for path, value in values.items():
                    self.assertEqual(value, at_path(report, path), path)

    def verify_status(self, expected: bytes, observed: bytes, status: int) -> None:
        """A pair under the gate."""
        self.put("workflows.json", expected)
        self.put("traces.json", observed)
        result = self.check("--fail-on-errors")
        self.assertEqual(status, result.returncode)
        if status == 1:
            self.assert_no_statement(result)
        else:
            self.assertEqual(self.program.audit(expected, observed), json.loads(result.stdout))


def add_test(stem: str, content: Json) -> None:
    """One test method for a vector file, named after it."""

    def test(self: Vectors) -> None:
        self.assertTrue(content["about"])
        self.assertTrue(content["cases"], "an empty file tests nothing")
        for vector in content["cases"]:
            self.verify(vector)

    setattr(Vectors, f"test_{stem}", test)


FILES = load_vectors()
for name, content in FILES.items():
    add_test(name, content)


class Runner(unittest.TestCase):
    def test_files_were_found_for_every_rule(self) -> None:
        rules = PROGRAM.audit(workflows(case(**ORDERING)), OBSERVED)["rules"]
        self.assertEqual(10, len(rules))
        self.assertLessEqual(set(rules), set(FILES))

    def test_names_are_unique(self) -> None:
        names = [vector["name"] for content in FILES.values() for vector in content["cases"]]
        self.assertEqual(sorted(set(names)), sorted(names))


if __name__ == "__main__":
    unittest.main()
