"""A fingerprint of an observation: equal inputs, equal fingerprint, live or from a bag."""

from __future__ import annotations

import hashlib

import numpy as np

from oxygen_ros.types import Observation


def observation_digest(observation: Observation) -> str:
    """32 hexadecimal digits of all that the model gets to see: pictures, state, instruction, number."""
    hasher = hashlib.blake2b(digest_size=16)
    hasher.update(str(observation.observation_id).encode())
    for role in sorted(observation.images):
        image = observation.images[role]
        hasher.update(f"{role} {image.shape}".encode())
        hasher.update(np.ascontiguousarray(image).data)
    hasher.update(observation.state.tobytes())
    hasher.update(observation.instruction.encode("utf-8", errors="surrogatepass"))
    return hasher.hexdigest()
