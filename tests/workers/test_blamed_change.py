"""`the last change did it`: before it, while it was in force, and after it was taken back, measured and judged."""

from __future__ import annotations

import pytest

from bot.cards.statement import statement_card
from policies import events as e
from policies.causes.verdict import Verdict
from policies.intents import DisputeStatement, StateCause, Where
from tests.bot import stories
from tests.bot.suspected import record, restored
from tests.conftest import Store
from tests.workers.going import BAD, GOOD, SLOW, Going
from workers.blamed import range_of
from workers.remeasure import Remeasure
from workers.statements import Told

HERE = Where(channel="C0PERF")
ANA = stories.ana()


class Course(Going):
    """A knob comes, the engine gets slow, and whatever follows."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.again = Remeasure(self)  # type: ignore[arg-type]  # as much of the wiring as it needs

    def states(self, text: str = "the last change did it", *citing: str, of: str | None = None) -> Told:
        said = StateCause(text=text, of=of, citing=citing or (SLOW,))
        found = self.truth.state(said, ANA, HERE)
        assert isinstance(found, Told), found
        return found

    def suspicion(self) -> str:
        kept = self.client.suspicion("su-7")
        assert kept is not None
        return kept.standing.word

    def told(self, name: str = "st-1") -> Told:
        found = Told.of(self.ledger.entries(name))
        assert found is not None
        return found


@pytest.fixture
def course(store: Store) -> Course:
    return Course(store)


def verdict(told: Told) -> tuple[str, str, list[str]]:
    """Its word, the change, and what is missing."""
    found: Verdict = told.standing.judged.verdict
    missing = [one.code.removeprefix("claim.change-") for one in (found.reason, *found.unknown)]
    return found.word, found.name, missing


def slow(course: Course) -> None:
    """It was fast, C-5 came, and it is slow."""
    course.go(150, GOOD)
    course.comes()
    course.go(60, BAD)


def test_a_change_in_force_is_consistent_at_most_and_what_is_missing_is_named(course: Course) -> None:
    slow(course)
    told = course.states()
    assert verdict(told) == ("consistent", "C-5", ["old-state-not-measured"])
    assert told.statement.about == "C-5"
    said = statement_card(told).text
    assert "cause: not established; measured" in said
    assert "tput=40 tok/s" in said
    assert "consistent with C-5 (the change C-5)" in said
    assert "the old state was not measured again" in said


def test_taken_back_and_measured_again_it_is_verified_by_itself_and_confirms_the_suspicion(course: Course) -> None:
    slow(course)
    course.goes()
    assert course.again.round() == []  # a minute of the old state is not over
    assert course.suspicion() == "open"
    course.go(105, GOOD)
    assert course.again.round() == ["st-1"]
    told = course.told()
    assert verdict(told) == ("verified", "C-5", ["holds"])
    assert (told.statement.actor, told.statement.about) == (None, "C-7")
    assert course.suspicion() == "confirmed"
    kept = course.client.suspicion("su-7")
    said = statement_card(told, kept).text
    assert said.startswith("st-1: whether C-5 did it, with the old state measured again after C-7")
    assert "cause: C-5 (the change C-5); measured" in said
    assert "tput=40 tok/s" in said
    assert "before tput=900 tok/s" in said
    assert "and with the old state again from" in said
    assert "su-7 is closed: st-1 confirmed what it stood on" in said
    assert course.again.round() == []
    again = Remeasure(course)  # type: ignore[arg-type]  # of another process
    assert again.round() == []
    assert course.ledger.verify() == []


def test_an_old_state_that_is_as_slow_refutes_it_and_offers_the_value_back(course: Course) -> None:
    slow(course)
    course.goes()
    course.go(105, BAD)
    assert course.again.round() == ["st-1"]
    assert verdict(course.told()) == ("refuted", "C-5", ["old-state-too"])
    assert course.suspicion() == "refuted"
    kept = course.client.suspicion("su-7")
    card = statement_card(course.told(), kept)
    assert "su-7 is closed: st-1 speaks against it; the value can be given back" in card.text
    assert "cause: not established" in card.text
    labels = [e["text"]["text"] for block in card.blocks if block["type"] == "actions" for e in block["elements"]]
    assert len(labels) == 2
    assert labels[1] == "Dispute"


def test_what_people_said_of_the_change_is_judged_again_with_the_old_state(course: Course) -> None:
    slow(course)
    course.states("C-5 broke it")
    course.goes(because="multi-round hang", citing=())
    course.go(105, GOOD)
    assert course.again.round() == ["st-1"]
    told = course.told()
    assert [entry.event.kind for entry in told.entries] == ["statement_made", "statement_judged_again"]
    assert verdict(told)[0] == "verified"
    said = statement_card(told).text
    assert "st-1: the old state was measured again after C-7" in said
    assert "~" not in said


def test_a_change_that_was_undone_by_itself_is_judged_on_what_was_before_its_undo(course: Course) -> None:
    course.go(150, GOOD)
    *begun, _ = restored()
    watch = e.BakeStarted(until=course.now + 300, readings={})
    record(course.ledger, "C-5", [*begun, watch])
    course.go(60, BAD)
    course.states("C-5 did it")
    for event in (e.UndoStarted(actor=None, findings=()), e.RolledBack(findings=())):
        version = course.ledger.load("C-5").version
        course.ledger.append("C-5", event, expect_version=version)
    course.go(105, GOOD)
    assert course.again.round() == ["st-1"]
    assert verdict(course.told()) == ("verified", "C-5", ["holds"])
    assert "the old state was measured again after C-5" in statement_card(course.told()).text


def test_what_the_old_state_refutes_is_struck_through_with_its_trail(course: Course) -> None:
    slow(course)
    course.states("C-5 broke it")
    course.goes(because="multi-round hang", citing=())
    course.go(105, BAD)
    course.again.round()
    told = course.told()
    assert (told.standing.struck, verdict(told)[0]) == (True, "refuted")
    assert "~st-1: <@U0ANA> says C-5 broke it about C-5" in statement_card(told).text


def test_another_load_or_another_change_or_no_watch_leaves_it_open(course: Course) -> None:
    slow(course)
    course.goes()
    course.go(105, GOOD, running=2)
    assert course.again.round() == ["st-1"]
    assert verdict(course.told()) == ("consistent", "C-5", ["other-load"])
    assert course.suspicion() == "open"
    record(course.ledger, "C-8", restored())
    assert course.suspicion() == "reclaimed"


def test_a_change_beside_it_is_named(course: Course) -> None:
    slow(course)
    whole: list[e.Event] = [
        stories.asked(),
        stories.planned(stories.plan("decode-only")),
        stories.confirmed("decode-only"),
    ]
    record(course.ledger, "C-6", [*whole, stories.started("decode-only")])
    course.wait(5)
    word, _, missing = verdict(course.states("C-5 did it"))
    assert (word, "not-alone" in missing) == ("consistent", True)
    assert "these changed as well: C-6" in statement_card(course.told()).text


def test_where_the_watch_has_not_looked_nobody_knows_what_else_changed(course: Course) -> None:
    course.go(150, GOOD, watched=False)
    course.comes()
    course.go(60, BAD, watched=False)
    assert "others-not-known" in verdict(course.states())[2]


@pytest.mark.parametrize(("before", "after", "expected"), [(BAD, BAD, "was-there-before"), (GOOD, GOOD, "no-effect")])
def test_what_was_there_before_or_is_not_there_is_refuted_at_once(
    course: Course, before: float, after: float, expected: str
) -> None:
    course.go(150, before)
    course.comes()
    course.go(60, after)
    assert verdict(course.states()) == ("refuted", "C-5", [expected])


def test_without_a_citation_nothing_says_what_it_did(course: Course) -> None:
    slow(course)
    found = course.truth.state(StateCause(name="C-5"), ANA, HERE)
    assert isinstance(found, Told)
    assert verdict(found) == ("unverified", "C-5", ["no-effect-named"])
    assert "cite what is seen since" in statement_card(found).text


def test_what_would_be_seen_if_the_knob_did_it_and_is_not_refutes_it_without_a_citation(course: Course) -> None:
    course.go(150, GOOD)
    course.comes()
    course.go(60, 0, running=0)
    found = course.truth.state(StateCause(text="C-5 broke it"), ANA, HERE)
    assert isinstance(found, Told)
    assert verdict(found) == ("refuted", "C-5", ["not-guilty"])
    assert "state != idle would be seen if C-5 did it, and was not" in statement_card(found).text


def test_what_looks_back_beyond_the_change_says_nothing_of_it_yet(course: Course) -> None:
    slow(course)
    effect = '"sum(rate(sglang:generation_tokens_total[2m]))" < 5'
    assert verdict(course.states("C-5 did it", effect)) == ("unverified", "C-5", ["not-over"])
    course.go(75, BAD)
    word, _, missing = verdict(course.states("C-5 did it", effect))
    assert (word, missing) == ("refuted", ["was-there-before"])


@pytest.mark.parametrize(
    ("query", "back_s"),
    [("sum(rate(a[90s])) + max_over_time(b[5m])", 300.0), ("a > 1", 0.0), ("histogram_stddev(rate(x[2m]))", 120.0)],
)
def test_how_far_a_query_looks_back_is_read_out_of_it(query: str, back_s: float) -> None:
    assert range_of(query) == back_s


def test_in_the_thread_of_a_revert_the_last_change_is_the_one_before(course: Course) -> None:
    slow(course)
    course.goes()
    assert verdict(course.states(of="C-7"))[1] == "C-5"


def test_a_revert_that_blames_a_change_hangs_on_it(course: Course) -> None:
    slow(course)
    course.goes(because="C-5 broke it")
    planned = course.ledger.load("C-7").planned
    assert planned is not None
    assert planned.blame is not None
    (found,) = planned.blame.verdicts
    assert (found.name, found.word, planned.blame.cause) == ("C-5", "consistent", None)


def test_of_no_change_at_all_nothing_is_recorded(course: Course) -> None:
    found = course.truth.state(StateCause(text="the last change did it", citing=(SLOW,)), ANA, HERE)
    assert not isinstance(found, Told)
    assert found.code == "claim.no-last-change"


def test_somebodys_odd_citation_settles_no_suspicion(course: Course) -> None:
    slow(course)
    course.goes(because="multi-round hang", citing=(SLOW,))
    course.go(105, GOOD)
    told = course.states("C-5 did it", "tput > 99999")
    assert verdict(told)[0] == "refuted"
    assert course.suspicion() == "open"


def test_a_dispute_judges_it_with_all_that_is_known_by_now(course: Course) -> None:
    slow(course)
    course.states("C-5 did it")
    course.goes(because="multi-round hang", citing=())
    course.go(105, GOOD)
    told = course.truth.dispute(DisputeStatement(statement="st-1"), stories.ben())
    assert (verdict(told)[0], told.standing.struck) == ("verified", False)


def test_why_a_change_tells_what_the_readings_say_of_it(course: Course) -> None:
    slow(course)
    found = {v.name: v.word for v in course.truth.why("C-5").verdicts}
    assert "C-5" in found
