"""Who sits at a terminal: the same person as in Slack, or nobody."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.person import Person, identify, may_pose, os_user, posed
from bot.settings import Settings
from policies.errors import SettingsError
from policies.finding import Finding
from policies.fleet import Fleet, Role
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.conftest import Store
from workers import world

PEOPLE = {"daemon": "U0ANA", "bin": "U0BEN", "games": "U0GUS"}


def fleet(**roles: Role) -> Fleet:
    given = roles or {"engineers": Role(name="engineers", users=("U0ANA",))}
    return stories.fleet().model_copy(update={"people": PEOPLE, "roles": given})


def settings(slack: SlackSandbox | None, **more: object) -> Settings:
    base: dict[str, object] = {"clawback_data": Path("/nowhere"), "redis_url": None}
    if slack is not None:
        base |= {"slack_bot_token": SecretStr(slack.bot_token), "slack_api_url": slack.base_url}
    else:
        base |= {"slack_bot_token": SecretStr("xoxb-1"), "slack_api_url": "http://127.0.0.1:1/api/"}
    return Settings.model_validate({**base, **more})


def code(found: Person | Finding) -> str:
    assert isinstance(found, Finding)
    assert found.effect == "refuse"
    return found.code


def test_the_user_is_the_one_of_the_process_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "SUDO_USER", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert os_user() == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert os_user() == "uid-54321"


def test_a_user_without_a_mapping_is_refused(slack: SlackSandbox) -> None:
    assert code(identify("mail", fleet(), settings(slack), deciding=False)) == "identity.not-mapped"


def test_a_mapped_user_is_the_slack_person_with_their_roles(slack: SlackSandbox) -> None:
    found = identify("daemon", fleet(), settings(slack), deciding=True)
    assert isinstance(found, Person)
    assert found.checked
    assert (found.actor.id, found.actor.name, found.actor.source) == ("U0ANA", "daemon", "terminal")
    assert (found.actor.roles, found.actor.team) == (("engineers",), "T0SANDBOX")


def test_whoever_is_deactivated_or_a_guest_in_slack_is_so_at_the_terminal(slack: SlackSandbox) -> None:
    assert code(identify("games", fleet(), settings(slack), deciding=False)) == "identity.guest"
    slack.admin.set_user("ana", deleted=True)
    assert code(identify("daemon", fleet(), settings(slack), deciding=False)) == "identity.deleted"


def test_a_slack_user_that_does_not_exist_is_refused(slack: SlackSandbox) -> None:
    wrong = fleet().model_copy(update={"people": {"daemon": "U0NOBODY"}})
    assert code(identify("daemon", wrong, settings(slack), deciding=False)) == "identity.unreadable"


def test_a_role_by_user_group_counts_while_slack_can_be_asked(slack: SlackSandbox) -> None:
    slack.workspace.add_group("perf", ["U0ANA"], group_id="S0PERF")
    by_group = fleet(engineers=Role(name="engineers", groups=("S0PERF",)), both=Role(name="both", users=("U0ANA",)))
    asked = identify("daemon", by_group, settings(slack), deciding=True)
    away = identify("daemon", by_group, settings(None), deciding=True)
    assert isinstance(asked, Person)
    assert isinstance(away, Person)
    assert (asked.actor.roles, asked.checked) == (("engineers", "both"), True)
    assert (away.actor.roles, away.checked) == (("both",), False)
    assert asked.actor.id == away.actor.id == "U0ANA"


def test_without_a_token_the_fleet_file_alone_says_who_is_in_a_role() -> None:
    found = identify("daemon", fleet(), settings(None, slack_bot_token=None), deciding=True)
    assert isinstance(found, Person)
    assert (found.actor.roles, found.checked) == (("engineers",), False)


def test_slack_failing_half_way_is_a_no(slack: SlackSandbox) -> None:
    slack.faults.add(Fault("server_error", "users.info", count=-1))
    assert code(identify("daemon", fleet(), settings(slack), deciding=True)) == "identity.unreadable"


def test_posing_needs_a_local_slack_the_embedded_store_and_a_bot_that_listens_there(
    slack: SlackSandbox, store: Store
) -> None:
    local = settings(slack)
    assert not may_pose(local, store.redis)  # no bot ever listened: whose store it is, is not known
    world.remember(store.redis, "https://slack.example.com/api/")
    assert not may_pose(local, store.redis)
    world.remember(store.redis, slack.base_url)
    assert may_pose(local, store.redis)
    assert not may_pose(settings(slack, redis_url=SecretStr("redis://127.0.0.1/0")), store.redis)
    assert not may_pose(settings(slack, slack_api_url="https://slack.example.com/api/"), store.redis)


@pytest.mark.parametrize("name", ["bin", "U0BEN"])
def test_somebody_is_posed_by_user_name_or_slack_id(name: str) -> None:
    assert posed(name, fleet()) == "bin"


def test_nobody_outside_of_the_fleet_file_is_posed() -> None:
    with pytest.raises(SettingsError, match="not among the people"):
        posed("root", fleet())
