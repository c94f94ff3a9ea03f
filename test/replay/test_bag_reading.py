"""Bags as they come from the field: both storages, split, compressed, without metadata, damaged."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from bag_factory import FRONT, INSTRUCTION, RESOURCES, START_NS, Sheet, cut, make_bag
from rosbags.highlevel import AnyReader

from oxygen_ros.errors import ContractError
from oxygen_ros.replay.bag.bag import Bag, TimeUse
from oxygen_ros.replay.bag.compression import ZSTD_MAGIC


def contents(path, **options):
    with Bag(path) as bag:
        return [(r.time_ns, r.topic, r.data) for r in bag.records(tuple(bag.topics), **options)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return make_bag(tmp_path_factory.mktemp("plain"), seconds=1.0)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_bag_of_either_storage_gives_what_the_library_reads(storage, tmp_path):
    path = make_bag(tmp_path, storage=storage, seconds=1.0)
    with AnyReader([path]) as reader:
        expected = sorted((at, c.topic, bytes(raw)) for c, at, raw in reader.messages())
    assert sorted(contents(path)) == expected
    with Bag(path) as bag:
        assert (bag.faults, bag.notes) == ([], [])
        assert bag.num_messages == len(expected)
        assert bag.topics[INSTRUCTION].is_latched is True
        assert bag.topics[FRONT].is_latched is False


@pytest.mark.parametrize(
    ("storage", "compression"),
    [("mcap", "chunk"), ("mcap", "message"), ("mcap", "file"), ("sqlite3", "message"), ("sqlite3", "file")],
)
def test_compressed_bag_gives_the_same_messages(storage, compression, tmp_path, plain):
    path = make_bag(tmp_path, storage=storage, compression=compression, seconds=1.0)
    with Bag(path) as bag:
        found = [
            (r.time_ns, r.topic, bag.types.read(bag.topics[r.topic].type, r.data))
            for r in bag.records((FRONT,))
        ]
    with Bag(plain) as bag:
        wanted = [bag.types.read(bag.topics[FRONT].type, r.data) for r in bag.records((FRONT,))]
    assert [message.data.tobytes() for _, _, message in found] == [m.data.tobytes() for m in wanted]


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_split_bag_is_read_as_one_in_the_order_of_time(storage, tmp_path):
    whole = Sheet.of(make_bag(tmp_path, "whole", storage=storage, seconds=1.0))
    parts = Sheet(), Sheet()
    for number, line in enumerate(whole.lines):
        parts[number % 2].lines.append(line)
    suffix = "mcap" if storage == "mcap" else "db3"
    folder = tmp_path / "split"
    for number, part in enumerate(parts):
        part.write(tmp_path / f"part_{number}", storage=storage)
        folder.mkdir(exist_ok=True)
        shutil.copy(
            tmp_path / f"part_{number}" / f"part_{number}.{suffix}", folder / f"split_{number}.{suffix}"
        )
    assert sorted(contents(folder)) == sorted(contents(tmp_path / "whole"))
    times = [time_ns for time_ns, _, _ in contents(folder)]
    assert times == sorted(times)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("metadata", ["missing", "no identifier", "broken"])
def test_b72_storage_is_told_by_first_bytes(storage, metadata, tmp_path):
    path = make_bag(tmp_path, storage=storage, seconds=0.5)
    expected = contents(path)
    file = path / "metadata.yaml"
    if metadata == "missing":
        file.unlink()
    elif metadata == "no identifier":
        text = file.read_text()
        assert f"storage_identifier: {storage}" in text
        file.write_text(text.replace(f"storage_identifier: {storage}", 'storage_identifier: ""'))
    else:
        file.write_text("rosbag2_bagfile_information: [unclosed")
    assert contents(path) == expected
    with Bag(path) as bag:
        assert [note for note in bag.notes if "metadata.yaml" in note]


def test_file_of_a_bag_alone_is_a_bag(plain):
    assert contents(plain / "bag.mcap") == contents(plain)


def test_b71_mcap_cut_anywhere_gives_every_whole_message_before_the_cut(tmp_path, plain):
    # Messages of one chunk lie one after the other, so a cut at byte n keeps those that end before n.
    everything = contents(plain)
    content = (plain / "bag.mcap").read_bytes()
    ends = sorted((content.index(data) + len(data), (at, topic, data)) for at, topic, data in everything)
    for share in (0.1, 0.35, 0.6, 0.8):
        path = tmp_path / f"cut_{share}"
        shutil.copytree(plain, path)
        cut(path, share)
        kept = sorted(line for end, line in ends if end <= round(len(content) * share))
        with Bag(path) as bag:
            assert bag.faults == [f"bag.mcap: truncated after {len(kept)} messages"]
        assert sorted(contents(path)) == kept


def noise(path, **options):
    """A bag of 4 MB that does not get smaller by compression."""
    random = np.random.default_rng(0)
    sheet = Sheet()
    for i in range(100):
        text = random.integers(0, 256, 40_000, dtype=np.uint8)
        sheet.add("/noise", sheet.make.compressed(text.tobytes(), START_NS + i), START_NS + i * 10**7)
    return sheet.write(path, **options)


@pytest.mark.parametrize("compression", ["none", "chunk", "file"])
def test_b71_cut_inside_a_chunk_gives_the_messages_before_it(compression, tmp_path):
    path = noise(tmp_path / "bag", compression=compression)
    everything = contents(path)
    file = next(file for file in path.iterdir() if file.name != "metadata.yaml")
    content = file.read_bytes()
    file.write_bytes(content[: round(len(content) * 0.6)])
    with Bag(path) as bag:
        assert bag.faults[-1] == f"bag.mcap: truncated after {bag.num_messages} messages"
        # A compressor works on blocks of 128 KiB: three messages at most are lost in the one that was cut.
        assert 56 <= bag.num_messages <= 60
    assert contents(path) == everything[: bag.num_messages]


def test_damaged_chunk_is_left_out_and_named(tmp_path):
    path = noise(tmp_path / "bag", compression="chunk")
    everything = contents(path)
    content = bytearray((path / "bag.mcap").read_bytes())
    second = content.index(ZSTD_MAGIC, content.index(ZSTD_MAGIC) + 1)
    content[second : second + 4] = bytes(4)
    (path / "bag.mcap").write_bytes(content)
    with Bag(path) as bag:
        assert bag.faults == [f"bag.mcap: chunk at byte {second} is damaged"]
    found = contents(path)
    assert set(found) < set(everything)
    assert 60 <= len(found) <= 80


def test_b71_sqlite3_cut_gives_what_can_be_read(tmp_path):
    path = make_bag(tmp_path, storage="sqlite3", seconds=2.0, width=160, height=120, is_jpeg=False)
    everything = contents(path)
    cut(path, 0.6)
    with Bag(path) as bag:
        assert len(bag.faults) == 1
        assert "bag.db3: damaged after" in bag.faults[0]
        assert 50 < bag.num_messages < len(everything)


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0\r\n", b"no bag at all", b"SQLite format 3\x00"])
def test_b71_file_without_a_message_is_refused(content, tmp_path):
    (tmp_path / "bag.mcap").write_bytes(content)
    with pytest.raises(ContractError, match=r"bag\.mcap") as caught:
        Bag(tmp_path / "bag.mcap")
    assert caught.value.code == "bag.empty"


def test_missing_bag_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ContractError) as caught:
            Bag(path)
        assert caught.value.code == "bag.missing"


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_b73_messages_out_of_order_are_sorted_and_ties_are_certain(storage, tmp_path):
    sheet = Sheet()
    for time_s in (3, 1, 2):
        for topic in ("/b", "/a"):
            sheet.add(topic, sheet.make.text(f"{topic} {time_s}"), START_NS + time_s * 10**9)
    sheet.add("/a", sheet.make.text("/a 2 again"), START_NS + 2 * 10**9)
    path = sheet.write(tmp_path / "bag", storage=storage)
    with Bag(path) as bag:
        texts = [bag.types.read("std_msgs/msg/String", r.data).data for r in bag.records(("/a", "/b"))]
        assert texts == ["/a 1", "/b 1", "/a 2", "/a 2 again", "/b 2", "/a 3", "/b 3"]
        assert any("out of the order" in note for note in bag.notes)


def test_header_time_orders_by_stamp_across_blocks(tmp_path):
    sheet = Sheet()
    for i in range(200):
        stamp_ns = START_NS + (200 - i) * 10**9  # the later it was recorded, the earlier its stamp
        sheet.add("/joints", sheet.make.joints(["a"], [float(i)], stamp_ns), START_NS + i * 10**9)
    path = sheet.write(tmp_path / "bag")
    stamps = [time_ns for time_ns, _, _ in contents(path, order=TimeUse.HEADER)]
    assert stamps == sorted(stamps)
    assert len(stamps) == 200


def test_resource_bags_are_what_the_script_makes(tmp_path):
    from oxygen_ros.tools.make_test_bags import main

    assert main([str(tmp_path), "--seconds", "3"]) == 0
    for name in ("aloha_mcap", "aloha_sqlite3"):
        assert contents(tmp_path / name) == contents(RESOURCES / name)
