"""What an administrator does: deactivate people, change groups and channels; the app gets its events."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sandbox.slack.delivery import Delivery
from sandbox.slack.errors import PersonError
from sandbox.slack.people import People
from sandbox.slack.records import Channel, Json, User, Usergroup

USER_FLAGS = frozenset({"deleted", "is_restricted", "is_ultra_restricted", "is_admin", "team_id"})


class Admin:
    """Changes of the workspace that happen while the app runs."""

    def __init__(self, people: People, delivery: Delivery) -> None:
        self._people = people
        self._workspace = people.workspace
        self._delivery = delivery

    def set_user(self, user: str, **flags: bool | str) -> User:
        """Set flags of a person, such as `deleted=True`; the app gets `user_change`."""
        found = self._workspace.find_user(user)
        if found is None:
            raise PersonError(f"nobody is called {user!r}")
        if unknown := set(flags) - USER_FLAGS:
            raise PersonError(f"{sorted(unknown)} of a user cannot be set, only {sorted(USER_FLAGS)}")
        with self._workspace.change():
            for name, value in flags.items():
                setattr(found, name, value)
        shown: Json = {"id": found.id, "name": found.name, "team_id": found.team_id}
        self._event("user_change", {"user": shown | {name: getattr(found, name) for name in USER_FLAGS}})
        return found

    def set_group(self, handle: str, users: Iterable[str], *, disabled: bool = False) -> Usergroup:
        """Replace the members of a group; the app gets `subteam_members_changed`."""
        group = next((g for g in self._workspace.groups.values() if handle in {g.handle, g.id}), None)
        if group is None:
            raise PersonError(f"no group is called {handle!r}")
        wanted = [found.id for name in users if (found := self._workspace.find_user(name))]
        with self._workspace.change():
            before, group.users, group.disabled = group.users, wanted, disabled
        self._event(
            "subteam_members_changed",
            {
                "subteam_id": group.id,
                "team_id": self._workspace.team_id,
                "added_users": [user for user in wanted if user not in before],
                "removed_users": [user for user in before if user not in wanted],
            },
        )
        return group

    def set_channel(
        self,
        channel: str,
        *,
        members: Iterable[str] | None = None,
        is_archived: bool | None = None,
        is_ext_shared: bool | None = None,
        is_org_shared: bool | None = None,
    ) -> Channel:
        """Archive a channel, share it, or replace its members (ids or names)."""
        found = self._workspace.find_channel(channel)
        if found is None:
            raise PersonError(f"no channel is called {channel!r}")
        with self._workspace.change():
            if members is not None:
                found.members = {user.id for name in members if (user := self._workspace.find_user(name))}
            for name, value in (
                ("is_archived", is_archived),
                ("is_ext_shared", is_ext_shared),
                ("is_org_shared", is_org_shared),
            ):
                if value is not None:
                    setattr(found, name, value)
        if is_archived:
            self._event("channel_archive", {"channel": found.id})
        return found

    def _event(self, kind: str, keys: Json) -> None:
        if kind in self._workspace.app.events and self._delivery.running:
            self._people.event({"type": kind, "event_ts": f"{time.time():.6f}"} | keys)
