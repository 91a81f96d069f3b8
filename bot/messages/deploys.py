"""Deploys and rollbacks: what stands in their way, what a version holds, and where the way back leads."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "deploy.no-such-service": "no service {service:code} in the fleet file, expected one of: {known}",
    "deploy.not-declared": (
        "the fleet file does not say how {service:code} gets another version, so it cannot be deployed here;"
        " add `deploy` to it (services that have it: {known:or=none})"
    ),
    "deploy.no-such-order": "{service:code} is not deployed by the order {order:code}, expected one of: {orders}",
    "deploy.bad-ref": "{ref:code} is no version of it, expected one that matches {pattern:code} as a whole",
    "deploy.no-version-in-ref": (
        "{ref:code} does not say which version would be read back: {pattern:code} (`part` in the fleet file) finds"
        " nothing in it"
    ),
    "deploy.no-releases": "{instance}: there is no folder of releases below {path:code}; put one there, then ask again",
    "deploy.release-missing": (
        "{instance}: the release {ref:code} is not there, expected the folder {place:code}; the newest that are there:"
        " {there:or=none}"
    ),
    "deploy.manifest-unusable": "{instance}: the release {ref:code} cannot be verified: {error}",
    "deploy.release-broken": (
        "{instance}: the release {ref:code} is not as its manifest says: {missing} missing and {differing} different of"
        " {files:n=file} ({names}); put it there again, then ask again"
    ),
    "deploy.releases-differ": (
        "the release {ref:code} is not the same on every host: {found}; put the same one on all of them, then ask again"
    ),
    "deploy.link-foreign": (
        "{instance}: {path:code} is no link to a release ({target:or=it is no link}), so it is not switched; put that"
        " right by hand, then ask again"
    ),
    "deploy.check-failed": "{instance}: {ref:code} cannot be had there: {error:or=the check gave no answer}",
    "deploy.nothing-to-do": (
        "{service:code} is on {ref:code} already on {instances}, and it is read back as that; nothing to do"
    ),
    "deploy.version-unread": (
        "{instance}: the version that runs now cannot be read back ({source:code}: {error:or=no answer})"
    ),
    "deploy.version-differs": (
        "{instance}: it is set to {ref:code} now, but what runs is read back as {version:code}, expected"
        " {expected:code}; an undo goes back to what is set"
    ),
    "deploy.link-not-used": (
        "{instance}: no file of {unit:code} names {path:code}, so a switch may change nothing of what it starts"
    ),
    "deploy.version-on-disk": (
        "{instance}: the version is read from {path:code}, which lies among the releases: it says what is on the disk,"
        " not what runs"
    ),
    "deploy.extra-files": "{instance}: {n:n=file} in the release {ref:code} that its manifest does not list",
    "deploy.no-way-back": (
        "{instance}: there is no way back to what runs now ({ref:or=not known}), so a failed gate will hold this"
        " change instead of undoing it"
    ),
    "deploy.only-restarted": (
        "{service:code} is set to {ref:code} already and only has to be restarted, so there is nothing to undo; a"
        " failed gate will hold this change"
    ),
    "deploy.bad-before": "{ref:code} was taken back before, by {change} ({at:day})",
    "deploy.contents": (
        "{ref:code} against {against:code}: {added} added, {changed} changed, {removed} removed ({names:or=no file})"
    ),
    "deploy.changes": "{ref:code} says of itself: {changes:code}",
    "deploy.rollback-to": "a rollback would go to {ref:code}, proven by {change} ({proven_at:day})",
    "deploy.rollback-none": "no version is proven good here yet, so a rollback would have nowhere to go",
    "deploy.rollback-broken": (
        "a rollback could not go to {ref:code} (proven by {change}, {proven_at:day}): {instance}: {why}"
    ),
    "deploy.proven-by": "{ref:code} was proven by {change} ({proven_at:day})",
    "deploy.command-said": "{lines:or=it wrote nothing}",
    "deploy.pruned": "taken away: {removed:or=none}; left: {kept:or=none}",
    "rollback.cascade": (
        "{service:code} was rolled back already by {change} and runs {running:or=an unknown version}; going back"
        " further needs a name: `/deploy {service} REF` (other versions that are proven good: {others:or=none})"
    ),
    "rollback.undone-already": (
        "{change} to {ref:code} was undone already and {service:code} runs {running:or=an unknown version}; going back"
        " further needs a name: `/deploy {service} REF` (other versions that are proven good: {others:or=none})"
    ),
    "rollback.none-proven": (
        "no other version of {service:code} than {running:or=an unknown one} is proven good, so there is none to go"
        " back to; name one: `/deploy {service} REF`"
    ),
    "hold.version-lost": "{instance}: the version was right at its gate and is not, or cannot be read back, any more",
    "hold.link-changed": (
        "{instance}: somebody else switched the link ({message}); it was left as it is; {hint:or=look who did it}"
    ),
    "hold.release-broken": "{instance}: the release is not as it was planned ({message}); {hint:or=put it there again}",
    "hold.command-failed": (
        "{instance}: {program:code} for {ref:code} did not end well ({how}): {lines:or=it wrote nothing}; put right"
        " what it says, then ask again"
    ),
    "hold.no-way-back": (
        "{service:code} was changed to {ref:code} on the way and there is no way back, so it stays as it is until a"
        " person decides"
    ),
    "undo.deploy-done": "{service:code} is on {ref:or=no version} as before, and every gate of the undo passed",
    "gate.version.same": "{instance} runs {version:code}, as it says itself ({source})",
    "gate.version.differs": "{instance} runs {version:code}, as it says itself ({source}), expected {wanted:code}",
    "gate.version.not-read": (
        "which version {instance} runs could not be read back ({source}: {error:or=no answer}), expected {wanted:code}"
    ),
    "proof.version": "{instance} says that it runs {version:code}",
    "proof.version-other": "{instance} says that it runs {version:code}, expected {wanted:code}",
    "proof.version-unread": "the version could not be read back ({source}: {error:or=no answer})",
    "proof.named-other": "its next start would run {found:or=nothing known}, expected {ref:code}",
    "proof.runs-from-another": "the process was started from {found:or=elsewhere}, expected {ref:code}",
    # lines of the card and the thread
    "plan.headline-deploy": "*{verb} {service} {ref}*",
    "plan.headline-rollback": "*{verb} {service} back to {ref}*",
    "plan.headline-rollback-bare": "*{verb} {service} back*",
    "plan.brought-deploy": "deployed {age_s:s} ago by {actor:who} ({change})",
    "plan.brought-rollback": "rolled back to {age_s:s} ago by {actor:who} ({change})",
    "plan.runs-now": "{instance} says that it runs {version:code} now",
    "plan.undo-no-way": "undo: there is no way back; a failed gate holds it for a person",
    "plan.confirm-text-deploy": "this restarts {path} and brings {service} from {now} to {then}",
    "plan.confirm-text-deploy-mixed": "this restarts {path} and brings {service} to {then}",
    "step.switched": "{instance}: the link names {ref:code} now, was {before:or=none}",
    "step.undo-switched": "undo: {instance}: the link names {ref:or=no release} again",
    "step.commanded": "{instance}: {program:code} ended well for {ref:code}: {said}",
    "step.undo-commanded": "undo: {instance}: {program:code} ended well for {ref:or=the version before}: {said}",
    "step.pruned": "{instance}: old releases: {said}",
    "step.now-switch": "{instance} link",
    "step.now-command": "{instance} command",
    "step.now-prune": "{instance} old releases",
    "step.gate-version": "its version",
    "end.deployed": "done in {took_s:s}: {service} runs {ref:code} now, was {was:or=not known}",
    "details.switch": "{n}. {instance}: have {path:code} name {ref:code} instead of {before:or=nothing}",
    "details.switch-away": "{n}. {instance}: take {path:code} away",
    "details.command": (
        "{n}. {instance}: {argv:code} as {user:or=the login user}, at most {limit_s:s}; declared to bring about the"
        " same when it is run again"
    ),
    "details.prune": (
        "{n}. {instance}: keep the newest {keep}, what runs, what is newer and {protected}; take older releases away"
    ),
    "details.covers-release": "release {ref:code}: manifest {sha256:sha}",
    "details.covers-digest": "{path:code} on {host}: sha256 {sha256:sha}",
    "details.covers-version": (
        "{instance}: read back as {now:or=nothing} now, expected {then:code} then, {back:or=not asked} after an undo"
    ),
}
