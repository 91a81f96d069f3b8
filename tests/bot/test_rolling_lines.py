"""Thread and card of a change that goes through replicas: each line names its instance, and each wave is told once."""

from __future__ import annotations

from bot.cards import answers
from bot.cards.bar import progress
from bot.cards.progress import card
from bot.cards.story import Story
from bot.thread import line
from policies import events as e
from policies.canaries import judge, required, watches_of
from policies.causes.window import Window
from policies.events import GENESIS, Entry
from policies.plan import CanaryWatch, Plan
from policies.standing import Stand, Standing
from tests.policies import builders as b
from tests.policies.change_events import BAKE
from tests.policies.test_canaries import window
from tests.policies.test_stages import Run, approved, opening
from tests.policies.waves import plan
from workers.look import InstanceValue, KnobLook

WATCH = CanaryWatch(instance="decode@gpu1", why="it is healthy", watch_s=30.0, require=("ttft_s < 2",))
PLAN = plan(
    [{"prefill": ("gpu1",), "decode": ("gpu1",)}, {"decode": ("gpu2", "gpu3"), "router": ("gpu1",)}], canary=WATCH
)


MIXED = Standing(
    of="value",
    at=b.NOW,
    stands=(
        Stand(instance="decode@gpu1", word="has", value="512"),
        Stand(instance="decode@gpu2", word="unset"),
        Stand(instance="decode@gpu3", word="unknown", why="gpu3 does not answer"),
    ),
)
SAID = "mixed: `512` on decode@gpu1; unset on decode@gpu2; not known on decode@gpu3 (gpu3 does not answer) (read "


def story(run: Run, of: Plan = PLAN) -> Story:
    events = (*opening(of), *run.events)
    return Story.of(
        [
            Entry(seq=n, subject="C-1", version=n, at=b.NOW, event=event, prev=GENESIS)
            for n, event in enumerate(events, start=1)
        ]
    )


def thread(run: Run, of: Plan = PLAN) -> list[str]:
    """Every line behind the start, without its time."""
    told = [line(one) for one in story(run, of).chapters()[len(opening(of)) :]]
    return [str(one).split("> ", 1)[1] if "> " in str(one) else str(one).split(" ", 1)[1] for one in told if one]


def first_wave() -> Run:
    """Until the two restarts of the first wave, and every gate of theirs, are through."""
    run = Run(approved(PLAN))
    while len(run.change.do.gates) < 3 + 4:
        run.turn()
    return run


def begun(run: Run) -> None:
    run.tell(e.CanaryStarted(until=b.NOW + 30, readings={"decode@gpu1": BAKE}))


def judged(run: Run, read: Window) -> None:
    found = required(watches_of(PLAN)[0], read)
    verdict = judge((), None, found)
    if verdict.answer == "pass":
        run.tell(e.CanaryPassed(instances=("decode@gpu1",), findings=(), required=found))
    else:
        run.tell(e.CanaryFailed(instances=("decode@gpu1",), verdict=verdict, required=found))


def test_a_wave_is_told_when_it_begins_and_lines_name_the_instance_where_there_are_replicas() -> None:
    run = first_wave()
    begun(run)
    judged(run, window(ttft_s=(0.8, 0.9)))
    while run.turn():
        pass
    said = thread(run)
    assert said[0] == "wave 1 of 2: prefill@gpu1 → decode@gpu1"
    assert "prefill restart issued (pid 7)" in said
    assert f"decode@gpu1 restart issued with {b.ENV}=512 (pid 7)" in said
    assert "decode@gpu3 healthy" in said
    second = "wave 2 of 2: decode@gpu2 + decode@gpu3 → router@gpu1"
    assert said.count(second) == 1
    assert said.index(
        "decode@gpu1 passed: `ttft_s &lt; 2` holds (read ttft_s 0.9 s, n=2); the others follow"
    ) < said.index(second)


def test_a_first_replica_without_data_is_told_with_what_could_not_be_read() -> None:
    run = first_wave()
    begun(run)
    judged(run, window())
    assert thread(run)[-1].startswith(
        "decode@gpu1 as the first replica answers inconclusive: decode@gpu1: whether `ttft_s &lt; 2` holds is not known"
        " (read nothing, n=0); no data is no pass"
    )


def test_an_undo_names_the_instances_that_it_brings_back_and_each_of_its_waves() -> None:
    run = first_wave()
    begun(run)
    judged(run, window(ttft_s=(0.8,)))
    for _ in range(3):  # both writes and the restart of gpu2
        run.turn()
    run.tell(e.UndoStarted(actor=b.ANA, findings=(), standing=MIXED))
    assert thread(run)[-1].startswith(f"undoing, as <@U0ANA> asked · {SAID}")
    assert thread(run)[-1].endswith(" · brought back: decode@gpu2, decode@gpu3, prefill@gpu1, decode@gpu1")
    assert SAID in str(card(story(run)))
    while run.turn():
        pass
    said = thread(run)
    assert "undo: decode@gpu2 restart issued (pid 7)" in said
    assert [x for x in said if x.startswith("undo of wave")] == [
        "undo of wave 2: decode@gpu2",
        "undo of wave 1: prefill@gpu1 → decode@gpu1",
    ]


def test_the_bar_counts_every_step_with_its_gates_and_says_which_wave_and_which_instance() -> None:
    run = first_wave()
    assert "step 4 of 8" in str(progress(run.change))
    begun(run)
    assert "decode@gpu1 went first, watched until" in str(progress(run.change))
    judged(run, window(ttft_s=(0.8,)))
    for _ in range(4):  # two writes and two restarts
        run.turn()
    said = str(progress(run.change))
    assert "▰▰▰▰▰▱▱▱ step 6 of 8: decode@gpu2 restart, waiting for health since" in said
    assert "wave 2 of 2: decode@gpu2 + decode@gpu3 → router@gpu1" in said
    assert "decode@gpu2 restart" in str(card(story(run)))


def test_a_hold_says_which_instance_has_what_and_so_does_keep_with_the_way_back() -> None:
    run = first_wave()
    run.tell(e.Held(findings=(), standing=MIXED))
    assert SAID in thread(run)[-1]
    assert "[Undo] goes back to unset with the same restarts" in thread(run)[-1]
    assert SAID in str(card(story(run)))
    run.tell(e.KeepChosen(actor=b.BEN, standing=MIXED))
    assert SAID in thread(run)[-1]
    assert "to have one value on all again: `/knob unset TARGET_CTAS`" in thread(run)[-1]
    assert SAID in str(card(story(run)))


def test_an_undo_after_which_replicas_differ_is_called_mixed_and_one_after_which_they_do_not_is_not() -> None:
    run = first_wave()
    run.tell(e.UndoStarted(actor=None, findings=()))
    alike = MIXED.model_copy(update={"stands": MIXED.stands[1:2]})
    run.tell(e.RolledBack(findings=(), standing=alike))
    assert "mixed" not in thread(run)[-1]
    other = first_wave()
    other.tell(e.UndoStarted(actor=None, findings=()))
    other.tell(e.RolledBack(findings=(), standing=MIXED))
    assert SAID in thread(other)[-1]
    assert SAID in str(card(story(other)))


def look(*live: tuple[str | None, str]) -> KnobLook:
    values = (
        InstanceValue(f"decode@gpu{n}", True, "512", "512", None, value, answer)
        for n, (value, answer) in enumerate(live, start=1)
    )
    return KnobLook(b.knob(), tuple(values), ())


def test_a_list_and_a_knob_say_which_replica_has_what_where_they_differ() -> None:
    differing = look(("512", "present"), (None, "absent"), (None, "no-process"), (None, "unreadable"))
    said = (
        "`TARGET_CTAS` is mixed: `512` on decode@gpu1; unset on decode@gpu2; nothing runs on decode@gpu3;"
        " not known on decode@gpu4 (its environment is unreadable)"
    )
    assert said in str(answers.listed([differing]))
    assert said in str(answers.shown(differing, b.NOW))
    alike = look(("512", "present"), ("512", "present"), (None, "unreadable"))
    assert "mixed" not in str(answers.listed([alike])) + str(answers.shown(alike, b.NOW))


def test_the_list_of_changes_says_which_of_them_left_replicas_that_differ() -> None:
    run = first_wave()
    run.tell(e.Held(findings=(), standing=MIXED))
    assert SAID in str(answers.status_all([run.change]))
    assert SAID in str(answers.status_one(story(run)))


def test_a_restart_where_no_process_ran_is_told_without_a_process_id() -> None:
    run = first_wave()
    index = next(i for i, step in enumerate(PLAN.undo) if step.kind == "restart")
    run.tell(e.UndoStarted(actor=None, findings=()))
    told = {"part": "undo", "index": index, "step": "restart", "instance": "decode@gpu2", "host_at": b.NOW}
    run.tell(e.StepDone.model_validate({**told, "before": b.life(0)}))
    assert thread(run)[-1] == "undo: decode@gpu2 restart issued (no process ran)"
