"""Starts programs as a user's shell would: in a given environment, from a folder outside the sources."""

import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXCHANGE = Path(__file__).with_name("exchange.py")
DRIVE_NODES = Path(__file__).with_name("drive_nodes.py")
LIMIT_S = 300


def clean_environment(prefix: Path) -> dict[str, str]:
    """Return the variables of a new shell in which one environment is active, and no checkout."""
    env = dict(os.environ)
    leaked = (
        "PYTHONPATH",
        "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
        "LD_LIBRARY_PATH",
        "AMENT_PREFIX_PATH",
        "CMAKE_PREFIX_PATH",
    )
    if not env.get("ROS_DISTRO"):
        for name in leaked:
            env.pop(name, None)
    old = env.get("VIRTUAL_ENV", "")
    places = [
        place for place in env["PATH"].split(os.pathsep) if not old or not Path(place).is_relative_to(old)
    ]
    env["VIRTUAL_ENV"] = str(prefix)
    env["PATH"] = os.pathsep.join([str(prefix / "bin"), *places])
    env["AMENT_PREFIX_PATH"] = os.pathsep.join(filter(None, [str(prefix), env.get("AMENT_PREFIX_PATH")]))
    env["CMAKE_PREFIX_PATH"] = os.pathsep.join(filter(None, [str(prefix), env.get("CMAKE_PREFIX_PATH")]))
    return env


def shell(command: str, env: dict[str, str], limit_s: int = LIMIT_S, folder: str | Path = "/") -> str:
    """Run a shell command outside the sources; return its output, or fail with it."""
    done = subprocess.run(
        ["sh", "-c", command],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def exchange(env: dict[str, str], before: str = "true") -> str:
    """Send all our messages from one process to another; `before` is run first in each one's shell."""
    with tempfile.TemporaryFile() as output:
        sender = subprocess.Popen(
            ["sh", "-c", f"{before} && exec python {EXCHANGE} send"],
            env=env,
            cwd="/",
            stdout=output,
            stderr=output,
        )
        try:
            return shell(f"{before} && exec python {EXCHANGE} receive", env)
        finally:
            sender.terminate()
            sender.wait(timeout=LIMIT_S)


def drive_nodes(env: dict[str, str], programs: Path, before: str = "true") -> str:
    """Start the two installed nodes as launch does, see them at work, and end them."""
    return shell(f"{before} && exec python {DRIVE_NODES} {programs}", env)
