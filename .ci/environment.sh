# Sets up the virtual environment in .venv; sourced by test.sh and demo.sh, which first change to the repository root.

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Prints the first Python of at least 3.11. PYTHON=... names one to use instead.
find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 or newer"
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3.11 python3.12 python3.13 python3 python; do
        if is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed and none was found; install it, or name one: PYTHON=/path/to/python3 $0"
}

# prepare_environment EXTRAS: makes .venv hold this package with those extras ("" for none), and says so.
# A stamp in .venv records what was installed, so that a second run installs nothing.
prepare_environment() {
    local extras=$1 python stamp wanted
    if ! is_new_enough .venv/bin/python; then
        python=$(find_python) || exit 1
        say "creating .venv with $("$python" --version)"
        "$python" -m venv --clear .venv \
            || fail "could not create .venv (on Debian and Ubuntu: apt install python3-venv)"
    fi
    stamp=".venv/installed-${extras:-base}"
    # The path is part of it: an environment that was moved or copied points at the old place.
    wanted="$(pwd) $(.venv/bin/python --version) $(cksum < pyproject.toml)"
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
        say "installing rushlight${extras:+ with $extras} into .venv"
        .venv/bin/python -m pip --version >/dev/null 2>&1 || fail "pip is missing from .venv; remove .venv and run again"
        .venv/bin/python -m pip install --disable-pip-version-check --quiet --editable ".${extras:+[$extras]}" \
            || fail "pip could not install the dependencies (messages above)"
        printf '%s\n' "$wanted" > "$stamp"
    fi
}
