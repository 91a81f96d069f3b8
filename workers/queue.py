"""The queue: rq as a doorbell. It carries a name and an id, may lose or double them, and decides nothing.

What a worker runs comes from a table of its own process. A job in Redis is read as (name, id) and as nothing else:
functions, callbacks, webhooks, dependents, retries and pickled bytes in it have no meaning here.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from typing import Any, ClassVar
from uuid import uuid4

import redis
from redis.exceptions import ResponseError
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, NoSuchJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.worker import WorkerStatus

from policies.errors import StoreUnavailable
from workers.store import VENDOR_ERRORS, translated
from workers.ticks import TICK_S, ticking

QUEUES = ("ask", "act", "narrate")
NAME = re.compile(r"[a-z][a-z_]{0,31}")
ARGUMENT = re.compile(r"[A-Za-z0-9_-]{1,96}")
DATA_BYTES = 1024
WAIT_S = 1  # one wait on the queues: how soon a worker notices that it shall end
HEARTBEAT_S = 60.0
BACKOFF_S = (0.2, 0.5, 1.0, 2.0)
RESULT_TTL_S = 0
FAILURE_TTL_S = 60
log = logging.getLogger(__name__)

Table = Mapping[str, Callable[[str], object]]

# Ring: KEYS job hash, queue list, set of queues. ARGV: job id, queue key, then the hash's fields.
# A bell that already hangs in the queue is not hung twice; one whose worker died before it took it down is.
RING = """
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('SADD', KEYS[3], ARGV[2])
if redis.call('LPOS', KEYS[2], ARGV[1]) then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 1
"""


class FixedJob(Job):  # type: ignore[misc]  # rq is not typed
    """A job that can only be one function of `table` with one id. Everything else in its hash is ignored."""

    table: ClassVar[Table] = {}

    def __init__(self, id: str | None = None, connection: Any = None, serializer: Any = None) -> None:  # noqa: A002, ARG002  # rq's names
        super().__init__(id=id, connection=connection, serializer=JSONSerializer)
        self.call: tuple[str, str] | None = None

    def refresh(self) -> None:
        """Read (name, id) from the hash and nothing else; one that says anything else stays without a call.

        Raises: NoSuchJobError.
        """
        try:
            data = self.connection.hget(self.key, "data")
        except ResponseError as error:  # not a hash
            raise NoSuchJobError(f"no such job: {self.key}") from error
        self.restore({b"data": data})

    def restore(self, raw_data: Mapping[bytes, bytes | None]) -> None:
        """The same from a hash that was read already."""
        data = raw_data.get(b"data")
        if data is None:
            raise NoSuchJobError(f"no such job: {self.key}")
        self.call = _read_call(data)
        self._func_name, self._args = (self.call[0], [self.call[1]]) if self.call else ("refused", [])
        self._instance: None = None
        self._kwargs: dict[str, object] = {}
        self.timeout = -1
        self.result_ttl = RESULT_TTL_S
        self.failure_ttl = FAILURE_TTL_S
        self._status = JobStatus.QUEUED
        self.description = f"{self._func_name} {' '.join(self._args)}"

    @property
    def func(self) -> Callable[[str], object]:
        """The table's function. Raises: LookupError for anything that the table does not name."""
        if self.call is None or self.call[0] not in self.table:
            raise LookupError(f"job `{self.id}` names nothing that this worker does")
        return self.table[self.call[0]]

    @property
    def success_callback(self) -> None:
        """Never: a name in Redis is not a function."""

    @property
    def failure_callback(self) -> None:
        """Never."""

    @property
    def stopped_callback(self) -> None:
        """Never."""

    def send_webhooks(self, *_: object, **__: object) -> None:
        """Never."""

    def _deserialize_data(self) -> None:
        self._func_name, self._instance, self._args, self._kwargs = "refused", None, [], {}

    def perform(self) -> object:
        """Run the call, here and now."""
        return self.func(*self._args)


class FixedQueue(Queue):  # type: ignore[misc]  # rq is not typed
    """A queue without rq's intermediate list: what a dying worker had taken is rung again by the reaper."""

    job_class = FixedJob

    @classmethod
    def lmove(cls, connection: redis.Redis, queue_key: str, timeout: int | None) -> object:
        """Pop, also where there is one queue only."""
        return cls.lpop([queue_key], timeout, connection=connection)


class Doorbell:
    """Rings workers. Ringing twice is ringing once, unless the work has begun in between."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._ring = client.register_script(RING)

    def ring(self, queue: str, name: str, arg_id: str) -> bool:
        """Have `name(arg_id)` run once more on `queue`; False when that was waiting to be done already.

        Raises: ValueError for a queue, name or id that is not allowed; StoreUnavailable.
        """
        if queue not in QUEUES or not NAME.fullmatch(name) or not ARGUMENT.fullmatch(arg_id):
            raise ValueError(
                f"`{queue}`, `{name}`, `{arg_id}`: expected a known queue, a name, letters, digits, _ or -"
            )
        job = FixedJob.create(
            name,
            args=[arg_id],
            id=f"{name}-{arg_id}",
            connection=self._redis,
            origin=queue,
            timeout=-1,
            result_ttl=RESULT_TTL_S,
            failure_ttl=FAILURE_TTL_S,
            status=JobStatus.QUEUED,
            description=f"{name} {arg_id}",
        )
        key = f"{FixedQueue.redis_queue_namespace_prefix}{queue}"
        fields = [part for pair in job.to_dict().items() for part in pair]
        with translated():
            return bool(self._ring(keys=[job.key, key, FixedQueue.redis_queues_keys], args=[job.id, key, *fields]))


class Ringer(SimpleWorker):  # type: ignore[misc]  # rq is not typed
    """An rq worker in this very process. It keeps no record of jobs, obeys no command from Redis and never forks."""

    queue_class = FixedQueue
    stop = False

    def work(self) -> None:
        """Registered with rq, answer bells until `stop`. Raises: errors of the Redis client."""
        self.register_birth()
        try:
            while (found := self._next()) is not None:
                self.execute_job(*found)
        finally:
            with suppress(*VENDOR_ERRORS):
                self.register_death()

    def execute_job(self, job: FixedJob, queue: FixedQueue) -> None:
        """Take the bell down, then work: who rings from now on causes another run."""
        self.set_state(WorkerStatus.BUSY)
        self.connection.delete(job.key)
        try:
            job.perform()
        except StoreUnavailable as error:
            log.warning(
                "job %s of queue %s ends without the store, it is rung for again: %s", job.id, queue.name, error
            )
        except Exception:
            log.exception("job %s of queue %s ended with an error", job.id, queue.name)
        self.set_state(WorkerStatus.IDLE)

    def _next(self) -> tuple[FixedJob, FixedQueue] | None:
        beat_at = float("-inf")
        while not self.stop:
            if time.monotonic() - beat_at > HEARTBEAT_S:
                self.heartbeat()
                beat_at = time.monotonic()
            try:
                found: tuple[FixedJob, FixedQueue] | None = FixedQueue.dequeue_any(
                    self.queues, WAIT_S, connection=self.connection, job_class=self.job_class, serializer=JSONSerializer
                )
            except DequeueTimeout:
                continue
            except ValueError:  # rq could not even read the id
                log.warning("dropped an entry of a queue that is no id of a job")
                continue
            return found
        return None

    def _set_connection(self, connection: redis.Redis) -> redis.Redis:
        return connection  # rq would raise the timeouts of a client that is not its own


def serve(
    client: redis.Redis,
    queues: Iterable[str],
    table: Table,
    *,
    name: str,
    tick: Callable[[], object] | None = None,
    tick_s: float = TICK_S,
) -> None:
    """Work until SIGTERM or SIGINT; the job that runs is finished first. Redis may go away and come back meanwhile.

    `tick` is called every `tick_s` from a thread of its own, also while a job runs. Call from the main thread.
    """
    unknown = set(queues := tuple(queues)) - set(QUEUES)
    if unknown or not all(NAME.fullmatch(key) for key in table):
        raise ValueError(f"expected queues of {QUEUES} and plain names, got {sorted(unknown)} and {sorted(table)}")
    jobs = type("TableJob", (FixedJob,), {"table": dict(table)})
    for noisy in ("rq", "rq.worker"):  # its colours and tracebacks; what matters is logged here
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    ending = threading.Event()
    current: list[Ringer] = []

    def end(_number: int, _frame: object) -> None:
        ending.set()
        for worker in current:
            worker.stop = True

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    failures = 0
    try:
        with nullcontext() if tick is None else ticking(tick, tick_s):
            while not ending.is_set():
                began = time.monotonic()
                try:
                    own = f"{name}-{os.getpid()}-{uuid4().hex[:8]}"  # rq refuses the name of one that was killed
                    current[:] = [Ringer(list(queues), name=own, connection=client, job_class=jobs)]
                    current[0].stop = ending.is_set()
                    current[0].work()
                except VENDOR_ERRORS as error:
                    failures = failures + 1 if time.monotonic() - began < BACKOFF_S[-1] else 0
                    log.warning("worker %s waits for Redis: %s", name, error)
                    ending.wait(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read_call(data: bytes) -> tuple[str, str] | None:
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(data, DATA_BYTES)
        if inflater.unconsumed_tail:
            return None
        name, instance, args, kwargs = json.loads(text)
    except (zlib.error, ValueError, TypeError, RecursionError):
        return None
    if instance is not None or kwargs != {} or not isinstance(args, list) or len(args) != 1:
        return None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    if not isinstance(args[0], str) or not ARGUMENT.fullmatch(args[0]):
        return None
    return name, args[0]
