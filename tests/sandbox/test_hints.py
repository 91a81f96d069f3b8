"""The words that the page completes are those of the product's grammar and of the demo's fleet."""

from __future__ import annotations

import asyncssh
import pytest

from bot.commands import COMMANDS
from bot.grammar import parse
from bot.names import Names
from bot.options import OPTIONS
from policies.fleet_file import read_fleet
from sandbox.fleet.document import HostEntry, People, Where, fleet_text
from sandbox.fleet.layout import Layout
from sandbox.hints import HINTS
from sandbox.page.hints import PageHints

ROLES = ("prefill", "decode", "router")
FAMILIES = ("/knob", "/deploy", "/cause")


@pytest.fixture(scope="module")
def names() -> Names:
    """What may be named on a stage."""
    ports, boots = dict(zip(ROLES, (30000, 30001, 30080), strict=True)), dict.fromkeys(ROLES, 1.0)
    key = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    host = HostEntry("gpu1", 22, key, "demo")
    text = fleet_text([host], Where(Layout.spread(1), ports), boots, People(), {})
    reading = read_fleet(text, "fleet.yaml")
    assert reading.fleet is not None, reading.errors
    return Names.of(reading.fleet)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_of_a_family_is_offered_with_its_line_of_help(family: str) -> None:
    assert HINTS[family] == {one.word: one.about for one in COMMANDS if family in one.families}


def test_every_family_that_has_words_of_its_own_is_offered() -> None:
    assert set(HINTS[""]) == {family for one in COMMANDS for family in one.families}


def test_every_option_is_offered_and_orders_are_those_of_the_fleet(names: Names) -> None:
    assert set(HINTS["/knob *"]) == {*OPTIONS, *names.orders} - {"anyway", "for", "of"}
    assert set(HINTS["/cause *"]) == {"of", "citing"}
    assert set(HINTS["/cause cause"]) == names.causes
    assert set(HINTS["/deploy *"]) == {
        *("via", "because", "emergency", "ticket", "anyway", "dry", "for", "since"),
        *names.orders,
    }


def test_a_restart_is_offered_for_everything_that_a_fleet_of_one_host_has(names: Names) -> None:
    assert set(HINTS["/deploy restart"]) == names.services | names.hosts


def test_a_deploy_is_offered_for_the_service_that_has_releases(names: Names) -> None:
    offered = [word.split() for word in HINTS["/deploy deploy"]]
    assert {service for service, _ in offered} == set(HINTS["/deploy rollback"]) <= names.services


def test_every_offered_command_is_read_as_it_stands(names: Names) -> None:
    read = [parse(text, names=names) for text in offered(HINTS) if not text.endswith((" *", *FAMILIES))]
    assert [(one.normalised, one.error) for one in read if one.error is not None] == []
    assert len(read) > 8


def offered(words: PageHints) -> list[str]:
    """Whole commands that completion leads to, with the reason that a revert needs."""
    whole = [f"{before} {word}" for before, after in words.items() if before.count(" ") == 1 for word in after]
    needs = (" revert ", " lock ")
    return [f'{text} because "x"' if any(n in text for n in needs) else text for text in whole if " * " not in text]
