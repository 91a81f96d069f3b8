"""Units with odd lines started by a real user manager: what their processes get is what we computed, byte for byte."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from policies.errors import SettingsError
from policies.systemd.effective import decide
from policies.systemd.settings import read
from sandbox.fleet.manager import UserManager
from tests.policies.systemd_tree import file_text
from tests.shared import skip_or_fail

pytestmark = pytest.mark.real

NAMES = ("A", "B", "C", "D")
PASSED = {"A": "from the manager"}
PIECES = [
    "A=1", "B=2", "C=3", "D=4", "A=", "B=", "=", "1A=x", '"', "'", "\\n", "\\x41", "\\101", "\\u00e9", "\\U0001F600",
    "\\x00", "\\s", "\\q", " ", " ", "\t", "#", ";", "%i", "%I", "%n", "%N", "%p", "%P", "%j", "%J", "%f", "%%", "%z",
    "%-", "%", "x", "é", "$A", "\\", "\\\n", "\\\n#c\n", "\\\n;d\n", "\x01", "A='b c'", '"B=d e"', 'C=a"q"b', "\r",
]  # fmt: skip
ENV_PIECES = ["A=", "B=", "=", "\n", "\n", " ", "#", '"', "'", "\\", "1", "x", "é", "\r", "export D=", "D="]
REMOVALS = ["A", "B", "A=1", "C=3", "'A=1' D", "", "B=2 q=", "1x", "%z", '"A']
BROKEN = ["Environment=\ufdd0", "Environment=\udcff", "[Service", "[]"]
OTHER = [
    "# c",
    "; d \\",
    "[Unit]\nX-A=1\n[Service]",
    "nonsense",
    " = x",
    "[X-Foo]\nA=1\n[Service]",
    "[Foo]\nA=1\n[Service]",
]
UNITS = 250
RUNS = 2


@dataclass(frozen=True)
class Unit:
    name: str
    fragment: str
    dropin: str
    output: Path


def lines(rng: random.Random, folder: Path, most: int) -> str:
    files = [f"{folder}/e0.env", f"{folder}/e1.env", f"{folder}/%p-%i.env", f"{folder}//./e2.env", f"{folder}/e*.env",
             f"{folder}/none*.env", f"{folder}/../x.env", "rel.env", ""]  # fmt: skip
    said = []
    for _ in range(rng.randint(0, most)):
        value = "".join(rng.choices(PIECES, k=rng.randint(0, 6)))
        roll = rng.random()
        if roll < 0.62:
            said.append(rng.choice(["Environment=", "Environment=", "  Environment =  ", "Environment\\\n="]) + value)
        elif roll < 0.67:
            said.append("Environment=")
        elif roll < 0.75:
            said.append("UnsetEnvironment=" + rng.choice(REMOVALS))
        elif roll < 0.80:
            said.append("PassEnvironment=" + rng.choice(["A", "B", "", "1 B"]))
        elif roll < 0.93:
            said.append("EnvironmentFile=" + rng.choice(["-"] * 12 + [""]) + rng.choice(files))
        else:
            said.append(rng.choice(BROKEN) if rng.random() < 0.1 else rng.choice(OTHER))
    return "".join(line + "\n" for line in said)


def environment(raw: bytes) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry)
    return {name.decode(): value.decode("utf-8", "surrogateescape") for name, _, value in pairs}


@pytest.mark.parametrize("seed", range(RUNS))
def test_generated_units_start_with_the_environment_that_was_computed(seed: int) -> None:
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="cbu-"))
    manager = UserManager(folder)
    try:
        try:
            manager.boot()
        except SettingsError as error:
            skip_or_fail(str(error))
        env_files = {}
        for n in range(4):
            text = "".join(rng.choices(ENV_PIECES, k=20))
            path = folder / f"e{n}.env"
            path.write_bytes(text.encode())
            env_files[str(path)] = file_text(str(path), text)
        units = []
        for n in range(UNITS):
            output = folder / f"{n}.out"
            head = (
                "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/usr/bin/env -0\n"
                f"StandardOutput=file:{output}\n"
            )
            unit = Unit(
                f"fz-u{n}@in\\x2dst-{n}.service",
                head + lines(rng, folder, 6),
                "[Service]\n" + lines(rng, folder, 4),
                output,
            )
            place = manager.units / f"{unit.name}.d"
            place.mkdir()
            (manager.units / f"fz-u{n}@.service").write_bytes(unit.fragment.encode("utf-8", "surrogateescape"))
            (place / "10-x.conf").write_bytes(unit.dropin.encode("utf-8", "surrogateescape"))
            units.append(unit)
        manager.systemctl("set-environment", *(f"{k}={v}" for k, v in PASSED.items()))
        manager.systemctl("daemon-reload")
        for at in range(0, UNITS, 50):
            # some of them are meant to fail; which ones is compared below
            manager.run(["systemctl", "--user", "start", *(u.name for u in units[at : at + 50])])
        started = compared = 0
        for unit in units:
            got = environment(unit.output.read_bytes()) if unit.output.exists() else {}
            fragment, dropin = file_text("fragment", unit.fragment), file_text("dropin", unit.dropin)
            settings = read(fragment, (dropin,), unit.name, {})
            for name in NAMES:
                said = decide(settings, env_files, name, {k: v for k, v in PASSED.items() if k == name})
                assert said.starts == bool(got), (unit, said)
                if got and said.certain:
                    assert said.value == got.get(name), (unit, said)
                    compared += 1
            started += bool(got)
        assert started > UNITS * 0.7
        assert compared > UNITS * 2
    finally:
        manager.stop()
        shutil.rmtree(folder)
