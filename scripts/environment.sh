# Sourced by the other scripts: picks a Python, lets it set up the virtual environment, and enters that.
#
# Reads:  PYTHON          the Python to build on (default: python3.11, python3.12 or python3; with ROS 2 sourced: python3)
#         SETUP_FLAGS     flags for setup_environment.py
# Sets:   ROOT, VIRTUAL_ENV, PATH and what ROS needs to know.

ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

is_usable_python() {
    "$1" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' >/dev/null 2>&1
}

pick_python() {
    if [ -n "${PYTHON:-}" ]; then
        candidates=$PYTHON
    elif [ -n "${ROS_DISTRO:-}" ] && [ -n "${AMENT_PREFIX_PATH:-}" ]; then
        candidates=python3
    else
        candidates="python3.11 python3.12 python3"
    fi
    for candidate in $candidates; do
        if is_usable_python "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    echo "Python 3.11 or 3.12 is missing (tried: $candidates): install one, or set PYTHON=/path/to/python" >&2
    return 1
}

# The ROS wheels pass the library path of one environment on to all children; another environment must not get it.
if [ -n "${_ROS_WHEELS_BOOTSTRAP_COMPLETE:-}" ]; then
    unset _ROS_WHEELS_BOOTSTRAP_COMPLETE LD_LIBRARY_PATH
fi

python=$(pick_python) || exit 1
VIRTUAL_ENV=$ROOT/.venv
if [ -n "${PYTHON:-}" ]; then
    VIRTUAL_ENV=$ROOT/.venv-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
fi

# Everything is kept inside the checkout: pip's downloads, the logs of ROS, temporary files.
export PIP_CACHE_DIR="${PIP_CACHE_DIR:-$ROOT/build/pip-cache}"
export TMPDIR="$ROOT/build/tmp"
mkdir -p "$TMPDIR" || exit 1
export ROS_LOG_DIR="${ROS_LOG_DIR:-$ROOT/log/ros}"
# shellcheck disable=SC2086
"$python" "$ROOT/scripts/setup_environment.py" ${SETUP_FLAGS:-} "$VIRTUAL_ENV" || exit 1

export VIRTUAL_ENV
export PATH="$VIRTUAL_ENV/bin:$PATH"
export AMENT_PREFIX_PATH="$VIRTUAL_ENV${AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}"
export ROS_AUTOMATIC_DISCOVERY_RANGE="${ROS_AUTOMATIC_DISCOVERY_RANGE:-LOCALHOST}"
export FASTRTPS_DEFAULT_PROFILES_FILE="${FASTRTPS_DEFAULT_PROFILES_FILE:-$ROOT/config/fastdds_shm.xml}"
if [ -n "${ROS_DISTRO:-}" ]; then
    # A sourced ROS 2 knows no virtual environments: it finds our message libraries by this path.
    export LD_LIBRARY_PATH="$VIRTUAL_ENV/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
cd "$ROOT" || exit 1
