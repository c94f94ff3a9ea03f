"""Makes damaged messages from good ones, by a seeded generator. Every damage has a name.

What is made for cameras, joints and chunks can never be taken for good: an action that follows from it is a
fault. What is made for texts may be odd but allowed; nodes must only bear it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from builtin_interfaces.msg import Time

from oxygen_ros.msg import ActionChunk, PlayerState, TextDelta, TextRequest

Damage = Callable[[Any, Random], None]

UINT32, UINT64 = 2**32 - 1, 2**64 - 1
ODD_FLOATS = (math.nan, math.inf, -math.inf)
ODD_TEXTS = (
    "",
    "\x00",
    "\x07\x1b[31m",
    "\ufffd" * 7,
    "a\u202eb",
    "x" * 100_000,
    "\U0001f600" * 999,
    " \n\t ",
    "-h",
)
FIRST_DAMAGED_ID = 10**15
"""Damaged chunks have ids from here on: the player's state tells whether it plays one."""


def _in_an_hour(message: Any, rng: Random) -> None:
    message.header.stamp = Time(sec=message.header.stamp.sec + 3600)


def _cut(message: Any, rng: Random) -> None:
    message.data = message.data[: rng.randrange(len(message.data))]


def _set(**values: Any) -> Damage:
    def change(message: Any, rng: Random) -> None:
        for name, choices in values.items():
            setattr(message, name, rng.choice(choices))

    return change


def _garbage(message: Any, rng: Random) -> None:
    message.data = b"\x01" + rng.randbytes(rng.randrange(1, 500))


def _jpeg_of_garbage(message: Any, rng: Random) -> None:
    message.data = b"\xff\xd8\xff" + rng.randbytes(200).replace(b"\xff", b"\x00") + b"\xff\xd9"


def _odd_position(message: Any, rng: Random) -> None:
    message.position[rng.randrange(len(message.position))] = rng.choice((*ODD_FLOATS, 1e300))


def _fewer_positions(message: Any, rng: Random) -> None:
    message.position = message.position[: rng.randrange(len(message.position))]


def _one_name_twice(message: Any, rng: Random) -> None:
    names = list(message.name)
    names[0] = names[-1]
    message.name = names


def _joint_lost(message: Any, rng: Random) -> None:
    index = rng.randrange(len(message.name))
    message.name = [name for i, name in enumerate(message.name) if i != index]
    message.position = [value for i, value in enumerate(message.position) if i != index]


def _other_joints(message: Any, rng: Random) -> None:
    message.name = [f"{name}_of_another_robot" for name in message.name]


def _odd_action(message: Any, rng: Random) -> None:
    message.actions[rng.randrange(len(message.actions))] = rng.choice(ODD_FLOATS)


def _fewer_actions(message: Any, rng: Random) -> None:
    message.actions = message.actions[: rng.randrange(len(message.actions))]


def _unknown_joint(message: Any, rng: Random) -> None:
    names = list(message.joint_names)
    names[rng.randrange(len(names))] = rng.choice(("", "joint_of_another_robot", names[0] + " "))
    message.joint_names = names


def _joint_named_twice(message: Any, rng: Random) -> None:
    message.joint_names = [message.joint_names[0]] * len(message.joint_names)


IMAGE: dict[str, Damage] = {
    "cut short": _cut,
    "no size": _set(width=(0,), height=(0,)),
    "too large": _set(height=(10_000, UINT32), width=(10_000, UINT32)),
    "step": _set(step=(0, 1, UINT32)),
    "depth": _set(encoding=("16UC1", "32FC1", "mono16")),
    "encoding": _set(encoding=("", "rgb9", "bayer_rggb8", "\x00", "x" * 9999)),
    "in an hour": _in_an_hour,
}
COMPRESSED: dict[str, Damage] = {
    "garbage": _garbage,
    "empty": _set(data=(b"",)),
    "depth": _set(format=("16UC1; compressedDepth png",)),
    "broken": _jpeg_of_garbage,
    "in an hour": _in_an_hour,
}
JOINTS: dict[str, Damage] = {
    "odd position": _odd_position,
    "fewer positions": _fewer_positions,
    "one name twice": _one_name_twice,
    "joint lost": _joint_lost,
    "other joints": _other_joints,
    "in an hour": _in_an_hour,
}
CHUNK: dict[str, Damage] = {
    "odd action": _odd_action,
    "fewer actions": _fewer_actions,
    "sizes": _set(horizon=(1, UINT32), action_dim=(0, 1, UINT32)),
    "interval": _set(dt_s=(0.0, -0.1, 1e-300, 1e300, *ODD_FLOATS)),
    "execute": _set(execute_horizon=(0, UINT32)),
    "unknown joint": _unknown_joint,
    "joint named twice": _joint_named_twice,
    "no stamp": _set(header=(ActionChunk().header,)),
    "late": _set(latency_ms=(1e9, 3e38)),
}
REQUEST: dict[str, Damage] = {
    "prompt": _set(prompt=ODD_TEXTS),
    "task": _set(task=ODD_TEXTS),
    "id": _set(request_id=ODD_TEXTS),
    "temperature": _set(temperature=(*ODD_FLOATS, -1.0, 1e30)),
    "age": _set(max_age_s=(*ODD_FLOATS, -1.0, 1e30)),
    "numbers": _set(top_k=(UINT32,), max_tokens=(UINT32,), priority=(-(2**31),), seed=(UINT64,)),
}
DELTA: dict[str, Damage] = {
    "id": _set(request_id=ODD_TEXTS),
    "kind": _set(kind=(4, 255)),
    "reason": _set(finish_reason=(0, 8, 255), is_final=(True,)),
    "not final": _set(finish_reason=(1, 8), is_final=(False,)),
    "seq": _set(seq=(7, UINT32)),
    "text": _set(text=ODD_TEXTS, task=ODD_TEXTS),
    "observation": _set(observation_id=(UINT64,), num_tokens=(UINT32,)),
}
STATE: dict[str, Damage] = {
    "mode": _set(mode=(4, 255)),
    "count": _set(actions_played=(UINT64, 0), chunk_id=(UINT64,), next_index=(UINT32,)),
    "reason": _set(reason=ODD_TEXTS),
}
TEXT: dict[str, Damage] = {"text": _set(data=ODD_TEXTS)}


def good_request(number: int) -> TextRequest:
    """A question that is in order."""
    return TextRequest(request_id=f"odd-{number}", prompt="What do you see? ", max_tokens=8)


def good_delta(number: int) -> TextDelta:
    """The last piece of a text."""
    return TextDelta(
        request_id=f"odd-text-{number}", task="ask", text="All is well. ", is_final=True, finish_reason=1
    )


def good_state(number: int) -> PlayerState:
    """What a player says."""
    return PlayerState(mode=PlayerState.MODE_PLAYING, actions_played=number)
