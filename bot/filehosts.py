"""Which addresses bytes of files may go to and come from: the host of the API itself, and Slack's host of files.

The bot's token goes there and nowhere else: an address in a message or an answer is only believed this far.
Source: url_private and upload_url in Slack's documentation are on files.slack.com, the API on slack.com; for GovSlack
the same with slack-gov.com.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from bot.slack import is_loopback

FAMILIES = ("slack.com", "slack-gov.com")
PORTS = {"https": 443, "http": 80}


def may_hold_files(url: str, api_url: str) -> bool:
    """Whether `url` is on the API's own host, or on the host for files of the same Slack, over TLS.

    >>> may_hold_files("https://files.slack.com/files-pri/T1-F1/a.json", "https://slack.com/api/")
    True
    >>> may_hold_files("https://files.slack.com.evil.example/a.json", "https://slack.com/api/")
    False
    """
    try:
        there, api = urlsplit(url), urlsplit(api_url)
        port, api_port = _port(there), _port(api)
    except ValueError:
        return False
    if there.hostname is None or there.username is not None or there.password is not None:
        return False
    if is_loopback(api_url):
        return (there.scheme, there.hostname, port) == (api.scheme, api.hostname, api_port)
    if there.scheme != "https" or port != PORTS["https"]:
        return False
    if there.hostname == api.hostname:
        return api_port == PORTS["https"]
    family = next((one for one in FAMILIES if api.hostname == one or str(api.hostname).endswith(f".{one}")), None)
    return family is not None and there.hostname == f"files.{family}"


def _port(url: SplitResult) -> int | None:
    return url.port or PORTS.get(url.scheme)
