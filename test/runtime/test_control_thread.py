"""The control thread: one thing at a time, no burst, errands in between, an end with a last word."""

from __future__ import annotations

import threading

from oxygen_ros.runtime.control_thread import ControlThread

LIMIT_S = 20.0


class Work:
    """Cycles that block until they are let go, and a record of what ran."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.errors: list[Exception] = []
        self.is_running = threading.Event()
        self.may_end = threading.Event()
        self.thread = ControlThread(self.cycle, self.errors.append)

    def cycle(self, due_ns: int) -> None:
        self.is_running.set()
        assert self.may_end.wait(LIMIT_S)
        self.done.append(due_ns)
        if due_ns < 0:
            raise RuntimeError(f"cycle {due_ns}")


def test_wake_ups_during_a_cycle_start_one_more_and_no_burst():
    work = Work()
    work.thread.start()
    work.thread.wake(1)
    assert work.is_running.wait(LIMIT_S)
    for due_ns in (2, 3, 4):
        work.thread.wake(due_ns)
    ended = threading.Event()
    work.may_end.set()
    while len(work.done) < 2:
        ended.wait(0.001)
    assert work.thread.stop(lambda: work.done.append("last"), LIMIT_S)
    assert work.done == [1, 4, "last"]


def test_errand_runs_between_cycles_on_the_same_thread():
    work = Work()
    work.may_end.set()
    work.thread.start()
    names: list[str] = []
    done = threading.Event()
    work.thread.do(lambda: (names.append(threading.current_thread().name), done.set()))
    assert done.wait(LIMIT_S)
    assert names == ["control"]
    assert work.thread.stop(lambda: None, LIMIT_S)


def test_failure_is_told_and_the_thread_goes_on():
    work = Work()
    work.may_end.set()
    work.thread.start()
    work.thread.wake(-1)
    done = threading.Event()
    while not work.errors:
        done.wait(0.001)
    work.thread.do(done.set)
    assert done.wait(LIMIT_S)
    assert str(work.errors[0]) == "cycle -1"
    assert work.thread.stop(lambda: None, LIMIT_S)


def test_stop_of_a_busy_thread_says_so_and_still_gets_its_last_word():
    work = Work()
    work.thread.start()
    work.thread.wake(1)
    assert work.is_running.wait(LIMIT_S)
    assert not work.thread.stop(lambda: work.done.append("last"), timeout_s=0.01)
    work.may_end.set()
    assert work.thread.stop(lambda: work.done.append("not again"), LIMIT_S)
    assert work.done == [1, "last"]


def test_wake_after_the_end_does_nothing():
    work = Work()
    work.may_end.set()
    work.thread.start()
    assert work.thread.stop(lambda: None, LIMIT_S)
    work.thread.wake(5)
    assert work.done == []


def test_new_thread_does_nothing_before_the_former_one_has_ended():
    """Two cycles ran at once on one engine when a node was activated again while its last cycle was slow."""
    work = Work()
    work.thread.start()
    work.thread.wake(1)
    assert work.is_running.wait(LIMIT_S)
    assert not work.thread.stop(lambda: work.done.append("last"), timeout_s=0.01)
    new = ControlThread(work.done.append, work.errors.append, work.thread)
    new.start()
    begun = threading.Event()
    new.do(begun.set)
    new.wake(2)
    assert not begun.wait(0.1)
    work.may_end.set()
    assert begun.wait(LIMIT_S)
    while len(work.done) < 3:
        begun.wait(0.001)
    assert new.stop(lambda: None, LIMIT_S)
    assert work.done == [1, "last", 2]
