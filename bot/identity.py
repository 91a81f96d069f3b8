"""Who clicked or typed: exactly one Actor, or the finding that says why not. What cannot be checked is a no."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from slack_sdk import WebClient

from bot.groups import CACHE_S, UserGroups
from bot.slack import SlackRefused, SlackUnclear, call
from policies.finding import Finding
from policies.fleet import Fleet, Role
from policies.intents import Actor


@dataclass(slots=True)
class _Kept:
    members: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    team: str | None = None


class Identity:
    """Asks Slack who somebody is. One per process; threads may share it. `clock` is a steady clock in seconds."""

    def __init__(self, client: WebClient, fleet: Fleet, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._fleet = fleet
        self._clock = clock
        self._kept = _Kept()
        self._groups = UserGroups(client, clock)
        self._lock = threading.Lock()

    def identify(self, user: str, team: str, *, deciding: bool, roles: bool = True) -> Actor | Finding:
        """The Actor with the roles that it has now, or a finding of effect `refuse`.

        team: the workspace that the payload names for the user, "" when it names none.
        deciding: groups are read anew. roles False: a question, for which an unreadable group is no hindrance.
        """
        try:
            ours = self._our_team()
        except (SlackRefused, SlackUnclear) as error:
            return _refuse("identity.team-unknown", why=_why(error))
        try:
            found = call("users.info", self._client.users_info, user=user).get("user") or {}
        except (SlackRefused, SlackUnclear) as error:
            return _refuse("identity.unreadable", actor=user, why=_why(error))
        if found.get("id") != user:
            return _refuse("identity.unreadable", actor=user, why="an answer about somebody else")
        if found.get("deleted"):
            return _refuse("identity.deleted", actor=user)
        if found.get("is_bot") or user == "USLACKBOT":
            return _refuse("identity.bot", actor=user)
        if found.get("is_stranger") or found.get("team_id") != ours or team not in {"", ours}:
            return _refuse("identity.stranger", actor=user)
        if found.get("is_restricted") or found.get("is_ultra_restricted"):
            return _refuse("identity.guest", actor=user)
        held = self._roles(user, fresh=deciding, strict=roles)
        if isinstance(held, Finding):
            return held
        return Actor(id=user, team=ours, name=str(found.get("name") or ""), source="slack", roles=held)

    def forget(self) -> None:
        """Drop what is kept about user groups; Slack said that one changed."""
        with self._lock:
            self._kept.members.clear()
        self._groups.forget()

    def _our_team(self) -> str:
        if self._kept.team is None:
            answer = call("auth.test", self._client.auth_test)
            if not answer.get("team_id"):
                raise SlackUnclear("auth.test", "no team in the answer")
            self._kept.team = str(answer["team_id"])
        return self._kept.team

    def _roles(self, user: str, *, fresh: bool, strict: bool) -> tuple[str, ...] | Finding:
        held: list[str] = []
        read: set[str] = set()  # groups that were read anew in this very call
        for role in self._fleet.roles.values():
            member = self._is_member(user, role, fresh, read)
            if isinstance(member, Finding):
                if strict:
                    return member
                continue
            if member:
                held.append(role.name)
        return tuple(held)

    def _is_member(self, user: str, role: Role, fresh: bool, read: set[str]) -> bool | Finding:
        if user in role.users:
            return True
        for group in role.groups:
            try:
                group_id = self._groups.id_of(group)
                if group_id is None:
                    return _refuse("identity.group-unknown", role=role.name, group=group)
                members = self._members(group_id, fresh=fresh and group_id not in read)
                read.add(group_id)
            except (SlackRefused, SlackUnclear) as error:
                if isinstance(error, SlackRefused) and error.error == "no_such_subteam":
                    return _refuse("identity.group-unknown", role=role.name, group=group)
                return _refuse("identity.group-unreadable", role=role.name, group=group, why=_why(error))
            if user in members:
                return True
        return False

    def _members(self, group_id: str, *, fresh: bool) -> frozenset[str]:
        with self._lock:
            kept = self._kept.members.get(group_id)
        if kept is not None and not fresh and self._clock() - kept[0] <= CACHE_S:
            return kept[1]
        answer = call("usergroups.users.list", self._client.usergroups_users_list, usergroup=group_id)
        members = frozenset(str(user) for user in answer.get("users", []))
        with self._lock:
            self._kept.members[group_id] = (self._clock(), members)
        return members


def _why(error: SlackRefused | SlackUnclear) -> str:
    return error.error if isinstance(error, SlackRefused) else error.why


def _refuse(code: str, **values: str) -> Finding:
    return Finding(code=code, effect="refuse", values=dict(values))
