"""A strict local Slack for the bot's tests: whatever is sent to it must be what Slack takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.slack import SlackSandbox
from tests.shared import shared


@pytest.fixture
def slack() -> Iterator[SlackSandbox]:
    """A workspace with ana, ben, gus (a guest) and the channel #perf; it must have seen no violation in the end."""
    with SlackSandbox(reference=shared("slack")) as sandbox:
        space = sandbox.workspace
        space.add_user("ana", user_id="U0ANA")
        space.add_user("ben", user_id="U0BEN")
        space.add_user("gus", user_id="U0GUS", is_restricted=True)
        space.add_channel("perf", ("U0ANA", "U0BEN", "U0GUS"), channel_id="C0PERF")
        yield sandbox
        assert space.violations == []
