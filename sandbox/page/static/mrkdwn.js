// Slack's mrkdwn, and the Markdown of markdown blocks, as DOM nodes. Nothing here ever makes markup from text.

import { h } from "./dom.js";
import { channel, channelName, group, me, user } from "./store.js";

const MARKS = [
  /<([^<>\n]+)>/,
  /`([^`\n]+)`/,
  /(?<![\w*])\*(?=\S)([^*\n]*[^*\s])\*(?![\w*])/,
  /(?<!\w)_(?=\S)([^_\n]*[^_\s])_(?!\w)/,
  /(?<![\w~])~(?=\S)([^~\n]*[^~\s])~(?![\w~])/,
];
const MRKDWN = new RegExp(MARKS.map((mark) => mark.source).join("|"), "g");
const MARKDOWN =
  /\[([^\]\n]+)\]\(([^)\s]+)\)|`([^`\n]+)`|\*\*(?=\S)([^\n]*?\S)\*\*|(?<![\w*_])[*_](?=\S)([^*_\n]*[^*_\s])[*_](?![\w*_])|~~([^~\n]+)~~/g;

export const decode = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** The nodes of an mrkdwn text. */
export const mrkdwn = (text) => lines(String(text ?? ""), inline, decode, /^&gt; ?|^> ?/);

/** The nodes of a Markdown text. */
export const markdown = (text) => lines(String(text ?? ""), markdownInline, (raw) => raw, /^> ?/, /^(#{1,6}) +(.*)/);

/** Blocks of lines: code fences, quotes, lists, headings; everything else goes through `words`. */
function lines(text, words, raw, quote, heading) {
  const parts = text.split("```");
  if (parts.length % 2 === 0) parts.push("```" + parts.splice(-1)[0], "");
  const made = parts.map((part, n) => {
    if (n % 2) return h("pre", h("code", raw(part.replace(/^[a-z]*\n|\n$/g, ""))));
    return part.trim() || n === 0 ? paragraphs(part.replace(/^\n|\n$/g, ""), words, quote, heading) : [];
  });
  return made.flat(Infinity);
}

function paragraphs(text, words, quote, heading) {
  const made = [];
  let quoted = [];
  const close = () => {
    if (quoted.length) made.push(h("blockquote", paragraphs(quoted.join("\n"), words, /^\0/, heading)));
    quoted = [];
  };
  let plain = false;
  for (const line of text.split("\n")) {
    if (quote.test(line)) {
      quoted.push(line.replace(quote, ""));
      plain = false;
      continue;
    }
    close();
    const item = /^(\s*)([•◦▪-]|\d+[.)]) +(.*)$/.exec(line);
    const head = heading?.exec(line);
    if (item) {
      const sign = h("span", item[2] === "-" ? "•" : item[2]);
      made.push(h(item[1].length > 1 ? "div.item.deep" : "div.item", sign, h("div", words(item[3]))));
    } else if (head) made.push(h("p.heading", { role: "heading", "aria-level": Math.min(6, head[1].length + 3) }, words(head[2])));
    else made.push(plain ? h("br") : null, ...words(line));
    plain = !item && !head;
  }
  close();
  return made.filter((node) => node !== null);
}

/** Splits a text at the matches of a pattern; `draw(match)` gives the node of a match. */
function scan(text, pattern, raw, draw) {
  const made = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) made.push(raw(text.slice(at, match.index)));
    made.push(draw(match));
    at = match.index + match[0].length;
  }
  if (at < text.length) made.push(raw(text.slice(at)));
  return made;
}

function inline(text) {
  return scan(text, MRKDWN, decode, ([whole, angle, code, bold, italic, strike]) => {
    if (angle) return token(angle, whole);
    if (code) return h("code", scan(code, /<([^<>\n]+)>/g, decode, (m) => codeToken(m[1])));
    if (bold) return h("strong", inline(bold));
    if (italic) return h("em", inline(italic));
    return h("s", inline(strike));
  });
}

function markdownInline(text) {
  return scan(text, MARKDOWN, (raw) => raw, ([whole, label, url, code, bold, italic, strike]) => {
    if (label) return link(url, label) || whole;
    if (code) return h("code", code);
    if (bold) return h("strong", markdownInline(bold));
    if (italic) return h("em", markdownInline(italic));
    return h("s", markdownInline(strike));
  });
}

/** What `<...>` stands for: a person, a channel, a group, everybody, a date, or a link. */
function token(inner, whole) {
  const [head, ...rest] = inner.split("|");
  const label = rest.length ? decode(rest.join("|")) : "";
  if (/^@\w+$/.test(head)) return mention(head.slice(1), label);
  if (/^#\w+$/.test(head)) return place(head.slice(1), label);
  if (head.startsWith("!subteam^")) return team(head.slice(9), label);
  if (/^!(here|channel|everyone)$/.test(head)) return h("span.mention.mine", "@" + head.slice(1));
  const date = /^!date\^(-?\d{1,12})\^([^^]+)(?:\^(.+))?$/.exec(head);
  if (date) return moment(Number(date[1]), decode(date[2]), label, date[3]);
  return link(decode(head), label || decode(head)) || decode(whole);
}

const codeToken = (inner) => token(inner, `<${inner}>`)?.textContent ?? decode(`<${inner}>`);

export function mention(id, label = "") {
  const name = user(id)?.name || label || id;
  return h("span", { class: id === me() ? "mention mine" : "mention" }, "@" + name);
}

export function team(id, label = "") {
  const found = group(id);
  const name = found ? "@" + found.handle : label || "@" + id;
  return h("span", { class: found?.users.includes(me()) ? "mention mine" : "mention", title: found?.name }, name);
}

export function place(id, label = "") {
  const name = "#" + (channelName(id) || label || id);
  if (!channel(id)) return h("span.mention", name);
  return h("a.mention", { href: "#in=" + id }, name);
}

/** A link to the web or a mail address; null for every other scheme. */
export function link(url, label) {
  if (!/^(https?:\/\/|mailto:)[^\s]+$/i.test(url)) return null;
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, label || url);
}

const FORMS = {
  date_num: (d) => `${d.getFullYear()}-${String(d.getMonth() + 1).padStart(2, "0")}-${String(d.getDate()).padStart(2, "0")}`,
  date: (d) => d.toLocaleDateString([], { year: "numeric", month: "long", day: "numeric" }),
  date_short: (d) => d.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" }),
  date_long: (d) => d.toLocaleDateString([], { weekday: "long", year: "numeric", month: "long", day: "numeric" }),
  time: (d) => d.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }),
  time_secs: (d) => d.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  ago: (d) => ago((d.getTime() - Date.now()) / 1000),
};

function ago(seconds) {
  const sizes = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, unit] = sizes.find(([one]) => Math.abs(seconds) >= one) || sizes[3];
  return new Intl.RelativeTimeFormat([], { numeric: "auto" }).format(Math.round(seconds / size), unit);
}

/** A date token in the reader's own time; its fallback is the title. */
export function moment(seconds, form, fallback, url) {
  const when = new Date(seconds * 1000);
  const shown = form.replace(/\{(\w+)\}/g, (whole, name) => {
    const days = Math.round((new Date(when).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / 86400000);
    if (name.endsWith("_pretty") && Math.abs(days) <= 1) return ["yesterday", "today", "tomorrow"][days + 1];
    return (FORMS[name.replace(/_pretty$/, "")] || (() => whole))(when);
  });
  const node = h("time", { datetime: when.toISOString(), title: fallback }, shown);
  const around = url && link(url, "");
  if (!around) return node;
  around.replaceChildren(node);
  return around;
}
