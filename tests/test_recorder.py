"""Recorder: what real programs did is in the file, and nothing that they said."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import gc
import inspect
import io
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import traceback
import unittest
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, Coroutine, Dict, Iterator, List, Optional, Tuple

import agent_trace_audit
from agent_trace_audit import InputError, Recorder, audit, main

from .support import DEADLINE, case, workflows

SECRET = "hunter2-secret"  # noqa: S105


def lookup(order: str) -> str:
    return order


async def alookup(order: str) -> str:
    await asyncio.sleep(0)
    return order


def stuck_tool() -> Tuple[Callable[[], None], threading.Event, threading.Event]:
    """A tool named stuck that tells when it has begun, and ends when it may go on."""
    begun, go_on = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        go_on.wait(DEADLINE)

    return stuck, begun, go_on


class RecorderCase(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.path = self.directory / "traces.json"

    def recorder(self, **options: Any) -> Recorder:
        return Recorder(self.path, **options)

    def traces(self) -> List[Dict[str, Any]]:
        """What the file holds; the checker takes it, and nothing else was left behind."""
        self.assertEqual(["traces.json"], os.listdir(str(self.directory)))
        data = self.path.read_bytes()
        audit(workflows(case()), data)
        traces: List[Dict[str, Any]] = json.loads(data)
        return traces

    def calls(self) -> List[Dict[str, Any]]:
        """The calls of the only run; their durations are what the clock says."""
        (only,) = self.traces()
        calls: List[Dict[str, Any]] = only["calls"]
        for each in calls:
            duration = each.pop("duration_ms", 0)
            self.assertTrue(isinstance(duration, int) and 0 <= duration <= DEADLINE * 1000, duration)
        return calls

    def assert_calls(self, *expected: Tuple[str, str]) -> None:
        calls = self.calls()
        self.assertEqual([f"call-{number:02}" for number in range(1, len(calls) + 1)], [each["id"] for each in calls])
        self.assertEqual(list(expected), [(each["tool"], each["status"]) for each in calls])

    def assert_nothing_written(self) -> None:
        self.assertEqual([], os.listdir(str(self.directory)))

    @contextlib.contextmanager
    def refused(self, kind: Any, *words: str) -> Iterator[None]:
        """Raises exactly this kind of error, with these words and no value."""
        with self.assertRaises(kind) as caught:
            yield
        self.assertIs(kind, type(caught.exception))
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertNotIn(SECRET, str(caught.exception))

    @contextlib.contextmanager
    def run_of_one(self, **options: Any) -> Iterator[Recorder]:
        with self.recorder(**options) as recorder, recorder.run("r1"):
            yield recorder


class Statuses(RecorderCase):
    def test_the_example_of_the_contract(self) -> None:
        with self.recorder() as recorder, recorder.run("request-01"), recorder.call("lookup_order") as call:
            order = lookup("A-17")
            call.cost("0.002")
            call.fact("found", order is not None)
        (only,) = self.traces()
        self.assertEqual("request-01", only["id"])
        self.assertEqual(["id", "tool", "status", "cost_usd", "duration_ms", "facts"], list(only["calls"][0]))
        self.assertEqual({"found": True}, only["calls"][0]["facts"])
        self.assertEqual("0.002", only["calls"][0]["cost_usd"])

    def test_how_a_body_ends(self) -> None:
        class Odd(BaseException):
            pass

        kinds: Dict[Any, str] = {
            ValueError: "failed",
            StopIteration: "failed",
            asyncio.TimeoutError: "failed",
            KeyboardInterrupt: "pending",
            SystemExit: "pending",
            GeneratorExit: "pending",
            asyncio.CancelledError: "pending",
            Odd: "pending",
        }
        with self.run_of_one() as recorder:
            for kind in kinds:
                error = kind(SECRET)
                with self.assertRaises(kind) as caught, recorder.call(kind.__name__):
                    raise error
                self.assertIs(error, caught.exception)
        self.assert_calls(*[(kind.__name__, status) for kind, status in kinds.items()])
        self.assertNotIn(SECRET, self.path.read_text())

    def test_what_a_call_says_of_itself(self) -> None:
        def say(*words: str, error: Optional[BaseException] = None, after: str = "") -> None:
            with contextlib.suppress(ValueError, KeyboardInterrupt), recorder.call("a") as call:
                for word in words:
                    getattr(call, word)()
                if error:
                    raise error
            if after:
                getattr(call, after)()

        with self.run_of_one() as recorder:
            say("failed")
            say("pending")
            say("pending", "failed")
            say("failed", "pending")
            say("pending", error=ValueError())  # so frameworks defer a call
            say("failed", error=ValueError())
            say("failed", error=KeyboardInterrupt())
            say(after="failed")
            say(after="pending")
        expected = ["failed", "pending", "failed", "pending", "pending", "failed", "pending", "failed", "pending"]
        self.assertEqual(expected, [each["status"] for each in self.calls()])

    def test_what_is_still_open_is_pending_and_ends_in_peace(self) -> None:
        recorder = self.recorder()
        with recorder.run("r1"):
            with recorder.call("outer") as outer, recorder.call("inner"):
                recorder.close()
            with self.refused(RuntimeError, "closed"):
                outer.cost(1)
        self.assert_calls(("outer", "pending"), ("inner", "pending"))
        self.assertNotIn("duration_ms", self.path.read_text())

    def test_a_real_interrupt(self) -> None:
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

        async def endless() -> None:
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
            await asyncio.Event().wait()

        with contextlib.suppress(KeyboardInterrupt), self.run_of_one() as recorder:
            asyncio.run(recorder.tool(endless)())
        self.assert_calls(("endless", "pending"))

    def test_an_exception_goes_on_as_it_was(self) -> None:
        def broken(password: str) -> None:
            raise ValueError(password)

        with self.run_of_one() as recorder:
            for call in (recorder.tool(broken), broken):
                try:
                    with recorder.call("outer"):
                        call(SECRET)
                except ValueError as error:
                    self.assertEqual((SECRET,), error.args)
                    self.assertIsNone(error.__context__)
                    self.assertEqual("broken", traceback.extract_tb(error.__traceback__)[-1].name)
                else:
                    self.fail("the exception is gone")
        self.assert_calls(("outer", "failed"), ("broken", "failed"), ("outer", "failed"))

    def test_nothing_of_a_call_is_kept(self) -> None:
        class Content:
            pass

        def tool(content: Content, key: str) -> Content:
            if key:
                raise ValueError(key)
            return content

        with self.run_of_one() as recorder:
            wrapped, content = recorder.tool(tool), Content()
            left = weakref.ref(wrapped(content, ""))
            with contextlib.suppress(ValueError):
                wrapped(content, SECRET)
            del content
            gc.collect()
            self.assertIsNone(left(), "the recorder holds an argument or a result")
        self.assert_calls(("tool", "succeeded"), ("tool", "failed"))
        self.assertNotIn(SECRET, self.path.read_text())


class Measurements(RecorderCase):
    def test_costs_add_up_exactly(self) -> None:
        sums: Dict[str, List[Any]] = {
            "0.3": ["0.1", "0.2"],
            "0.500": ["0.500"],
            "3.25": [1, Decimal("2"), "0.25"],
            "0": [0],
            "100": [Decimal("1E+2")],
            "0.000001": [Decimal("1E-6")],
            "999999999.999999": ["999999999", "0.999999"],
        }
        with self.run_of_one() as recorder:
            for amounts in sums.values():
                with recorder.call("a") as call:
                    for amount in amounts:
                        call.cost(amount)
        self.assertEqual(list(sums), [each["cost_usd"] for each in self.calls()])

    def test_costs_that_are_none(self) -> None:
        wrong: List[Any] = ["", "-1", "1.", "1e3", " 1", "0.0000001", "1234567890", "\u0661", SECRET]
        wrong += [-1, 10**9, 10**5000, Decimal("-1"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")]
        wrong += [Decimal("0.0000001"), Decimal("1E+999999999"), Decimal("1E-999999999")]
        with self.run_of_one() as recorder, recorder.call("a") as call:
            for amount in wrong:
                with self.subTest(kind=type(amount)), self.refused(ValueError, "1 to 9 digits"):
                    call.cost(amount)
            others: List[Any] = [0.5, True, None, [SECRET], b"1"]
            for amount in others:
                with self.subTest(amount=amount), self.refused(TypeError, "Decimal", "float"):
                    call.cost(amount)
            call.cost("999999999")
            with self.refused(ValueError, "adds up"):
                call.cost(1)
        self.assertEqual("999999999", self.calls()[0]["cost_usd"])

    def test_facts(self) -> None:
        with self.run_of_one() as recorder:
            with recorder.call("a") as call:
                call.fact("small", True)
                call.fact("right", True)
                call.fact("small", False)
                for number in range(18):
                    call.fact(f"f{number}", True)
                with self.refused(ValueError, "20 facts"):
                    call.fact("one-more", True)
                call.fact("right", False)
                values: List[Any] = [1, 0, None, SECRET, 1.0]
                for value in values:
                    with self.refused(TypeError, "True or False"):
                        call.fact("small", value)
            call.fact("f0", False)  # what is found out later
        facts = self.calls()[0]["facts"]
        self.assertEqual(["small", "right", "f0"], list(facts)[:3])
        self.assertEqual([False, False, False, True], list(facts.values())[:4])
        self.assertEqual(20, len(facts))

    def test_durations_are_rounded_up_and_left_out_beyond_the_bound(self) -> None:
        hour = 3_600_000 * 10**6
        spans = {0: 0, 1: 1, 10**6: 1, 10**6 + 1: 2, hour: 3_600_000, hour + 1: None}
        with self.run_of_one() as recorder:
            for span in spans:
                vars(recorder)["_clock"] = iter([7, 7 + span]).__next__  # nobody waits an hour for a test
                with recorder.call("a"):
                    pass
        self.assertEqual(list(spans.values()), [each.get("duration_ms") for each in self.traces()[0]["calls"]])


class Misuse(RecorderCase):
    def test_names_are_checked_where_they_are_given(self) -> None:
        with self.run_of_one() as recorder, recorder.call("a") as call:
            ways: Dict[str, Callable[[Any], Any]] = {
                "the name of a tool": recorder.call,
                "the name of a tool (": lambda name: recorder.tool(lookup, name=name),
                "the name of a fact": lambda name: call.fact(name, True),
            }
            for words, way in ways.items():
                self.refuse_names(words, way)
        recorder = self.recorder()
        self.refuse_names("the id of a run", recorder.run)
        self.refuse_names("the case of a run", lambda name: recorder.run("r2", case=name), none=True)
        self.assert_calls(("a", "succeeded"))

    def refuse_names(self, words: str, way: Callable[[Any], Any], none: bool = False) -> None:
        for name in ("", "two words", "a" * 129, SECRET + "\n", "\u00e9"):
            with self.subTest(words=words, name=name), self.refused(ValueError, words, "1 to 128 characters"):
                way(name)
        others: List[Any] = [7, b"a", [SECRET], True]
        for name in others if none or "(" in words else [*others, None]:
            with self.subTest(words=words, name=name), self.refused(TypeError, words, "str"):
                way(name)

    def test_runs(self) -> None:
        with self.recorder() as recorder:
            with recorder.run("r1"), self.refused(RuntimeError, "do not nest"), recorder.run("r2"):
                pass
            with self.refused(ValueError, "unique"):
                recorder.run("r1")
            twice = [recorder.run("r2"), recorder.run("r2")]
            with twice[0]:
                pass
            for run in twice:
                with self.refused(ValueError, "unique"), run:
                    pass
            with recorder.run("r3", case="r1"), recorder.call("a"):
                pass
        traces = self.traces()
        self.assertEqual(["r1", "r2", "r3"], [each["id"] for each in traces])
        self.assertEqual(["id", "case", "calls"], list(traces[2]))
        self.assertEqual("r1", traces[2]["case"])

    def test_a_call_is_entered_once(self) -> None:
        with self.run_of_one() as recorder:
            call = recorder.call("a")
            for _ in range(2):
                with contextlib.suppress(RuntimeError), call:
                    pass
            with self.refused(RuntimeError, "once"):
                call.__enter__()
        self.assert_calls(("a", "succeeded"))

    def test_after_close_everything_is_refused(self) -> None:
        recorder = self.recorder()
        wrapped, awaited = recorder.tool(lookup), recorder.tool(alookup)
        run, call = recorder.run("r2"), recorder.call("a")
        with recorder.run("r1"), recorder.call("a") as made:
            pass
        recorder.close()
        before = self.path.stat()
        recorder.close()  # once is enough
        uses: List[Callable[[], Any]] = [
            recorder.__enter__,
            run.__enter__,
            call.__enter__,
            lambda: recorder.run("r3"),
            lambda: recorder.call("a"),
            lambda: recorder.tool(lookup),
            recorder.tool,
            lambda: wrapped("x"),
            lambda: asyncio.run(awaited("x")),
            made.failed,
            made.pending,
            lambda: made.cost(1),
            lambda: made.fact("a", True),
        ]
        for use in uses:
            with self.refused(RuntimeError, "closed"):
                use()
        self.assertEqual((before.st_ino, before.st_mtime_ns), (self.path.stat().st_ino, self.path.stat().st_mtime_ns))
        self.assert_calls(("a", "succeeded"))

    def test_overlap_is_one_of_two_words(self) -> None:
        for word in ("", "accept", SECRET):
            with self.refused(ValueError, "refuse", "start-order"):
                Recorder(self.path, overlap=word)

    def test_a_forked_process_records_nothing_and_writes_nothing(self) -> None:
        with self.run_of_one() as recorder:
            wrapped = recorder.tool(lookup)
            wrapped("x")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads that other tests have left
                child = os.fork()
            if not child:
                status = 1
                with contextlib.suppress(RuntimeError):
                    recorder.close()
                    try:
                        wrapped("x")
                    except RuntimeError as error:
                        status = 0 if "process" in str(error) and not self.path.exists() else 2
                os._exit(status)
            self.assertEqual(0, os.waitpid(child, 0)[1])
        self.assert_calls(("lookup", "succeeded"))


class Tools(RecorderCase):
    def test_a_function_stays_what_it_was(self) -> None:
        with self.run_of_one() as recorder:
            for function in (lookup, alookup):
                wrapped: Any = recorder.tool(function)
                self.assertEqual(function.__name__, wrapped.__name__)
                self.assertEqual(inspect.signature(function), inspect.signature(wrapped))
                self.assertIs(function, wrapped.__wrapped__)
                self.assertEqual(function is alookup, inspect.iscoroutinefunction(wrapped))
                self.assertEqual(function is alookup, asyncio.iscoroutinefunction(wrapped))
            self.assertEqual("x", recorder.tool(lookup)("x"))
            self.assertEqual("x", recorder.tool(lookup, name="other")(order="x"))
            self.assertEqual("x", recorder.tool(lookup, "positional")("x"))
            self.assertEqual("x", asyncio.run(recorder.tool(alookup)("x")))
        self.assert_calls(*[(name, "succeeded") for name in ("lookup", "other", "positional", "alookup")])

    def test_decorators(self) -> None:
        with self.run_of_one() as recorder:

            @recorder.tool
            def bare() -> int:
                return 1

            @recorder.tool()  # type: ignore[untyped-decorator]
            def empty() -> int:
                return 2

            @recorder.tool(name="renamed")  # type: ignore[untyped-decorator]
            async def original() -> int:
                return 3

            class Desk:
                factor = 2

                @recorder.tool
                def method(self, number: int) -> int:
                    return number * self.factor

                @recorder.tool
                async def later(self, number: int) -> int:
                    return number * self.factor

                @classmethod
                @recorder.tool
                def inside(cls, number: int) -> int:
                    return number * cls.factor

                @recorder.tool
                @classmethod
                def outside(cls, number: int) -> int:
                    return number * cls.factor

                @recorder.tool
                @staticmethod
                def static(number: int) -> int:
                    return number * 2

            desk: Any = Desk()
            self.assertEqual((1, 2, 3), (bare(), empty(), asyncio.run(original())))
            self.assertEqual(8, desk.method(4))
            self.assertEqual(8, asyncio.run(desk.later(4)))
            self.assertEqual([8] * 4, [desk.inside(4), desk.outside(4), desk.static(4), type(desk).outside(4)])
            self.assertEqual(8, recorder.tool(Desk().method, name="bound")(4))
        names = ["bare", "empty", "renamed", "method", "later", "inside", "outside", "static", "outside"]
        self.assert_calls(*[(name, "succeeded") for name in [*names, "bound", "method"]])

    def test_partials_and_callables(self) -> None:
        class Tool:
            def __call__(self, order: str) -> str:
                return order

        class Later:
            async def __call__(self, order: str) -> str:
                return order

        class Named(Later):
            __name__ = "named"

        with self.run_of_one() as recorder:
            partial: Any = recorder.tool(functools.partial(functools.partial(lookup), "x"))
            self.assertEqual("x", partial())
            self.assertEqual(("lookup", 0), (partial.__name__, len(inspect.signature(partial).parameters)))
            self.assertEqual("x", asyncio.run(recorder.tool(functools.partial(alookup, "x"))()))
            self.assertEqual("x", recorder.tool(Tool(), name="object")("x"))
            for later in (recorder.tool(Later(), name="later"), recorder.tool(Named())):
                self.assertTrue(inspect.iscoroutinefunction(later))
                self.assertEqual("x", asyncio.run(later("x")))
            self.assertIsInstance(recorder.tool(Tool)(), Tool)  # a class is called as any function
            self.assertEqual(3, recorder.tool(len)("abc"))
            with self.refused(TypeError, "name=...", "str"):
                recorder.tool(Tool())
            with self.refused(ValueError, "name=..."):
                recorder.tool(lambda: None)
            others: List[Any] = [7, "name", property(lookup)]
            for other in others:
                with self.refused(TypeError, "function"):
                    recorder.tool(other)
        names = ["lookup", "alookup", "object", "later", "named", "Tool", "len"]
        self.assert_calls(*[(name, "succeeded") for name in names])

    def test_generators_are_refused(self) -> None:
        def generator() -> Iterator[int]:
            yield 1

        async def async_generator() -> Any:
            yield 1

        class Rows:
            def __call__(self) -> Iterator[int]:
                yield 1

            def rows(self) -> Iterator[int]:
                yield 1

        recorder = self.recorder()
        some: List[Any] = [generator, async_generator, functools.partial(generator), Rows(), Rows().rows]
        for each in some:
            for way in (recorder.tool, recorder.tool(name="rows")):
                with self.subTest(each=each), self.refused(TypeError, "generator", "recorder.call"):
                    way(each)

    def test_what_is_handed_on_before_it_ran_is_pending(self) -> None:
        def hidden(order: str) -> Coroutine[Any, Any, str]:
            return alookup(order)

        with self.run_of_one() as recorder:
            self.assertEqual("x", asyncio.run(recorder.tool(hidden)("x")))
        self.assert_calls(("hidden", "pending"))


class Contexts(RecorderCase):
    def test_calls_inside_calls_are_no_overlap(self) -> None:
        async def program() -> None:
            with recorder.call("agent"):
                await recorder.tool(alookup)("x")
                with recorder.call("agent"), recorder.call("a"):
                    await asyncio.gather(recorder.tool(alookup)("y"))

        with self.run_of_one() as recorder:
            asyncio.run(program())
        self.assert_calls(*[(tool, "succeeded") for tool in ("agent", "alookup", "agent", "a", "alookup")])

    def side_by_side(self, recorder: Recorder, inside: bool) -> None:
        """Two calls that both have begun before either ends; the second inside the first by context, or not."""

        async def first(begun: asyncio.Event, go_on: asyncio.Event) -> None:
            with recorder.call("first"):
                begun.set()
                if inside:
                    await asyncio.ensure_future(second())
                await go_on.wait()

        async def second() -> None:
            with recorder.call("second"):
                await asyncio.sleep(0)

        async def program() -> None:
            begun, go_on = asyncio.Event(), asyncio.Event()
            task = asyncio.ensure_future(first(begun, go_on))
            await begun.wait()
            if not inside:
                await second()
            go_on.set()
            await task

        with recorder.run("r1"):
            asyncio.run(program())

    def test_overlap_by_time_alone_is_refused_and_accepted_by_name(self) -> None:
        recorder = self.recorder()
        self.side_by_side(recorder, inside=False)
        with self.refused(InputError, "traces.json: $[0].calls: call-02", "call-01", 'overlap="start-order"'):
            recorder.close()
        self.assert_nothing_written()
        for inside in (False, True):
            with self.recorder(overlap="refuse" if inside else "start-order") as recorder:
                self.side_by_side(recorder, inside)
            self.assert_calls(("first", "succeeded"), ("second", "succeeded"))

    def test_gather(self) -> None:
        async def program() -> None:
            with recorder.call("plan"):
                await asyncio.gather(*[recorder.tool(alookup)(order) for order in "xyz"])

        with self.assertRaises(InputError) as caught, self.run_of_one() as recorder:
            asyncio.run(program())
        self.assertEqual(1, len(caught.exception.problems), "one problem a run is enough")
        self.assert_nothing_written()
        with self.run_of_one(overlap="start-order") as recorder:
            asyncio.run(program())
        self.assert_calls(("plan", "succeeded"), *[("alookup", "succeeded")] * 3)

    def test_cancelled_timed_out_and_never_awaited(self) -> None:
        async def endless() -> None:
            await asyncio.Event().wait()

        async def program() -> None:
            wrapped = recorder.tool(endless)
            for _ in range(2):
                with contextlib.suppress(asyncio.TimeoutError), recorder.call("around"):
                    await asyncio.wait_for(wrapped(), 0.001)
            task = asyncio.ensure_future(wrapped())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            wrapped().close()  # it never began

        with self.run_of_one() as recorder:
            asyncio.run(program())
        self.assert_calls(*[("around", "failed"), ("endless", "pending")] * 2, ("endless", "pending"))

    def test_threads_of_asyncio_inherit(self) -> None:
        wrapped: Any = None

        async def program() -> None:
            with recorder.call("agent"):
                if sys.version_info >= (3, 9):
                    self.assertEqual("x", await asyncio.to_thread(wrapped, "x"))
                else:
                    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
                    self.assertEqual("x", await loop.run_in_executor(None, context.run, wrapped, "x"))

        with self.run_of_one() as recorder:
            wrapped = recorder.tool(lookup)
            asyncio.run(program())
        self.assert_calls(("agent", "succeeded"), ("lookup", "succeeded"))

    def test_other_threads_are_refused_while_a_run_is_open(self) -> None:
        with self.recorder() as recorder, ThreadPoolExecutor(1) as pool:
            wrapped = recorder.tool(lookup)
            self.assertEqual("x", wrapped("x"))
            self.assertEqual("x", pool.submit(wrapped, "x").result(DEADLINE))
            with recorder.call("aside") as aside:
                aside.cost(1)
                with self.refused(ValueError, "digits"):
                    aside.cost(SECRET)
            with recorder.run("r1"):
                for refused in (wrapped, recorder.call):
                    with self.refused(RuntimeError, "contextvars.copy_context"):
                        pool.submit(refused, "x").result(DEADLINE)
                context = contextvars.copy_context()
                self.assertEqual("x", pool.submit(context.run, wrapped, "x").result(DEADLINE))
            self.assertEqual("x", wrapped("x"))
            self.assertEqual("x", pool.submit(context.run, wrapped, "x").result(DEADLINE))  # its run has ended
            with contextlib.ExitStack() as later:
                pool.submit(context.run, later.enter_context, recorder.run("r2")).result(DEADLINE)
                self.assertEqual("x", pool.submit(context.run, wrapped, "x").result(DEADLINE))
        self.assertEqual(["r1", "r2"], [each["id"] for each in self.traces()])
        self.assertEqual([1, 1], [len(each["calls"]) for each in self.traces()])

    def test_runs_side_by_side(self) -> None:
        async def one(recorder: Recorder, id: str, barrier: List[str], all_in: asyncio.Event) -> None:
            with recorder.run(id):
                barrier.append(id)
                if len(barrier) == 5:
                    all_in.set()
                await all_in.wait()
                for _ in range(3):
                    await recorder.tool(alookup)("x")

        async def program() -> None:
            all_in, barrier = asyncio.Event(), []  # type: ignore[var-annotated]
            await asyncio.gather(*[one(recorder, f"r{number}", barrier, all_in) for number in range(5)])

        with self.recorder() as recorder:
            asyncio.run(program())
        self.assertEqual([3] * 5, [len(each["calls"]) for each in self.traces()])

    def test_many_threads_in_one_run_and_in_one_call(self) -> None:
        barrier = threading.Barrier(8)

        def work(call: Any) -> None:
            wrapped = recorder.tool(lookup)
            barrier.wait(DEADLINE)
            for _ in range(5):
                wrapped("x")
            for _ in range(50):
                call.cost("0.1")
            call.fact(f"f{threading.get_ident()}", True)

        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        options = self.run_of_one(overlap="start-order")
        with ThreadPoolExecutor(8) as pool, options as recorder, recorder.call("all") as call:
            jobs = [pool.submit(contextvars.copy_context().run, work, call) for _ in range(8)]
            for job in jobs:
                job.result(DEADLINE)
        calls = self.calls()
        self.assertEqual([f"call-{number:02}" for number in range(1, 42)], [each["id"] for each in calls])
        self.assertEqual(("40.0", 8), (calls[0]["cost_usd"], len(calls[0]["facts"])))

    def test_a_call_that_never_ends_overlaps_nothing(self) -> None:
        stuck, begun, go_on = stuck_tool()
        with ThreadPoolExecutor(1) as pool, self.recorder() as recorder:
            with recorder.run("r1"):
                pool.submit(contextvars.copy_context().run, recorder.tool(stuck))
                begun.wait(DEADLINE)
                recorder.tool(lookup)("x")
            recorder.close()
            go_on.set()
        self.assert_calls(("stuck", "pending"), ("lookup", "succeeded"))

    def test_nor_does_one_that_began_within_the_time_of_another(self) -> None:
        stuck, begun, go_on = stuck_tool()
        with ThreadPoolExecutor(1) as pool, self.recorder() as recorder:
            with recorder.run("r1"):
                context = contextvars.copy_context()
                with recorder.call("first"):
                    pool.submit(context.run, recorder.tool(stuck))
                    begun.wait(DEADLINE)
            recorder.close()
            go_on.set()
        self.assert_calls(("first", "succeeded"), ("stuck", "pending"))

    def test_a_block_may_end_in_another_context(self) -> None:
        with self.recorder() as recorder:
            run = recorder.run("r1")
            contextvars.copy_context().run(run.__enter__)
            with self.refused(RuntimeError, "copy_context"), recorder.call("a"):
                pass
            run.__exit__(None, None, None)
            with recorder.run("r2"), recorder.call("a"):
                pass
        self.assertEqual([0, 1], [len(each["calls"]) for each in self.traces()])

    def test_two_recorders_do_not_meet(self) -> None:
        other = Recorder(self.directory / "other.json")
        with self.run_of_one() as recorder, other.run("r1"), recorder.call("a"), other.call("b"):
            pass
        other.close()
        (self.directory / "other.json").unlink()
        self.assert_calls(("a", "succeeded"))


class Writing(RecorderCase):
    def test_the_file_is_the_checkers_own(self) -> None:
        with self.run_of_one() as recorder:
            wrapped = recorder.tool(lookup)
            wrapped("x")
            wrapped("y")
        data = self.path.read_bytes()
        self.assertEqual("pass", audit(workflows(case(sequence=["lookup"] * 2, allowed=["lookup"])), data)["verdict"])
        self.assertEqual(2, data.count(b'\n      {"id": "call-'))

    def test_it_is_written_however_the_block_ends(self) -> None:
        for error in (ValueError(SECRET), KeyboardInterrupt(), None):
            with contextlib.suppress(ValueError, KeyboardInterrupt), self.run_of_one() as recorder:
                with recorder.call("a"):
                    pass
                self.assertFalse(self.path.exists(), "it is not there before the block has ended")
                if error:
                    raise error
            self.assert_calls(("a", "succeeded"))
            self.path.unlink()
        with self.recorder():
            pass
        self.assertEqual([], self.traces())

    def test_what_the_file_may_not_hold(self) -> None:
        def record(runs: int, calls: int, facts: int = 0) -> None:
            with self.recorder() as recorder:
                for run in range(runs):
                    with recorder.run(f"r{run}"):
                        for _ in range(calls):
                            with recorder.call("a") as call:
                                for fact in range(facts):
                                    call.fact("f" * 120 + str(fact), True)

        record(1, 50)
        self.assertEqual(50, len(self.calls()))
        record(500, 0)
        self.path.unlink()
        refusals = [("$[0].calls", "50 calls"), ("500 traces",), ("524,288 bytes",)]
        for size, words in zip([(1, 51), (501, 0), (5, 50, 20)], refusals):
            with self.refused(InputError, "traces.json: ", *words):
                record(*size)
            self.assert_nothing_written()

    def test_an_old_file_is_kept_when_nothing_can_be_written(self) -> None:
        self.path.write_text("old")
        with self.refused(InputError, "50 calls"), self.run_of_one() as recorder:
            for _ in range(51):
                recorder.tool(lookup)(SECRET)
        self.assertEqual("old", self.path.read_text())
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        recorder = self.recorder()
        with recorder.run("r1"):
            recorder.tool(lookup)(SECRET)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
        try:
            with self.refused(OSError, "cannot be written", str(self.path)):
                recorder.close()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual("old", self.path.read_text())
        self.assertEqual(["traces.json"], os.listdir(str(self.directory)))

    def test_the_exception_of_the_block_stays_in_the_chain(self) -> None:
        places: List[Tuple[Path, Any, int]] = [
            (self.directory / "missing" / "traces.json", FileNotFoundError, 0),
            (self.directory, IsADirectoryError, 0),
            (self.path, InputError, 51),
        ]
        for path, kind, calls in places:
            error = ValueError(SECRET)
            chain: List[Optional[BaseException]] = []
            with self.refused(kind, path.name):
                try:
                    with Recorder(path) as recorder, recorder.run("r1"):
                        for _ in range(calls):
                            recorder.tool(lookup)("x")
                        raise error
                except Exception as raised:
                    chain = [raised, raised.__context__, raised.__cause__ and raised.__cause__.__context__]
                    raise
            self.assertIn(error, chain[1:])
        self.assert_nothing_written()

    def test_the_path_is_the_one_of_the_start(self) -> None:
        before = os.getcwd()
        os.chdir(str(self.directory))
        try:
            recorder = Recorder("traces.json")
        finally:
            os.chdir(before)
        recorder.close()
        self.assertEqual([], self.traces())

    def test_recording_leaves_the_program_as_it_was(self) -> None:
        def state() -> List[Any]:
            held = {name: repr(value) for name, value in vars(agent_trace_audit).items() if name[:2] != "__"}
            signals = [signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
            return [held, signals, gc.isenabled(), os.getcwd()]

        before = state()
        with self.run_of_one() as recorder:
            recorder.tool(lookup)("x")
        self.assertEqual(before, state())
        expected = self.directory / "workflows.json"
        expected.write_bytes(workflows(case(sequence=["lookup"], allowed=["lookup"])))
        output = self.directory / "report.json"
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            words = ["--expected", str(expected), "--observed", str(self.path), "--output", str(output)]
            self.assertEqual(0, main([*words, "--fail-on-errors"]), stderr.getvalue())
            with self.recorder(), contextlib.suppress(InputError):
                self.assertEqual(1, main(["--expected"]))
        self.assertEqual("pass", json.loads(output.read_text())["verdict"])


if __name__ == "__main__":
    unittest.main()
