"""Known host keys: what is read, what is refused, and what the refusal says."""

from __future__ import annotations

import base64
import hmac
import os
from pathlib import Path

import pytest

from policies.errors import HostKeyRefused, SettingsError
from policies.fleet import Host
from workers.shells.hostkeys import HostKey, KnownHosts, lookup_name, parse_key


def key(letter: str, type_: str = "ssh-ed25519") -> HostKey:
    """A key with a blob of the right form."""
    word = type_.encode()
    return HostKey(type_, len(word).to_bytes(4, "big") + word + b"\0\0\0\x20" + letter.encode() * 32)


def host(**fields: object) -> Host:
    return Host.model_validate({"name": "gpu1", "address": "gpu1.example", "user": "ops"} | fields)


def known(folder: Path, *lines: str) -> KnownHosts:
    file = folder / "known_hosts"
    file.write_text("".join(line + "\n" for line in lines))
    return KnownHosts((file,))


def hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("names", "port"),
    [
        ("gpu1.example", 22),
        ("other,gpu1.example,192.0.2.1", 22),
        ("[gpu1.example]:2222", 2222),
        ("*.example", 22),
        ("gpu?.example,!gpu2.example", 22),
        ("[gpu?.example]:*", 2222),
        ("GPU1.Example", 22),
    ],
)
def test_a_key_is_found_under_every_way_to_write_the_name(tmp_path: Path, names: str, port: int) -> None:
    known(tmp_path, f"{names} {key('a').line} comment").check(host(port=port), key("a"))


@pytest.mark.parametrize(
    ("names", "port"),
    [
        ("gpu1.example", 2222),
        ("[gpu1.example]:2222", 22),
        ("gpu2.example", 22),
        ("*.example,!gpu1.example", 22),
        ("gpu[12].example", 22),
    ],
)
def test_a_name_that_is_not_this_host_gives_no_key(tmp_path: Path, names: str, port: int) -> None:
    assert known(tmp_path, f"{names} {key('a').line}").keys(host(port=port)) == ()


def test_hashed_names_are_found(tmp_path: Path) -> None:
    store = known(
        tmp_path,
        f"{hashed('gpu2.example')} {key('b').line}",
        f"{hashed('gpu1.example')} {key('a').line}",
        f"{hashed('[gpu1.example]:2222')} {key('c').line}",
    )
    assert store.keys(host()) == (key("a"),)
    assert store.keys(host(port=2222)) == (key("c"),)


def test_an_unknown_host_is_refused_with_its_fingerprint_and_the_line_to_add(tmp_path: Path) -> None:
    with pytest.raises(HostKeyRefused) as refusal:
        known(tmp_path).check(host(port=2222), key("a"))
    assert "is not known" in refusal.value.message
    assert key("a").fingerprint in refusal.value.message
    assert f"[gpu1.example]:2222 {key('a').line}" in refusal.value.hint


def test_a_changed_key_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    with pytest.raises(HostKeyRefused) as refusal:
        known(tmp_path, f"gpu1.example {key('a').line}").check(host(), key("b"))
    assert "changed" in refusal.value.message
    assert key("a").fingerprint in refusal.value.message
    assert key("b").fingerprint in refusal.value.message


def test_the_key_of_the_fleet_file_decides_alone(tmp_path: Path) -> None:
    store = known(tmp_path, f"gpu1.example {key('a').line}")
    store.check(host(host_key=key("b").line), key("b"))
    with pytest.raises(HostKeyRefused, match="changed"):
        store.check(host(host_key=key("b").line), key("a"))


def test_a_revoked_key_is_refused_even_where_the_fleet_file_names_it(tmp_path: Path) -> None:
    store = known(tmp_path, f"gpu1.example {key('a').line}", f"@revoked * {key('a').line}")
    for asked in (host(), host(host_key=key("a").line)):
        with pytest.raises(HostKeyRefused, match="revoked"):
            store.check(asked, key("a"))


def test_certificate_authorities_comments_and_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    store = known(
        tmp_path,
        f"@cert-authority *.example {key('a').line}",
        f"# gpu1.example {key('b').line}",
        "gpu1.example ssh-ed25519 not-base64!",
        f"gpu1.example ssh-rsa {key('c').line.split()[1]}",
        "gpu1.example",
        "|1|bad ssh-ed25519 AAAA",
        f"|1|###|### {key('c').line}",
        f"gpu1.example {key('d').line}",
    )
    assert store.keys(host()) == (key("d"),)


def test_a_key_that_is_added_later_works_without_a_restart(tmp_path: Path) -> None:
    store = known(tmp_path, f"gpu2.example {key('a').line}")
    with pytest.raises(HostKeyRefused):
        store.check(host(), key("a"))
    with (tmp_path / "known_hosts").open("a") as file:
        file.write(f"gpu1.example {key('a').line}\n")
    store.check(host(), key("a"))


def test_a_missing_file_knows_nobody(tmp_path: Path) -> None:
    assert KnownHosts((tmp_path / "none",)).keys(host()) == ()


def test_a_file_that_cannot_be_read_is_a_settings_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        KnownHosts((tmp_path,)).keys(host())


def test_twenty_thousand_lines_are_walked_once_for_plain_names(tmp_path: Path) -> None:
    store = known(
        tmp_path, *(f"host{n}.example {key('a').line}" for n in range(20_000)), f"gpu1.example {key('b').line}"
    )
    assert store.keys(host()) == (key("b"),)
    assert store.keys(host(address="host19999.example")) == (key("a"),)


def test_a_fleet_key_that_is_no_key_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="expected a public key"):
        parse_key("ssh-ed25519", where="host_key of gpu1")


def test_the_fingerprint_is_the_one_that_ssh_keygen_prints() -> None:
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"  # GitHub's
    assert parse_key(line, where="x").fingerprint == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def test_the_name_has_its_port_unless_it_is_22() -> None:
    assert (lookup_name("Gpu1", 22), lookup_name("::1", 2222)) == ("gpu1", "[::1]:2222")
