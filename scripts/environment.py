"""Make one of this project's environments and print the path of its Python. Standard library only, Python 3.8 on.

    python3 scripts/environment.py NAME [--python 3.11] [--without-wheel]
    python3 scripts/environment.py list | pins

NAME is one of ENVIRONMENTS below. Without --python it gets the newest Python on this machine. `list` prints the
supported versions that are here, the newest first, and `pins` writes constraints.txt anew.

The environment's packages are installed anew when the pins changed. The wheel is built and installed anew each time.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venvs"
WHEELS = HOME / "wheel"
SUPPORTED = ("3.13", "3.12", "3.11", "3.10")
UV_OLDEST = (0, 9)
UV = "uv==0.13.9"
LOWEST = ("--resolution", "lowest-direct")
PINNED = ("--constraints", "constraints.txt")
VERSION = "import sys, ssl, sqlite3; print('%d.%d' % sys.version_info[:2], sys.executable)"
COMPILE = ("pip", "compile", "--universal", "--all-extras", "--upgrade", "--no-header", "--no-annotate")

# name: (groups, extras, how to resolve); a group that needs a newer Python than it gets is left out.
ENVIRONMENTS = {
    "dev": (("test", "frameworks", "lint"), ("zero-code", "local"), PINNED),
    "core": (("test",), ("zero-code", "local"), PINNED),
    "oldest": (("test",), ("local",), LOWEST),
    "oldest-zero-code": (("test",), ("zero-code", "local"), LOWEST),
    "bench": (("bench",), ("local",), PINNED),
    "fuzz": (("fuzz",), (), PINNED),
    "demo": (("demo",), ("local",), PINNED),
    "fit": (("fit",), ("local",), PINNED),
}
NEEDS_3_11 = {"frameworks"}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("name", choices=(*ENVIRONMENTS, "list", "pins"))
    parser.add_argument("--python", choices=SUPPORTED)
    parser.add_argument("--without-wheel", action="store_true")
    asked = parser.parse_args()
    found = interpreters()
    if asked.name == "list":
        print(*found)
        return
    if asked.name == "pins":
        pins(find_uv(list(found.values())))
        return
    groups, extras, resolution = ENVIRONMENTS[asked.name]
    version = asked.python or next(iter(found), "3.10 to 3.13")
    if version not in found:
        sys.exit(f"no Python {version} here: not on PATH and not under ~/.pyenv/versions")
    if version == "3.10":
        groups = tuple(group for group in groups if group not in NEEDS_3_11)
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:  # two runs at once take turns
        fcntl.flock(lock, fcntl.LOCK_EX)
        uv = find_uv(list(found.values()))
        python = environment(uv, f"{asked.name}-{version}", found[version], groups, extras, resolution)
        if not asked.without_wheel:
            wheel(uv, python, found[version])
    print(python)


def interpreters():
    """The newest patch release of each supported version that is here and works, the newest version first."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {}
    for version in SUPPORTED:
        patches = sorted(pyenv.glob(version + ".*"), key=lambda path: _numbers(path.name), reverse=True)
        candidates = [str(path / "bin" / ("python" + version)) for path in patches]
        candidates += [shutil.which("python" + version), shutil.which("python3"), sys.executable]
        for candidate in filter(None, candidates):
            says = _ask(candidate, "-c", VERSION)
            if says.startswith(version + " "):
                found[version] = says.split(" ", 1)[1]
                break
    return found


def find_uv(pythons):
    """A uv that knows dependency groups: the machine's, or one that pip installs under `.venvs`."""
    own = HOME / "uv"
    mine = str(own / "bin" / "uv")
    for candidate in (shutil.which("uv"), mine):
        if candidate and _numbers(_ask(candidate, "--version")) >= UV_OLDEST:
            return candidate
    with Step(f"install {UV}"):
        for python in pythons:
            shutil.rmtree(own, ignore_errors=True)
            if _succeeds(python, "-m", "venv", own) and _succeeds(own / "bin" / "pip", "install", UV):
                return mine
            # Debian's Python may come without venv.
            shutil.rmtree(own, ignore_errors=True)
            if _succeeds(python, "-m", "pip", "install", "--target", own, UV):
                return mine
        sys.exit(f"cannot install {UV}: no Python here has a pip that works")


def environment(uv, name, interpreter, groups, extras, resolution):
    folder = HOME / name
    python, stamp = folder / "bin" / "python", folder / "pins"
    pins = _pins(interpreter, groups, extras, resolution)
    if stamp.exists() and stamp.read_text() == pins and _ask(python, "-c", "print(1)") == "1":
        return python
    with Step(f"install {name}"):
        _run(uv, "venv", "--clear", "--python", interpreter, folder)
        chosen = [word for group in groups for word in ("--group", group)]
        chosen += [word for extra in extras for word in ("--extra", extra)]
        _run(uv, "pip", "install", "--python", python, "-r", "pyproject.toml", *chosen, *resolution)
        stamp.write_text(pins)
    return python


def pins(uv):
    groups = sorted({group for setting in ENVIRONMENTS.values() for group in setting[0]})
    every = [word for group in groups for word in ("--group", group)]
    with Step("write constraints.txt"):
        options = (*COMPILE, "--python-version", SUPPORTED[-1], *every)
        _run(uv, *options, "pyproject.toml", "--output-file", "constraints.txt")


def wheel(uv, python, interpreter):
    with Step("build and install the wheel"):
        shutil.rmtree(WHEELS, ignore_errors=True)
        _run(uv, "build", "--wheel", "--python", interpreter, "--out-dir", WHEELS)
        built = list(WHEELS.glob("*.whl"))
        _run(uv, "pip", "install", "--python", python, "--no-deps", "--reinstall", *built)


def _pins(*settings):
    """A digest of all that decides what is installed: pyproject.toml up to the tools' settings, and the constraints."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("\n[tool.", 1)[0]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return hashlib.sha256(repr((project, constraints, settings)).encode()).hexdigest()


class Step:
    """One line on standard error for what takes time."""

    def __init__(self, words):
        self.words = words

    def __enter__(self):
        print(f"{self.words} ...", end=" ", flush=True, file=sys.stderr)
        self.began = time.monotonic()

    def __exit__(self, kind, *_):
        print("failed" if kind else f"{time.monotonic() - self.began:.0f} s", flush=True, file=sys.stderr)


def _environ():
    """Nothing is downloaded but packages, and a company's own certificates count as they do for pip."""
    ours = dict.fromkeys(("UV_NO_PROGRESS", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS"), "1")
    theirs = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {**ours, **theirs, "UV_PYTHON_DOWNLOADS": "never"}


def _numbers(text):
    digits = "".join(c if c.isdigit() or c == "." else " " for c in text).split()
    return tuple(int(part) for part in digits[0].split(".") if part) if digits else ()


def _process(*command):
    words = [str(word) for word in command]
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(words, check=False, cwd=ROOT, env=_environ(), **quiet)


def _ask(*command):
    try:
        done = _process(*command)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _succeeds(*command):
    return _process(*command).returncode == 0


def _run(*command):
    done = _process(*command)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
