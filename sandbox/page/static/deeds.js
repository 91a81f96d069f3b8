// What a person does that the app must answer: commands and clicks; the dialogs that come before and after.

import { text as words } from "./blocks.js";
import { $, notice, tryTo } from "./dom.js";
import { encoded } from "./fields.js";
import { me, store } from "./store.js";

const waiting = new Map();

/** Wait for the app's answer to an envelope; `node` looks busy meanwhile. */
export function expect(envelope, what, node) {
  if (!envelope) return;
  node?.setAttribute("aria-busy", "true");
  waiting.set(envelope.envelope_id, { what, node });
  settle(); // the answer may have come before this one's own
}

/** Say of what was done whether the app took it. Called after each change. */
export function settle() {
  for (const envelope of waiting.size ? store.envelopes : []) {
    const { what, node } = waiting.get(envelope?.envelope_id) || {};
    if (!what || (envelope.acked_ms === null && !envelope.failure)) continue;
    waiting.delete(envelope.envelope_id);
    node?.removeAttribute("aria-busy");
    if (!envelope.failure) continue;
    const why = store.state.sockets || store.state.http ? "the app did not answer in time" : "no app is connected";
    notice(`${what} failed: ${envelope.failure} (${why})`);
  }
}

/** Type a slash command. True when it was sent. */
export async function command(channelId, line) {
  const envelope = await tryTo("command", { user: me(), channel: channelId, text: line });
  expect(envelope, line.split(" ")[0]);
  return Boolean(envelope);
}

/** Write a message, with files or without. True when it was sent. */
export async function say(channelId, line, thread, files = []) {
  const body = { user: me(), channel: channelId, text: line, thread_ts: thread || null };
  if (!files.length) return Boolean(await tryTo("say", body));
  try {
    return Boolean(await tryTo("share", { ...body, files: await Promise.all(files.map(encoded)) }));
  } catch (error) {
    notice(error.message);
    return false;
  }
}

/** Use an element of a message; asks first where the element wants that. */
export async function click(message, element, value, node) {
  const asked = element.confirm;
  if (asked && !(await ask(asked))) {
    if (node?.tagName === "SELECT") node.value = "";
    return;
  }
  if (element.url && /^https?:\/\//i.test(element.url)) open(element.url, "_blank", "noopener,noreferrer");
  const body = { user: me(), channel: message.channel, ts: message.ts, action_id: element.action_id };
  const done = await tryTo("click", { ...body, value: value ?? null, confirmed: Boolean(asked) });
  expect(done?.envelope, element.text?.text || "that", node);
}

/** The app's question before a click; true for yes. */
function ask(question) {
  const yes = question.confirm?.text || "Yes";
  return dialog(question.title?.text, words(question.text), yes, question.deny?.text || "Cancel", question.style);
}

function dialog(title, body, yes, no, style) {
  const box = $("ask");
  $("ask-title").textContent = title || "Are you sure?";
  $("ask-text").replaceChildren(...body);
  $("ask-yes").textContent = yes;
  $("ask-yes").className = style === "danger" ? "button danger" : "button primary";
  $("ask-no").textContent = no;
  box.returnValue = "no";
  box.showModal();
  return new Promise((tell) => box.addEventListener("close", () => tell(box.returnValue === "yes"), { once: true }));
}
