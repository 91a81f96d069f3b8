"""A knob that comes and goes again, while an engine gets slower or does not, with what is scraped meanwhile."""

from __future__ import annotations

from policies import events as e
from policies.intents import RevertKnob
from policies.outside import Snapshot
from tests.bot.suspected import record, restored, reverted
from tests.policies import builders as b
from tests.workers.truths import World, texts
from workers.blaming import blame
from workers.watch import Noted, Seen

SLOW = "tput < 100"
GOOD, BAD = 900.0, 40.0


class Going(World):
    """What happens, one after the other."""

    def go(self, seconds: float, tput: float, *, running: int = 53, watched: bool = True) -> None:
        """So long with this throughput, scraped every 15 s; the watch looks at the end."""
        self.said = texts(decode={"running": running, "gen_throughput": tput})
        for _ in range(int(seconds // 15)):
            self.wait(15)
            self.metrics.record(self.now)
        if watched:
            for instance in (i for service in self.fleet.services for i in self.fleet.instances(service)):
                look = Noted(snapshot=Snapshot(at=self.now, incarnation=b.life()))
                Seen(self.ledger.redis, self.fleet).put(instance, look)

    def comes(self) -> None:
        """C-5 brings the value."""
        record(self.ledger, "C-5", restored())

    def goes(self, because: str = "the last change broke it", citing: tuple[str, ...] = (SLOW,)) -> None:
        """C-7 takes it away, with what was read then."""
        events = reverted(self.now)
        asked, planned, end = events[0], events[1], events[-1]
        assert isinstance(asked, e.Asked)
        assert isinstance(planned, e.Planned)
        assert isinstance(end, e.Succeeded)
        assert end.suspicion is not None
        intent = RevertKnob(knob="TARGET_CTAS", because=because, citing=citing)
        asked = asked.model_copy(update={"intent": intent})
        found = blame(self, self.measuring, asked, "C-7")  # type: ignore[arg-type]  # as above
        end = end.model_copy(update={"suspicion": end.suspicion.model_copy(update={"blame": found})})
        record(self.ledger, "C-7", [asked, planned.model_copy(update={"blame": found}), *events[2:-1], end])
