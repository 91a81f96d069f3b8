"""The form in which result files are handed over: what it asks, what is wrong with it, and what came of it."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "form.opener": "{n:n=file} came with this: the form asks which of them are of A and which of B",
    "form.opener-empty": (
        "the form asks for a knob, its two values and the result files of both arms; files that are in the channel"
        " already: drop them here with a message that mentions me and says `evidence add`"
    ),
    "form.late": "the form could not be opened in the 3 s that slack gives for it: say it again",
    "form.only-in-slack": (
        "the form is for a chat; here: `clawback evidence record --knob NAME --value VALUE --a FILE... --b FILE...`"
    ),
    "form.not-here": "the bot is not in this channel, so nothing can be shown here: invite it and ask again",
    "form.archived": "this channel is archived, so nothing can be shown here: ask in another one",
    "form.shared": "this channel is shared with another organisation, so no results are shown here: ask in another one",
    "form.unreadable": "this form came back without its place: close it and open it again",
    "form.no-knob": "there is no such knob now, known are {known}",
    "form.no-metric": "{metric} has no better direction, choose another one",
    "form.same-value": "both arms had the same value, so there is nothing to compare",
    "form.no-files": "no file is chosen, expected at least one",
    "form.too-many": "{n:n=file} in both arms, expected at most {most}",
    "form.too-large": "{file} has {mib} MiB, expected at most {most}",
    "form.both-arms": (
        "a file is in both arms, expected each in one; one that names its arms itself is recorded in a terminal,"
        " as FILE#ARM"
    ),
    "form.recorded": "{record} is recorded as {klass:words}: verdict and pictures follow in this channel",
    "form.recorded-silently": "{record} is recorded as {klass:words}; it cannot be shown in this channel: {why}",
    "form.already": "these files are recorded already as {record}, {klass:words}",
    "form.refused": "nothing is recorded: {message}; {hint:or=look at the file}",
    "exhibit.heading": "*{knob} = {value:value}*: {klass:words}",
    "exhibit.no-pictures": "pictures could not be posted: {why}",
    "exhibit.pictures": "evidence {record}: effect at each load, and runs in their order",
}
