"""Damage inside bags: what can be read is read, what cannot is named, and nothing else is raised."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from contextlib import closing

import pytest
from bag_factory import FRONT, INSTRUCTION, JOINTS, START_NS, Sheet, make_bag, replay

from oxygen_ros.errors import OxygenError
from oxygen_ros.replay.bag.bag import Bag
from oxygen_ros.replay.bag.compression import ZSTD_MAGIC
from oxygen_ros.replay.bag.mcap_file import MAGIC

SCHEMA, CHANNEL, CHUNK = 3, 4, 6


def storage_of(path):
    return next(file for file in path.iterdir() if file.name != "metadata.yaml")


def find_record(content, at, opcode):
    """Where the content of the first record of a kind begins, from the record at ``at`` on."""
    while content[at] != opcode:
        at += 9 + struct.unpack_from("<Q", content, at + 1)[0]
    return at + 9


@pytest.mark.parametrize("opcode", [SCHEMA, CHANNEL])
def test_damaged_schema_or_channel_is_named_and_what_is_left_is_read(opcode, tmp_path):
    """The length of a name that points behind the record ended in struct.error."""
    file = storage_of(make_bag(tmp_path))
    content = bytearray(file.read_bytes())
    chunk = find_record(content, len(MAGIC), CHUNK)
    struct.pack_into("<I", content, chunk + 24, 0)  # no checksum, as some writers leave it
    start = find_record(content, chunk + 40, opcode)
    struct.pack_into("<I", content, start + (2 if opcode == SCHEMA else 4), 1 << 30)
    file.write_bytes(content)
    with Bag(file) as bag:
        assert any("is damaged" in fault for fault in bag.faults)
        assert 0 < bag.num_messages == len(list(bag.records(tuple(bag.topics))))


def test_message_that_cannot_be_unpacked_is_counted(tmp_path):
    """Its header was asked for when the bag was looked through, and the error got out."""
    sheet = Sheet.of(make_bag(tmp_path))
    sheet.add_raw(JOINTS, "sensor_msgs/msg/JointState", ZSTD_MAGIC + bytes(60), START_NS + 10**9)
    report = replay(sheet.write(tmp_path / "torn"), tmp_path / "out")
    assert report["measures"]["unreadable"] == {"all": 1, JOINTS: 1}
    assert report["verdict"]["exit_code"] == 3


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE topics SET type = X'00' WHERE name = ?", "is damaged"),
        ("UPDATE topics SET name = X'00' WHERE name = ?", "is damaged"),
        ("UPDATE messages SET data = 'x' WHERE topic_id IN (SELECT id FROM topics WHERE name = ?)", "rows"),
        (
            "UPDATE messages SET timestamp = 'x' WHERE topic_id IN (SELECT id FROM topics WHERE name = ?)",
            "rows",
        ),
    ],
)
def test_rows_that_are_no_messages_are_left_out_and_named(statement, fault, tmp_path):
    path = make_bag(tmp_path, storage="sqlite3")
    with Bag(path) as bag:
        num_all, num_front = bag.num_messages, bag.surveys[FRONT].num_messages
    with closing(sqlite3.connect(storage_of(path))) as connection:
        connection.execute(statement, (FRONT,))
        connection.commit()
    with Bag(path) as bag:
        assert any(fault in text for text in bag.faults)
        assert bag.num_messages == num_all - num_front == len(list(bag.records(tuple(bag.topics))))
        assert INSTRUCTION in bag.topics


def damage(content, dice):
    """One of the ways in which files suffer."""
    content = bytearray(content)
    at, size = dice.randrange(len(content)), dice.choice((1, 8, 100, 4096))
    way = dice.randrange(4)
    if way == 0:
        for _ in range(dice.choice((1, 3, 20))):
            content[dice.randrange(len(content))] = dice.randrange(256)
    elif way == 1:
        del content[at:]
    elif way == 2:
        del content[at : at + size]
    else:
        content[at : at + size] = dice.randbytes(size)
    return bytes(content)


def read_all(path, codes):
    """Number of messages; codes of those that cannot be read are added to ``codes``."""
    with Bag(path) as bag:
        for record in bag.records(tuple(bag.topics)):
            topic = bag.topics[record.topic]
            try:
                if bag.types.learn(topic):
                    bag.types.read(topic.type, record.data)
            except OxygenError as error:
                codes.add(error.code)
        return bag.num_messages


@pytest.mark.parametrize(
    ("storage", "compression"),
    [("mcap", "none"), ("mcap", "chunk"), ("mcap", "message"), ("sqlite3", "none")],
)
def test_b71_damage_anywhere_is_refused_by_name_or_read_around(storage, compression, tmp_path):
    file = storage_of(make_bag(tmp_path, storage=storage, compression=compression, seconds=0.5))
    content, dice, num_read, codes = file.read_bytes(), random.Random(7), 0, set()
    for number in range(12):
        path = tmp_path / str(number)
        path.mkdir()
        (path / file.name).write_bytes(damage(content, dice))
        try:
            num_read += read_all(path, codes)
        except OxygenError as error:
            codes.add(error.code)
        shutil.rmtree(path)
    assert num_read > 50
    assert codes <= {"bag.empty", "bag.message"}
