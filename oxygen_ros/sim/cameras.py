"""Off-screen pictures of a world, through EGL or OSMesa, whichever the machine has.

One owner, one thread; ``close`` it. MUJOCO_GL (egl or osmesa) overrides the choice.
"""

from __future__ import annotations

import importlib
import os
from types import TracebackType
from typing import Any

import mujoco
import numpy as np

from oxygen_ros.errors import ConfigError
from oxygen_ros.sim.world import Tabletop
from oxygen_ros.types import ImageArray

BASE_CAMERA = "base"
WRIST_CAMERA = "wrist"
SHOW_CAMERA = "show"
_BACKENDS = ("egl", "osmesa")


def open_context(width: int, height: int) -> Any:
    """A current GL context of the first backend that works.

    Raises:
        ConfigError: if MUJOCO_GL names another backend, or none works; says what to install.
    """
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    if wanted and wanted not in _BACKENDS:
        raise ConfigError(
            "sim.gl", f"MUJOCO_GL is {wanted!r}; this renderer knows {_BACKENDS}", "unset MUJOCO_GL"
        )
    causes = []
    for name in (wanted,) if wanted else _BACKENDS:
        if os.environ.get("PYOPENGL_PLATFORM") in _BACKENDS:
            os.environ["PYOPENGL_PLATFORM"] = name
        try:
            context = importlib.import_module(f"mujoco.{name}").GLContext(width, height)
            context.make_current()
        except (ImportError, AttributeError, RuntimeError, OSError) as error:
            causes.append(f"{name}: {error}")
            continue
        return context
    raise ConfigError(
        "sim.gl",
        f"no off-screen GL ({'; '.join(causes)})",
        "apt install libegl1 libegl-mesa0 libgl1-mesa-dri, or apt install libosmesa6",
    )


class Cameras:
    """Renders pictures of a world, or of several equal ones. Holds a GL context until ``close``."""

    def __init__(self, world: Tabletop, *, max_width: int = 640, max_height: int = 480) -> None:
        self._world = world
        self._gl = open_context(max_width, max_height)
        self._scene = mujoco.MjvScene(world.model, maxgeom=100)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._options = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._context = mujoco.MjrContext(world.model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)

    def render(self, camera: str, width: int, height: int, world: Tabletop | None = None) -> ImageArray:
        """One upright RGB picture, uint8 [height, width, 3], of ``world``; by default the first."""
        shown = self._world if world is None else world
        self._gl.make_current()
        self._camera.fixedcamid = shown.model.camera(camera).id
        mujoco.mjv_updateScene(
            shown.model,
            shown.data,
            self._options,
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        viewport = mujoco.MjrRect(0, 0, width, height)
        picture = np.empty((height, width, 3), np.uint8)
        mujoco.mjr_render(viewport, self._scene, self._context)
        mujoco.mjr_readPixels(picture, None, viewport, self._context)
        return np.ascontiguousarray(picture[::-1])

    def close(self) -> None:
        """Give the GL context back. Calling it twice is allowed."""
        if self._gl is not None:
            self._gl.make_current()
            self._context.free()
            self._gl.free()
            self._gl = None

    def __enter__(self) -> Cameras:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
