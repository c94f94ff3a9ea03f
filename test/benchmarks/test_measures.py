import torch
from bench_lab import tiny_lab

from benchmarks.ablations import ABLATIONS, ablated
from benchmarks.machine import Machine
from benchmarks.measures import operators
from benchmarks.measures.deadlines import on_virtual_clock
from benchmarks.measures.memory import count_kv_bytes
from benchmarks.measures.operators import count_operators
from benchmarks.measures.roofline import bounds
from benchmarks.measures.soak import run_soak
from benchmarks.workloads import make_jobs
from oxygen_ros.runners.fake import FakeCosts

MS = 1_000_000


def test_decode_steps_of_the_product_copy_no_prefix_and_read_tokens_once_a_cycle():
    found = count_operators(tiny_lab(), num_cycles=2)
    assert found.num_steps == 10
    assert (found.kv_sized_allocations, found.prefix_copies, found.host_reads) == (0, 0, 0)
    assert found.token_transfers_per_cycle == 1


def test_the_watch_sees_repeated_heads_and_copied_prefixes():
    """A counter that cannot count would always say 0."""
    lab = tiny_lab()
    runner = lab.runner()
    memory = (runner.memory.prefix_k, runner.memory.prefix_v)
    with operators._Watch(memory, num_prefix_tokens=52, head_dim=16) as watch:
        runner.memory.prefix_k[0, :, :, :52].repeat_interleave(8, dim=1)
        runner.memory.prefix_k[:, 0, :, :52].clone()
        torch.zeros(3).sum().item()
    assert watch.kv_sized
    assert watch.copies
    assert watch.names["_local_scalar_dense"] == 1


def test_kv_bytes_count_valid_tokens_against_padded_ones():
    found = count_kv_bytes(tiny_lab(max_tokens=30))
    per_token = 3 * 2 * 1 * 16 * 4
    assert found.reference == (3 * 16 + 64 + 30) * per_token
    assert found.one_task == (2 * 16 + 20 + 30) * per_token
    assert found.each_of_three == (2 * 16 + 20) * per_token // 3 + 30 * per_token


def test_no_deadline_is_missed_on_exact_time_and_text_takes_what_is_left():
    costs = FakeCosts(40 * MS, 30 * MS, 5 * MS, MS // 2, jitter_ns=MS // 2)
    found = [on_virtual_clock(tiny_lab("W7"), costs, 40, factor) for factor in (2.0, 1.3, 1.05)]
    assert [run.misses for run in found] == [0, 0, 0]
    assert found[0].steps_per_cycle > found[1].steps_per_cycle > found[2].steps_per_cycle


def test_bounds_are_the_larger_of_operations_and_bytes():
    machine = Machine("cpu", "", "", 1, 1, "", "", "", "", 0.0, {"float32": 1e9}, 1e9)
    found = bounds(tiny_lab(), machine, rows=4)
    for bound in found.values():
        assert bound.bound_ms == max(bound.operations, bound.num_bytes) / 1e9 * 1e3
    assert found["prefill"].compute_ms > found["prefill"].memory_ms


def test_a_soak_leaves_nothing_behind_and_its_texts_add_up():
    found = run_soak(tiny_lab("W7"), 30)
    assert found.texts_asked == found.texts_finished + found.texts_refused + found.texts_open
    assert found.texts_finished > 10
    assert (found.rows_held, found.prefixes_held, found.kv_bytes_changed) == (0, 0, 0)


def test_a_lab_gives_the_same_jobs_twice():
    lab = tiny_lab("W6")
    first, second = (make_jobs(lab.workload, lab.config, 3) for _ in range(2))
    assert [job.texts for job in first] == [job.texts for job in second]
    assert all((a.inputs.images == b.inputs.images).all() for a, b in zip(first, second, strict=True))


def test_all_features_off_still_runs():
    lab = tiny_lab()
    record = ablated(lab, "bare", ABLATIONS).run(make_jobs(lab.workload, lab.config, 1)[0])
    assert record.tokens == lab.workload.steps_per_cycle
