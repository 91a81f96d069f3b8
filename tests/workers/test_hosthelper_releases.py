"""The helper's verbs releases, switch and prune, on real folders: links, manifests, tokens, no way out of the path."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.lab_host import LabHost, lab_host
from tests.workers.release_tree import ReleaseTree

pytestmark = pytest.mark.real
V1 = {"bin/engine.py": "print(1)\n", "lib/a.py": "a\n", "lib/deep/b.py": "b\n"}
V2 = {"bin/engine.py": "print(2)\n", "lib/a.py": "a\n", "lib/new.py": "n\n", "changes": "faster\ntoken=abcdef0123456\n"}


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        booted.unit("app.service", "ExecStart=/usr/bin/sleep 600")
        yield booted


@pytest.fixture
def tree(host: LabHost, request: pytest.FixtureRequest) -> ReleaseTree:
    digest = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    host.state_file("app.service").unlink(missing_ok=True)
    tree = ReleaseTree(host.folder / f"srv-{digest}")
    tree.release("v1", V1, at=1000.0)
    tree.release("v2", V2, at=2000.0)
    tree.point("releases/v1")
    return tree


def look(host: LabHost, tree: ReleaseTree, *verify: str, **more: Any) -> dict[str, Any]:
    return host.done("releases", unit="app.service", **tree.fields, verify=list(verify), **more)


def act(tree: ReleaseTree, token: int = 1, change: str = "C-1", step: str = "do-0") -> dict[str, Any]:
    return {"unit": "app.service", **tree.fields, "token": token, "change": change, "step": step}


def to(tree: ReleaseTree, expect: str | None, ref: str | None, **more: Any) -> dict[str, Any]:
    known = ref is not None and (tree.home / ref / tree.manifest).exists()
    return {
        **act(tree, **more),
        "expect": expect,
        "to": ref,
        "manifest_sha256": tree.sha256(ref or "") if known else "0",
    }


def test_a_look_tells_the_link_the_releases_and_what_one_holds_against_the_other(
    host: LabHost, tree: ReleaseTree
) -> None:
    (tree.home / "upload-in-progress").mkdir()
    (tree.home / "linked").symlink_to("v1")
    seen = look(host, tree, "v2", "v3", compare=["v2", "v1"])
    assert seen["link"] == {"state": "link", "release": "v1", "target": "releases/v1", "exists": True}
    assert [r["name"] for r in seen["releases"]] == ["v2", "v1"]
    whole, missing = seen["verified"]
    assert (whole["exists"], whole["manifest_sha256"], whole["files"]) == (True, tree.sha256("v2"), 4)
    assert (whole["missing"], whole["differing"], whole["extra"], whole["error"]) == (0, 0, 0, None)
    assert (missing["ref"], missing["exists"], missing["manifest_sha256"]) == ("v3", False, None)
    names = ["+changes", "+lib/new.py", "~bin/engine.py", "-lib/deep/b.py"]
    assert seen["difference"] == {"against": "v1", "added": 2, "changed": 1, "removed": 1, "names": names}
    assert seen["changes"] == "faster\ntoken=***"


def test_every_way_in_which_a_release_is_not_whole_is_told_by_name(host: LabHost, tree: ReleaseTree) -> None:
    (tree.home / "v2/lib/new.py").unlink()
    (tree.home / "v2/bin/engine.py").write_text("print(666)\n")
    (tree.home / "v2/lib/a.py").unlink()
    (tree.home / "v2/lib/a.py").symlink_to("../../v1/lib/a.py")  # the right bytes, by a way out of the release
    (tree.home / "v2/added.py").write_text("x")
    (tree.home / "v2/lib/__pycache__").mkdir()
    (tree.home / "v2/lib/__pycache__/a.pyc").write_text("x")
    (found,) = look(host, tree, "v2")["verified"]
    assert (found["missing"], found["differing"], found["extra"]) == (1, 2, 1)
    assert found["names"] == ["bin/engine.py", "lib/a.py", "lib/new.py"]


def test_a_manifest_that_leads_out_or_says_nothing_is_no_manifest(host: LabHost, tree: ReleaseTree) -> None:
    zeros = "0" * 64
    bad: list[Any] = [
        {path: zeros} for path in ("../v1/lib/a.py", "/etc/passwd", "lib//a.py", "lib/./a.py", "a/..", "")
    ]
    bad += [
        {"lib/a.py": "none"},
        {"lib/a.py": None},
        {},
        [],
        "text",
        {"files": {"": zeros}},
        {"files": [{"path": "a"}]},
    ]
    for number, files in enumerate(bad):
        (tree.release(f"bad{number}", V1) / "manifest.json").write_text(json.dumps(files))
    seen = look(host, tree, *(f"bad{number}" for number in range(len(bad))))
    told = [(found["exists"], (found["error"] or "").split(":")[0]) for found in seen["verified"]]
    assert told == [(True, "manifest.json cannot be used")] * len(bad)
    refused = host.refused("switch", **to(tree, "v1", "bad0"))
    assert (refused["code"], tree.names) == ("release-broken", "releases/v1")


def test_lines_of_sha256sum_are_read_too(host: LabHost) -> None:
    tree = ReleaseTree(host.folder / "sums", folder=".", manifest="SHA256SUMS")
    tree.release("v1", V1)
    (tree.home / "v1/SHA256SUMS").write_text((tree.home / "v1/SHA256SUMS").read_text().replace("  bin", " *./bin"))
    tree.point("v1")
    seen = look(host, tree, "v1")
    assert seen["link"]["release"] == "v1"
    assert (seen["verified"][0]["files"], seen["verified"][0]["missing"], seen["verified"][0]["error"]) == (3, 0, None)


def test_a_link_names_a_release_or_is_said_to_lead_elsewhere(host: LabHost, tree: ReleaseTree) -> None:
    for target, state, release in (
        ("./releases/../releases/v1/", "link", "v1"),
        ("releases/v2", "link", "v2"),
        ("../elsewhere", "outside", None),
        ("releases", "outside", None),
        ("releases/v1/lib", "outside", None),
        ("/etc", "outside", None),
    ):
        tree.point(target)
        exists = release is not None
        assert look(host, tree)["link"] == {"state": state, "release": release, "target": target, "exists": exists}
    tree.point("releases/gone")
    assert look(host, tree)["link"] == {"state": "link", "release": "gone", "target": "releases/gone", "exists": False}


def test_an_absolute_link_through_another_name_of_the_path_is_known(host: LabHost, tree: ReleaseTree) -> None:
    (host.folder / "other-name").symlink_to(tree.path)
    tree.point(str(host.folder / "other-name/releases/v2"))
    assert look(host, tree)["link"]["release"] == "v2"
    (host.folder / "other-name").unlink()


def test_a_folder_instead_of_the_link_is_never_replaced(host: LabHost, tree: ReleaseTree) -> None:
    (tree.path / "current").unlink()
    (tree.path / "current").mkdir()
    assert look(host, tree)["link"]["state"] == "not-a-link"
    assert host.refused("switch", **to(tree, None, "v2"))["code"] == "forbidden"
    assert (tree.path / "current").is_dir()


def test_a_switch_renames_a_new_link_over_the_old_one_and_is_done_once(host: LabHost, tree: ReleaseTree) -> None:
    done = host.done("switch", **to(tree, "v1", "v2"))
    assert (done["already"], done["from"], done["to"], tree.names) == (False, "v1", "v2", "releases/v2")
    assert os.listdir(tree.path) == ["releases", "current"] or sorted(os.listdir(tree.path)) == ["current", "releases"]  # noqa: PTH208
    again = host.done("switch", **to(tree, "v1", "v2", token=2))  # whoever takes over
    assert (again["already"], tree.names) == (True, "releases/v2")
    records = host.done("fence", unit="app.service", token=3)["records"]
    assert [(r["verb"], r["phase"], r["to"]) for r in records] == [("switch", "done", "v2"), ("switch", "done", "v2")]


def test_a_switch_from_nothing_and_back_to_nothing(host: LabHost, tree: ReleaseTree) -> None:
    (tree.path / "current").unlink()
    host.done("switch", **to(tree, None, "v1"))
    assert tree.names == "releases/v1"
    host.done("switch", **{**to(tree, "v1", None, step="undo-0"), "manifest_sha256": None})
    assert not (tree.path / "current").is_symlink()


def test_a_link_that_somebody_else_switched_is_left_alone(host: LabHost, tree: ReleaseTree) -> None:
    tree.point("releases/v2")
    refused = host.refused("switch", **to(tree, "v1", "v2", change="C-2"))
    assert (refused["code"], refused["present"], tree.names) == ("link-changed", "v2", "releases/v2")


def test_a_release_that_is_not_whole_or_another_one_than_planned_is_not_switched_to(
    host: LabHost, tree: ReleaseTree
) -> None:
    planned = to(tree, "v1", "v2")
    (tree.home / "v2/lib/new.py").write_text("other")
    assert host.refused("switch", **planned)["code"] == "release-broken"
    tree.release("v2", {**V2, "lib/new.py": "other"})
    assert host.refused("switch", **planned)["code"] == "release-broken"
    assert host.refused("switch", **to(tree, "v1", "v9"))["code"] == "no-release"
    assert host.refused("switch", **{**to(tree, "v1", "v9"), "manifest_sha256": None})["code"] == "no-release"
    assert tree.names == "releases/v1"


def test_a_lower_token_switches_removes_and_runs_nothing(host: LabHost, tree: ReleaseTree, tmp_path: Path) -> None:
    host.done("fence", unit="app.service", token=5)
    assert host.refused("switch", **to(tree, "v1", "v2", token=4))["code"] == "stale-token"
    tree.release("v3", V1, at=3000.0)
    tree.point("releases/v3")
    assert host.refused("prune", **act(tree, token=4), keep=1, protect=[])["code"] == "stale-token"
    ran = {"token": 4, "change": "C-1", "step": "do-0", "first": 4, "argv": ["/usr/bin/touch", str(tmp_path / "ran")]}
    assert host.refused("command", unit="app.service", **ran)["code"] == "stale-token"
    assert (tree.names, tree.there, (tmp_path / "ran").exists()) == ("releases/v3", ["v1", "v2", "v3"], False)


def test_no_ref_leads_out_of_the_path(host: LabHost, tree: ReleaseTree) -> None:
    requests = [
        {"verb": verb, **request}
        for ref in ["..", ".", "../v1", "a/b", "/etc", "-rf", ".hidden", "", "v1\n", "a" * 200, "current"]
        for verb, request in (
            ("releases", {"unit": "app.service", **tree.fields, "verify": [ref]}),
            ("releases", {"unit": "app.service", **tree.fields, "compare": ["v1", ref]}),
            ("switch", {**act(tree), "expect": "v1", "to": ref, "manifest_sha256": None}),
            ("switch", {**act(tree), "expect": ref, "to": "v2", "manifest_sha256": None}),
            ("prune", {**act(tree), "keep": 1, "protect": [ref]}),
        )
    ]
    assert {(a["ok"], a.get("code")) for a in host.ask_many(requests)} == {(False, "bad-request")}
    assert tree.names == "releases/v1"


def test_no_declared_place_leads_elsewhere(host: LabHost, tree: ReleaseTree) -> None:
    changes = [{"path": "/srv/../etc"}, {"path": "srv/app"}, {"path": "/"}, {"folder": "../x"}, {"current": "a/b"}]
    asked = [{"verb": "releases", "unit": "app.service", **tree.fields, **changed} for changed in changes]
    assert [a.get("code") for a in host.ask_many(asked)] == ["bad-request"] * len(changes)


def test_a_folder_of_releases_that_is_a_link_or_not_there_is_refused(host: LabHost, tree: ReleaseTree) -> None:
    tree.home.rename(tree.path / "real")
    tree.home.symlink_to("real")
    assert host.refused("releases", unit="app.service", **tree.fields)["code"] == "forbidden"
    tree.home.unlink()
    assert host.refused("releases", unit="app.service", **tree.fields)["code"] == "no-releases"


def test_pruning_keeps_the_newest_the_protected_the_one_that_runs_and_what_is_newer(
    host: LabHost, tree: ReleaseTree
) -> None:
    for number in range(3, 9):
        tree.release(f"v{number}", V1, at=1000.0 * number)
    (tree.home / "notes").mkdir()  # no release
    (tree.home / "v1/inner").symlink_to(host.folder)  # nothing behind it may go
    tree.point("releases/v7")
    done = host.done("prune", **act(tree), keep=2, protect=["v3"])
    assert done["removed"] == ["v6", "v5", "v4", "v2", "v1"]
    assert tree.there == ["notes", "v3", "v7", "v8"]
    assert (host.folder / "engine.py").exists()
    tree.point("releases/v3")
    assert host.done("prune", **act(tree, change="C-2"), keep=1, protect=[])["removed"] == []  # the others are newer
    assert tree.there == ["notes", "v3", "v7", "v8"]


def test_a_release_in_which_a_process_of_the_unit_still_stands_is_neither_pruned_nor_unseen(
    host: LabHost, tree: ReleaseTree
) -> None:
    tree.release("v3", V1, at=3000.0)
    host.unit("app.service", f"Type=exec\nExecStart=/usr/bin/sleep 600\nWorkingDirectory={tree.path}/current")
    host.manager.systemctl("restart", "app.service")
    tree.point("releases/v3")
    (stands,) = look(host, tree)["runs"]
    assert (stands["main"], stands["release"]) == (True, "v1")
    assert host.done("prune", **act(tree), keep=1, protect=[])["removed"] == ["v2"]
    assert tree.there == ["v1", "v3"]
    host.unit("app.service", "ExecStart=/usr/bin/sleep 600")


def test_what_a_killed_pruning_left_is_taken_away_by_the_next_one(host: LabHost, tree: ReleaseTree) -> None:
    tree.point("releases/v2")
    (tree.home / "v1").rename(tree.home / ".clawback-removed-v1")
    assert host.done("prune", **act(tree), keep=5, protect=[])["removed"] == []
    assert tree.there == ["v2"]
