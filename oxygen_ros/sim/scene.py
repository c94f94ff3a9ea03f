"""The MuJoCo scene as text: table, cubes, containers, and a humanoid torso with one working arm.

Primitives only: no meshes, no textures. Metres and radians; x forward, y left, z up; table top at z = 0.
"""

from __future__ import annotations

import itertools
import math

CONTROL_HZ = 30
SUBSTEPS = 8
ARM_JOINTS = ("q1", "q2", "q3", "q4", "q5", "q6", "q7")
CUBE_HALF = 0.024
CUBE_RGB = ("0.85 0.10 0.10", "0.10 0.65 0.20", "0.15 0.25 0.90")
CUBE_NAMES = ("cube_red", "cube_green", "cube_blue")
CONTAINER_NAMES = ("bowl", "plate")
SERVO_KP = 1500.0
SERVO_KV = 60.0
GRASP_OFFSET = (0.14, 0.0, 0.0)

_HEADER = f"""
<mujoco model="oxygen_tabletop">
  <option timestep="{1.0 / (CONTROL_HZ * SUBSTEPS):.10f}" integrator="implicitfast"/>
  <compiler angle="radian"/>
  <visual>
    <global offwidth="640" offheight="480"/>
    <quality shadowsize="0" offsamples="0" numslices="16" numstacks="8" numquads="1"/>
    <map znear="0.02"/>
    <headlight ambient="0.5 0.5 0.5" diffuse="0.5 0.5 0.5" specular="0 0 0"/>
  </visual>
  <default>
    <geom contype="0" conaffinity="0" rgba="0.75 0.76 0.80 1"/>
    <default class="arm"><joint damping="4" armature="0.05"/>
      <position kp="{SERVO_KP}" kv="{SERVO_KV}"/></default>
    <default class="finger"><joint type="slide" damping="1" range="0.006 0.045" limited="true"/>
      <position kp="60" kv="4"/></default>
    <default class="solid"><geom contype="1" conaffinity="1" friction="1 0.02 0.001"/></default>
  </default>
"""

_TORSO = """
    <camera name="base" pos="0.12 0 0.84" xyaxes="0 -1 0 0.949 0 0.316" fovy="46"/>
    <camera name="show" pos="1.35 -0.75 0.75" xyaxes="0.55 0.835 0 -0.36 0.24 0.9" fovy="45"/>
    <geom name="floor" type="plane" size="3 3 0.1" pos="0 0 -0.7" rgba="0.30 0.32 0.36 1"/>
    <geom name="table" class="solid" type="box" size="0.30 0.45 0.02" pos="0.42 0 -0.02"
      rgba="0.62 0.52 0.42 1"/>
    <geom type="capsule" size="0.11" fromto="-0.12 0 -0.3 -0.12 0 0.4"/>
    <geom type="sphere" size="0.09" pos="-0.10 0 0.68"/>
    <geom type="sphere" size="0.018" pos="-0.02 0.035 0.70" rgba="0.1 0.1 0.12 1"/>
    <geom type="sphere" size="0.018" pos="-0.02 -0.035 0.70" rgba="0.1 0.1 0.12 1"/>
    <geom type="capsule" size="0.05" fromto="-0.05 0.22 0.42 0.0 0.30 0.02"/>
"""

_ARM = """
    <body name="upper_arm" pos="-0.05 -0.18 0.42" gravcomp="1">
      <joint name="q1" class="arm" axis="0 0 1" range="-2.5 2.5"/>
      <joint name="q2" class="arm" axis="0 1 0" range="-2.5 2.5"/>
      <joint name="q3" class="arm" axis="1 0 0" range="-2.5 2.5"/>
      <geom type="capsule" size="0.036" fromto="0 0 0 0.38 0 0" mass="1"/>
      <body name="forearm" pos="0.38 0 0" gravcomp="1">
        <joint name="q4" class="arm" axis="0 1 0" range="-0.1 2.7"/>
        <geom type="capsule" size="0.028" fromto="0 0 0 0.36 0 0" mass="0.7"/>
        <body name="hand" pos="0.36 0 0" gravcomp="1">
          <joint name="q5" class="arm" axis="1 0 0" range="-3 3"/>
          <joint name="q6" class="arm" axis="0 1 0" range="-2.5 2.5"/>
          <joint name="q7" class="arm" axis="0 0 1" range="-2.5 2.5"/>
          <geom type="box" size="0.05 0.03 0.025" pos="0.04 0 0" mass="0.3" rgba="0.25 0.25 0.28 1"/>
          <site name="grasp" pos="0.14 0 0" size="0.005" rgba="0 0 0 0"/>
          <camera name="wrist" pos="0.03 0 0.075" xyaxes="0 -1 0 0.25 0 0.97" fovy="75"/>
          <body name="finger_left" pos="0.09 0 0" gravcomp="1">
            <joint name="finger_left" class="finger" axis="0 1 0"/>
            <geom type="box" size="0.035 0.006 0.012" pos="0.02 0 0" mass="0.03" rgba="0.9 0.9 0.2 1"/>
          </body>
          <body name="finger_right" pos="0.09 0 0" gravcomp="1">
            <joint name="finger_right" class="finger" axis="0 -1 0"/>
            <geom type="box" size="0.035 0.006 0.012" pos="0.02 0 0" mass="0.03" rgba="0.9 0.9 0.2 1"/>
          </body>
        </body>
      </body>
    </body>
"""


def _containers() -> str:
    corners = [(0.07 * math.cos(a), 0.07 * math.sin(a)) for a in (math.pi / 4 * k for k in range(9))]
    rim = "".join(
        f'<geom type="capsule" size="0.008" fromto="{a[0]:.4f} {a[1]:.4f} 0.012 {b[0]:.4f} {b[1]:.4f} 0.012"'
        ' rgba="0.95 0.55 0.10 1"/>'
        for a, b in itertools.pairwise(corners)
    )
    return f"""
    <body name="bowl" mocap="true" pos="0.42 0.22 0">
      <geom type="cylinder" size="0.07 0.002" pos="0 0 0.002" rgba="0.85 0.45 0.05 1"/>{rim}
    </body>
    <body name="plate" mocap="true" pos="0.42 -0.32 0">
      <geom type="cylinder" size="0.075 0.004" pos="0 0 0.004" rgba="0.97 0.97 0.97 1"/>
    </body>
"""


def _cubes() -> str:
    return "".join(
        f"""
    <body name="{name}" pos="0.40 {0.1 * index - 0.1} {CUBE_HALF}">
      <freejoint name="{name}"/>
      <geom class="solid" type="box" size="{CUBE_HALF} {CUBE_HALF} {CUBE_HALF}" mass="0.05" rgba="{rgb} 1"/>
    </body>"""
        for index, (name, rgb) in enumerate(zip(CUBE_NAMES, CUBE_RGB, strict=True))
    )


def scene_xml() -> str:
    """The whole scene in MuJoCo's own format."""
    welds = "".join(
        f'<weld name="hold_{name}" body1="hand" body2="{name}" active="false" solref="0.02 1"/>'
        for name in CUBE_NAMES
    )
    servos = "".join(f'<position class="arm" name="{j}" joint="{j}"/>' for j in ARM_JOINTS)
    servos += "".join(
        f'<position class="finger" name="{j}" joint="{j}"/>' for j in ("finger_left", "finger_right")
    )
    world = _TORSO + _ARM + _containers() + _cubes()
    return (
        f"{_HEADER}<worldbody>{world}</worldbody>"
        f"<equality>{welds}</equality><actuator>{servos}</actuator></mujoco>"
    )
