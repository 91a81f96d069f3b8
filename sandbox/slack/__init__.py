"""A local, strict stand-in for a Slack workspace with Socket Mode, on loopback only."""

from sandbox.slack.errors import PersonError
from sandbox.slack.faults import Fault
from sandbox.slack.records import Envelope, Message, Violation
from sandbox.slack.server import SlackSandbox

__all__ = ["Envelope", "Fault", "Message", "PersonError", "SlackSandbox", "Violation"]
