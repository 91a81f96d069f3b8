"""The page of the sandbox workspace: a small chat client in the browser, with traffic and faults at hand."""

import sandbox.slack  # noqa: F401 - the server and its page import each other; the server comes first
