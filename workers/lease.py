"""Leases: who may touch an instance now, with a fencing token that the host checks as well.

A lease lives in Redis and ends by itself. Its holder also watches its own clock: when the last renewal that
surely happened is older than the lease, it is lost, whatever Redis would say. One whose process has ended on this very
machine is given up at once: nobody is left who could act on it, and what was sent before is fenced on the host.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from uuid import uuid4

import redis

from policies.errors import LeaseLost, StoreUnavailable
from workers.ledger import text_of
from workers.life import has_ended, own_life
from workers.store import translated

KEY = "clawback:lease:"
TOKEN = "clawback:token"  # noqa: S105  # the name of a counter

# All or nothing. KEYS: counter, then one key an instance. ARGV: owner, lease in ms, nonce, life of the process.
# A counter that was lost begins at the server's epoch seconds: hosts refuse tokens that go backwards.
# A second call with the same nonce is the first one whose answer was lost: it gets the same tokens.
TAKE = """
for i = 2, #KEYS do
  local lease = redis.call('HMGET', KEYS[i], 'owner', 'nonce')
  if lease[1] and lease[2] ~= ARGV[3] then return {'busy', KEYS[i], lease[1]} end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SET', KEYS[1], redis.call('TIME')[1]) end
local tokens = {'ok'}
for i = 2, #KEYS do
  local token = redis.call('HGET', KEYS[i], 'token')
  if not token then
    token = string.format('%.0f', redis.call('INCR', KEYS[1]))
    redis.call('HSET', KEYS[i], 'owner', ARGV[1], 'nonce', ARGV[3], 'token', token, 'life', ARGV[4])
  end
  redis.call('PEXPIRE', KEYS[i], ARGV[2])
  tokens[#tokens + 1] = token
end
return tokens
"""
# KEYS: one key an instance. ARGV: nonce, lease in ms. Gives the first key that is not ours, or nothing.
RENEW = """
for i = 1, #KEYS do
  if redis.call('HGET', KEYS[i], 'nonce') ~= ARGV[1] then return KEYS[i] end
end
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
return ''
"""
RELEASE = """
for i = 1, #KEYS do
  if redis.call('HGET', KEYS[i], 'nonce') == ARGV[1] then redis.call('DEL', KEYS[i]) end
end
return ''
"""


def steady() -> float:
    """Seconds on a clock that cannot be set and that runs while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leases:
    """Takes leases. `clock` is a steady clock in seconds (never the wall clock); the default is right outside tests."""

    def __init__(self, client: redis.Redis, clock: Callable[[], float] = steady) -> None:
        self._redis = client
        self._clock = clock
        self._take = client.register_script(TAKE)
        self._release = client.register_script(RELEASE)

    def take(self, instances: Iterable[str], owner: str, lease_s: float) -> Held:
        """Take all of `instances` or none, and keep them renewed from a thread of this process.

        Raises: LeaseLost when one of them is held; its message names the instance and the holder.
        """
        names = sorted(set(instances))
        if not names:
            raise ValueError("no instance to lease")
        nonce = uuid4().hex
        asked_at = self._clock()
        with translated():
            answer = [
                part.decode()
                for part in self._take(
                    keys=[TOKEN, *(KEY + name for name in names)],
                    args=[owner, int(lease_s * 1000), nonce, own_life()],
                )
            ]
        if answer[0] == "busy":
            raise LeaseLost(f"`{answer[1].removeprefix(KEY)}` is held by `{answer[2]}`", hint="wait until it is done")
        tokens = dict(zip(names, map(int, answer[1:]), strict=True))
        return Held(self._redis, self._clock, tokens, nonce, lease_s, asked_at)

    def holder(self, instance: str) -> str | None:
        """Owner of the live lease on `instance`, None when there is none."""
        with translated():
            owner = self._redis.hget(KEY + instance, "owner")
        return owner.decode() if isinstance(owner, bytes) else owner

    def give_up_dead(self, instances: Iterable[str]) -> bool:
        """Free the leases whose process has ended on this machine; True when there was one."""
        freed = False
        for name in sorted(set(instances)):
            with translated():
                nonce, life = self._redis.hmget(KEY + name, "nonce", "life")
            if nonce is not None and life and has_ended(text_of(life)):
                with translated():
                    self._release(keys=[KEY + name], args=[nonce])
                freed = True
        return freed


class Held:
    """Leases that are ours until they are released or lost. `tokens` are the fencing tokens by instance."""

    def __init__(
        self,
        client: redis.Redis,
        clock: Callable[[], float],
        tokens: dict[str, int],
        nonce: str,
        lease_s: float,
        asked_at: float,
    ) -> None:
        self.tokens = tokens
        self.lease_s = lease_s
        self._clock = clock
        self._nonce = nonce
        self._keys = [KEY + name for name in tokens]
        self._renew = client.register_script(RENEW)
        self._release = client.register_script(RELEASE)
        self._sure = asked_at  # when the last request was sent that surely prolonged the lease
        self._lost: str | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Go on only if the lease is surely ours.

        Raises: LeaseLost.
        """
        late = self._clock() - self._sure
        if self._lost is None and late > self.lease_s:
            self._lost = f"the last renewal was {late:.1f} s ago, the lease is {self.lease_s:g} s"
        if self._lost is not None:
            raise LeaseLost(f"lost the lease on {', '.join(self.tokens)}: {self._lost}", hint="another worker goes on")

    def renew(self) -> None:
        """Prolong once, if it is still ours. The thread does this by itself.

        Raises: LeaseLost, StoreUnavailable.
        """
        self.check()
        asked_at = self._clock()
        with translated():
            taken = self._renew(keys=self._keys, args=[self._nonce, int(self.lease_s * 1000)])
        if taken:
            self._lost = f"`{taken.decode().removeprefix(KEY)}` is not ours any more"
            self.check()
        self._sure = asked_at

    def release(self) -> None:
        """Give the instances back. When Redis cannot be reached the leases end by themselves."""
        self._done.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._lost = self._lost or "it was released"
        with suppress(StoreUnavailable), translated():
            self._release(keys=self._keys, args=[self._nonce])

    def __enter__(self) -> Held:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    def _keep(self) -> None:
        pause = self.lease_s / 3
        while not self._done.wait(pause):
            try:
                self.renew()
                pause = self.lease_s / 3
            except StoreUnavailable:
                pause = self.lease_s / 20  # there may be time for another attempt
            except LeaseLost:
                return
