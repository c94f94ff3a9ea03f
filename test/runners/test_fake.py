import numpy as np
import pytest
from fakes import MS, inputs, layout, observation, processor, spec

from oxygen_ros.assembly.stand_in import build_stand_in
from oxygen_ros.clock import SimClock, SteadyClock
from oxygen_ros.config import load_config
from oxygen_ros.errors import IntegrityError, RunnerError
from oxygen_ros.runners.fake import FakeCosts, FakeRunner, made_up_actions
from oxygen_ros.runners.protocol import BatchRow, ModelRunner
from oxygen_ros.text.byte_tokenizer import END_ID, ByteTokenizer
from oxygen_ros.types import SamplingParams

TOKENIZER = ByteTokenizer()
COSTS = FakeCosts(prefill_ns=40 * MS, act_ns=30 * MS, decode_ns=10 * MS, decode_token_ns=2 * MS)


def make(costs=COSTS, script=None, clock=None):
    clock = clock or SimClock()
    runner: ModelRunner = FakeRunner(spec(), layout(), clock, TOKENIZER, costs, script)
    return runner, clock


def row(number=0, slot=0, prompt="Q", written=0, suffix=None, prefix_tokens=16):
    ids = tuple(TOKENIZER.encode(prompt)) if written == 0 else ()
    held = 0 if written == 0 else len(prompt) + written - 1
    return BatchRow(
        number, slot, prefix_tokens, held if suffix is None else suffix, ids, written, SamplingParams()
    )


def test_each_phase_moves_the_clock_on_by_its_cost():
    runner, clock = make()
    times = []
    for call in (
        lambda: runner.prefill(inputs(1), 0),
        lambda: runner.sample_actions(0, "default", 0),
        lambda: runner.decode_step([row(prompt="QQQ"), row(1)]),
        lambda: runner.decode_step([row(prompt="QQQ", written=1), row(1, written=1)]),
        runner.read_tokens,
    ):
        before_ns = clock.now_ns()
        call()
        times.append((clock.now_ns() - before_ns) // MS)
    assert times == [40, 30, 18, 14, 0]  # four tokens, then two


def test_warm_up_gives_the_set_costs_by_tokens_fed():
    costs = make()[0].warm_up()
    assert (costs.backend, costs.prefill_ns, costs.act_ns) == ("fake", (40 * MS,), (30 * MS,))
    assert costs.decode_step_ns[1] == (12 * MS,)
    assert costs.decode_step_ns[64] == (138 * MS,)


def test_first_sampling_of_actions_costs_more_where_asked_for():
    runner, clock = make(FakeCosts(act_ns=300 * MS, first_call_ns=400 * MS))
    runner.warm_up()
    runner.prefill(inputs(1), 0)
    ends = []
    for _ in range(2):
        runner.sample_actions(0, "default", 0)
        ends.append(clock.now_ns() // MS)
    assert ends == [700, 1000]


def test_jitter_is_bounded_and_repeats_with_its_seed():
    def ends(seed):
        runner, clock = make(FakeCosts(prefill_ns=10 * MS, jitter_ns=5 * MS, seed=seed))
        times = []
        for _ in range(20):
            runner.prefill(inputs(1), 0)
            times.append(clock.now_ns())
        return times

    steps = np.diff(ends(1))
    assert (ends(1) == ends(1)) is True
    assert ends(1) != ends(2)
    assert steps.min() >= 10 * MS
    assert steps.max() <= 15 * MS
    assert len(set(steps.tolist())) > 10


def test_with_a_real_clock_it_waits():
    clock = SteadyClock()
    runner, _ = make(FakeCosts(prefill_ns=3 * MS), clock=clock)
    before_ns = clock.now_ns()
    runner.prefill(inputs(1), 0)
    assert clock.now_ns() - before_ns >= 3 * MS


def test_script_is_written_token_by_token_and_ends_with_an_end_token():
    runner, _ = make(script={"Q": "no {observation_id}🙂"})
    runner.prefill(inputs(12), 0)
    for written in range(len("no 12🙂".encode()) + 1):
        runner.decode_step([row(written=written)])
    tokens = runner.read_tokens()
    assert tokens == {0: [*TOKENIZER.encode("no 12🙂"), END_ID]}
    assert runner.read_tokens() == {}


def test_script_of_tokens_repeats_and_other_prompts_get_a_stand_in_text():
    runner, _ = make(script={"Q": [70, None]})
    runner.prefill(inputs(1), 0)
    for written in range(3):
        runner.decode_step([row(written=written), row(1, prompt="else", written=written)])
    tokens = runner.read_tokens()
    assert tokens[0] == [70, None, 70]
    assert TOKENIZER.decode(tokens[1]) == "Fra"


def test_actions_are_smooth_bounded_and_a_function_of_inputs_expert_and_seed():
    seen = inputs(5)
    actions = made_up_actions(seen, "default", 3, (50, 4))
    assert np.array_equal(actions, made_up_actions(inputs(5), "default", 3, (50, 4)))
    assert actions.dtype == np.float32
    assert np.abs(actions).max() < 0.5
    steps = np.diff(np.vstack([seen.state, actions]), axis=0)
    assert np.abs(steps).max() < 0.05  # from the state on, without a jump
    others = [
        made_up_actions(seen, "default", 4, (50, 4)),
        made_up_actions(seen, "base", 3, (50, 4)),
        made_up_actions(inputs(6), "default", 3, (50, 4)),
        made_up_actions(processor().prepare(observation(5, "another task")), "default", 3, (50, 4)),
    ]
    assert all(not np.array_equal(actions, other) for other in others)


def test_chunks_of_one_prefix_share_no_memory():
    runner, _ = make()
    runner.prefill(inputs(1), 0)
    first, second = (runner.sample_actions(0, "default", 1) for _ in range(2))
    assert not np.shares_memory(first, second)


def test_told_failure_happens_once_and_after_its_time():
    runner, clock = make()
    runner.fail_next("sample_actions", "device lost")
    runner.prefill(inputs(1), 0)
    with pytest.raises(RunnerError, match="device lost"):
        runner.sample_actions(0, "default", 0)
    assert clock.now_ns() == 70 * MS
    runner.sample_actions(0, "default", 0)


@pytest.mark.parametrize(
    ("words", "misuse"),
    [
        ("prefix slot 4", lambda r: r.prefill(inputs(1), 4)),
        ("never written", lambda r: r.sample_actions(2, "default", 0)),
        ("expert 'legs'", lambda r: r.sample_actions(0, "legs", 0)),
        ("text row 4", lambda r: r.decode_step([row(4)])),
        ("rows of a step", lambda r: r.decode_step([row(), row()])),
        ("rows of a step", lambda r: r.decode_step([])),
        ("length of the prefix", lambda r: r.decode_step([row(prefix_tokens=3)])),
        ("holds 0 tokens", lambda r: r.decode_step([row(suffix=1)])),
        ("past its end", lambda r: r.decode_step([row(prompt="p" * 97)])),
        ("before its tokens", lambda r: [r.decode_step([row()]) for _ in range(2)]),
    ],
)
def test_caller_that_breaks_the_runner_contract_is_told(words, misuse):
    runner, _ = make()
    runner.prefill(inputs(1), 0)
    with pytest.raises(IntegrityError, match=words):
        misuse(runner)


def test_prefix_that_is_written_over_under_a_text_is_noticed():
    runner, _ = make()
    runner.prefill(inputs(1), 0)
    runner.decode_step([row()])
    runner.prefill(inputs(2), 0)
    with pytest.raises(IntegrityError, match="written over"):
        runner.decode_step([row(written=1)])


def test_script_of_the_configuration_is_one_text_for_each_task_in_their_order():
    tasks = ("ask", "subtask", "memory")
    given = {"runner.kind": "fake", "text.task_names": list(tasks), "runner.fake.script": ["one", "two"]}
    config = load_config(preset="libero", overrides=given).config
    model = build_stand_in(config, SimClock())
    model.runner.prefill(inputs(1), 0)
    prompts = [config.text.tasks[name].prompt for name in tasks] + ["What now?"]
    for number, prompt in enumerate(prompts):
        for written in range(3):
            ids = tuple(TOKENIZER.encode(prompt)) if written == 0 else ()
            held = len(prompt) + written - 1 if written else 0
            model.runner.decode_step([BatchRow(number, 0, 16, held, ids, written, SamplingParams())])
    written = {number: TOKENIZER.decode(ids) for number, ids in model.runner.read_tokens().items()}
    assert written == {0: "one", 1: "two", 2: "one", 3: "Fra"}
