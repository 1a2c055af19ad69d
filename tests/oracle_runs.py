"""A second evaluator of whole reports, several runs of a case included: written from the rules alone.

Every key stands in the order that the report has. What the rules leave open is read so:

1. A run is of the case that `case` names, whatever its own id is; an id never makes it a run of a second one.
2. A case is repeated when any of its runs has `case`, also when that is the case's own id and the only run.
3. Totals count each run of an expected case once; `missing_traces` counts cases without a run, repeated or not,
   and `unknown_cases` counts runs, two of one unexpected case as two.
4. `expects` stands also where a case has no run. `min_passing_runs` and `max_failing_runs` are not in it: they
   are the limits of the case's own checks.
5. `rules` names the two rules of runs where any case is repeated. A case without repetition counts as ever, so a
   missing one is `not_checked` by every rule; a repeated case without a run has no check of those rules at all.
6. Warnings do not depend on the number of runs.
"""

from __future__ import annotations

from random import Random
from typing import Any, Dict, List, Sequence, Tuple

from . import oracle, oracle_facts
from .oracle import case_counts, counts, either
from .support import Json

RUN_RULES = ("min_passing_runs", "max_failing_runs")
NAMED_ONCE = ("expected", "match", "allowed", "limit")  # in `expects`, not in the checks of runs
EXPECTS: Dict[str, Any] = {
    "sequence": None,
    "match": "exact",
    "allowed_tools": None,
    "max_failed_calls": 0,
    "max_cost_usd": None,
    "max_total_tool_ms": None,
    "require_prior": None,
    "forbid_after": None,
    "max_calls": None,
}
CALL_KEYS = ("id", "tool", "status", "cost_usd", "duration_ms", "facts")


def case_of(trace: Json) -> str:
    return str(trace.get("case", trace["id"]))


def recorded_calls(trace: Json) -> List[Json]:
    return [{key: call[key] for key in CALL_KEYS if key in call} for call in trace["calls"]]


def passes(checks: Sequence[Json]) -> bool:
    return all(check["verdict"] in ("pass", "not_checked") for check in checks)


def is_repeated(case: Json, runs: Sequence[Json]) -> bool:
    return any(rule in case for rule in RUN_RULES) or any("case" in run for run in runs)


def judge_run(case: Json, run: Json) -> Json:
    checks = [check for check in oracle_facts.checks_of(case, run) if check["rule"] != "trace_recorded"]
    return {
        "id": run["id"],
        "verdict": either(passes(checks)),
        "checks": [{key: check[key] for key in check if key not in NAMED_ONCE} for check in checks],
        **counts(run["calls"]),
        "recorded_calls": recorded_calls(run),
    }


def names(items: Sequence[str]) -> str:
    """Up to three of them; a longer list is not written out here."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def run_checks(case: Json, runs: Sequence[Json]) -> List[Json]:
    passed, failed = ([run["id"] for run in runs if run["verdict"] == verdict] for verdict in ("pass", "fail"))
    least, most = case.get("min_passing_runs", 1), case.get("max_failing_runs", 0)
    first: Json = {"rule": "trace_recorded", "verdict": either(runs != [])}
    second = {"rule": RUN_RULES[0], "verdict": either(len(passed) >= least), "limit": least, "observed": len(passed)}
    third = {"rule": RUN_RULES[1], "verdict": either(len(failed) <= most), "limit": most, "observed": len(failed)}
    third["runs"] = failed
    if not runs:
        second["verdict"] = third["verdict"] = "not_checked"
    if second["verdict"] == "fail":
        which = f": {names(passed)}" if passed else ""
        plural = "" if least == 1 else "s"
        second["message"] = f"expected at least {least} passing run{plural}, got {len(passed)} of {len(runs)}{which}"
    if third["verdict"] == "fail":
        plural = "" if most == 1 else "s"
        third["message"] = f"expected at most {most} failing run{plural}, got {len(failed)}: {names(failed)}"
    return [first, second, third]


def judge_repeated(case: Json, runs: Sequence[Json]) -> Json:
    judged = [judge_run(case, run) for run in runs]
    checks = run_checks(case, judged)
    return {
        "id": case["id"],
        "group": case.get("group"),
        "verdict": either(runs != [] and passes(checks)),
        "trace": "recorded" if runs else "missing",
        "checks": checks,
        "expects": {
            key: case.get(key, default) for key, default in EXPECTS.items() if case.get(key, default) is not None
        },
        **counts([call for run in runs for call in run["calls"]]),
        "runs": judged,
    }


def judge_plain(case: Json, runs: Sequence[Json]) -> Json:
    trace = runs[0] if runs else None
    checks = oracle_facts.checks_of(case, trace)
    return {
        "id": case["id"],
        "group": case.get("group"),
        "verdict": either(passes(checks)),
        "trace": "recorded" if trace else "missing",
        "checks": checks,
        **counts(trace["calls"] if trace else []),
        "recorded_calls": recorded_calls(trace) if trace else [],
    }


def run_verdicts(cases: Sequence[Json]) -> List[str]:
    """The verdict of every run that a case expects; a recorded case that is not repeated is one run."""
    verdicts = []
    for case in cases:
        verdicts += [run["verdict"] for run in case.get("runs", [case] if case["trace"] == "recorded" else [])]
    return verdicts


def rule_counts(expected: Sequence[Json], cases: Sequence[Json], repeated: bool) -> Json:
    checks = [check for case in cases for check in case["checks"]]
    checks += [check for case in cases for run in case.get("runs", []) for check in run["checks"]]
    rules = [*oracle.RULES, *[rule for rule in oracle.ORDERING if any(rule in case for case in expected)]]
    if repeated:
        rules += RUN_RULES
    found = {}
    for rule in rules:
        verdicts = [check["verdict"] for check in checks if check["rule"] == rule]
        found[rule] = {verdict: verdicts.count(verdict) for verdict in ("pass", "fail", "unknown", "not_checked")}
    return found


def unknown_case(trace: Json) -> Json:
    named = {"id": trace["id"], "case": trace["case"]} if "case" in trace else {"id": trace["id"]}
    return {**named, **counts(trace["calls"]), "recorded_calls": recorded_calls(trace)}


def evaluate(expected: Json, observed: Sequence[Json]) -> Json:
    """The part of the report that the rules decide; of the messages those of the two rules of runs."""
    cases, repeated = [], False
    for case in expected["cases"]:
        runs = [trace for trace in observed if case_of(trace) == case["id"]]
        several = is_repeated(case, runs)
        cases.append((judge_repeated if several else judge_plain)(case, runs))
        repeated = repeated or several
    ids = [case["id"] for case in cases]
    strangers = [trace for trace in observed if case_of(trace) not in ids]
    verdicts = run_verdicts(cases)
    runs_total = {"recorded": len(verdicts), "passed": verdicts.count("pass"), "failed": verdicts.count("fail")}
    return {
        "verdict": either(all(case["verdict"] == "pass" for case in cases) and strangers == []),
        "totals": {
            **case_counts(cases, len(strangers)),
            **({"runs": runs_total} if repeated else {}),
            **counts([call for trace in observed if case_of(trace) in ids for call in trace["calls"]]),
        },
        "rules": rule_counts(expected["cases"], cases, repeated),
        "groups": oracle.group_counts(cases),
        "cases": cases,
        "unknown_cases": [unknown_case(trace) for trace in strangers],
    }


# ---- text ----------------------------------------------------------------------------------------


def plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def text_lines(report: Json) -> List[str]:
    """The lines of a summary of a whole report, warnings left out."""
    lines = []
    for case in report["cases"]:
        rows = [("", check, True) for check in case["checks"]]
        rows += [("/" + run["id"], check, False) for run in case.get("runs", []) for check in run["checks"]]
        for run_id, check, own in rows:
            if check["verdict"] in ("fail", "unknown"):
                word = "TOLERATED" if case["verdict"] == "pass" and not own else check["verdict"].upper()
                lines.append(f"{word} {case['id']}{run_id} {check['rule']}: {check['message']}")
    for found in report["unknown_cases"]:
        of_case = f" (case {found['case']})" if "case" in found else ""
        lines.append(f"UNKNOWN-CASE {found['id']}{of_case}: recorded, but no case expects it")
    totals = report["totals"]
    last = f"{totals['failed']} of {plural(totals['cases'], 'case')} failed"
    last += f", {plural(totals['unknown_cases'], 'unknown case')}"
    if "runs" in totals:
        last += f", {totals['runs']['failed']} of {plural(totals['runs']['recorded'], 'run')} failed"
    return [*lines, last]


# ---- random documents ----------------------------------------------------------------------------


def random_traces(random: Random, case: Json, unused_ids: List[str]) -> List[Json]:
    """No run, a plain trace, runs, or both."""
    kind = random.choice(("none", "plain", "plain", "runs", "runs", "runs", "both"))
    traces = []
    if kind in ("plain", "both"):
        traces.append({"id": case["id"], "calls": oracle_facts.random_calls(random, case["sequence"])})
    if kind in ("runs", "both"):
        for _ in range(random.randint(1, 4)):
            calls = oracle_facts.random_calls(random, case["sequence"])
            traces.append({"id": unused_ids.pop(), "case": case["id"], "calls": calls})
    return traces


def random_pair(random: Random) -> Tuple[Json, List[Json]]:
    cases = [oracle_facts.random_case(random, f"r{number}") for number in range(random.randint(1, 3))]
    ids = [f"run-{number}" for number in range(20)]
    traces: List[Json] = []
    for case in cases:
        if random.random() < 0.25:
            case["min_passing_runs"] = random.randint(1, 3)
        if random.random() < 0.35:
            case["max_failing_runs"] = random.randint(0, 3)
        traces += random_traces(random, case, ids)
    taken = [trace["id"] for trace in traces]
    for trace in traces:
        # A run may have the id of another case, which it is no run of.
        other = random.choice([case["id"] for case in cases])
        if "case" in trace and other not in taken and random.random() < 0.1:
            taken.append(other)
            trace["id"] = other
    if random.random() < 0.2:
        calls = oracle_facts.random_calls(random, ["a", "b"])
        traces.append(
            {"id": ids.pop(), "case": "x1", "calls": calls} if random.random() < 0.5 else {"id": "x1", "calls": calls}
        )
    random.shuffle(traces)
    random.shuffle(cases)
    for trace in traces:
        trace["calls"] = [oracle_facts.shuffled(random, call) for call in trace["calls"]]
    return {"cases": [oracle_facts.shuffled(random, case) for case in cases]}, [
        oracle_facts.shuffled(random, trace) for trace in traces
    ]
