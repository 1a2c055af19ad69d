"""The HTML page: sound and accessible, inert whatever a group holds, and in agreement with the report."""

from __future__ import annotations

import base64
import contextlib
import copy
import hashlib
import io
import re
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import agent_trace_audit as product

from .support import ROOT, Json, call, case, trace, traces, workflows

EXAMPLE = tuple((ROOT / name).read_bytes() for name in ("workflows.example.json", "traces.example.json"))
TAGS = (
    "html head meta title style body header main footer h1 h2 h3 h4 p b i small code bdi wbr ul ol li span "
    "details summary table caption thead tbody tr th td svg rect"
)
ATTRIBUTES = (
    "lang charset http-equiv content name class open role scope viewbox preserveaspectratio aria-hidden width height"
)
HOSTILE = [
    "",
    " ",
    "a  b",
    "\0\1\x08\x1b[31m\x7f\x85",
    "\ufffe\uffff\ufeff",
    "quotes \" and ' and &amp; &lt;b&gt; &#x41; &bogus",
    "line\r\nbreak\u2028\u2029",
    "<img src=x onerror=alert(1)><!-- -->",
    "</style></title><script>alert(1)</script>",
    "--></bdi></summary></details><h1>x</h1>",
    '" onmouseover=alert(1) x="',
    "body{display:none} url(https://example.com)",
    "\u202eright to left \u2066\u200f\U000e0041",
    "\u05e9\u05dc\u05d5\u05dd \u65e5\u672c\u8a9e \U0001f600",
    "##vso[task.complete]x ###[error]",
    "W" * 80,
]


class Node:
    def __init__(self, tag: str, attributes: Dict[str, Optional[str]]) -> None:
        self.tag, self.attributes, self.parts = tag, attributes, []  # type: Any, Any, List[Any]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def words(self) -> List[str]:
        return self.text.split()

    @property
    def children(self) -> List[Node]:
        return [part for part in self.parts if isinstance(part, Node)]

    def all(self, tag: str = "", kind: str = "") -> List[Node]:
        """The nodes below this one, in document order."""
        below = [node for child in self.children for node in (child, *child.all())]
        wanted = [node for node in below if tag in ("", node.tag)]
        return [node for node in wanted if not kind or kind in (node.attributes.get("class") or "").split()]


class Page(HTMLParser):
    """A tree of the page; anything that a browser would have to mend is an error."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]
        self.feed(page.decode("ascii"))
        self.close()
        assert self.open == [self.root], f"left open: {[node.tag for node in self.open]}"

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        node = Node(tag, dict(attrs))
        self.open[-1].parts.append(node)
        if tag not in ("meta", "wbr"):
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        assert tag == "rect", tag
        self.open[-1].parts.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def page_of_report(report: Json) -> bytes:
    return product.OUTPUTS["--html"].make(report, 0)


def tree_of(report: Json) -> Node:
    return Page(page_of_report(report)).root


def audit(*pairs: Tuple[Json, Optional[Sequence[Json]]]) -> Json:
    """The report of cases with their calls; None: no trace was recorded."""
    recorded = [trace(expected["id"], calls) for expected, calls in pairs if calls is not None]
    return product.audit(workflows(*(expected for expected, _ in pairs)), traces(*recorded) if recorded else b"[]")


def hostile_report(status: str) -> Json:
    return audit(*((case(f"r{n}", group=group), [call(status=status)]) for n, group in enumerate(HOSTILE)))


def repeated_report() -> Json:
    """One of three runs failed, which the case allows; a run of another case is not expected."""
    runs = [{"id": f"run-{n}", "case": "r1", "calls": [call(tool=tool, cost_usd=cost)]} for n, tool, cost in RUNS]
    other = {"id": "run-9", "case": "r7", "calls": [call()]}
    budget: Json = {"max_cost_usd": "0.01", "min_passing_runs": 2, "max_failing_runs": 1}
    return product.audit(workflows(case(**budget)), traces(*runs, other))


RUNS = ((1, "a", "0.002"), (2, "b", "0.02"), (3, "a", "0.002"))


def facts_report() -> Json:
    """The second step asks for two facts: one is false in the first case, and not recorded in the second."""
    steps = ["a", "b+right+small"]
    calls = [[call(), call("c2", "b", facts={"right": True, **more})] for more in ({"small": False}, {})]
    return audit(*((case(f"r{n}", steps, ["a", "b"]), recorded) for n, recorded in enumerate(calls)))


def cells(node: Node) -> List[Tuple[str, str, str, str]]:
    """The columns of a path: mark (class), head, expected, observed."""
    found = []
    for item in node.all("ol", "path")[0].children:
        head, above, below = item.children
        assert [above.children[0].text, below.children[0].text] == ["expected", "observed"]
        texts = [
            "".join(part.text if isinstance(part, Node) else part for part in cell.parts[1:]) for cell in (above, below)
        ]
        found.append((item.attributes["class"] or "", head.text, *texts))
    return found  # type: ignore[return-value]


class Structure(unittest.TestCase):
    def pages(self) -> Dict[str, Json]:
        return {
            "example": product.audit(*EXAMPLE),
            "hostile": hostile_report("failed"),
            "no calls": audit((case(sequence=[]), []), (case("r2"), None)),
            "runs": repeated_report(),
            "facts": facts_report(),
        }

    def test_every_page_is_sound_self_contained_and_accessible(self) -> None:
        for name, report in self.pages().items():
            with self.subTest(name):
                page = page_of_report(report)
                root = Page(page).root
                every = root.all()
                self.assertTrue(page.startswith(b"<!doctype html>\n"))
                self.assertEqual(page, page_of_report(report))
                self.assertLessEqual({node.tag for node in every}, set(TAGS.split()))
                self.assertLessEqual({key for node in every for key in node.attributes}, set(ATTRIBUTES.split()))
                self.assertEqual(["en"], [node.attributes.get("lang") for node in root.all("html")])
                self.assertEqual(1, len(root.all("title")))
                levels = [int(node.tag[1]) for node in every if re.fullmatch("h[1-6]", node.tag)]
                self.assertEqual((1, 1), (levels[0], levels.count(1)))
                self.assertTrue(all(later <= level + 1 for level, later in zip(levels, levels[1:])), levels)
                self.assertTrue(all(node.children[0].tag == "summary" for node in root.all("details")))
                self.assertTrue(all(node.children[0].tag == "caption" for node in root.all("table")))
                self.assertLessEqual({node.attributes.get("scope") for node in root.all("th")}, {"row", "col"})
                self.assertTrue(all(len(row.all("th")) == 1 for body in root.all("tbody") for row in body.all("tr")))
                self.assertTrue(all(node.attributes.get("aria-hidden") == "true" for node in root.all("svg")))

    def test_the_policy_admits_the_style_and_nothing_else(self) -> None:
        root = tree_of(product.audit(*EXAMPLE))
        (style,) = root.all("style")
        digest = base64.b64encode(hashlib.sha256(style.text.encode("ascii")).digest()).decode("ascii")
        policies = [node.attributes["content"] for node in root.all("meta") if "http-equiv" in node.attributes]
        self.assertEqual(
            [f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"], policies
        )
        self.assertNotRegex(style.text, r"(?i)url\(|@import|http|<")
        for part in ("prefers-color-scheme:dark", "@media print", "::details-content", ":focus-visible"):
            self.assertIn(part, style.text)

    def test_a_group_is_text_and_adds_nothing_else(self) -> None:
        def skeleton(node: Node) -> List[Any]:
            return [(child.tag, child.attributes, skeleton(child)) for child in node.children]

        for status in ("failed", "succeeded"):
            hostile = hostile_report(status)
            tame = copy.deepcopy(hostile)
            for each in tame["cases"]:
                each["group"] = "plain"
            page = page_of_report(hostile)
            root = Page(page).root
            self.assertEqual(skeleton(tree_of(tame)), skeleton(root))
            self.assertEqual(
                [product.readable(group) or "(empty)" for group in HOSTILE], [node.text for node in root.all("bdi")]
            )
            self.assertFalse(b"##" in page)
            self.assertIsNone(re.search(rb"[^\n -~]", page))


class Content(unittest.TestCase):
    def test_the_verdict_and_the_counts_come_first_and_the_limitations_last(self) -> None:
        report = product.audit(*EXAMPLE)
        root = tree_of(report)
        self.assertEqual(["fail 2 of 4 cases failed, 1 unknown case"], [node.text for node in root.all("h1")])
        head = root.all("header")[0].text
        self.assertIn("8 calls: 6 succeeded, 1 failed, 1 pending.", head)
        self.assertIn("Known cost 0.0115 USD (not known for 2 calls)", head)
        titles = [node.text for node in root.all("h2")]
        self.assertEqual(["Cases", "Limitations"], titles)
        self.assertEqual(report["limitations"], [item.text for item in root.all("ul")[-1].all("li")])

    def test_warnings_stand_before_the_cases(self) -> None:
        root = tree_of(audit((case(allowed=[]), [call()])))
        self.assertEqual("Warnings", root.all("h2")[0].text)
        self.assertIn("r1 no trace can pass", root.all("ul")[0].text)

    def test_failing_cases_are_open_and_first_and_passing_ones_folded(self) -> None:
        cases = tree_of(product.audit(*EXAMPLE)).all("details")
        seen = [(node.all("b")[0].text, node.all("code")[0].text, "open" in node.attributes) for node in cases]
        self.assertEqual(
            [
                ("fail", "refund-2001", True),
                ("fail", "refund-2002", True),
                ("unknown", "refund-2099", True),
                ("pass", "support-1001", False),
                ("pass", "support-1002", False),
            ],
            seen,
        )

    def test_each_check_that_does_not_pass_has_its_sentence(self) -> None:
        report = product.audit(*EXAMPLE)
        root = tree_of(report)
        for each, node in zip(report["cases"][2:], root.all("details")):
            wanted = [f"{c['verdict']} {c['rule']} {c['message']}" for c in each["checks"] if "message" in c]
            self.assertEqual(wanted, [item.text.strip() for item in node.all("ul")[0].all("li")])

    def test_the_first_difference_is_marked_and_other_calls_stand_in_their_place(self) -> None:
        wrong, missing = cells(tree_of(product.audit(*EXAMPLE)).all("details")[0]), "no call"
        self.assertEqual(
            [
                ("fail", "step 1: first difference", "verify_identity", "issue_refundsucceeded call-01"),
                ("", "step 2", "issue_refund", "verify_identitysucceeded call-02"),
                ("", "attempt", "no step", "send_emailpending call-03"),
            ],
            wrong,
        )
        failed = [call("c1"), call("c2", "b", "failed"), call("c3", "b")]
        report = audit((case(sequence=["a", "b", "c"], allowed=["a", "b"]), failed), (case("r2", ["x"]), None))
        first, second = tree_of(report).all("details")
        self.assertEqual(
            [
                ("pass", "step 1", "a", "asucceeded c1"),
                ("", "attempt", "no step", "bfailed c2"),
                ("pass", "step 2", "b", "bsucceeded c3"),
                ("fail", "step 3: first difference", "c", missing),
            ],
            cells(first),
        )
        self.assertEqual([("not_checked", "step 1", "x", missing)], cells(second))

    def test_every_mode_pairs_steps_and_calls_as_its_rule_does(self) -> None:
        # mode, sequence, successful calls, then per column its mark, step and tool
        table = [
            ("exact", "ab", "abc", "pass:a:a pass:b:b fail:-:c"),
            ("exact", "abc", "a", "pass:a:a fail:b:- :c:-"),
            ("permutation", "abb", "bcab", "pass:b:b fail:-:c pass:a:a pass:b:b"),
            ("permutation", "ab", "a", "pass:a:a fail:b:-"),
            ("permutation", "ab", "b", "pass:b:b fail:a:-"),
            ("permutation", "ab", "", "fail:a:- fail:b:-"),
            ("within", "ab", "aab", ":-:a pass:a:a pass:b:b"),
            ("within", "ab", "abab", "pass:a:a pass:b:b :-:a :-:b"),
            ("contains", "a", "ab", "pass:a:a :-:b"),
            ("contains", "ab", "bab", ":-:b pass:a:a pass:b:b"),
            ("contains", "ab", "acab", "pass:a:a :-:c :-:a pass:b:b"),
            ("contains", "abc", "acb", "pass:a:a :-:c pass:b:b fail:c:-"),
            ("superset", "ab", "ca", ":-:c pass:a:a fail:b:-"),
            ("subset", "ab", "aa", "pass:a:a fail:-:a :b:-"),
        ]
        pairs = []
        for number, (mode, sequence, tools, _) in enumerate(table):
            expected = case(f"r{number}", list(sequence), ["a", "b", "c"], match=mode)
            pairs.append((expected, [call(f"c{n}", tool) for n, tool in enumerate(tools)]))
        found = {node.all("code")[0].text: node for node in tree_of(audit(*pairs)).all("details")}
        for number, (mode, sequence, tools, wanted) in enumerate(table):
            with self.subTest(f"{mode} {sequence} {tools}"):
                columns = [
                    f"{mark}:{above.replace('no step', '-')}:{below.replace('no call', '-')[0]}"
                    for mark, _, above, below in cells(found[f"r{number}"])
                ]
                self.assertEqual(wanted.split(" "), columns)

    def test_budgets_are_bars_with_words(self) -> None:
        budget: Json = {"max_cost_usd": "9.50", "max_total_tool_ms": 50}
        calls = [call(cost_usd="10.25", duration_ms=20), call("c2", duration_ms=5)]
        report = audit(
            (case("r1", ["a", "a"], **budget), calls), (case("r2", max_total_tool_ms=0), [call(duration_ms=0)])
        )
        root = tree_of(report)
        over, within, empty = [item for item in root.all("li") if item.all("svg")]
        bars = [
            (node.all("svg")[0].attributes["viewbox"], *(r.attributes["width"] for r in node.all("rect")))
            for node in (over, within)
        ]
        self.assertEqual([("0 0 10.25 1", "10.25", "9.50"), ("0 0 50 1", "25", "50")], bars)
        words = "expected at most 9.50 USD, got 10.25 USD so far and 1 call not measured or not ended: c2"
        self.assertEqual(f"fail max_cost_usd {words}", over.text)
        self.assertEqual("pass max_total_tool_ms 25 of at most 50", within.text)
        self.assertEqual("pass max_total_tool_ms 0 of at most 0", empty.text)

    def test_the_table_repeats_the_calls(self) -> None:
        rows = tree_of(product.audit(*EXAMPLE)).all("table")[0].all("tr")
        self.assertEqual(["call", "tool", "status", "USD", "ms"], [node.text for node in rows[0].children])
        self.assertEqual(
            ["call-01", "issue_refund", "succeeded", "0.002", "700"], [node.text for node in rows[1].children]
        )
        self.assertEqual(
            ["call-03", "send_email", "pending", "unknown", "unknown"], [node.text for node in rows[3].children]
        )

    def test_runs_of_a_case_and_a_tolerated_one(self) -> None:
        root = tree_of(repeated_report())
        unknown, whole = root.all("details")[:2]
        self.assertIn("2 of 3 runs passed", whole.all("summary")[0].text)
        self.assertNotIn("open", whole.attributes)
        seen = [(n.all("b")[0].text, n.all("code")[0].text, "open" in n.attributes) for n in whole.all("details")]
        self.assertEqual([("tolerated", "run-2", True), ("pass", "run-1", False), ("pass", "run-3", False)], seen)
        run = whole.all("details")[0]
        self.assertEqual([("fail", "step 1: first difference", "a", "bsucceeded c1")], cells(run))
        self.assertIn("expected at most 0.01 USD, got 0.02 USD", run.text)
        self.assertIn("run-9 (case r7) 1 call, recorded, but no case expects it", unknown.text.replace("  ", " "))
        self.assertIn("1 of 3 runs failed", root.all("header")[0].text)

    def test_facts_stand_in_the_step_and_in_the_table(self) -> None:
        false, unrecorded = tree_of(facts_report()).all("details")
        wanted = ("b+right+small", "bsucceeded c2")
        self.assertEqual(("fail", "step 2: first difference", *wanted), cells(false)[1])
        self.assertEqual(("unknown", "step 2: not established", *wanted), cells(unrecorded)[1])
        self.assertEqual("bright is true, small is false", false.all("td")[4].text)

    def test_a_step_whose_facts_are_not_recorded_never_looks_passed(self) -> None:
        # mode, sequence, the facts of the calls of a, and the mark and the head of each column
        false, true = {"q": False}, {"q": True}
        table: List[Tuple[str, List[str], List[Json], str]] = [
            ("exact", ["a+q", "b"], [{}, {}], "unknown step 1: not established, fail step 2: first difference"),
            ("permutation", ["a+q", "a"], [{}, true], "pass step 2, pass step 1"),
            ("permutation", ["a+q"], [{}], "unknown extra call: not established, unknown step 1: not established"),
            ("permutation", ["a+q"], [false], "fail extra call: unmatched, fail step 1: unmatched"),
            ("permutation", ["a+q", "b"], [{}], "unknown step 1: not established, fail step 2: unmatched"),
        ]
        for mode, sequence, facts, wanted in table:
            recorded: List[Json] = [{"facts": each} if each else {} for each in facts]
            calls = [call(f"c{n}", **each) for n, each in enumerate(recorded)]
            (node,) = tree_of(audit((case("r1", sequence, match=mode), calls))).all("details")
            self.assertEqual(wanted, ", ".join(f"{mark} {head}" for mark, head, _, _ in cells(node)))

    def test_the_largest_inputs_give_a_page_of_at_most_8_mib(self) -> None:
        steps = [f"t{number}" for number in range(34)]
        calls = [call(f"c{n}", f"t{n}", status) for n, status in enumerate(("failed", "pending", "succeeded") * 3)]
        expected = [{"id": f"r{n}", "sequence": steps, "allowed_tools": []} for n in range(500)]
        report = product.audit(workflows(*expected), traces(*(trace(f"r{n}", calls) for n in range(500))))
        self.assertLess(len(page_of_report(report)), 8 * 1024 * 1024)


class Option(unittest.TestCase):
    def test_the_option_writes_the_page_of_the_report(self) -> None:
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
            page, report = Path(directory, "page.html"), Path(directory, "report.json")
            inputs = [
                "--expected",
                str(ROOT / "workflows.example.json"),
                "--observed",
                str(ROOT / "traces.example.json"),
            ]
            self.assertEqual(0, product.main([*inputs, "--html", str(page), "--output", str(report)]))
            self.assertEqual(page_of_report(product.audit(*EXAMPLE)), page.read_bytes())
