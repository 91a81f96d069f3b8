"""Reference data that lives beside the checkout; it is read in place and never copied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def skip_or_fail(reason: str) -> None:
    """Skip on a developer's machine; fail where CLAWBACK_NO_SKIP is set, as in CI."""
    if os.environ.get("CLAWBACK_NO_SKIP"):
        pytest.fail(f"nothing may skip here: {reason}")
    pytest.skip(reason)


def shared(name: str) -> Path:
    """Path of `../shared/NAME`; skips (or fails, see above) where it is absent."""
    path = ROOT.parent / "shared" / name
    if not path.exists():
        skip_or_fail(f"no reference data at ../shared/{name}")
    return path
