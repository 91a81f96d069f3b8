// The message field: commands, messages, completion of words, names and earlier commands.

import { h, notice } from "./dom.js";
import { command, say } from "./deeds.js";
import { waiting } from "./files.js";
import { store } from "./store.js";

const MOST_SHOWN = 8;
let hints = { words: {}, typed: [] };

/** Fetch the words to complete; earlier commands are part of them. */
export async function learn() {
  const answer = await fetch("/_page/hints").catch(() => null);
  if (answer?.ok) hints = await answer.json();
}

/** What may follow the text before the cursor: [{line, word, help}], `line` being the whole new text. */
export function suggestions(before) {
  const line = before.replace(/^\s+/, "");
  if (!line) return [];
  const cut = Math.max(line.lastIndexOf(" "), line.lastIndexOf("\n")) + 1;
  const [head, word] = [line.slice(0, cut), line.slice(cut)];
  const context = head.trim().replace(/\s+/g, " ");
  const bot = "@" + store.state.app;
  const spoken = context.startsWith(bot) ? "/knob" + context.slice(bot.length) : context;
  const isCommand = line.startsWith("/") || context.startsWith(bot);
  const found = new Map();
  const offer = (text, help) => text.startsWith(word) && text !== word && !found.has(text) && found.set(text, help);
  if (isCommand) {
    for (const key of [spoken, context && spoken.split(" ")[0] + " *"]) {
      for (const [text, help] of Object.entries(hints.words[key] ?? {})) offer(text, help);
    }
  }
  if (word.startsWith("@")) {
    for (const one of store.state.users) offer("@" + one.name, one.is_bot ? "app" : "");
    for (const one of store.state.groups) offer("@" + one.handle, "group");
  }
  if (word.startsWith("#")) for (const one of store.state.all_channels) offer("#" + one.name, "");
  const made = [...found].map(([text, help]) => ({ line: head + text + " ", word: text, help }));
  const earlier = isCommand ? hints.typed.filter((text) => text.startsWith(line) && text !== line) : [];
  return [...made, ...earlier.slice(0, 3).map((text) => ({ line: text, word: text, help: "typed before" }))].slice(0, MOST_SHOWN);
}

/** A message field. `where()` gives {channel, thread, name}; each field has an id of its own. */
export function composer(id, where) {
  let offered = [];
  let chosen = -1;
  let recalled = -1;
  const listId = id + "-list";
  const field = h("textarea", {
    id, rows: "1", autocomplete: "off", spellcheck: "false", enterkeyhint: "send", "aria-autocomplete": "list", "aria-controls": listId,
    oninput: () => offer(), onkeydown: (event) => key(event), onblur: () => offer(true), onclick: () => offer(),
  });
  const list = h("ul.offers", { id: listId, role: "listbox", "aria-label": "Suggestions", hidden: true });
  const spoken = h("span.unseen", { role: "status" });
  const files = waiting(id);
  field.addEventListener("paste", (event) => event.clipboardData.files.length && (event.preventDefault(), files.add(event.clipboardData.files)));
  const send = h("button.button.primary", { type: "submit" }, "Send");
  const parts = [list, files.list, files.button, files.chooser, field, send, spoken, files.spoken];
  const form = h("form.composer", { onsubmit: (event) => (event.preventDefault(), submit()) }, parts);

  function offer(close) {
    offered = close || field.selectionEnd < field.value.length ? [] : suggestions(field.value);
    chosen = -1;
    draw();
    spoken.textContent = offered.length ? `${offered.length} suggestions` : "";
  }

  function draw() {
    list.hidden = !offered.length;
    list.replaceChildren(...offered.map((one, n) => {
      const pick = (event) => (event.preventDefault(), take(n));
      const props = { id: `${id}-${n}`, role: "option", "aria-selected": String(n === chosen), onmousedown: pick };
      return h("li", props, h("code", one.word), one.help && h("small", one.help));
    }));
    if (chosen >= 0) field.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    else field.removeAttribute("aria-activedescendant");
  }

  function take(n) {
    put(offered[n].line);
    offer();
  }

  function put(line) {
    field.value = line;
    field.setSelectionRange(line.length, line.length);
  }

  function key(event) {
    if (event.isComposing || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const recalls = step && !offered.length && (!field.value || recalled >= 0) && hints.typed.length;
    if (event.key === "Enter" && !event.shiftKey) chosen >= 0 ? take(chosen) : submit();
    else if (event.key === "Tab" && !event.shiftKey && offered.length) take(Math.max(0, chosen));
    else if (event.key === "Escape" && offered.length) offer(true);
    else if (step && offered.length) {
      chosen = (chosen + step + offered.length + (chosen < 0 && step < 0 ? 1 : 0)) % offered.length;
      draw();
    } else if (recalls) {
      recalled = Math.max(-1, Math.min(hints.typed.length - 1, recalled - step));
      put(hints.typed[recalled] ?? "");
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async function submit() {
    const line = field.value.trim();
    const attached = files.all();
    if (!line && !attached.length) return;
    const { channel, thread } = where();
    if (line.startsWith("/") && attached.length) {
      notice(`A command takes no files. Send them with a message, e.g. @${store.state.app} ${line.split(" ").slice(1).join(" ")}`);
      return;
    }
    if (line.startsWith("/") && thread) {
      notice(`Commands do not exist inside threads. Mention the app instead: @${store.state.app} ${line.split(" ").slice(1).join(" ")}`);
      return;
    }
    recalled = -1;
    put("");
    offer(true);
    files.clear();
    const done = line.startsWith("/") ? await command(channel, line) : await say(channel, line, thread, attached);
    if (!done && !field.value) put(line);
    if (!done) files.add(attached);
    if (line.startsWith("/")) await learn();
  }

  /** Put a text into the field and go there. */
  function begin(line) {
    put(line);
    field.focus();
    offer();
  }

  /** What the field says it is for. */
  function rename(name) {
    field.setAttribute("aria-label", name);
    field.placeholder = name;
  }

  return { form, field, begin, rename, attach: files.add };
}
