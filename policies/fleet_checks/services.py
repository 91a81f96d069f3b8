"""Hosts, services and restart orders of a fleet file."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal
from urllib.parse import urlsplit

import yaml

from policies.fleet import Canary, Host, HttpCheck, Service
from policies.fleet_checks.deploys import read_deploy
from policies.fleet_checks.problems import quote
from policies.fleet_checks.rolling import read_drain, read_rolling
from policies.fleet_checks.table import Table
from policies.fleet_checks.urls import read_url
from policies.fleet_checks.values import Form, name_form

engine_paths = ("/health", "/health_generate")
engine_timeout_s = 25.0
"""Source: an engine's /health generates a token: 1.0 s at least, and up to 20 s before it answers 503."""
shortest_timeout_s = 2.0
default_boot_s = 300.0
default_canary_s = 60.0

host_keys = ("address", "user", "port", "host_key", "manager")
service_keys = (
    "on",
    "unit",
    "needs",
    "health",
    "metrics",
    "canary",
    "server_info",
    "model_info",
    "loads",
    "devices",
    "deploy",
    "rolling",
    "drain",
)
unit_pattern = r"(?!\.service)[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\-]+)?\.service"
address_form = Form(
    r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,254}|::[A-Fa-f0-9:.]{0,40}",
    "host.address",
    "a host name or an IP address",
    "write e.g. gpu1.example.com or 192.0.2.11; the port has a key of its own",
)
user_form = Form(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", "host.user", "a user name of the host", "write e.g. clawback")
device_form = Form(
    r"(/(?!\.{1,2}(/|$))[^/\s*?\[\]]{1,255}){1,16}",
    "service.device",
    "the absolute path of a file without blanks and patterns",
    "write each device by its path, e.g. devices: [/dev/nvidia0, /dev/nvidia1]",
)
managers: tuple[Literal["system", "user"], ...] = ("system", "user")


def read_hosts(top: Table) -> dict[str, Host]:
    """`hosts:`."""
    reader = top.reader
    hosts = {}
    for entry in top.named("hosts", "host"):
        table = entry.table(reader, host_keys)
        table.need("address", "address: 192.0.2.11")
        table.need("user", "user: clawback")
        hosts[entry.name] = Host(
            name=entry.name,
            address=table.matching("address", address_form) or "",
            port=table.whole("port", 1, 65535, 22),
            user=table.matching("user", user_form) or "",
            host_key=_host_key(table),
            manager=table.word("manager", managers, "host.manager") or "system",
        )
    return hosts


def _host_key(table: Table) -> str | None:
    text = table.text("host_key")
    if not text:
        return None
    parts = text.split()
    hint = "copy `TYPE BASE64` from `ssh-keyscan` after comparing the fingerprint on the host"
    expected = "'ssh-ed25519 AAAA...' (type, blank, base64)"
    kind = parts[0]
    if len(parts) < 2 or not re.fullmatch(r"ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9@.-]+", kind):
        problem = f"{quote(text)} is not a host key, expected {expected}"
        table.reader.problems.add(table.at("host_key"), "host.key", problem, hint)
        return None
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    length = int.from_bytes(blob[:4], "big")
    inner = blob[4 : 4 + length]
    if inner != kind.encode("ascii") or (kind == "ssh-ed25519" and len(blob) != 51) or len(blob) < 51:
        problem = f"the base64 part is not a whole {kind} key, expected {expected}"
        table.reader.problems.add(table.at("host_key"), "host.key", problem, hint)
        return None
    return f"{kind} {parts[1]}"


def read_services(top: Table) -> dict[str, Service]:
    """`services:`."""
    services = {}
    for entry in top.named("services", "service"):
        table = entry.table(top.reader, service_keys)
        table.need("on", "on: [HOST]")
        table.need("unit", "unit: NAME.service")
        table.need("health", 'health: {url: "http://127.0.0.1:PORT/health", from: host, timeout: 25s, boot: 300s}')
        services[entry.name] = Service(
            name=entry.name,
            on=table.names("on"),
            unit=_unit(table),
            needs=table.names("needs") if _filled(table, "needs") else (),
            health=_check(table, "health") or HttpCheck(url=""),
            metrics=_check(table, "metrics"),
            canary=_canary(table),
            server_info=_check(table, "server_info"),
            model_info=_check(table, "model_info"),
            loads=_check(table, "loads"),
            devices=table.texts("devices", device_form),
            deploy=read_deploy(table),
            rolling=read_rolling(table),
            drain=read_drain(table),
        )
    return services


def _filled(table: Table, key: str) -> bool:
    """False for `key: []`, which says the same as no key."""
    node = table.nodes.get(key)
    return not (isinstance(node, yaml.SequenceNode) and not node.value)


def _unit(table: Table) -> str:
    text = table.text("unit")
    if not text:
        return ""
    if not text.endswith(".service"):
        table.reader.problems.add(
            table.at("unit"),
            "unit.suffix",
            f"{quote(text)} does not end in .service, expected a service unit",
            f"write {text.split('.')[0][:60] or 'name'}.service",
        )
        return ""
    if len(text) > 255 or not re.fullmatch(unit_pattern, text):
        template = text.endswith("@.service")
        table.reader.problems.add(
            table.at("unit"),
            "unit.template" if template else "unit.name",
            f"{quote(text)} is not a unit that can run, expected e.g. 'engine.service' or 'engine@0.service'",
            "write the instance between @ and .service, e.g. engine@0.service"
            if template
            else "unit names hold letters, digits and : _ . \\ - (`systemctl list-units` shows them)",
        )
        return ""
    return text


def _check(service: Table, key: str) -> HttpCheck | None:
    known = ("url", "from", "timeout", "boot") if key == "health" else ("url", "from", "timeout")
    table = service.table(key, known)
    if table is None:
        return None
    problems = table.reader.problems
    url = read_url(table)
    if "from" in table:
        table.word("from", ("host",), "check.from")
    timeout_s = table.duration("timeout", engine_timeout_s)
    if timeout_s < shortest_timeout_s or (
        key == "health" and timeout_s < engine_timeout_s and _path_of(url) in engine_paths
    ):
        _add_timeout(table, url, timeout_s, key)
    boot_s = table.duration("boot", default_boot_s)
    if key == "health" and boot_s < timeout_s:
        problems.add(
            table.at("boot"),
            "health.boot_too_short",
            f"boot is {boot_s:g}s and one check may take {timeout_s:g}s, expected boot to be at least the timeout",
            f"write boot: {timeout_s:g}s or more; 300s where an engine loads weights",
        )
    return HttpCheck(url=url, timeout_s=timeout_s, boot_s=boot_s)


def _path_of(url: str) -> str:
    return urlsplit(url).path.rstrip("/") if url else ""


def _add_timeout(table: Table, url: str, timeout_s: float, key: str) -> None:
    path = _path_of(url)
    if key == "health" and path in engine_paths:
        message = (
            f"timeout {timeout_s:g}s cannot hold for an engine's {path}, expected 25s or more: it generates a "
            "token, which takes 1.0 s by construction and up to 20 s behind long prefills, so a busy engine "
            "would be taken for a dead one"
        )
        hint = "write timeout: 25s; for a router ask /readiness, which is cheap (its /health is always 200)"
    else:
        message = f"timeout {timeout_s:g}s is too short, expected 2s or more: a loaded host answers late"
        hint = "write timeout: 25s, or leave it out"
    table.reader.problems.add(table.at("timeout"), "health.timeout_too_short", message, hint)


def _canary(service: Table) -> Canary | None:
    table = service.table("canary", ("url", "json", "expect", "timeout", "from"))
    if table is None:
        return None
    reader = table.reader
    url = read_url(table)
    if "from" in table:
        table.word("from", ("host",), "check.from")
    table.need("json", 'json: {model: m, prompt: "2+2=", max_tokens: 4}')
    body = None
    if "json" in table:
        body = reader.json(table.at("json"), table.nodes["json"])
        if not isinstance(body, dict):
            reader.wrong(
                table.at("json"), "type.mapping", "a request body", table.nodes["json"], "write json: {model: m}"
            )
    table.need("expect", 'expect: {text: "4"}')
    expect = table.table("expect", ("text",))
    text = ""
    if expect is not None and expect.need("text", 'text: "4"'):
        text = expect.text("text") or ""
    timeout_s = table.duration("timeout", default_canary_s)
    if timeout_s < shortest_timeout_s:
        _add_timeout(table, url, timeout_s, "canary")
    return Canary(url=url, body=body if isinstance(body, dict) else {}, expect_text=text, timeout_s=timeout_s)


def read_restarts(top: Table) -> dict[str, tuple[str, ...]]:
    """`restarts:`: name -> services in order."""
    orders = {}
    for entry in top.named("restarts", "restart order"):
        orders[entry.name] = top.reader.texts(
            entry.path, entry.node, lambda path, node: top.reader.matching(path, node, name_form)
        )
    return orders
