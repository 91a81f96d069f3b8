"""One person or a refusal; what Slack does not say is a no."""

from __future__ import annotations

import pytest

from bot.identity import Identity
from bot.messages import strict
from bot.slack import make_client
from policies.finding import Finding
from policies.intents import Actor
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories


class Clock:
    """A steady clock that stands until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def identity(slack: SlackSandbox, *, group: str | None = None, clock: Clock | None = None) -> Identity:
    client = make_client(slack.bot_token, slack.base_url, timeout_s=3)
    return Identity(client, stories.fleet(approvers=("U0BEN",), group=group), clock or Clock())


def refused(found: Actor | Finding) -> str:
    assert isinstance(found, Finding)
    assert found.effect == "refuse"
    assert strict(found)
    return found.code


def roles(found: Actor | Finding) -> tuple[str, ...]:
    assert isinstance(found, Actor), found
    return found.roles


def test_a_member_is_one_actor_with_its_roles(slack: SlackSandbox) -> None:
    found = identity(slack).identify("U0BEN", "T0SANDBOX", deciding=True)
    assert found == Actor(id="U0BEN", team="T0SANDBOX", name="ben", roles=("engineers", "approvers"))
    assert roles(identity(slack).identify("U0ANA", "", deciding=True)) == ()


def test_guests_bots_strangers_and_deactivated_accounts_are_refused(slack: SlackSandbox) -> None:
    space = slack.workspace
    space.add_user("single", user_id="U0SINGLE", is_ultra_restricted=True)
    space.add_user("robot", user_id="U0ROBOT", is_bot=True)
    space.add_user("eve", user_id="U0EVE", team_id="T0OTHER")
    space.add_user("left", user_id="U0LEFT").deleted = True
    who = identity(slack)
    assert refused(who.identify("U0GUS", "T0SANDBOX", deciding=False)) == "identity.guest"
    assert refused(who.identify("U0SINGLE", "T0SANDBOX", deciding=False)) == "identity.guest"
    assert refused(who.identify("U0ROBOT", "T0SANDBOX", deciding=False)) == "identity.bot"
    assert refused(who.identify("U0EVE", "T0OTHER", deciding=False)) == "identity.stranger"
    assert refused(who.identify("U0ANA", "T0OTHER", deciding=False)) == "identity.stranger"
    assert refused(who.identify("U0LEFT", "T0SANDBOX", deciding=False)) == "identity.deleted"
    assert refused(who.identify("U0NOBODY", "T0SANDBOX", deciding=False)) == "identity.unreadable"


@pytest.mark.parametrize("method", ["users.info", "auth.test", "usergroups.users.list", "usergroups.list"])
def test_what_slack_does_not_say_is_a_no(slack: SlackSandbox, method: str) -> None:
    slack.workspace.add_group("perf-team", ["U0ANA"])
    slack.faults.add(Fault("server_error", method, count=-1))
    found = identity(slack, group="perf-team").identify("U0ANA", "T0SANDBOX", deciding=True)
    assert refused(found) in {"identity.unreadable", "identity.team-unknown", "identity.group-unreadable"}


def test_a_group_gives_its_role_by_handle_and_by_id(slack: SlackSandbox) -> None:
    group = slack.workspace.add_group("perf-team", ["U0ANA"])
    for name in ("perf-team", "@perf-team", group.id):
        assert roles(identity(slack, group=name).identify("U0ANA", "", deciding=False)) == ("engineers",)


def test_a_group_that_does_not_exist_is_named(slack: SlackSandbox) -> None:
    for name in ("nobody-made-this", "S0NOTHING"):
        found = identity(slack, group=name).identify("U0ANA", "", deciding=True)
        assert refused(found) == "identity.group-unknown"


def test_a_plan_without_user_groups_is_said_to_be_unreadable(slack: SlackSandbox) -> None:
    slack.workspace.plan_has_usergroups = False
    found = identity(slack, group="perf-team").identify("U0ANA", "", deciding=True)
    assert refused(found) == "identity.group-unreadable"
    assert isinstance(found, Finding)
    assert "plan_upgrade_required" in strict(found)


def test_a_question_is_answered_although_a_group_is_unreadable(slack: SlackSandbox) -> None:
    slack.workspace.plan_has_usergroups = False
    who = identity(slack, group="perf-team")
    assert roles(who.identify("U0ANA", "", deciding=False, roles=False)) == ()


def test_a_decision_reads_groups_anew_and_a_question_at_most_once_a_minute(slack: SlackSandbox) -> None:
    group = slack.workspace.add_group("perf-team", ["U0ANA"])
    clock = Clock()
    who = identity(slack, group=group.id, clock=clock)
    assert roles(who.identify("U0ANA", "", deciding=False)) == ("engineers",)
    group.users.clear()
    assert roles(who.identify("U0ANA", "", deciding=False)) == ("engineers",)
    assert roles(who.identify("U0ANA", "", deciding=True)) == ()
    group.users.append("U0ANA")
    assert roles(who.identify("U0ANA", "", deciding=False)) == ()
    clock.now = 61.0
    assert roles(who.identify("U0ANA", "", deciding=False)) == ("engineers",)
    group.users.clear()
    who.forget()
    assert roles(who.identify("U0ANA", "", deciding=False)) == ()
