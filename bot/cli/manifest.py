"""`clawback manifest`: the Slack app of this configuration, to be pasted where Slack makes apps."""

from __future__ import annotations

import json

import click

from bot.manifest import manifest
from bot.settings import missing, read_settings
from policies.errors import SettingsError

WHERE = "paste it at https://api.slack.com/apps > Create New App > From a manifest; then install it"
NEXT = {
    "socket": "make an app-level token with connections:write (Basic Information): that is SLACK_APP_TOKEN",
    "http": "the signing secret under Basic Information is SLACK_SIGNING_SECRET",
}


@click.command(name="manifest")
@click.option("--http", is_flag=True, help="HTTP mode, also where SLACK_APP_TOKEN is set.")
@click.option("--url", metavar="URL", help="Where Slack reaches the bot in HTTP mode; default: CLAWBACK_URL.")
@click.option("--name", default="clawback", show_default=True, help="The app's name in Slack.")
@click.option("--json", "as_json", is_flag=True, help="Print nothing else than the manifest.")
def command(url: str | None, name: str, *, http: bool, as_json: bool) -> None:
    """Print the app manifest: commands, events, interactivity and exactly the scopes that are used.

    For Socket Mode, or for HTTP mode when --http or --url is given, or SLACK_SIGNING_SECRET is set without
    SLACK_APP_TOKEN.
    """
    settings = read_settings()
    if not 1 <= len(name) <= 35:
        raise click.UsageError(f"the name {name[:40]!r} has {len(name)} characters, Slack takes 1 to 35")
    by_http = http or url is not None or bool(settings.slack_signing_secret and not settings.slack_app_token)
    address = (url or settings.clawback_url) if by_http else None
    if by_http and address is None:
        raise SettingsError(missing("CLAWBACK_URL").message, hint="give --url https://HOST, or set CLAWBACK_URL")
    click.echo(json.dumps(manifest(name, address), indent=2))
    if not as_json:
        click.echo(f"{WHERE}\n{NEXT['http' if by_http else 'socket']}", err=True)
