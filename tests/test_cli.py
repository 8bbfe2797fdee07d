from __future__ import annotations

import subprocess
import sys

import pytest

from seer_otel import cli
from seer_otel._version import __version__

THIRD_PARTY = ("starlette", "uvicorn", "msgspec", "sqlalchemy", "rich")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the package's version."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"seer-otel {__version__}\n"


@pytest.mark.parametrize("command", [[], *([command.name] for command in cli.COMMANDS)])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each command explains itself, and the overview names them all."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in (command or [command.name for command in cli.COMMANDS]))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "a"],
        ["show", "--limit", "0"],
        ["show", "x"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage is status 2 and explained on standard error."""
    try:
        status: object = cli.main(arguments)
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert "usage: seer-otel" in err


def python(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.e2e
@pytest.mark.parametrize(("name", "missing"), [("serve", "uvicorn"), ("serve", "msgspec"), ("show", "rich")])
def test_without_the_extra(name: str, missing: str) -> None:
    """Where a package of the extra is missing, the answer is the pip line that installs it, and status 2."""
    ended = python(
        f"import sys; sys.modules[{missing!r}] = None; from seer_otel import cli; sys.exit(cli.main([{name!r}]))"
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"seer-otel {name} needs {missing}")
    assert ended.stderr.endswith(": pip install 'seer-otel[local]'\n")


@pytest.mark.e2e
def test_help_imports_no_extra() -> None:
    """Asking for help imports none of the packages of an extra."""
    ended = python(
        "import sys; from seer_otel import cli\n"
        "try: cli.main(['serve', '--help'])\n"
        f"finally: assert not set(sys.modules) & set({THIRD_PARTY!r})"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
