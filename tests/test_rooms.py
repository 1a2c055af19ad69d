"""The house: the checker stands alone, and each room of what is opt-in can be taken out without breaking another.

A room goes from its banner, `# ---- NAME: promise`, to the next one or to the end of what is opt-in.
"""

from __future__ import annotations
import __future__

import functools
import re
import subprocess
import tempfile
import types
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

from . import test_command_line, test_vectors
from .support import DEADLINE, PAIR, PROGRAM, ROOT, Case, Program, laid_out

OPT_IN = re.compile(r"^# ==== opt-in.*?^# ==== end of opt-in[^\n]*\n", re.DOTALL | re.MULTILINE)
SED = "/^# ==== opt-in/,/^# ==== end of opt-in/d"
BANNER = re.compile(r"^# ---- ([^:\n]+): ", re.MULTILINE)

FOLDER = tempfile.TemporaryDirectory()


@functools.lru_cache(maxsize=None)
def check_only() -> Program:
    """The copy of the script without what is opt-in, as a file of the same name."""
    copy, found = OPT_IN.subn("", PROGRAM.source)
    assert found == 1, "the script has no line that starts with '# ==== opt-in', or none that ends it"
    path = Path(FOLDER.name, "agent_trace_audit.py")
    path.write_text(copy, "utf-8")
    return Program(path)


class CheckOnly:
    """A test class that is run against the copy."""

    @classmethod
    def chosen(cls) -> Program:
        return check_only()


class CopyVectors(CheckOnly, test_vectors.Vectors):
    pass


class CopyStatuses(CheckOnly, test_command_line.Statuses):
    pass


class CopyUsage(CheckOnly, test_command_line.Usage):
    pass


class CopySummary(CheckOnly, test_command_line.Summary):
    pass


class CopyInputs(CheckOnly, test_command_line.Inputs):
    pass


class CopyOutput(CheckOnly, test_command_line.Output):
    pass


class CopyProcesses(CheckOnly, test_command_line.Processes):
    pass


class CopyWaiting(CheckOnly, test_command_line.Waiting):
    pass


class CopyPlanted(CheckOnly, test_command_line.Planted):
    pass


# What each opt-in feature does when it is there; its exit status is 0 then, and 1 as wrong usage without it.
FEATURES: Dict[str, Tuple[str, ...]] = {
    "snapshot": ("snapshot", "traces.json"),
    "import": ("import", "traceix", "run.json"),
    "import --facts": ("import", "traceix", "run.json", "--facts", "facts.json"),
    "compare": ("compare", "report.json", "report.json"),
    "--junit-xml": (*PAIR, "--junit-xml", "made.xml"),
    "--markdown": (*PAIR, "--markdown", "made.md"),
    "--html": (*PAIR, "--html", "made.html"),
}
# What a room adds for `import agent_trace_audit`.
NAMES = {"Recorder"}
FACTS = b'{"facts": [{"fact": "any", "tool": "search_flights", "when": {"args": {"present": true}}}]}'


class House(Case):
    def setUp(self) -> None:
        super().setUp()
        self.put("workflows.json", (ROOT / "workflows.example.json").read_bytes())
        # Without a pending call, which no snapshot can be made of.
        self.put("traces.json", (ROOT / "traces.example.json").read_bytes().replace(b"pending", b"succeeded"))
        self.put("run.json", (ROOT / "tests" / "recordings" / "traceix" / "run_success.json").read_bytes())
        self.put("facts.json", FACTS)
        pair = [(self.directory / name).read_bytes() for name in ("workflows.json", "traces.json")]
        self.report = laid_out(PROGRAM.audit(*pair))
        self.put("report.json", self.report)

    def features(self, program: Any) -> Set[str]:
        """What a program offers beyond the check."""
        found = {name for name, words in FEATURES.items() if not self.run_words(*words, program=program).returncode}
        help = self.run_words("--help", program=program)
        self.assertEqual((0, b""), (help.returncode, help.stderr))
        text = help.stdout.decode("ascii")
        commands = {name.split()[0] for name in found}
        for word in {name.split()[0] for name in FEATURES}:
            with self.subTest("the help of the check", word=word):
                if word in commands:
                    self.assertRegex(text, rf"(?<![\w-]){word}(?![\w-])")
                else:
                    self.assertNotRegex(text, rf"(?m)^ +{word}(?![\w-])")
        names: Set[str] = program.names
        return found | names

    def test_the_copy_is_what_sed_makes(self) -> None:
        words = ["/bin/sh", "-c", 'exec sed "$@"', "sh", SED, str(PROGRAM.path)]
        made = subprocess.run(words, stdout=subprocess.PIPE, timeout=DEADLINE, check=True)
        self.assertEqual(made.stdout, check_only().path.read_bytes())

    def test_the_copy_knows_no_other_command(self) -> None:
        self.assertEqual(set(), self.features(Piecewise([check_only().source], check_only().path)))
        for words in FEATURES.values():
            with self.subTest(words):
                result = self.run_words(*words, program=check_only())
                self.assert_no_statement(result)
                self.assertEqual(1, result.stderr.count(b"\n"))
                self.assertNotIn(b"Error", result.stderr)

    def test_sizes(self) -> None:
        self.assertLessEqual(PROGRAM.source.count("\n"), 3_830)
        self.assertLessEqual(check_only().source.count("\n"), 1_750)

    def test_each_room_can_be_taken_out(self) -> None:
        pieces = pieces_of(PROGRAM.source)
        whole = self.features(Piecewise(list(pieces.values()), PROGRAM.path))
        self.assertLessEqual({"snapshot", "import", "--junit-xml", "--markdown"}, whole)
        gone: Dict[str, Set[str]] = {}
        for room in list(pieces)[1:-1]:
            with self.subTest(room):
                rest = Piecewise([piece for name, piece in pieces.items() if name != room], PROGRAM.path)
                self.assertEqual(self.report, self.run_words(*PAIR, program=rest).stdout)
                gone[room] = whole - self.features(rest)
                self.assertTrue(gone[room], "nothing in this table shows that the room is there")
        for feature in sorted(whole):
            rooms = [room for room in gone if feature in gone[room]]
            with self.subTest(feature, rooms=rooms):
                # One room has it; others take it along only when its banner says that it needs them.
                self.assertTrue(rooms)
                own = [room for room in rooms if all(needs(pieces[room], other) for other in rooms if other != room)]
                self.assertEqual(1, len(own))


def pieces_of(source: str) -> Dict[str, str]:
    """The source in pieces by name: the checker, each room, the start."""
    found = OPT_IN.search(source)
    assert found, "the script has no line that starts with '# ==== opt-in', or none that ends it"
    starts = [found.start() + banner.start() for banner in BANNER.finditer(found[0])]
    assert starts, "no banner stands among what is opt-in"
    pieces = {"": source[: starts[0]]}
    for start, end in zip(starts, [*starts[1:], found.end()]):
        name = BANNER.match(source, start)
        assert name
        pieces[name[1]] = source[start:end]
    assert len(pieces) == len(starts) + 1, "two rooms have one name"
    return {**pieces, "start": source[found.end() :]}


def needs(room: str, other: str) -> bool:
    """Whether the banner of a room, with the comment lines under it, names another."""
    banner = re.match(r"(?:#.*\n)+", room)
    return banner is not None and other.lower() in banner[0].lower()


@functools.lru_cache(maxsize=None)
def compiled(piece: str) -> types.CodeType:
    """A piece as code; each is compiled once, however often it is loaded with other ones."""
    code: types.CodeType = compile(piece, "piece", "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    return code


class Piecewise:
    """A program of some pieces of the script, as a module alone."""

    def __init__(self, pieces: List[str], path: Path) -> None:
        module: Any = types.ModuleType("agent_trace_audit")
        module.__file__ = str(path)
        for piece in pieces:
            exec(compiled(piece), module.__dict__)  # noqa: S102
        self.main = module.main
        self.names: Set[str] = NAMES & set(vars(module))
