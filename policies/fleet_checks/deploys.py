"""The entry `deploy:` of a service in a fleet file: one strategy, how the version is read back, the restart orders."""

from __future__ import annotations

import re

import yaml

from policies.deploys.strategy import (
    MANIFEST,
    PLAIN_REF,
    REF,
    CommandLine,
    DeployEntry,
    Releases,
    Strategy,
    Variable,
    VersionSource,
)
from policies.fleet_checks.problems import Path, quote
from policies.fleet_checks.regex import regex
from policies.fleet_checks.table import Table
from policies.fleet_checks.urls import check_url
from policies.fleet_checks.values import Form

strategies = ("releases", "variable", "command")
sources = ("file", "command", "http")
deploy_keys = (*strategies, "version", "restarts")
release_keys = ("path", "folder", "current", "keep", "manifest", "verify")
command_keys = ("argv", "undo", "check", "ref", "timeout", "user")
shells = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox"})
longest_timeout_s = 1800.0  # a lease is renewed meanwhile, but nobody should wait longer for a host in silence
default_version_s = 10.0
path_form = Form(
    r"(/(?!\.{1,2}(/|$))[A-Za-z0-9][A-Za-z0-9._+@-]{0,254}){2,16}",
    "deploy.path",
    "an absolute path of two folders or more, of letters, digits, '.', '_', '+', '@' and '-'",
    "write e.g. path: /srv/app",
)
file_form = Form(
    r"(/(?!\.{1,2}(/|$))[^/\s*?\[\]]{1,255}){1,16}",
    "deploy.file",
    "the absolute path of a file without blanks and patterns",
    "write e.g. file: /run/app/version",
)
part_form = Form(
    r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}",
    "deploy.name",
    "the name of one file or folder",
    "write e.g. current: current, manifest: SHA256SUMS",
)
folder_form = Form(rf"\.|{part_form.pattern}", "deploy.name", part_form.expected, 'write e.g. folder: releases, or "."')
env_form = Form(
    r"[A-Za-z_][A-Za-z0-9_]{0,254}",
    "deploy.env",
    "the name of an environment variable",
    "write e.g. env: APP_VERSION",
)
field_form = Form(
    r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*",
    "deploy.field",
    "a dotted path in a JSON answer",
    "write e.g. field: version",
)
user_form = Form(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", "deploy.user", "a user name of the host", "write e.g. user: deploy")


def read_deploy(service: Table) -> DeployEntry | None:
    """`deploy:` of a service; None where there is none, or none that could be used."""
    table = service.table("deploy", deploy_keys)
    if table is None:
        return None
    found = [key for key in strategies if key in table]
    problems = table.reader.problems
    if len(found) != 1 and table.readable:
        told = f"{' and '.join(found)} are given" if found else "no strategy is given"
        hint = (
            "write releases: {path: /srv/app}, or variable: {env: APP_VERSION, ref: PATTERN}, or command: {argv: [...]}"
        )
        problems.add(table.path, "deploy.strategy", f"{told}, expected exactly one of {', '.join(strategies)}", hint)
    table.need("version", 'version: {http: "http://127.0.0.1:PORT/version", field: version}')
    table.need("restarts", "restarts: [ORDER]")
    read = {"releases": _releases, "variable": _variable, "command": _command}
    strategy = [read[key](table) for key in found][:1]
    version = _version(table)
    restarts = table.names("restarts")
    if not strategy or version is None:
        return None
    return DeployEntry(strategy=strategy[0], version=version, restarts=restarts)


def _releases(deploy: Table) -> Strategy:
    table = deploy.table("releases", release_keys)
    if table is None or not table.need("path", "path: /srv/app"):
        return Releases(path="")
    current = table.matching("current", part_form) or "current"
    folder = table.matching("folder", folder_form) or "releases"
    if folder == current:
        message = f"{quote(current)} is the folder of the releases and the link as well, expected two names"
        table.reader.problems.add(table.at("current"), "deploy.link", message, "write e.g. current: current")
    return Releases(
        path=table.matching("path", path_form) or "",
        folder=folder,
        current=current,
        keep=table.whole("keep", 1, 100, 5),
        manifest=table.matching("manifest", part_form) or MANIFEST,
        verify_s=_limit(table, "verify", 120.0),
    )


def _variable(deploy: Table) -> Strategy:
    table = deploy.table("variable", ("env", "ref"))
    if table is None:
        return Variable(env="", ref=PLAIN_REF)
    table.need("env", "env: APP_VERSION")
    table.need("ref", 'ref: "v[0-9]+[.][0-9]+[.][0-9]+"')
    return Variable(
        env=table.matching("env", env_form) or "",
        ref=regex(table, "ref", "deploy.ref", '"v[0-9.]+"') or PLAIN_REF,
    )


def _command(deploy: Table) -> Strategy:
    table = deploy.table("command", command_keys)
    if table is None:
        return CommandLine(argv=())
    table.need("argv", 'argv: [/usr/local/bin/deploy-app, "{ref}"]')
    argv, undo, check = (arguments(table, key) for key in ("argv", "undo", "check"))
    if argv and not any(REF in argument for argument in argv):
        message = "no argument holds {ref}, expected the version to be named to the command"
        table.reader.problems.add(table.at("argv"), "deploy.no_ref", message, 'add "{ref}" as an argument')
    return CommandLine(
        argv=argv,
        undo=undo,
        check=check,
        ref=regex(table, "ref", "deploy.ref", '"v[0-9.]+"') or PLAIN_REF,
        timeout_s=_limit(table, "timeout", 300.0),
        user=table.matching("user", user_form),
    )


def arguments(table: Table, key: str) -> tuple[str, ...]:
    """An argument list whose program is named by its path, and that starts no shell on a text."""
    node = table.nodes.get(key)
    if node is None:
        return ()
    items = table.reader.items(table.at(key), node)
    found = tuple(table.reader.text((*table.at(key), i), item, raw=True) for i, item in enumerate(items))
    problem, hint = _argv_problem(found) if isinstance(node, yaml.SequenceNode) else ("", "")
    if problem:
        table.reader.problems.add(table.at(key), "deploy.argv", problem, hint)
        return ()
    return found


def _argv_problem(argv: tuple[str, ...]) -> tuple[str, str]:
    """What is wrong with an argument list, and what to write; two empty texts where nothing is."""
    example = 'write e.g. [/usr/local/bin/deploy-app, "--to={ref}"]'
    if not argv or not re.fullmatch(file_form.pattern, argv[0]) or REF in argv[0]:
        first = quote(argv[0]) if argv else "nothing"
        return f"{first} is no program, expected its absolute path first", example
    if argv[0].rsplit("/", 1)[-1] in shells and any(re.fullmatch(r"-[a-z]*c[a-z]*", word) for word in argv[1:]):
        return "a shell would read a text here, expected a program with its arguments", "put the text into a script"
    if unknown := [word for argument in argv for word in re.findall(r"\{[^{}]*\}", argument) if word != REF]:
        return f"{quote(unknown[0])} is not replaced by anything, expected {{ref}} alone", example
    return "", ""


def _version(deploy: Table) -> VersionSource | None:
    table = deploy.table("version", (*sources, "field", "part", "timeout"))
    if table is None:
        return None
    problems = table.reader.problems
    found = [key for key in sources if key in table]
    if len(found) != 1:
        told = " and ".join(found) if found else "nothing"
        message = f"the version is read from {told}, expected exactly one of {', '.join(sources)}"
        problems.add(
            table.path, "deploy.version", message, 'write e.g. version: {http: "http://127.0.0.1:PORT/version"}'
        )
        return None
    if "field" in table and "file" in found:
        message = "a file is read as text, expected `field` only with an answer of http or command"
        problems.add(table.at("field"), "deploy.field", message, "remove field")
    url = table.text("http")
    return VersionSource(
        file=table.matching("file", file_form) or None,
        command=arguments(table, "command"),
        http=(check_url(problems, table.at("http"), url) or None) if url else None,
        field=table.matching("field", field_form) or None,
        part=regex(table, "part", "deploy.part", '".*:v?(.+)"', groups=1),
        timeout_s=_limit(table, "timeout", default_version_s),
    )


def _limit(table: Table, key: str, default_s: float) -> float:
    """A time limit of one second to half an hour."""
    found = table.duration(key, default_s, 1.0)
    if found > longest_timeout_s:
        at: Path = table.at(key)
        message = (
            f"{found:g}s is longer than anybody waits for a host in silence, expected {longest_timeout_s:g}s or less"
        )
        table.reader.problems.add(at, "deploy.timeout", message, f"write {key}: {default_s:g}s")
        return default_s
    return found
