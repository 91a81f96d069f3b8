// The menu of what can go wrong: answers, envelopes, the connection, people and channels.

import { h, notice, tryTo } from "./dom.js";
import { store } from "./store.js";

// kind: what it does, the name of its number, its unit, its usual value
const KINDS = {
  ratelimited: ["429 with Retry-After", "retry_after_s", "Seconds", "2"],
  server_error: ["5xx, nothing done", "status", "Status", "503"],
  error_after_commit: ["5xx, although it was done", "status", "Status", "503"],
  reset_before_commit: ["connection reset, nothing done"],
  reset_after_commit: ["connection reset, although it was done"],
  delay: ["a late answer", "delay_s", "Seconds", "2"],
  drop_share: ["upload finished, never shared"],
  error: ["ok: false with an error", "error", "Name", "internal_error"],
  duplicate_envelope: ["envelope twice on one socket"],
  other_socket: ["envelope again on another socket"],
  drop_ack: ["acknowledgement lost"],
};
const ENVELOPES = ["*", "slash_commands", "interactive", "events_api"];
const METHODS = [
  "*", "chat.postMessage", "chat.update", "chat.postEphemeral", "conversations.replies", "users.info",
  "usergroups.users.list", "auth.test", "apps.connections.open", "response_url",
  "views.open", "files.getUploadURLExternal", "upload_url", "files.completeUploadExternal", "files.info", "url_private",
];
const onEnvelopes = (kind) => ["duplicate_envelope", "other_socket", "drop_ack"].includes(kind);
const everywhere = (method) => (method === "*" ? "everything" : method);

const label = (words, node) => h("label", h("span", words), node);
const options = (pairs) => pairs.map(([value, words]) => h("option", { value }, words));

/** The form that switches a fault on. */
function form() {
  const method = h("select", { name: "method" });
  const value = h("input", { name: "value" });
  const valueLabel = label("", value);
  const kind = h("select", { name: "kind", onchange: () => adapt() }, options(Object.entries(KINDS).map(([k, [words]]) => [k, words])));
  const count = h("input", { name: "count", type: "number", value: "1", min: "-1", max: "999", title: "-1: until switched off" });

  function adapt() {
    const [, name, unit, usual] = KINDS[kind.value];
    valueLabel.hidden = !name;
    valueLabel.firstChild.textContent = unit || "";
    value.value = usual || "";
    const where = onEnvelopes(kind.value) ? ENVELOPES : METHODS;
    method.replaceChildren(...options(where.map((one) => [one, everywhere(one)])));
  }

  async function arm(event) {
    event.preventDefault();
    const name = KINDS[kind.value][1];
    const extra = name ? { [name]: name === "error" ? value.value : Number(value.value) } : {};
    await tryTo("faults", { kind: kind.value, method: method.value, count: Number(count.value), ...extra });
  }

  adapt();
  const send = h("button.button.primary", "Switch on");
  return h("form.faults", { onsubmit: arm }, label("Fault", kind), label("In", method), label("Times", count), valueLabel, send);
}

function button(words, verb, body = {}) {
  const use = async () => {
    if ((await tryTo(verb, body)) !== undefined) notice(`${words}: done`, "good");
  };
  return h("button.button", { type: "button", onclick: use }, words);
}

function tick(words, checked, verb, body) {
  const use = (event) => tryTo(verb, body(event.target.checked));
  return h("label.tick", h("input", { type: "checkbox", checked, onchange: use }), words);
}

const person = (one) => [
  tick(`@${one.name} deactivated`, one.deleted, "users/set", (on) => ({ user: one.id, deleted: on })),
  tick(`@${one.name} is a guest`, one.is_restricted, "users/set", (on) => ({ user: one.id, is_restricted: on })),
];

const room = (one) => tick(`#${one.name} archived`, one.is_archived, "channels/set", (on) => ({ channel: one.id, is_archived: on }));

/** The whole menu; `#on` in it lists what is switched on. */
export const faultMenu = () => [
  form(),
  h("h3", "Switched on"), h("ul", { id: "on" }), h("p.row", button("Switch all off", "faults/clear")),
  h("h3", "Connection"),
  h("p.row",
    button("Disconnect, keep the old socket", "disconnect", { close_old: false }),
    button("Disconnect and close", "disconnect"),
    button("Warn of a disconnect", "disconnect", { reason: "warning" }),
    tick("Enforce rate limits", store.state.rate_limits, "rate_limits", (on) => ({ on }))),
  h("h3", "People"), h("p.row", store.state.users.filter((one) => !one.is_bot).map(person)),
  h("h3", "Channels"), h("p.row", store.state.all_channels.map(room)),
];

/** The rows of what is switched on, for `keyed`. */
export function faultRows() {
  const left = (fault) => (fault.count < 0 ? "until switched off" : `${fault.count} more time${fault.count > 1 ? "s" : ""}`);
  const words = (fault) => `${KINDS[fault.kind][0]}, in ${everywhere(fault.method)}, ${left(fault)}`;
  const rows = store.state.faults.map((f, n) => ({ key: String(n), version: JSON.stringify(f), draw: () => h("li", words(f)) }));
  return rows.length ? rows : [{ key: "none", version: "", draw: () => h("li.small", "nothing") }];
}
