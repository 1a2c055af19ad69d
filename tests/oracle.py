"""A second evaluator: slow, obvious, and written from the rules alone, without a look at the program.

Money is counted in whole units of the smallest decimal place, lists are compared by looking at
every entry, and nothing is shared with the program. `random_pair` makes small documents in which
every rule passes and fails often.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .support import Json

RULES = (
    "trace_recorded",
    "sequence",
    "allowed_tools",
    "no_pending_calls",
    "max_failed_calls",
    "max_cost_usd",
    "max_total_tool_ms",
)


def units(money: str, places: int) -> int:
    """An amount in units of 10 ** -places."""
    whole, _, decimals = money.partition(".")
    return int(whole + (decimals + "0" * places)[:places])


def places_of(amounts: Sequence[str]) -> int:
    return max([len(amount.partition(".")[2]) for amount in amounts], default=0)


def money_sum(amounts: Sequence[str]) -> str:
    """The exact sum with as many decimals as the most precise term."""
    places = places_of(amounts)
    total = sum(units(amount, places) for amount in amounts)
    if not places:
        return str(total)
    return f"{total // 10**places}.{total % 10**places:0{places}d}"


def with_status(calls: Sequence[Json], *statuses: str) -> List[Json]:
    return [call for call in calls if call["status"] in statuses]


def unmeasured(calls: Sequence[Json], key: str) -> List[str]:
    return [call["id"] for call in calls if key not in call or call["status"] == "pending"]


def case_counts(cases: Sequence[Json], strangers: int) -> Json:
    """What a report says of its cases in numbers."""
    passed = len([case for case in cases if case["verdict"] == "pass"])
    return {
        "cases": len(cases),
        "passed": passed,
        "failed": len(cases) - passed,
        "missing_traces": len([case for case in cases if case["trace"] == "missing"]),
        "unknown_cases": strangers,
    }


def counts(calls: Sequence[Json]) -> Json:
    """What a report says of some calls in numbers."""
    kinds = {status: len(with_status(calls, status)) for status in ("succeeded", "failed", "pending")}
    return {
        "calls": {"total": len(calls), **kinds},
        "cost_usd": {
            "known_total": money_sum([call["cost_usd"] for call in calls if "cost_usd" in call]),
            "unknown_calls": len(unmeasured(calls, "cost_usd")),
        },
        "tool_ms": {
            "known_total": sum(call.get("duration_ms", 0) for call in calls),
            "unknown_calls": len(unmeasured(calls, "duration_ms")),
        },
    }


def budget_verdict(set_at_all: bool, over: bool, unknown: Sequence[str]) -> str:
    if not set_at_all:
        return "not_checked"
    if over:
        return "fail"
    return "unknown" if unknown else "pass"


def either(passes: bool) -> str:
    return "pass" if passes else "fail"


def first_difference(expected: Sequence[str], observed: Sequence[str]) -> Optional[int]:
    if list(expected) == list(observed):
        return None
    index = 0
    while list(expected[: index + 1]) == list(observed[: index + 1]):
        index += 1
    return index


def check_trace(case: Json, calls: Sequence[Json]) -> Json:
    return {"verdict": "pass"}


def check_allowed(case: Json, calls: Sequence[Json]) -> Json:
    wrong = [call for call in calls if not any(call["tool"] == tool for tool in case["allowed_tools"])]
    return {
        "verdict": either(wrong == []),
        "allowed": case["allowed_tools"],
        "violations": [{"call": call["id"], "tool": call["tool"], "status": call["status"]} for call in wrong],
    }


def check_pending(case: Json, calls: Sequence[Json]) -> Json:
    pending = [call["id"] for call in with_status(calls, "pending")]
    return {"verdict": either(pending == []), "calls": pending}


def check_failed(case: Json, calls: Sequence[Json]) -> Json:
    failed = [call["id"] for call in with_status(calls, "failed")]
    limit = case.get("max_failed_calls", 0)
    return {"verdict": either(len(failed) <= limit), "limit": limit, "observed": len(failed), "calls": failed}


def check_cost(case: Json, calls: Sequence[Json]) -> Json:
    limit = case.get("max_cost_usd")
    known = money_sum([call["cost_usd"] for call in calls if "cost_usd" in call])
    unknown = unmeasured(calls, "cost_usd")
    over = limit is not None and units(known, 6) > units(limit, 6)
    verdict = budget_verdict(limit is not None, over, unknown)
    return {"verdict": verdict, "limit": limit, "known_total": known, "unknown_calls": unknown}


def check_time(case: Json, calls: Sequence[Json]) -> Json:
    limit = case.get("max_total_tool_ms")
    known = sum(call.get("duration_ms", 0) for call in calls)
    unknown = unmeasured(calls, "duration_ms")
    verdict = budget_verdict(limit is not None, limit is not None and known > limit, unknown)
    return {"verdict": verdict, "limit": limit, "known_total": known, "unknown_calls": unknown}


# ---- richer expectations: six ways to match, three ordering rules --------------------------------


def less(items: Sequence[str], others: Sequence[str]) -> List[str]:
    """The items without as many as the others hold, the earlier ones taken first."""
    rest, left = list(others), []
    for item in items:
        if item in rest:
            rest.remove(item)
        else:
            left.append(item)
    return left


def in_order(sequence: Sequence[str], calls: Sequence[str]) -> bool:
    """Whether some choice of the calls, in their order, is the sequence."""
    return tuple(sequence) in set(combinations(calls, len(sequence)))


def one_block(sequence: Sequence[str], calls: Sequence[str]) -> bool:
    blocks = [list(calls[start : start + len(sequence)]) for start in range(len(calls) + 1)]
    return list(sequence) in blocks


MATCHES: Dict[str, Callable[[Sequence[str], Sequence[str]], bool]] = {
    "exact": lambda sequence, calls: list(sequence) == list(calls),
    "permutation": lambda sequence, calls: sorted(sequence) == sorted(calls),
    "within": one_block,
    "contains": in_order,
    "superset": lambda sequence, calls: all(calls.count(tool) >= sequence.count(tool) for tool in sequence),
    "subset": lambda sequence, calls: all(sequence.count(tool) >= calls.count(tool) for tool in calls),
}


def first_misfit(match: str, sequence: Sequence[str], calls: Sequence[str]) -> Optional[int]:
    """The first step that could not be placed; only two ways of matching know one."""
    if match == "exact":
        return first_difference(sequence, calls)
    if match == "contains":
        placed = [length for length in range(len(sequence) + 1) if in_order(sequence[:length], calls)]
        return None if max(placed) == len(sequence) else max(placed)
    return None


def check_sequence(case: Json, calls: Sequence[Json]) -> Json:
    sequence = case["sequence"]
    observed = [call["tool"] for call in with_status(calls, "succeeded")]
    match = case.get("match", "exact")
    return {
        "verdict": either(MATCHES[match](sequence, observed)),
        "expected": sequence,
        "observed": observed,
        "match": match,
        "missing": less(sequence, observed),
        "unexpected": less(observed, sequence),
        "first_difference": first_misfit(match, sequence, observed),
    }


def entry(call: Json, **more: Any) -> Json:
    return {"call": call["id"], "tool": call["tool"], "status": call["status"], **more}


def check_prior(case: Json, calls: Sequence[Json]) -> Json:
    limit, violations = case["require_prior"], []
    for index, call in enumerate(calls):
        done = [earlier["tool"] for earlier in with_status(calls[:index], "succeeded")]
        missing: List[str] = []
        for tool in limit.get(call["tool"], []):
            if tool not in done and tool not in missing:
                missing.append(tool)
        if missing:
            violations.append(entry(call, missing=missing))
    return {"verdict": either(violations == []), "limit": limit, "violations": violations}


def check_forbidden(case: Json, calls: Sequence[Json]) -> Json:
    limit, violations = case["forbid_after"], []
    for index, call in enumerate(calls):
        causes = [
            earlier["id"]
            for earlier in with_status(calls[:index], "succeeded")
            if call["tool"] in limit.get(earlier["tool"], [])
        ]
        if causes:
            violations.append(entry(call, after=causes[0]))
    return {"verdict": either(violations == []), "limit": limit, "violations": violations}


def check_max_calls(case: Json, calls: Sequence[Json]) -> Json:
    limit, violations = case["max_calls"], []
    for tool, most in limit.items():
        made = [call for call in calls if call["tool"] == tool]
        if len(made) > most:
            violations.append({"tool": tool, "calls": len(made)})
    return {"verdict": either(violations == []), "limit": limit, "violations": violations}


# These stand among a case's checks only where the case sets them, after the seven.
ORDERING: Dict[str, Callable[[Json, Sequence[Json]], Json]] = {
    "require_prior": check_prior,
    "forbid_after": check_forbidden,
    "max_calls": check_max_calls,
}

CHECKS: Dict[str, Callable[[Json, Sequence[Json]], Json]] = {
    "trace_recorded": check_trace,
    "sequence": check_sequence,
    "allowed_tools": check_allowed,
    "no_pending_calls": check_pending,
    "max_failed_calls": check_failed,
    "max_cost_usd": check_cost,
    "max_total_tool_ms": check_time,
}


def checks_of(case: Json, trace: Optional[Json]) -> List[Json]:
    """Every check of a case, without its message."""
    found = []
    in_force = {**CHECKS, **{rule: check for rule, check in ORDERING.items() if rule in case}}
    for rule, check in in_force.items():
        result = check(case, trace["calls"] if trace else [])
        if trace is None:
            result["verdict"] = "fail" if rule == "trace_recorded" else "not_checked"
            if rule == "sequence":
                result.update(missing=[], unexpected=[], first_difference=None)
        found.append({"rule": rule, **result})
    return found


def judge(case: Json, traces: Sequence[Json]) -> Json:
    """What the report says of one case, without the messages."""
    trace = next((trace for trace in traces if trace["id"] == case["id"]), None)
    checks = checks_of(case, trace)
    calls = trace["calls"] if trace else []
    return {
        "id": case["id"],
        "group": case.get("group"),
        "verdict": either(all(check["verdict"] in ("pass", "not_checked") for check in checks)),
        "trace": "recorded" if trace else "missing",
        "checks": checks,
        **counts(calls),
        "recorded_calls": calls,
    }


def group_counts(cases: Sequence[Json]) -> List[Json]:
    names: List[Any] = []
    for case in cases:
        if case["group"] not in names:
            names.append(case["group"])
    rows = []
    for name in names:
        members = [case["verdict"] for case in cases if case["group"] == name]
        rows.append(
            {
                "group": name,
                "cases": len(members),
                "passed": members.count("pass"),
                "failed": members.count("fail"),
            }
        )
    return rows


def rule_counts(cases: Sequence[Json]) -> Json:
    rows = {}
    for rule in (*CHECKS, *ORDERING):
        verdicts = [check["verdict"] for case in cases for check in case["checks"] if check["rule"] == rule]
        if rule in ORDERING and not verdicts:
            continue
        rows[rule] = {verdict: verdicts.count(verdict) for verdict in ("pass", "fail", "unknown", "not_checked")}
    return rows


def evaluate(expected: Json, observed: Sequence[Json]) -> Json:
    """The part of the report that the rules decide."""
    cases = [judge(case, observed) for case in expected["cases"]]
    ids = [case["id"] for case in cases]
    strangers = [trace for trace in observed if trace["id"] not in ids]
    judged = [call for trace in observed if trace["id"] in ids for call in trace["calls"]]
    return {
        "verdict": either(all(case["verdict"] == "pass" for case in cases) and strangers == []),
        "totals": {
            **case_counts(cases, len(strangers)),
            **counts(judged),
        },
        "rules": rule_counts(cases),
        "groups": group_counts(cases),
        "cases": cases,
        "unknown_cases": [
            {"id": trace["id"], **counts(trace["calls"]), "recorded_calls": trace["calls"]} for trace in strangers
        ],
    }


# ---- random documents ----------------------------------------------------------------------------

TOOLS = ("a", "b", "c")
AMOUNTS = ("0", "0.1", "0.10", "0.2", "00.3", "1", "0.000001", "0.999999")


def seeded(seed: int) -> Random:
    """Numbers that are the same in every run."""
    return Random(seed)  # noqa: S311 - nothing here is to be kept from anybody


def random_tools(random: Random, most: int) -> List[str]:
    return [random.choice(TOOLS) for _ in range(random.randint(0, most))]


def random_case(random: Random, id: str) -> Json:
    case: Json = {"id": id}
    if random.random() < 0.7:
        case["group"] = random.choice(("", "x", "y"))
    case["sequence"] = random_tools(random, 4)
    case["allowed_tools"] = random.choice((list(TOOLS), sorted(set(case["sequence"])), random_tools(random, 3)))
    if random.random() < 0.5:
        case["max_failed_calls"] = random.randint(0, 2)
    if random.random() < 0.5:
        case["max_cost_usd"] = random.choice(AMOUNTS)
    if random.random() < 0.5:
        case["max_total_tool_ms"] = random.randint(0, 6)
    return case


def random_call(random: Random, id: str, tool: str, status: str) -> Json:
    call: Json = {"id": id, "tool": tool, "status": status}
    if random.random() < 0.85:
        call["cost_usd"] = random.choice(AMOUNTS)
    if random.random() < 0.85:
        call["duration_ms"] = random.randint(0, 3)
    return call


def random_trace(random: Random, id: str, sequence: Sequence[str]) -> Json:
    """Mostly the right tools, now and then with attempts in between, a swap, a loss or something else."""
    steps: List[Tuple[str, str]] = [(tool, "succeeded") for tool in sequence]
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        place = random.randint(0, len(steps))
        kind = random.choice(("add", "add", "lose", "swap"))
        if kind == "add":
            status = random.choice(("succeeded", "failed", "failed", "pending"))
            steps.insert(place, (random.choice((*TOOLS, "z")), status))
        elif kind == "lose":
            del steps[place : place + 1]
        else:
            steps[place : place + 2] = reversed(steps[place : place + 2])
    calls = [random_call(random, f"c{number}", *step) for number, step in enumerate(steps)]
    return {"id": id, "calls": calls}


def random_pair(random: Random) -> Tuple[Json, List[Json]]:
    """Expected workflows and recorded traces; some are missing, some are unknown."""
    cases = [random_case(random, f"r{number}") for number in range(random.randint(1, 4))]
    traces = [random_trace(random, case["id"], case["sequence"]) for case in cases if random.random() < 0.9]
    if random.random() < 0.2:
        traces.append(random_trace(random, "x1", random_tools(random, 3)))
    random.shuffle(traces)
    random.shuffle(cases)
    return {"cases": cases}, traces


def random_policy(random: Random) -> Json:
    return {
        random.choice((*TOOLS, "z")): [random.choice(TOOLS) for _ in range(random.randint(1, 3))]
        for _ in range(random.randint(1, 2))
    }


def random_richer_pair(random: Random) -> Tuple[Json, List[Json]]:
    """The same with ways to match and ordering rules in most cases."""
    expected, observed = random_pair(random)
    for case in expected["cases"]:
        if random.random() < 0.85:
            case["match"] = random.choice(list(MATCHES))
        for rule in ("require_prior", "forbid_after"):
            if random.random() < 0.5:
                case[rule] = random_policy(random)
        if random.random() < 0.5:
            case["max_calls"] = {tool: random.randint(0, 2) for tool in random.sample(TOOLS, random.randint(1, 3))}
    return expected, observed
