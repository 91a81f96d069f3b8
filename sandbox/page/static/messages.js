// Messages as they stand in a channel or a thread, and which of them are read.

import { blocks } from "./blocks.js";
import { $, clock, day, h, keyed } from "./dom.js";
import { click } from "./deeds.js";
import { filesOf } from "./files.js";
import { mrkdwn } from "./mrkdwn.js";
import { feed, me, store, threads, user } from "./store.js";

const SAME_SPEAKER_S = 300;
const hue = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 8, 0);

function avatar(who) {
  if (who?.is_bot) return h("span.avatar.app", { "aria-hidden": "true" });
  return h("span", { class: `avatar hue${hue(who?.name || "?")}`, "aria-hidden": "true" }, (who?.name || "?")[0]);
}

/** One message. `more`: compact, replies, fresh (unread replies), open (opens the thread; absent inside one). */
function message(m, { compact, replies = [], fresh, open }) {
  const who = user(m.user);
  const name = who?.name || m.user;
  const at = Number(m.ts);
  const looks = ["message", compact && "compact", m.ephemeral && "ephemeral"].filter(Boolean).join(" ");
  const reply = { type: "button", "data-focus": "thread", "aria-label": `Reply to ${name} in a thread`, onclick: open };
  return h("article", { class: looks, "aria-label": `${name}, ${clock(at)}`, tabindex: "-1", "data-ts": m.ts },
    compact ? h("span.when", { "aria-hidden": "true" }, clock(at)) : avatar(who),
    h("div.said",
      m.ephemeral && h("p.only", "Only visible to you"),
      !compact && speaker(who, name, at),
      words(m, who),
      filesOf(m),
      reactions(m),
      open && replies.length > 0 && threadButton(replies, fresh, open)),
    open && !m.ephemeral && !replies.length && h("button.quiet.reply", reply, "Reply"));
}

function speaker(who, name, at) {
  const when = new Date(at * 1000);
  const tags = [who?.is_bot && "app", who?.deleted && "deactivated", who?.is_restricted && "guest"].filter(Boolean);
  const time = h("time", { datetime: when.toISOString(), title: when.toLocaleString() }, clock(at));
  return h("p.who", h("b", name), tags.map((tag) => h("span.tag", tag)), time);
}

function words(m, who) {
  const ctx = { click: (element, value, node) => click(m, element, value, node) };
  // what a person typed is shown from its text: a client sends the same words a second time as rich_text
  const drawn = m.blocks.length && who?.is_bot ? blocks(m.blocks, ctx) : mrkdwn(m.text);
  const looks = who?.is_bot && m.blocks.length > 1 ? "body card" : "body";
  const edited = m.edited && h("span.edited", { title: clock(Number(m.edited.ts), { second: "2-digit" }) }, " (edited)");
  return h("div", { class: looks }, drawn, (m.attachments || []).map((one) => attachment(one, ctx)), edited);
}

function attachment(one, ctx) {
  if (one.blocks?.length) return h("div.attachment", blocks(one.blocks, ctx));
  const parts = [one.pretext, one.title, one.text || one.fallback].filter(Boolean);
  return h("div.attachment", parts.map((part) => h("p", mrkdwn(part))));
}

function reactions(m) {
  const all = Object.entries(m.reactions);
  return all.length > 0 && h("p.reactions", all.map(([sign, by]) => h("span", `:${sign}: ${by.length}`)));
}

function threadButton(replies, fresh, open) {
  const count = `${replies.length} ${replies.length === 1 ? "reply" : "replies"}`;
  const last = `${fresh ? "new, " : ""}last at ${clock(Number(replies.at(-1).ts))}`;
  const looks = fresh ? "replies fresh" : "replies";
  return h("button", { class: looks, type: "button", "data-focus": "thread", onclick: open }, count, h("small", last));
}

function rule(key, text, kind = "") {
  const draw = () => h("div", { class: `rule ${kind}`, role: "separator", "aria-label": text }, h("span", text));
  return { key, version: text, draw };
}

const plain = (m) => !m.files?.length && (!m.blocks.length || !user(m.user)?.is_bot);

/** Whether two messages stand under one head: same speaker, soon after, plain words. */
const together = (a, b) =>
  a.user === b.user && a.ephemeral === b.ephemeral && plain(a) && plain(b) && Number(b.ts) - Number(a.ts) < SAME_SPEAKER_S;

function listed(list, { since, until, options }) {
  const items = [];
  let before;
  let told = !since;
  for (const m of list) {
    const today = day(Number(m.ts));
    const newDay = !before || today !== day(Number(before.ts));
    const isNew = !told && m.ts > since && m.ts <= until && m.user !== me();
    if (newDay) items.push(rule("day " + today, today));
    if (isNew) items.push(rule("new", "New", "fresh"));
    told ||= isNew;
    const more = options(m);
    const compact = !newDay && !isNew && together(before, m);
    const { deleted, is_restricted } = user(m.user) || {};
    const seen = [m.revision, compact, more.replies?.length, more.replies?.at(-1)?.ts, more.fresh, me(), deleted, is_restricted];
    items.push({ key: m.key, version: seen.join(" "), draw: () => message(m, { compact, ...more }) });
    before = m;
  }
  return items;
}

const AT_END_PX = 60;
const keepEnd = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.dataset.end) target.scrollTop = target.scrollHeight;
});
for (const box of [$("feed"), $("replies")]) keepEnd.observe(box);

/** Replaces what a list shows; it stays at its end when it was there. True when it is at its end afterwards. */
function show(box, items, toEnd) {
  const atEnd = toEnd || box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PX;
  keyed(box, items);
  if (atEnd) box.scrollTop = box.scrollHeight;
  box.dataset.end = atEnd ? "yes" : "";
  return atEnd;
}

/** Show a channel. Unread when it was entered: what came after `since`, up to `until`. */
export function showChannel(place, { since, until, toEnd, openThread }) {
  const answers = threads(place.id);
  const options = (m) => {
    const replies = answers.get(m.ts) || [];
    const fresh = replies.some((one) => one.ts > (readUntil(place.id, m.ts) || "") && one.user !== me());
    return { replies, fresh, open: () => openThread(m.thread_ts || m.ts) };
  };
  const list = feed(place.id);
  const items = list.length ? listed(list, { since, until, options }) : [rule("empty", "Nothing here yet")];
  const atEnd = show($("feed"), items, toEnd);
  $("below").hidden = atEnd;
  if (atEnd && document.visibilityState === "visible") markRead(place.id, list.at(-1)?.ts);
}

/** Show a thread; false when its parent is gone. */
export function showThread(place, ts, { toEnd }) {
  const parent = feed(place.id).find((m) => m.ts === ts);
  const replies = threads(place.id).get(ts) || [];
  const list = [...(parent ? [parent] : []), ...replies];
  const atEnd = show($("replies"), listed(list, { options: () => ({}) }), toEnd);
  if (atEnd && document.visibilityState === "visible") markRead(place.id, replies.at(-1)?.ts, ts);
  return list.length > 0;
}

// read marks, per person, kept in the browser

const marksOf = () => JSON.parse(localStorage.getItem("read " + me()) || "{}");

/** Until where this person has read a channel or a thread. */
export const readUntil = (place, thread = "") => marksOf()[`${place} ${thread}`];

function markRead(place, ts, thread = "") {
  if (!ts || (readUntil(place, thread) || "") >= ts) return;
  localStorage.setItem("read " + me(), JSON.stringify({ ...marksOf(), [`${place} ${thread}`]: ts }));
}

/** How many messages of a channel are unread, and whether one of them mentions the reader. */
export function unread(place) {
  const mark = readUntil(place.id) || "";
  const list = feed(place.id).filter((m) => m.ts > mark && m.user !== me());
  const groups = store.state.groups.filter((one) => one.users.includes(me())).map((one) => "<!subteam^" + one.id);
  const called = (m) => [`<@${me()}`, ...groups].some((name) => JSON.stringify([m.text, m.blocks]).includes(name));
  return { count: list.length, mentioned: list.some(called) || (place.kind === "im" && list.length > 0) };
}
