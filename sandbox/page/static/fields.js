// The inputs of a modal: how each is drawn, and what it holds when the form is sent.

import { h } from "./dom.js";

const words = (object) => String(object?.text ?? "");
const options = (e) => [...(e.options || []), ...(e.option_groups || []).flatMap((one) => one.options || [])];
const chosenOf = (e) => [...(e.initial_options || []), e.initial_option].filter(Boolean).map((one) => one.value);
let made = 0;

/** An input block: label, field, hint, and a place for what is wrong with it. */
export function input(block) {
  const e = block.element;
  const id = `input-${++made}`;
  const label = [words(block.label), block.optional && h("small", " (optional)")];
  const about = [block.hint && h("small", { id: id + "-hint" }, words(block.hint)), h("p.wrong", { id: id + "-wrong", role: "alert" })];
  const props = { id, "aria-describedby": (block.hint ? `${id}-hint ` : "") + `${id}-wrong`, required: !block.optional };
  const marks = { "data-block": block.block_id, "data-action": e.action_id, "data-type": e.type };
  if (["checkboxes", "radio_buttons"].includes(e.type)) return h("fieldset.input", marks, h("legend", label), ticks(e, id), about);
  const draw = { file_input: files, static_select: select, multi_static_select: select }[e.type] || line;
  return h("div.input", marks, h("label", { for: id }, label), draw(e, props), about);
}

function line(e, props) {
  const more = { maxlength: e.max_length, placeholder: e.placeholder?.text, value: e.initial_value };
  if (e.type === "number_input") Object.assign(more, { type: "number", min: e.min_value, max: e.max_value, step: e.is_decimal_allowed ? "any" : "1" });
  return h(e.multiline ? "textarea" : "input", { ...props, ...more }, e.multiline && e.initial_value);
}

function select(e, props) {
  const many = e.type.startsWith("multi_");
  const chosen = chosenOf(e);
  const all = options(e).map((o) => h("option", { value: o.value, selected: chosen.includes(o.value) }, words(o.text)));
  if (many) return h("select", { ...props, multiple: true, size: Math.max(2, Math.min(6, all.length)) }, all);
  return h("select", props, h("option", { value: "" }, e.placeholder?.text || "Choose"), all);
}

function ticks(e, id) {
  const type = e.type === "checkboxes" ? "checkbox" : "radio";
  const chosen = chosenOf(e);
  return options(e).map((o) => {
    const box = h("input", { type, name: id, value: o.value, checked: chosen.includes(o.value) });
    return h("label.tick", box, words(o.text), o.description && h("small", words(o.description)));
  });
}

function files(e, props) {
  const most = e.max_files || 10;
  const accept = e.filetypes?.map((one) => "." + one).join(",");
  const names = h("small.chosen", { role: "status" });
  const check = (event) => {
    const all = [...event.target.files];
    event.target.setCustomValidity(all.length > most ? `no more than ${most} files, these are ${all.length}` : "");
    names.textContent = all.map((one) => one.name).join(", ");
  };
  return [h("input", { ...props, type: "file", multiple: most > 1, accept, onchange: check }), names];
}

/** A file as the workspace takes it. */
export async function encoded(file) {
  const address = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
  return { name: file.name, base64: address.slice(address.indexOf(",") + 1) };
}

/** What the inputs of a form hold, as the app gets it. `upload(files)` gives the ids of files that were sent. */
export async function values(form, upload) {
  const state = {};
  for (const box of form.querySelectorAll("[data-block]")) {
    const { block, action, type } = box.dataset;
    state[block] = { [action]: { type, ...(await held(box, type, upload)) } };
  }
  return state;
}

async function held(box, type, upload) {
  const option = (one) => ({ text: { type: "plain_text", text: one.label || one.parentElement.textContent }, value: one.value });
  const ticked = [...box.querySelectorAll("input:checked")].map(option);
  if (type === "checkboxes") return { selected_options: ticked };
  if (type === "radio_buttons") return { selected_option: ticked[0] || null };
  const field = box.querySelector("input, select, textarea");
  if (type === "file_input") return { files: field.files.length ? await upload([...field.files]) : [] };
  if (type.startsWith("multi_")) return { selected_options: [...field.selectedOptions].map(option) };
  if (field.tagName === "SELECT") return { selected_option: field.value ? option(field.selectedOptions[0]) : null };
  return { value: field.value || null };
}
