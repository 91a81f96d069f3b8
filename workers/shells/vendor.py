"""Errors of paramiko and of sockets in our words: one map, and a test that fails when a class is missing from it.

Which of our errors is raised depends on one fact alone: whether the command had been sent.
"""

from __future__ import annotations

import socket

import paramiko
from paramiko import auth_strategy, ber, buffered_pipe, hostkeys, packet, pkey, sftp, ssh_exception

from policies.errors import HostAnswerLost, HostUnreachable
from policies.fleet import Host

# what can reach us from below while a connection is made or used
FAILURES: tuple[type[Exception], ...] = (
    paramiko.SSHException,
    EOFError,
    OSError,
    hostkeys.InvalidHostKey,
    pkey.UnknownKeyType,
    packet.NeedRekeyException,
    ber.BERException,
    sftp.SFTPError,
)

# class -> (what it means, what to do). The nearest class along the inheritance counts.
MEANING: dict[type[BaseException], tuple[str, str]] = {
    paramiko.SSHException: ("the ssh connection failed", ""),
    paramiko.AuthenticationException: (
        "the login was refused",
        "check the user, the key and authorized_keys on the host",
    ),
    paramiko.PasswordRequiredException: ("the key needs a passphrase", "load it into an ssh agent"),
    paramiko.BadAuthenticationType: (
        "public keys are not allowed for the login",
        "allow public keys in the host's sshd_config",
    ),
    ssh_exception.PartialAuthentication: (
        "the login needs a second proof",
        "allow the user to log in with a key alone",
    ),
    ssh_exception.UnableToAuthenticate: ("the login was refused", "check the user and the key"),
    auth_strategy.AuthFailure: ("the login was refused", "check the user and the key"),
    paramiko.ChannelException: ("the host opened no session", "raise MaxSessions in the host's sshd_config"),
    paramiko.BadHostKeyException: ("the host's key is not the known one", "compare it on the host's own console"),
    ssh_exception.IncompatiblePeer: (
        "the host offers only algorithms that are not allowed here",
        "update the host's ssh server",
    ),
    ssh_exception.MessageOrderError: ("the host broke the order of the key exchange", "somebody may be in between"),
    paramiko.ProxyCommandFailure: ("the proxy command failed", ""),
    ssh_exception.CouldNotCanonicalize: (
        "the host's name could not be resolved",
        "check the address in the fleet file",
    ),
    paramiko.ConfigParseError: ("the ssh configuration cannot be read", ""),
    ssh_exception.NoValidConnectionsError: (
        "no address of the host could be reached",
        "check address and port in the fleet file",
    ),
    buffered_pipe.PipeTimeout: ("the host did not answer in time", ""),
    hostkeys.InvalidHostKey: ("a known host key cannot be read", "check known_hosts"),
    pkey.UnknownKeyType: ("the key is of a type that is not supported", "use ed25519, ecdsa or rsa"),
    packet.NeedRekeyException: ("the key exchange was interrupted", ""),
    ber.BERException: ("the key file cannot be read", "use an OpenSSH key file"),
    sftp.SFTPError: ("the file transfer failed", ""),
    EOFError: ("the connection was closed by the host", ""),
    socket.gaierror: ("the address cannot be resolved", "check the address in the fleet file"),
    socket.herror: ("the address cannot be resolved", "check the address in the fleet file"),
    ConnectionRefusedError: ("nobody listens there", "check that sshd runs, and the port in the fleet file"),
    ConnectionResetError: ("the connection was cut by the host", ""),
    BrokenPipeError: ("the connection was cut by the host", ""),
    TimeoutError: ("the host did not answer in time", "check that the host is up and reachable from here"),
    OSError: ("the network failed", ""),
}


def meaning(error: BaseException) -> tuple[str, str]:
    """Words and hint of an error from below."""
    for kind in type(error).__mro__:
        if kind in MEANING:
            words, hint = MEANING[kind]
            detail = " ".join(str(error).split())[:200]
            return (f"{words}: {detail}" if detail else words), hint
    return f"unexpected {type(error).__name__}: {error}", ""


def unreachable(host: Host, error: BaseException) -> HostUnreachable:
    """Nothing was sent."""
    words, hint = meaning(error)
    return HostUnreachable(
        f"host '{host.name}' ({host.user}@{host.address}:{host.port}) cannot be reached, nothing was done: {words}",
        hint=hint,
    )


def lost(host: Host, reason: BaseException | str) -> HostAnswerLost:
    """The command was sent and may have run."""
    words = reason if isinstance(reason, str) else meaning(reason)[0]
    return HostAnswerLost(
        f"the command was sent to host '{host.name}' and its answer was lost: {words}",
        hint="ask the host what happened before anything is repeated",
    )


def refused(host: Host) -> HostUnreachable:
    """The host said no to the request to run a command."""
    return HostUnreachable(
        f"host '{host.name}' refused to run a command, nothing was done",
        hint=f"check what user '{host.user}' may do there (ForceCommand, restrict, the login shell)",
    )
