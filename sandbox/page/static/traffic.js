// Every call and every envelope between app and workspace, newest first.

import { clock, h } from "./dom.js";
import { store, user } from "./store.js";

const MOST_ROWS = 300;
const UNTIMED = Infinity; // not sent yet, or without a time of its own: on top

/** The rows for `keyed`. */
export function trafficRows() {
  const wrong = Map.groupBy(store.violations.filter(Boolean), (violation) => violation.call);
  const calls = store.calls.filter(Boolean).map((c) => callRow(c, wrong.get(c.n) || []));
  const envelopes = store.envelopes.filter(Boolean).map(envelopeRow);
  const all = [...calls, ...envelopes, ...(wrong.get(null) || []).map(violationRow)];
  if (all.length) return all.sort((a, b) => b.at - a.at).slice(0, MOST_ROWS);
  const words = "Nothing was said yet. Type a command, or let an app connect.";
  return [{ key: "none", version: "", draw: () => h("li.small", words) }];
}

function callRow(c, wrong) {
  const cut = c.error === "reset" || c.fault;
  const count = `${wrong.length} violation${wrong.length > 1 ? "s" : ""}`;
  const answer = { status: c.status, ok: c.ok, ...(c.error && { error: c.error }), ...(c.fault && { fault: c.fault }) };
  return row({
    key: "call " + c.n,
    version: `${c.status} ${c.error} ${wrong.length}`,
    at: c.at,
    fromApp: true,
    bad: wrong.length || (c.status && !c.ok),
    name: c.method,
    about: wrong.length ? `${count}: ${wrong[0].code}` : String(c.args.text ?? c.args.channel ?? c.args.user ?? ""),
    outcome: c.status ? (c.ok ? "ok" : `${c.status} ${c.error || ""}`) : cut ? "reset" : "…",
    details: () => [wrong.map(sentence), json("arguments", c.args), json("answer", answer)],
  });
}

function envelopeRow(e) {
  const { payload, ack_payload, kind, envelope_id, sent_at, attempt_at, n, ...delivery } = e;
  const who = user(payload.user_id || payload.user?.id || payload.event?.user)?.name;
  const ack = e.acked_ms === null ? "waiting" : `acked after ${Math.round(e.acked_ms)} ms${e.late ? ", too late" : ""}`;
  return row({
    key: "envelope " + n,
    version: `${e.attempts} ${e.acks} ${e.failure} ${e.expired}`,
    at: sent_at || UNTIMED,
    bad: e.failure || e.late,
    name: kind,
    about: (who ? `@${who}: ` : "") + done(payload) + (e.attempts > 1 ? `, ${e.attempts} deliveries` : ""),
    outcome: e.failure || ack,
    details: () => [
      json("delivery", delivery),
      json("payload", payload),
      ack_payload && json("acknowledged with", ack_payload),
    ],
  });
}

function done(payload) {
  if (payload.command) return `${payload.command} ${payload.text}`;
  if (payload.actions) return payload.actions.map((one) => one.text?.text || one.action_id).join(", ");
  return payload.event?.type || payload.type || "";
}

const violationRow = (v) =>
  row({
    key: "violation " + v.n,
    version: "",
    at: UNTIMED,
    fromApp: true,
    bad: true,
    name: v.method,
    about: v.code,
    outcome: "violation",
    details: () => sentence(v),
  });

function row({ key, version, at, fromApp, bad, name, about, outcome, details }) {
  const draw = () =>
    h("li", { class: bad ? "bad" : null },
      h("details",
        h("summary",
          h("time", at === UNTIMED ? "" : clock(at, { second: "2-digit", fractionalSecondDigits: 3 })),
          h("b.arrow", { title: fromApp ? "from the app" : "to the app" }, fromApp ? "←" : "→"),
          h("code", name), h("span.about", about), h("span.outcome", outcome)),
        details()));
  return { key, version, at, draw };
}

const json = (label, value) => h("div", h("h4", label), h("pre", { tabindex: "0" }, JSON.stringify(value, null, 1)));
const sentence = (v) => h("p.wrong", h("b", v.code), ` ${v.message} `, v.pointer && h("code", v.pointer));
