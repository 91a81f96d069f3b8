// The page: which person looks at which channel and thread (kept in the address), and everything around it.

import { $, h, keyed, notice } from "./dom.js";
import { composer, learn } from "./composer.js";
import { settle } from "./deeds.js";
import { faultMenu, faultRows } from "./faults.js";
import { modals } from "./forms.js";
import { readUntil, showChannel, showThread, unread } from "./messages.js";
import { channel, connect, feed, store, title, user } from "./store.js";
import { trafficRows } from "./traffic.js";

const narrow = matchMedia("(max-width: 760px)");
const looking = { drawer: null, shown: "", thread: "", since: "", until: "", then: null };
const address = () => new URLSearchParams(location.hash.slice(1));
const place = () => channel(address().get("in") || "") || store.state.channels[0];
const thread = () => address().get("thread");
const nameOf = (one) => (one.kind === "im" ? one.id : one.name);

/** Change the address; null takes a key away. The page follows. */
function go(keys) {
  const now = address();
  for (const [key, value] of Object.entries(keys)) value === null ? now.delete(key) : now.set(key, value);
  location.hash = now.toString();
}

const write = composer("field", () => ({ channel: place()?.id }));
const answer = composer("thread-field", () => ({ channel: place()?.id, thread: thread() }));
$("write").append(write.form);
$("answer").append(answer.form);

// drawing

let planned = 0;
const soon = () => (planned ||= requestAnimationFrame(() => ((planned = 0), draw())));

function draw() {
  settle();
  modals();
  people();
  const here = place();
  $("team").textContent = store.state.team || "sandbox";
  status();
  channels(here);
  if (here) conversation(here);
  else nowhere();
  drawers();
  const covered = narrow.matches && (!$("thread").hidden || looking.drawer);
  $("main").inert = Boolean(covered);
  looking.then?.();
  looking.then = null;
}

function people() {
  const all = store.state.users.filter((one) => !one.is_bot);
  const version = JSON.stringify([all.map((one) => one.name), store.state.me]);
  if ($("as").dataset.version === version) return;
  $("as").replaceChildren(...all.map((one) => h("option", { value: one.id, selected: one.id === store.state.me }, one.name)));
  $("as").dataset.version = version;
}

function status() {
  const app = store.state.http ? "app called over HTTP" : store.state.sockets ? "app connected" : "no app connected";
  const words = store.live ? app : "reconnecting…";
  if ($("link").textContent !== words) $("link").textContent = words;
  $("link").className = !store.live ? "lost" : store.state.sockets || store.state.http ? "good" : "";
}

function channels(here) {
  let all = 0;
  const items = store.state.channels.map((one) => {
    const { count, mentioned } = one.id === here?.id && !document.hidden ? { count: 0 } : unread(one);
    all += count;
    const current = one.id === here?.id;
    const href = "#" + new URLSearchParams({ as: user(store.state.me)?.name ?? "", in: nameOf(one) });
    const props = { href, class: count ? "unread" : null, "aria-current": current ? "page" : null, "data-focus": "go" };
    const mark = count > 0 && h("b", { class: mentioned ? "badge" : "badge calm" }, String(count), h("span.unseen", " unread"));
    const name = [h("span", title(one)), one.is_private && h("small", "private")];
    const draw = () => h("li", h("a", { ...props, onclick: () => nav(false) }, name, mark));
    return { key: one.id, version: [title(one), count, mentioned, current, store.state.me].join(" "), draw };
  });
  keyed($("channels"), items);
  document.title = `${all ? `(${all}) ` : ""}${here ? title(here) : "clawback"} · ${store.state.team || "sandbox"}`;
}

function nowhere() {
  $("title").textContent = "No channel";
  $("about").textContent = store.state.me ? "This person is in no channel." : "Nobody lives here yet.";
  $("feed").replaceChildren();
  $("thread").hidden = true;
}

function conversation(here) {
  const names = here.members.map((id) => user(id)?.name).filter(Boolean);
  $("title").textContent = title(here);
  const facts = [here.is_archived && "archived", here.is_ext_shared && "shared with another company", names.join(", ")];
  $("about").textContent = facts.filter(Boolean).join(" · ");
  const invitation = `Message ${title(here)}${narrow.matches ? "" : ", or type / for a command"}`;
  write.rename(here.is_archived ? `${title(here)} is archived` : invitation);
  write.field.disabled = here.is_archived;
  const shown = `${store.state.me} ${here.id}`;
  const entered = looking.shown !== shown;
  if (entered) Object.assign(looking, { shown, since: readUntil(here.id), until: feed(here.id).at(-1)?.ts });
  showChannel(here, { since: looking.since, until: looking.until, toEnd: entered, openThread });
  const ts = thread();
  const opened = Boolean(ts) && ts !== looking.thread;
  looking.thread = ts;
  $("thread").hidden = !ts;
  document.body.classList.toggle("threaded", Boolean(ts));
  if (!ts) return;
  $("thread-in").textContent = title(here);
  answer.rename("Reply in the thread");
  if (!showThread(here, ts, { toEnd: opened }) && store.live && !entered) go({ thread: null });
}

const DRAWERS = {
  traffic: { title: "Traffic between app and workspace", fill: () => [h("ol.rows", { id: "rows" })], rows: trafficRows },
  faults: { title: "What can go wrong", fill: faultMenu, rows: faultRows },
};

function drawers() {
  for (const [badge, count] of [["wrong", store.violations.length], ["armed", store.state.faults.length]]) {
    $(badge).hidden = !count;
    $(badge).textContent = count;
  }
  const box = $("drawer-body");
  const open = DRAWERS[looking.drawer];
  for (const name of Object.keys(DRAWERS)) $(name).setAttribute("aria-expanded", String(looking.drawer === name));
  $("drawer").hidden = !open;
  if (box.dataset.kind !== (looking.drawer || "")) box.replaceChildren(...(open ? open.fill() : []));
  box.dataset.kind = looking.drawer || "";
  if (!open) return;
  $("drawer-title").textContent = open.title;
  keyed(box.querySelector("#rows, #on"), open.rows());
}

// going places

function openThread(ts) {
  looking.then = () => answer.field.focus();
  go({ as: user(store.state.me).name, in: nameOf(place()), thread: ts });
}

function closeThread() {
  const ts = thread();
  looking.then = () => document.querySelector(`#feed [data-ts="${CSS.escape(ts)}"] [data-focus=thread]`)?.focus();
  go({ thread: null });
}

function nav(open) {
  document.body.classList.toggle("nav", open);
  $("menu").setAttribute("aria-expanded", String(open));
  if (open) $("channels").querySelector("a")?.focus();
}

function drawer(kind) {
  const last = looking.drawer;
  looking.drawer = last === kind ? null : kind;
  draw();
  if (looking.drawer) $("drawer-body").querySelector("summary, select")?.focus();
  else if (last) $(last).focus();
}

function listen() {
  const who = address().get("as") || localStorage.getItem("as") || "";
  if (looking.as === who) return soon();
  looking.as = who;
  localStorage.setItem("as", who);
  return connect(who, soon, soon);
}

function theme() {
  const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
}

// hands

const move = (box, step) => {
  const all = [...box.querySelectorAll(".message")];
  const now = all.indexOf(document.activeElement.closest?.(".message"));
  all.at(now < 0 ? (step > 0 ? 0 : -1) : Math.max(0, Math.min(all.length - 1, now + step)))?.focus();
};

function channelStep(step) {
  const all = store.state.channels;
  const next = all[(all.indexOf(place()) + step + all.length) % all.length];
  if (next) go({ in: nameOf(next), thread: null });
}

function escape() {
  if (document.body.classList.contains("nav")) (nav(false), $("menu").focus());
  else if (looking.drawer && (!thread() || $("drawer").contains(document.activeElement))) drawer(looking.drawer);
  else if (thread()) closeThread();
}

const inPane = () => ($("thread").contains(document.activeElement) ? $("replies") : $("feed"));
const ANYWHERE = { "Escape": escape, "Alt ArrowUp": () => channelStep(-1), "Alt ArrowDown": () => channelStep(1) };
const KEYS = {
  "c": () => (thread() && narrow.matches ? answer : write).field.focus(),
  "/": () => write.begin("/"),
  "j": () => move(inPane(), 1),
  "k": () => move(inPane(), -1),
  "r": () => document.activeElement.closest?.(".message")?.querySelector("[data-focus=thread]")?.click(),
  "a": () => $("as").focus(),
  "t": () => drawer("traffic"),
  "f": () => drawer("faults"),
  "d": theme,
  "?": () => $("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  const plain = !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  const used = ANYWHERE[`${event.altKey ? "Alt " : ""}${event.key}`] || (plain && KEYS[event.key]);
  if (!used) return;
  event.preventDefault();
  used();
});

const carries = (event) => event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
document.addEventListener("dragover", (event) => carries(event) && event.preventDefault());
document.addEventListener("drop", (event) => {
  if (!carries(event)) return;
  event.preventDefault();
  const into = $("thread").contains(event.target) ? answer : write;
  into.attach(event.dataTransfer.files);
  into.field.focus();
});

$("as").onchange = (event) => go({ as: user(event.target.value).name, thread: null });
$("menu").onclick = () => nav(!document.body.classList.contains("nav"));
$("traffic").onclick = () => drawer("traffic");
$("faults").onclick = () => drawer("faults");
$("close-drawer").onclick = () => drawer(looking.drawer);
$("close-thread").onclick = closeThread;
$("theme").onclick = theme;
$("keys").onclick = () => $("help").showModal();
$("skip").onclick = () => write.field.focus();
$("below").onclick = () => ($("feed").scrollTop = $("feed").scrollHeight);
for (const list of ["feed", "replies"]) $(list).addEventListener("scroll", soon, { passive: true });
$("main").addEventListener("click", () => nav(false));
addEventListener("hashchange", listen);
addEventListener("visibilitychange", soon);
narrow.addEventListener("change", soon);
addEventListener("error", (event) => notice(`the page made a mistake: ${event.message}`));

if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
void learn();
listen();
