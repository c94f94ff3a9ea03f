"""Pictures: not black, of what is there, and a clear word when there is no GL."""

from dataclasses import replace

import numpy as np
import pytest

from oxygen_ros.errors import ConfigError
from oxygen_ros.sim.cameras import BASE_CAMERA, SHOW_CAMERA, WRIST_CAMERA, Cameras, open_context
from oxygen_ros.sim.world import Tabletop, random_layout


@pytest.fixture(scope="module")
def scene():
    world = Tabletop()
    layout = random_layout(np.random.default_rng(0))
    world.reset(replace(layout, hand=np.array([0.36, 0.0, 0.22])))
    with Cameras(world) as cameras:
        yield world, layout, cameras


@pytest.mark.parametrize("camera", [BASE_CAMERA, WRIST_CAMERA, SHOW_CAMERA])
def test_render_of_every_camera_is_a_picture(scene, camera):
    picture = scene[2].render(camera, 64, 48)
    assert picture.shape == (48, 64, 3)
    assert picture.dtype == np.uint8
    assert picture.std() > 5


def test_render_is_upright_and_not_mirrored(scene):
    world, layout, cameras = scene
    cubes = layout.cubes.copy()
    cubes[0, :2], cubes[2, :2] = (0.48, 0.12), (0.34, -0.12)
    world.reset(replace(layout, cubes=cubes, hand=np.array([0.30, -0.30, 0.25])))
    picture = cameras.render(BASE_CAMERA, 64, 64).astype(int)
    red = np.argwhere((picture[..., 0] > 150) & (picture[..., 1:] < 60).all(-1)).mean(0)
    blue = np.argwhere((picture[..., 2] > 150) & (picture[..., :2] < 100).all(-1)).mean(0)
    assert red[0] < blue[0], "farther ahead is higher in the picture"
    assert red[1] < blue[1], "the robot's left is left in the picture"


def test_render_twice_gives_the_same_bytes(scene):
    np.testing.assert_array_equal(*(scene[2].render(BASE_CAMERA, 64, 64) for _ in range(2)))


def test_open_context_with_an_unknown_backend_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with pytest.raises(ConfigError, match="egl") as refusal:
        open_context(8, 8)
    assert refusal.value.code == "sim.gl"


def test_open_context_without_any_gl_says_what_to_install(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("oxygen_ros.sim.cameras._BACKENDS", ("no_such_backend",))
    with pytest.raises(ConfigError, match="apt install"):
        open_context(8, 8)


def test_close_twice_is_allowed(scene):
    cameras = Cameras(scene[0], max_width=8, max_height=8)
    cameras.close()
    cameras.close()
