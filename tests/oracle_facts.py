"""A second evaluator of steps with facts: slow, obvious, and written from the rules alone.

Every choice is tried out, and nothing is shared with the program. What the rules leave open is read so:

1. The two readings take each fit of a step and a call by itself. They need not agree on a fact that a call
   leaves out: in favour, `require_prior` may take such a fact for false in a key and for true in a list.
   So a rule that fails whatever the facts are can be `unknown`, never `pass`.
2. Evidence is that of one reading as a whole: the first where it fails, else the second.
3. `missing`, `unexpected` and `first_difference` follow the same reading as the verdict; a passing `exact`
   leaves nothing over, a passing `within` may.
4. A call never fits a step of another tool, whatever its facts; facts that no step names change nothing.
5. `missing` of `require_prior` names a step once, in the order of the object and then of the list; two steps of
   one tool with different facts, or the same facts in another order, are different as written.
6. `after` of `forbid_after` is the first successful call of which any key that fits it lists a step that fits.
7. A moved step may not return to a call that the move in progress has already asked for.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from . import oracle
from .oracle import either, entry, with_status
from .support import Json

Fits = Callable[[str, Json], bool]


def fit(step: str, call: Json) -> Optional[bool]:
    """Whether a step fits a call; None where that is unknown."""
    tool, *facts = step.split("+")
    recorded = [call.get("facts", {}).get(fact) for fact in facts]
    if tool != call["tool"] or any(truth is False for truth in recorded):
        return False
    return True if all(recorded) else None


class Reading(NamedTuple):
    """What counts as fitting where a fit helps the case, and where it hurts."""

    helps: Fits
    hurts: Fits


def taking_unknown_for(fits: bool) -> Fits:
    def taken(step: str, call: Json) -> bool:
        found = fit(step, call)
        return fits if found is None else found

    return taken


FAVOUR = Reading(taking_unknown_for(True), taking_unknown_for(False))
AGAINST = Reading(taking_unknown_for(False), taking_unknown_for(True))


# ---- sequence ------------------------------------------------------------------------------------


def all_fit(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> bool:
    return len(steps) == len(calls) and all(fits(step, call) for step, call in zip(steps, calls))


def one_block(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> bool:
    return any(all_fit(steps, calls[start : start + len(steps)], fits) for start in range(len(calls) + 1))


def in_order(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> bool:
    return any(all_fit(steps, chosen, fits) for chosen in combinations(calls, len(steps)))


def most_pairs(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> int:
    """The size of a largest pairing: the first step left alone, or with any call that it fits."""
    if not steps:
        return 0
    rest = [
        1 + most_pairs(steps[1:], [*calls[:place], *calls[place + 1 :]], fits)
        for place, call in enumerate(calls)
        if fits(steps[0], call)
    ]
    return max([most_pairs(steps[1:], calls, fits), *rest])


def leaves_no_step(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> bool:
    return most_pairs(steps, calls, fits) == len(steps)


def leaves_no_call(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> bool:
    return most_pairs(steps, calls, fits) == len(calls)


MATCHES: Dict[str, Callable[[Sequence[str], Sequence[Json], Fits], bool]] = {
    "exact": all_fit,
    "permutation": lambda *match: leaves_no_step(*match) and leaves_no_call(*match),
    "within": one_block,
    "contains": in_order,
    "superset": leaves_no_step,
    "subset": leaves_no_call,
}


def pairing(steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> Dict[int, int]:
    """Which step each paired call went to, by the places of both."""
    step_of: Dict[int, int] = {}

    def place(step: int, asked: FrozenSet[int]) -> bool:
        fitting = [index for index, call in enumerate(calls) if fits(steps[step], call) and index not in asked]
        for call in fitting:
            if call not in step_of:
                step_of[call] = step
                return True
        for call in fitting:
            if place(step_of[call], asked | {call}):
                step_of[call] = step
                return True
        return False

    for step in range(len(steps)):
        place(step, frozenset())
    return step_of


def first_misfit(match: str, steps: Sequence[str], calls: Sequence[Json], fits: Fits) -> Optional[int]:
    if MATCHES[match](steps, calls, fits) or match not in ("exact", "contains"):
        return None
    if match == "contains":
        return max(length for length in range(len(steps)) if in_order(steps[:length], calls, fits))
    shorter = min(len(steps), len(calls))
    return max(length for length in range(shorter + 1) if all_fit(steps[:length], calls[:length], fits))


def check_sequence(case: Json, calls: Sequence[Json], reading: Reading) -> Json:
    steps, match, fits = case["sequence"], case.get("match", "exact"), reading.helps
    done = with_status(calls, "succeeded")
    step_of = pairing(steps, done, fits)
    return {
        "verdict": either(MATCHES[match](steps, done, fits)),
        "expected": steps,
        "observed": [call["tool"] for call in done],
        "match": match,
        "missing": [step for index, step in enumerate(steps) if index not in step_of.values()],
        "unexpected": [call["tool"] for index, call in enumerate(done) if index not in step_of],
        "first_difference": first_misfit(match, steps, done, fits),
    }


# ---- the other rules that name tools -------------------------------------------------------------


def check_allowed(case: Json, calls: Sequence[Json], reading: Reading) -> Json:
    wrong = [call for call in calls if not any(reading.helps(step, call) for step in case["allowed_tools"])]
    return {
        "verdict": either(wrong == []),
        "allowed": case["allowed_tools"],
        "violations": [entry(call) for call in wrong],
    }


def check_prior(case: Json, calls: Sequence[Json], reading: Reading) -> Json:
    limit, violations = case["require_prior"], []
    for index, call in enumerate(calls):
        done = with_status(calls[:index], "succeeded")
        missing: List[str] = []
        for key, steps in limit.items():
            for step in steps if reading.hurts(key, call) else []:
                if step not in missing and not any(reading.helps(step, earlier) for earlier in done):
                    missing.append(step)
        if missing:
            violations.append(entry(call, missing=missing))
    return {"verdict": either(violations == []), "limit": limit, "violations": violations}


def check_forbidden(case: Json, calls: Sequence[Json], reading: Reading) -> Json:
    limit, violations = case["forbid_after"], []
    for index, call in enumerate(calls):
        causes = [
            earlier["id"]
            for earlier in with_status(calls[:index], "succeeded")
            for key, steps in limit.items()
            if reading.hurts(key, earlier) and any(reading.hurts(step, call) for step in steps)
        ]
        if causes:
            violations.append(entry(call, after=causes[0]))
    return {"verdict": either(violations == []), "limit": limit, "violations": violations}


def check_max_calls(case: Json, calls: Sequence[Json], reading: Reading) -> Json:
    limit, violations = case["max_calls"], []
    for key, most in limit.items():
        made = [call for call in calls if reading.hurts(key, call)]
        if len(made) > most:
            violations.append({"tool": key, "calls": len(made)})
    return {"verdict": either(violations == []), "limit": limit, "violations": violations}


# ---- a case --------------------------------------------------------------------------------------

STEP_CHECKS: Dict[str, Callable[[Json, Sequence[Json], Reading], Json]] = {
    "sequence": check_sequence,
    "allowed_tools": check_allowed,
    "require_prior": check_prior,
    "forbid_after": check_forbidden,
    "max_calls": check_max_calls,
}


def judged_twice(rule: str, case: Json, calls: Sequence[Json]) -> Json:
    favour, against = (STEP_CHECKS[rule](case, calls, reading) for reading in (FAVOUR, AGAINST))
    if favour["verdict"] == "fail":
        return favour
    return {**against, "verdict": "pass" if against["verdict"] == "pass" else "unknown"}


def checks_of(case: Json, trace: Optional[Json]) -> List[Json]:
    """Every check of a case, without its message."""
    plain = oracle.checks_of(case, trace)
    if trace is None:
        return plain
    rules = [check["rule"] for check in plain]
    found = dict(zip(rules, plain))
    found.update(
        {rule: {"rule": rule, **judged_twice(rule, case, trace["calls"])} for rule in rules if rule in STEP_CHECKS}
    )
    return [found[rule] for rule in rules]


# ---- how the facts that were left out could have turned out ----------------------------------------


def open_facts(case: Json, calls: Sequence[Json]) -> List[Tuple[int, str]]:
    """The facts that a step of the case asks of a call's tool and the call leaves out, by the call's place."""
    steps = [*case["sequence"], *case["allowed_tools"], *case.get("max_calls", {})]
    for rule in ("require_prior", "forbid_after"):
        for key, listed in case.get(rule, {}).items():
            steps += [key, *listed]
    found = []
    for index, call in enumerate(calls):
        named = {fact for step in steps if step.split("+")[0] == call["tool"] for fact in step.split("+")[1:]}
        found += [(index, fact) for fact in sorted(named - set(call.get("facts", {})))]
    return found


def completed(calls: Sequence[Json], facts: Sequence[Tuple[int, str]], truths: Sequence[bool]) -> List[Json]:
    """The calls with these facts recorded as well."""
    done = list(calls)
    for (index, fact), truth in zip(facts, truths):
        done[index] = {**done[index], "facts": {**done[index].get("facts", {}), fact: truth}}
    return done


# ---- random documents ----------------------------------------------------------------------------

TOOLS = ("a", "b")
FACTS = ("f", "g")


def random_step(random: Random, tools: Sequence[str] = TOOLS) -> str:
    facts = random.sample(FACTS, random.choice((0, 0, 1, 1, 1, 2)))
    return "+".join([random.choice(tools), *facts])


def random_steps(random: Random, least: int, most: int) -> List[str]:
    return [random_step(random) for _ in range(random.randint(least, most))]


def random_case(random: Random, id: str) -> Json:
    case: Json = {"id": id}
    if random.random() < 0.3:
        case["group"] = random.choice(("x", "y"))
    case["sequence"] = random_steps(random, 0, 5)
    case["allowed_tools"] = random.choice(
        (["a", "b"], ["a", "b", "c"], [*case["sequence"], "c"], random_steps(random, 0, 3), ["a+f", "a+g", "b"])
    )
    if random.random() < 0.8:
        case["match"] = random.choice(list(MATCHES))
    if random.random() < 0.7:
        case["max_failed_calls"] = random.randint(0, 2)
    if random.random() < 0.2:
        case["max_total_tool_ms"] = random.randint(0, 6)
    for rule in ("require_prior", "forbid_after"):
        if random.random() < 0.4:
            case[rule] = {random_step(random): random_steps(random, 1, 2) for _ in range(random.randint(1, 2))}
    if random.random() < 0.4:
        case["max_calls"] = {random_step(random): random.randint(0, 2) for _ in range(random.randint(1, 3))}
    return case


def random_call(random: Random, id: str, step: str, status: str) -> Json:
    """Mostly a call that the step fits, now and then with a fact that is false, left out or beside the point."""
    tool, *facts = step.split("+")
    call = oracle.random_call(random, id, tool, status)
    recorded: Dict[str, bool] = {}
    for fact in random.sample((*FACTS, "h"), 3):
        true = 0.85 if fact in facts else 0.2
        known = 0.85 if fact in facts else 0.5
        if random.random() < known:
            recorded[fact] = random.random() < true
    if recorded:
        call["facts"] = recorded
    return call


def random_calls(random: Random, sequence: Sequence[str]) -> List[Json]:
    steps: List[Tuple[str, str]] = [(step, "succeeded") for step in sequence]
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        place = random.randint(0, len(steps))
        kind = random.choice(("add", "add", "lose", "swap"))
        if kind == "add" and len(steps) < 6:
            status = random.choice(("succeeded", "failed", "pending"))
            steps.insert(place, (random_step(random, ("a", "b", "c")), status))
        elif kind == "lose":
            del steps[place : place + 1]
        else:
            steps[place : place + 2] = reversed(steps[place : place + 2])
    return [random_call(random, f"c{number}", *step) for number, step in enumerate(steps)]


def shuffled(random: Random, value: Json) -> Json:
    """The same object with its keys in some order."""
    keys: List[Any] = list(value)
    random.shuffle(keys)
    return {key: value[key] for key in keys}
