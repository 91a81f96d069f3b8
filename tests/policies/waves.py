"""Plans in waves, made by hand: replicas of an engine behind a router, with or without drains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.plan import AdmitStep, CanaryWatch, DrainStep, Plan, Registration, RestartStep, Rolling, Step, WriteStep
from tests.policies import builders as b

Waves = Sequence[Mapping[str, Sequence[str]]]  # service -> hosts, by wave


def plan(
    waves: Waves,
    *,
    changed: Sequence[str] = ("decode",),
    drained: Sequence[str] = (),
    canary: CanaryWatch | None = None,
    keep: int = 1,
) -> Plan:
    """A plan that sets the knob on the changed services; the undo goes through the waves backwards."""
    numbered = list(enumerate(waves, start=1))
    hosts: dict[str, list[str]] = {}
    for _, wave in numbered:
        for service, on in wave.items():
            hosts.setdefault(service, []).extend(on)
    rolling = tuple(
        Rolling(
            service=service,
            replicas=len(on),
            max_unavailable=1,
            keep=keep,
            canary=canary if canary is not None and canary.instance.startswith(f"{service}@") else None,
        )
        for service, on in hosts.items()
        if len(on) > 1
    )
    offered = b.plans()[0]
    back = reversed(numbered)
    return offered.model_copy(
        update={
            "steps": tuple(s for n, wave in numbered for s in _wave(n, wave, changed, drained, "512")),
            "undo": tuple(s for n, wave in back for s in _wave(n, wave, changed, drained, None)),
            "rolling": rolling,
        }
    )


def _wave(
    number: int, wave: Mapping[str, Sequence[str]], changed: Sequence[str], drained: Sequence[str], value: str | None
) -> list[Step]:
    made: list[Step] = []
    for service, hosts in wave.items():
        if service in drained:
            made += [drain(service, host, number) for host in hosts]
        if service in changed:
            made += [write(service, host, number, value) for host in hosts]
        made += [restart(service, host, number, changed=service in changed) for host in hosts]
        if service in drained:
            made += [admit(service, host, number) for host in hosts]
    return made


def restart(service: str, host: str, wave: int, *, changed: bool) -> RestartStep:
    """The restart of one instance."""
    unit = f"sgl-{service}.service"
    return RestartStep(
        host=host,
        service=service,
        unit=unit,
        wave=wave,
        argv=("systemctl", "restart", "--no-block", unit),
        before=b.life(),
        changed=changed,
        gates=("incarnation", "port", "health", *(("environment",) if changed else ())),
    )


def write(service: str, host: str, wave: int, value: str | None) -> WriteStep:
    """The write of its drop-in."""
    text = None if value is None else f"[Service]\nEnvironment={b.ENV}={value}\n"
    return WriteStep(
        host=host, service=service, unit=f"sgl-{service}.service", wave=wave, path="/x.conf", before=None, text=text
    )


def registration(service: str, host: str) -> tuple[Registration, ...]:
    """How the one router knows it."""
    return (Registration(router="router@gpu1", api="http://127.0.0.1:30002", worker=f"http://{host}:30001"),)


def drain(service: str, host: str, wave: int) -> DrainStep:
    """Taking it out."""
    at = registration(service, host)
    unit = f"sgl-{service}.service"
    return DrainStep(host=host, service=service, unit=unit, wave=wave, at=at, deadline_s=60.0, over="hold")


def admit(service: str, host: str, wave: int) -> AdmitStep:
    """Giving it back."""
    unit = f"sgl-{service}.service"
    return AdmitStep(host=host, service=service, unit=unit, wave=wave, at=registration(service, host))
