"""The engine on a real pi0.5: at every edge of rows, prefixes and rounds each text is what it is alone."""

import random
import threading
from collections import defaultdict
from dataclasses import replace
from functools import cache

import pytest
import tiny_pi05
from fakes import budget, request

from oxygen_ros.clock import SimClock
from oxygen_ros.engine.budget import FixedSteps
from oxygen_ros.engine.engine import Engine
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.types import FinishReason

ROW = 24
ENDED = (FinishReason.LENGTH, FinishReason.STOP)


class Bench:
    """An engine on the real model; words and endings by request; what other threads do between steps."""

    def __init__(self, num_steps=100, steps_per_round=4, num_prefixes=3, num_rows=3):
        self.runner = tiny_pi05.runner(num_prefixes, num_rows, ROW)
        settings = EngineSettings(steps=FixedSteps(num_steps), steps_per_round=steps_per_round)
        self.engine = Engine(self.runner, tiny_pi05.NumberTokenizer(), SimClock(), settings)
        self.text, self.final, self.asked = defaultdict(str), {}, {}
        self.num_steps = 0
        self.meanwhile = {}  # number of a decode step: what another thread does while it runs
        self.step, self.runner.decode_step = self.runner.decode_step, self._step

    def _step(self, rows):
        self.num_steps += 1
        work = self.meanwhile.get(self.num_steps)
        other = threading.Thread(target=work) if work else None
        if other:
            other.start()
        self.step(rows)
        if other:
            other.join()

    def ask(self, name, length, max_tokens, stop_strings=()):
        sampling = replace(request("").sampling, max_tokens=max_tokens, stop_strings=stop_strings)
        self.asked[name] = (length, max_tokens)
        assert self.engine.submit(request(name, tiny_pi05.prompt(length, length), sampling=sampling)) is None

    def see(self, number):
        self.engine.prefill(tiny_pi05.inputs(number), number)

    def decode(self, time_ns=1 << 60):
        self.outcome = self.engine.decode(budget(time_ns))
        self.engine.check_integrity()
        for delta in self.engine.take_deltas():
            assert delta.request_id not in self.final
            self.text[delta.request_id] += delta.text
            if delta.is_final:
                self.final[delta.request_id] = delta

    def is_right(self, name):
        """What was written is what the text alone writes, whole where it ended by itself."""
        final, (length, max_tokens) = self.final[name], self.asked[name]
        if not final.observation_id:
            return self.text[name] == ""
        whole = alone(final.observation_id, length)[:max_tokens]
        words = self.text[name].split()
        return words == whole if final.finish_reason in ENDED else words == whole[: len(words)]


@cache
def alone(observation, length):
    """Words of a text on a memory of its own, as many as its row holds."""
    bench = Bench(num_rows=1, num_prefixes=2)
    bench.see(observation)
    bench.ask("alone", length, ROW - length + 1)
    bench.decode()
    return bench.text["alone"].split()


def random_life(seed):
    rng = random.Random(seed)
    bench = Bench(rng.randint(1, 6), rng.randint(1, 4), num_prefixes=rng.choice((2, 3)), num_rows=3)
    for number in range(1, 26):
        if rng.random() < 0.8:
            bench.see(number)  # otherwise texts go on on the same prefix, and new ones join there
        if rng.random() < 0.6:
            length = rng.choice((0, 1, 5, ROW - 1, ROW))
            bench.ask(f"r{number}", length, rng.choice((1, 3, ROW - length + 1)) if length < ROW else 1)
        if rng.random() < 0.3 and bench.asked:
            name = rng.choice(list(bench.asked))
            bench.meanwhile[bench.num_steps + rng.randint(1, 4)] = lambda name=name: bench.engine.cancel(name)
        bench.decode(0 if rng.random() < 0.3 else 1 << 60)
    while len(bench.final) < len(bench.asked):
        bench.decode()
    return bench


@pytest.mark.parametrize("seed", range(6))
def test_texts_equal_their_solo_runs_whatever_happens_around_them(seed):
    bench = random_life(seed)
    assert [name for name in bench.asked if not bench.is_right(name)] == []
    use = bench.engine.memory()
    assert use.rows_used == 0
    assert use.prefixes_used == 1  # the current one
    assert sum(final.finish_reason in ENDED for final in bench.final.values()) >= 4


def test_random_lives_reach_the_edges():
    """What the test above means to try does happen in it: full rows, one token, cancels of running texts."""
    finals = [(bench.asked[n], f) for bench in map(random_life, range(6)) for n, f in bench.final.items()]
    assert any(f.finish_reason is FinishReason.CANCELLED and f.num_tokens for _, f in finals)
    assert any(asked == (ROW, 1) and f.finish_reason in ENDED for asked, f in finals)
    assert any(asked[0] == 0 and f.num_tokens == ROW + 1 for asked, f in finals)


def test_only_text_cancelled_while_a_step_runs_frees_its_row_within_the_round():
    bench = Bench(steps_per_round=8)
    bench.see(1)
    bench.ask("a", 5, 12)
    bench.meanwhile[3] = lambda: bench.engine.cancel("a")
    bench.decode()
    assert bench.final["a"].finish_reason is FinishReason.CANCELLED
    assert bench.num_steps == 3
    assert bench.engine.memory().rows_used == 0
    bench.ask("b", 5, 12)  # takes the row whose tokens nobody has read
    bench.decode()
    assert bench.is_right("b")
    assert len(bench.text["b"].split()) == 12


def test_text_submitted_while_a_step_runs_joins_in_the_next_round():
    bench = Bench(steps_per_round=2)
    bench.see(1)
    bench.ask("a", 3, 10)
    bench.meanwhile[3] = lambda: bench.ask("b", 7, 10)
    bench.decode()
    assert bench.is_right("a")
    assert bench.is_right("b")
    assert bench.num_steps == 14  # b begins with step 5


def test_all_rows_that_end_in_one_step_leave_room_for_the_next_ones_in_the_same_cycle():
    bench = Bench(steps_per_round=3)
    bench.see(1)
    for number in range(6):
        bench.ask(f"r{number}", number, 6)
    bench.decode()
    assert all(map(bench.is_right, bench.asked))
    assert bench.num_steps == 12
    assert bench.engine.memory().rows_used == 0


def test_two_prefixes_are_enough_and_a_new_observation_never_waits_for_texts():
    bench = Bench(num_steps=2, num_prefixes=2)
    for number in range(1, 9):
        bench.see(number)
        bench.ask(f"r{number}", number, 5)
        bench.decode()
    while len(bench.final) < 8:
        bench.decode()
    assert all(map(bench.is_right, bench.asked))
    assert len({final.observation_id for final in bench.final.values()}) > 2


def test_texts_born_on_one_prefix_in_different_cycles_share_it():
    bench = Bench(num_steps=3, steps_per_round=3)
    bench.see(4)
    for number in range(3):
        bench.ask(f"r{number}", 2 * number, 8)
        bench.decode()
    assert bench.engine.memory().prefixes_used == 1
    while len(bench.final) < 3:
        bench.decode()
    assert all(map(bench.is_right, bench.asked))
    assert {final.observation_id for final in bench.final.values()} == {4}


def test_no_slack_for_many_cycles_delays_a_text_and_changes_nothing_of_it():
    bench = Bench(num_steps=3, steps_per_round=3)
    bench.see(1)
    bench.ask("a", 6, 12)
    bench.decode()
    for number in range(2, 30):
        bench.see(number)
        bench.decode(time_ns=0)
        assert bench.outcome.num_steps == 0
    assert bench.final == {}
    while not bench.final:
        bench.decode()
    assert bench.final["a"].observation_id == 1
    assert bench.is_right("a")


@pytest.mark.parametrize("steps_per_round", [1, 3])
def test_stop_string_across_tokens_and_rounds_ends_a_text_before_it(steps_per_round):
    words = alone(2, 4)
    stop = f"{words[2][-1]} {words[3][0]}"
    whole = " ".join(words)
    bench = Bench(steps_per_round=steps_per_round)
    bench.see(2)
    bench.ask("a", 4, 12, stop_strings=(stop,))
    bench.decode()
    assert bench.final["a"].finish_reason is FinishReason.STOP
    assert bench.text["a"] == whole[: whole.index(stop)]
    assert bench.final["a"].num_tokens <= 4


def test_row_is_used_to_its_last_place_and_one_more_is_refused():
    bench = Bench()
    bench.see(3)
    bench.ask("full", 10, ROW - 10 + 1)
    bench.ask("prompt alone", ROW, 1)
    bench.ask("too long", 10, ROW - 10 + 2)
    bench.decode()
    assert bench.final["full"].num_tokens == ROW - 10 + 1
    assert bench.final["prompt alone"].num_tokens == 1
    assert bench.is_right("full")
    assert bench.is_right("prompt alone")
    assert bench.final["too long"].finish_reason is FinishReason.REFUSED
