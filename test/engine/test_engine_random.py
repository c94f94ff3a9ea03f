"""Random lives of an engine: whatever happens in whatever order, accounts, endings and texts stay right."""

import random
from dataclasses import replace

import pytest
from fakes import MS, EngineBench, inputs, layout, request

from oxygen_ros.engine.budget import AutoSteps, FixedSteps
from oxygen_ros.engine.settings import EngineSettings
from oxygen_ros.errors import RunnerError
from oxygen_ros.runners.fake import FakeCosts
from oxygen_ros.types import FinishReason

SCRIPT = {
    "": "bare {observation_id}",
    "Q": "left of {observation_id} 🙂",
    "Memory: ": "好的。{observation_id} done",
    "E": [100, 101, None],
    "U": [300, 301],
    "L": [100, 101],
}
TASKS = ("ask", "memory", "subtask")
VERBS = ("prefill", "sample_actions", "decode_step", "read_tokens")


def random_request(rng, number):
    superseding = rng.random() < 0.3
    made = request(
        f"r{number}",
        rng.choice(list(SCRIPT)),
        rng.choice((1, 5, 30, 200)),
        task=rng.choice(TASKS),
        priority=rng.randint(-3, 3),
        max_age_ns=rng.choice((50, 5_000)) * MS,
        is_superseding=superseding,
        supersede_running=superseding and rng.random() < 0.5,
    )
    stops = ("of",) if rng.random() < 0.2 else ()
    return replace(made, sampling=replace(made.sampling, stop_strings=stops))


def one_frame(bench, rng):
    bench.num_frames += 1
    bench.engine.prefill(inputs(bench.num_frames), bench.num_frames)
    bench.engine.act("default", bench.num_frames)
    bench.decode(time_ns=rng.randint(-20, 120) * MS, reserve_ns=5 * MS)


def live(bench, rng):
    """One random event after another. Requests that were taken, by id."""
    taken = {}
    for number in range(120):
        for _ in range(rng.choice((0, 0, 1, 3))):
            made = random_request(rng, len(taken) + 1000 * number)
            if bench.engine.submit(made) is None:
                taken[made.request_id] = made
        if rng.random() < 0.2:
            hit = bench.engine.cancel(rng.choice([*taken, "nobody"]), task=rng.choice((*TASKS, "")))
            assert hit in (0, 1)
        if rng.random() < 0.03:
            bench.engine.reset("reset")
        if rng.random() < 0.05:
            bench.engine.release_prefix()
        if rng.random() < 0.1:
            bench.runner.fail_next(rng.choice(VERBS))
        try:
            one_frame(bench, rng)
        except RunnerError:
            bench.runner._failures.clear()
        bench.collect()
        bench.clock.advance_ns(rng.randint(0, 100) * MS)
    bench.engine.reset("end")
    bench.collect()
    return taken


@pytest.mark.parametrize("seed", range(40))
def test_every_text_ends_once_and_everything_is_given_back(seed):
    rng = random.Random(seed)
    memory = layout(num_prefixes=rng.randint(2, 4), num_rows=rng.randint(1, 5))
    settings = EngineSettings(
        steps=rng.choice((AutoSteps(), FixedSteps(rng.randint(0, 6)))),
        steps_per_round=rng.randint(1, 6),
        max_waiting=rng.randint(0, 6),
        aging_ns=20 * MS,
    )
    costs = FakeCosts(decode_ns=5 * MS, decode_token_ns=MS, jitter_ns=3 * MS, seed=seed)
    bench = EngineBench(SCRIPT, settings=settings, costs=costs, memory=memory)
    taken = live(bench, rng)
    use = bench.engine.memory()
    assert (use.prefixes_used, use.rows_used, bench.engine.num_waiting) == (0, 0, 0)
    assert set(bench.deltas) == set(taken)
    for request_id, deltas in bench.deltas.items():
        assert [delta.is_final for delta in deltas] == [False] * (len(deltas) - 1) + [True]
        assert [delta.seq for delta in deltas] == list(range(len(deltas)))
        assert all(delta.text for delta in deltas[:-1])
        check_text(bench, taken[request_id], deltas[-1])


def check_text(bench, made, final):
    """What was shown is the beginning of the script as filled in at the text's own observation."""
    script = SCRIPT[made.prompt]
    shown = bench.text(made.request_id)
    if not isinstance(script, str):
        assert set(shown) <= set("abcdef")
        return
    whole = script.replace("{observation_id}", str(final.observation_id)).replace("\n", " ")
    if made.sampling.stop_strings:
        whole = whole.split("of")[0]
    assert whole.startswith(shown)
    if final.finish_reason is FinishReason.STOP:
        assert shown == whole
