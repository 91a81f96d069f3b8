"""Sentences are filled exactly, escaped, and carry units."""

from __future__ import annotations

import pytest

from bot.markup import Markup, mention
from bot.messages import NoSentence, say, sentence, strict
from bot.times import clock, day_clock, duration
from policies.finding import Finding


def test_an_unknown_code_a_missing_and_an_extra_field_are_refused() -> None:
    with pytest.raises(NoSentence, match="no sentence"):
        say("click.nothing-like-this")
    with pytest.raises(NoSentence, match="needs"):
        say("click.dry")
    with pytest.raises(NoSentence, match="needs"):
        say("click.dry", change="C-1", more=1)


def test_what_a_person_wrote_cannot_ping_or_format() -> None:
    said = say("error.told", message="<!channel> & <@U1> @here `x`")
    assert "<!" not in said
    assert "<@" not in said
    assert "@here" not in said
    assert "&lt;!channel&gt; &amp; &lt;@U1&gt;" in said
    assert "`<" not in say("plan.because", reason="a`<!here>`b")


def test_a_mention_is_made_from_ids_only() -> None:
    assert mention("U0ANA") == "<@U0ANA>"
    assert mention("<@U0ANA>") == "<@U0ANA>"
    assert mention("S0PERF") == "<!subteam^S0PERF>"
    assert mention("<!subteam^approvers>") == "&lt;!subteam^approvers&gt;".replace("&lt;!subteam^", "").replace(
        "&gt;", ""
    )
    assert mention("<!channel>") == "&lt;!channel&gt;"
    assert mention("root") == "root"


def test_a_finding_without_a_sentence_is_shown_by_its_code_and_values() -> None:
    unknown = Finding(code="future.thing", effect="note", values={"b": 2, "a": "<!here>"})
    assert sentence(unknown) == (
        "this version has no sentence for `future.thing`; recorded with it: a &lt;!here&gt;, b 2"
    )
    with pytest.raises(NoSentence):
        strict(unknown)


def test_values_that_a_sentence_does_not_mention_are_left_out() -> None:
    told = sentence(Finding(code="click.dry", effect="refuse", values={"change": "C-1", "actor": "U1"}))
    assert told == "C-1 was asked as a dry run and is never carried out; ask again without `dry`"


def test_none_is_unset_for_a_value_and_unknown_elsewhere() -> None:
    assert say("plan.undo-back-to", value=None) == "back to unset"
    assert say("plan.undo-back-to", value="") == 'back to `""`'
    assert say("error.told", message=None) == "unknown"


def test_markup_that_was_built_here_is_kept() -> None:
    assert say("error.told", message=Markup("<@U1>")) == "<@U1>"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.04, "0 s"),
        (0.31, "0.3 s"),
        (68.2, "68.2 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (160, "2 min 40 s"),
        (3600, "1 h 00 min"),
        (86_400, "24 h 00 min"),
        (172_800, "2 days"),
        (-5, "-5 s"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_a_moment_is_a_date_token_with_utc_behind_it() -> None:
    assert clock(1_764_600_000.9) == "<!date^1764600000^{time_secs}|14:40:00 UTC>"
    assert day_clock(0) == "<!date^0^{date_short_pretty} {time_secs}|1970-01-01 00:00:00 UTC>"


@pytest.mark.parametrize(
    ("cgroup", "shown"),
    [
        ("/../../init.scope", "init.scope"),
        ("/system.slice/engine.service", "/system.slice/engine.service"),
        ("/", "/"),
        ("", "an unknown place"),
        (None, "an unknown place"),
    ],
)
def test_a_control_group_is_shown_plainly(cgroup: str | None, shown: str) -> None:
    said = say("gate.port.foreign", port=1, instance="a@b", pid=2, cgroup=cgroup, main_pid=3)
    assert f"belongs to pid 2 in {shown}, expected" in said


def test_what_is_in_the_way_in_a_units_files_is_said_in_words() -> None:
    values = {"instance": "a@b", "path": "/x.conf", "why": "envfile.optional-missing; envfile.missing"}
    said = sentence(Finding(code="plan.would-not-start", effect="refuse", values={**values}))
    assert "(an environment file that it needs does not exist)" in said
    assert "envfile" not in said


def test_what_is_counted_has_its_number() -> None:
    assert say("plan.more-lines", n=1) == "... 1 more line"
    assert say("plan.more-lines", n=3) == "... 3 more lines"
