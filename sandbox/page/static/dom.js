// Small helpers: nodes without markup strings, requests, notices, lists that keep their nodes.

export const $ = (id) => document.getElementById(id);

/** An element, as h("p.small", {title: "..."}, children); `on...` are listeners. Text is always a text node. */
export function h(spec, props, ...children) {
  const [tag, ...classes] = spec.split(".");
  const el = document.createElement(tag);
  if (classes.length) el.className = classes.join(" ");
  const given = props?.constructor === Object;
  for (const [key, value] of given ? Object.entries(props) : []) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else el.setAttribute(key, value === true ? "" : value);
  }
  const all = given ? children : [props, ...children];
  el.append(...all.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return el;
}

/** Do something as a person. Throws with the server's sentence when it was refused. */
export async function act(verb, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/_page/do/" + verb, { method: "POST", headers, body: JSON.stringify(body) });
  const told = await answer.json().catch(() => ({ error: `the workspace answered ${answer.status}` }));
  if (!answer.ok) throw new Error(told.error || `the workspace answered ${answer.status}`);
  return told;
}

/** As `act`, but a refusal becomes a notice; undefined then. */
export async function tryTo(verb, body) {
  try {
    return await act(verb, body);
  } catch (error) {
    notice(error.message);
    return undefined;
  }
}

/** A sentence in the corner that goes away by itself; screen readers hear it. */
export function notice(text, kind = "bad") {
  const close = h("button.quiet", { "aria-label": "Dismiss", onclick: () => box.remove() }, "×");
  const box = h("div", { class: `notice ${kind}` }, h("span", text), close);
  $("notices").append(box);
  setTimeout(() => box.remove(), kind === "bad" ? 12000 : 5000);
}

/** Make `box` show `items` in order; a node is drawn anew only when its `version` changed, and keeps its focus. */
export function keyed(box, items) {
  const wanted = new Set(items.map((item) => item.key));
  const old = new Map();
  for (const node of [...box.children]) {
    if (wanted.has(node.dataset.key)) old.set(node.dataset.key, node);
    else node.remove();
  }
  let next = box.firstElementChild;
  for (const { key, version, draw } of items) {
    let node = old.get(key);
    if (node?.dataset.version !== version) {
      const made = draw();
      Object.assign(made.dataset, { key, version });
      const focused = node?.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
      if (next && next === node) next = made;
      node?.replaceWith(made);
      if (focused) made.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
      node = made;
    }
    if (node === next) next = next.nextElementSibling;
    else box.insertBefore(node, next);
  }
}

export const clock = (seconds, more = {}) =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...more });

export const day = (seconds) =>
  new Date(seconds * 1000).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
