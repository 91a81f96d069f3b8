// The modal that the app opened for this person: it stays until the app took it, and shows what is wrong at its field.

import { blocks } from "./blocks.js";
import { $, act, h, notice, tryTo } from "./dom.js";
import { expect } from "./deeds.js";
import { encoded, values } from "./fields.js";
import { me, store } from "./store.js";

const shown = { id: "", version: "", tries: 0 };

/** Show the newest modal, what the app says of it, or none. Called after each change. */
export function modals() {
  const box = $("form");
  const view = store.state.views.at(-1);
  if (!view) {
    if (box.open) box.close();
    shown.id = "";
    return;
  }
  if (shown.id !== view.id || shown.version !== view.hash) fill(view);
  if (!box.open && !$("ask").open) box.showModal();
  if ((view._tries || 0) !== shown.tries) wrong(view);
}

function fill(view) {
  Object.assign(shown, { id: view.id, version: view.hash, tries: 0 });
  $("form-title").textContent = view.title?.text || "";
  $("form-body").replaceChildren(...blocks(view.blocks, { click: () => notice("elements of a modal are only sent with it") }));
  $("form-send").textContent = view.submit?.text || "Submit";
  $("form-send").hidden = !view.submit;
  $("form-close").textContent = view.close?.text || "Cancel";
}

function wrong(view) {
  shown.tries = view._tries || 0;
  for (const box of $("form-body").querySelectorAll("[data-block]")) {
    const said = view._errors?.[box.dataset.block] || "";
    box.querySelector(".wrong").textContent = said;
    for (const field of box.querySelectorAll("input, select, textarea")) said ? field.setAttribute("aria-invalid", "true") : field.removeAttribute("aria-invalid");
  }
  $("form-body").querySelector("[aria-invalid]")?.focus();
}

/** Send the files of a person ahead of a form; their ids. */
async function upload(files) {
  const sent = await act("upload", { user: me(), files: await Promise.all(files.map(encoded)) });
  return sent.map((one) => one.id);
}

async function send(event) {
  event.preventDefault();
  if ($("form-send").hasAttribute("aria-busy")) return;
  $("form-send").setAttribute("aria-busy", "true");
  try {
    const state = await values($("form-body"), upload);
    expect(await act("submit", { user: me(), view_id: shown.id, values: state }), $("form-title").textContent, $("form-send"));
  } catch (error) {
    $("form-send").removeAttribute("aria-busy");
    notice(error.message);
  }
}

const close = (event) => {
  event?.preventDefault();
  void tryTo("close", { user: me(), view_id: shown.id });
};

$("form-frame").addEventListener("submit", send);
$("form").addEventListener("cancel", close);
$("form-close").addEventListener("click", close);
