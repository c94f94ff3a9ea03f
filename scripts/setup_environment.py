"""Set up the virtual environment of this checkout, once. Called by environment.sh; standard library only.

Steps whose inputs have not changed since they last succeeded are left out: each step's key is a hash of the
files it reads, kept in `setup.json` inside the environment. What the machine lacks is said in one line.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
PROGRESS_S = 15.0  # a step that takes longer says so this often
ROS_BRINGS = {"numpy": "numpy", "PyYAML": "yaml", "opencv-python-headless": "cv2"}  # distribution: module


class MissingError(Exception):
    """Something on this machine is missing; the text says what, in one line."""


def hash_files(*paths: Path) -> str:
    """Return a hash over names and contents of files; folders stand for all files in them."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def has_sourced_ros() -> bool:
    """Tell whether a ROS 2 installation is sourced that this Python can use."""
    if not (os.environ.get("ROS_DISTRO") and os.environ.get("AMENT_PREFIX_PATH")):
        return False
    if importlib.util.find_spec("rclpy") is None:
        raise MissingError(
            f"ROS 2 {os.environ['ROS_DISTRO']} is sourced, but {sys.executable} cannot import rclpy: "
            "set PYTHON to the Python that ROS uses"
        )
    return True


def check_machine(needs_messages: bool, needs_wheels: bool) -> None:
    """Raise MissingError for the first thing this machine lacks."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingError(f"Python's venv module is missing: apt install python{version}-venv")
    if not needs_messages:
        return
    compilers = (
        (os.environ.get("CXX", "c++"), "c++", "g++", "clang++"),
        (os.environ.get("CC", "cc"), "cc", "gcc", "clang"),
    )
    if not all(any(shutil.which(name) for name in names) for names in compilers):
        raise MissingError("a C and C++ compiler is missing: apt install g++")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingError(f"Python's headers are missing: apt install python{version}-dev")
    if needs_wheels and (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise MissingError(
            f"ROS 2 is missing, and there are no ROS wheels for {sys.platform} {platform.machine()}: "
            "install ROS 2 Jazzy and source its setup file, or use --core"
        )


class Setup:
    """The steps that turn an empty folder into the environment; each runs when its key has changed."""

    def __init__(self, prefix: Path, system_ros: bool) -> None:
        """Remember where to build; `system_ros` says that ROS comes from a sourced installation."""
        self.prefix = prefix
        self.system_ros = system_ros
        self.python = prefix / "bin" / "python"
        self.stamp = prefix / "setup.json"
        self.log = prefix / "setup.log"
        self.base_key = (
            f"{ROOT} {sys.version} {system_ros} {os.environ.get('AMENT_PREFIX_PATH') if system_ros else ''}"
        )

    def keys(self) -> dict[str, str]:
        """Return the keys of the steps done so far; empty when the environment must be made anew."""
        try:
            keys = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return keys if keys.get("base") == self.base_key and self.python.exists() else {}

    def step(self, name: str, title: str, key: str, work: Callable[[], None]) -> None:
        """Do one step unless it was done with this key, and remember that it was."""
        keys = self.keys()
        if keys.get(name) == key:
            return
        print(f"[setup] {title} ...", flush=True)
        start = time.monotonic()
        work()
        self.stamp.write_text(
            json.dumps(self.keys() | {"base": self.base_key, name: key}, indent=1), encoding="utf-8"
        )
        print(f"[setup] {title}: {time.monotonic() - start:.0f} s", flush=True)

    def make_environment(self) -> None:
        """Make an empty virtual environment, in place of an unusable one."""
        if self.prefix.exists() and not (self.prefix / "pyvenv.cfg").is_file():
            raise MissingError(f"{self.prefix} is in the way: it is not a virtual environment")
        shutil.rmtree(self.prefix, ignore_errors=True)
        venv.create(self.prefix, with_pip=True, system_site_packages=self.system_ros, symlinks=True)

    def run(self, *command: str) -> None:
        """Run the environment's Python with its output in the log, and a sign of life now and then."""
        start = time.monotonic()
        with self.log.open("ab") as sink:
            sink.write(f"\n$ {' '.join(command)}\n".encode())
            sink.flush()
            process = subprocess.Popen([str(self.python), *command], cwd=ROOT, stdout=sink, stderr=sink)
            while True:
                try:
                    status = process.wait(timeout=PROGRESS_S)
                    break
                except subprocess.TimeoutExpired:
                    print(f"[setup]   {time.monotonic() - start:.0f} s: {self.last_line()}", flush=True)
        if status != 0:
            tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
            print(*tail, sep="\n", file=sys.stderr)
            raise MissingError(f"`python {' '.join(command[:3])} ...` failed; its output is in {self.log}")

    def last_line(self) -> str:
        """Return what the running command said last, warnings left out."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line.strip() for line in lines if line.strip() and "WARNING" not in line]
        return said[-1][:90] if said else ""

    def install(self, *files: str) -> None:
        """Install requirement files with exact versions of all they bring along."""
        limits = REQUIREMENTS / "constraints.txt"
        paths = [REQUIREMENTS / file for file in files]
        if self.system_ros:
            limits, *paths = (self.keep_system_modules(path) for path in (limits, *paths))
        flags = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-c", str(limits)]
        for path in paths:
            flags += ["-r", str(path)]
        self.run("-m", "pip", "install", *flags)

    def keep_system_modules(self, path: Path) -> Path:
        """Return a copy of a requirement file without what a sourced ROS 2 brought and is bound to."""
        present = {name for name, module in ROS_BRINGS.items() if importlib.util.find_spec(module)}
        lines = path.read_text(encoding="utf-8").splitlines()
        copy = self.prefix / f"setup-{path.name}"
        copy.write_text(
            "\n".join(x for x in lines if x.partition("==")[0] not in present) + "\n", encoding="utf-8"
        )
        return copy

    def build_messages(self) -> None:
        """Generate, compile and install msg/ and srv/."""
        self.run("scripts/build_messages", "--verbose")


def run_steps(prefix: Path, core: bool, with_torch: bool) -> None:
    """Do every step that is not done yet."""
    system_ros = not core and has_sourced_ros()
    setup = Setup(prefix, system_ros)
    limits = REQUIREMENTS / "constraints.txt"
    if not setup.keys():
        check_machine(needs_messages=not core, needs_wheels=not core and not system_ros)
        setup.make_environment()
    tools = ["core.txt", "sim.txt", "dev.txt"]
    key = hash_files(limits, *(REQUIREMENTS / file for file in tools))
    setup.step("tools", "libraries, simulator, checks", key, lambda: setup.install(*tools))
    if with_torch:
        key = hash_files(limits, REQUIREMENTS / "torch.txt")
        setup.step("torch", "torch", key, lambda: setup.install("torch.txt"))
    if core:
        return
    check_machine(needs_messages=True, needs_wheels=not system_ros)
    if not system_ros:
        key = hash_files(limits, REQUIREMENTS / "ros.txt")
        setup.step("ros", "ROS 2 from wheels", key, lambda: setup.install("ros.txt"))
    sources = [
        ROOT / name
        for name in ("msg", "srv", "cmake", "CMakeLists.txt", "package.xml", "scripts/build_messages")
    ]
    setup.step("messages", "messages (generate, compile)", hash_files(*sources), setup.build_messages)


def main() -> None:
    """Parse the flags and set up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", type=Path, help="folder of the virtual environment")
    parser.add_argument("--core", action="store_true", help="without ROS")
    parser.add_argument(
        "--with-torch", action="store_true", help="with torch on any Python; default: on 3.11 only"
    )
    options = parser.parse_args()
    with_torch = options.with_torch or sys.version_info[:2] == (3, 11)
    lock = ROOT / "build" / "setup.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            run_steps(options.prefix, options.core, with_torch)
        except MissingError as missing:
            sys.exit(str(missing))


if __name__ == "__main__":
    main()
