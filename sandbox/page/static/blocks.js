// Block Kit as DOM nodes. `ctx.click(element, value)` is called when somebody uses an element.

import { h } from "./dom.js";
import { input } from "./fields.js";
import { link, markdown, mention, moment, mrkdwn, place, team } from "./mrkdwn.js";

/** The nodes of a list of blocks. */
export const blocks = (list, ctx) => list.map((block) => drawn(() => (DRAW[block.type] || unknown)(block, ctx), block));

/** A block that is not what it should be is shown as what it is: the page never breaks over it. */
function drawn(draw, block) {
  try {
    return h("div", { class: `block ${String(block.type).replace(/\W/g, "")}` }, draw());
  } catch {
    return unknown(block);
  }
}

const unknown = (block) =>
  h("details.unknown", h("summary", `${block?.type}: not drawn here`), h("pre", JSON.stringify(block, null, 1)));

/** The nodes of a text object. */
export const text = (object) => (!object ? [] : object.type === "mrkdwn" ? mrkdwn(object.text) : [String(object.text)]);

const DRAW = {
  header: (block) => h("h3", text(block.text)),
  divider: () => h("hr"),
  markdown: (block) => markdown(block.text),
  image: (block) => h("figure", block.title && h("figcaption", text(block.title)), picture(block)),
  context: (block, ctx) => block.elements.map((e) => (e.type === "image" ? picture(e, true) : h("span", text(e, ctx)))),
  actions: (block, ctx) => block.elements.map((e) => element(e, ctx)),
  section: (block, ctx) => [
    h("div.words",
      block.text && h("div", text(block.text)),
      block.fields && h("div.fields", block.fields.map((field) => h("div", text(field))))),
    block.accessory && h("div.accessory", block.accessory.type === "image" ? picture(block.accessory) : element(block.accessory, ctx)),
  ],
  table,
  rich_text: (block) => rich(block),
  input,
};

function table(block) {
  const align = (n) => ({ right: "right", center: "center" })[block.column_settings?.[n]?.align];
  const words = (cell) => (cell.type === "rich_text" ? rich(cell) : String(cell.text ?? cell.value ?? ""));
  const cells = (row, tag) => row.map((cell, n) => h(tag, { class: align(n), scope: tag === "th" && "col" }, words(cell)));
  const [first, ...rest] = block.rows;
  const head = h("thead", h("tr", cells(first, "th")));
  const body = h("tbody", rest.map((row) => h("tr", cells(row, "td"))));
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table" }, h("table", head, body));
}

/** A picture of this workspace; others are not loaded, only named: the page asks no other host. */
function picture(object, small) {
  const url = object.image_url || "";
  if (url.startsWith(location.origin + "/")) return h("img", { src: url, alt: object.alt_text || "", class: small && "small" });
  const name = object.alt_text || "picture";
  if (small) return h("span.picture.small", { role: "img", "aria-label": name });
  return h("span.picture", `${name} (not loaded) `, link(url, url));
}

// interactive elements

function element(e, ctx) {
  const draw = { button, overflow }[e.type] || (e.options || e.option_groups ? select : null);
  return draw ? draw(e, ctx) : h("span.unknown", `${e.type}: not drawn here`);
}

function button(e, ctx) {
  const looks = ["primary", "danger"].includes(e.style) ? `button ${e.style}` : "button";
  const props = { class: looks, type: "button", "data-focus": e.action_id, "aria-label": e.accessibility_label };
  return h("button", { ...props, onclick: (event) => ctx.click(e, undefined, event.currentTarget) }, text(e.text), e.url && " ↗");
}

const options = (e) => [...(e.options || []), ...(e.option_groups || []).flatMap((one) => one.options || [])];

function select(e, ctx) {
  const label = e.placeholder?.text || "Choose";
  const chosen = e.initial_option?.value;
  const use = (event) => ctx.click(e, event.target.value, event.target);
  const list = options(e).map((o) => h("option", { value: o.value, selected: o.value === chosen }, String(o.text.text)));
  const invitation = !chosen && h("option", { value: "", disabled: true, selected: true }, label);
  return h("select", { "aria-label": label, "data-focus": e.action_id, onchange: use }, invitation, list);
}

function overflow(e, ctx) {
  const choose = (o) => (event) => {
    event.currentTarget.closest("details").open = false;
    ctx.click(e, o.value, event.currentTarget);
  };
  const list = options(e).map((o) => h("button.quiet", { type: "button", onclick: choose(o) }, text(o.text)));
  const summary = h("summary.button", { "aria-label": "More actions", "data-focus": e.action_id }, "⋯");
  return h("details.overflow", summary, h("div", list));
}

// rich text

const rich = (block) => (block.elements || []).map((part, n) => (RICH[part.type] || unknown)(part, n));

const RICH = {
  rich_text_section: (part) => h("div", part.elements.map(run)),
  rich_text_preformatted: (part) => h("pre", h("code", part.elements.map(run))),
  rich_text_quote: (part) => h("blockquote", part.elements.map(run)),
  rich_text_list: (part) => {
    const props = { class: `indent${Math.min(4, Number(part.indent) || 0)}`, start: part.offset ? Number(part.offset) + 1 : null };
    return h(part.style === "ordered" ? "ol" : "ul", props, part.elements.map((item) => h("li", item.elements.map(run))));
  },
};

function run(piece) {
  let node = piece.text ?? "";
  if (piece.type === "link") node = link(String(piece.url), piece.text || piece.url) || String(piece.text || piece.url);
  else if (piece.type === "user") node = mention(piece.user_id);
  else if (piece.type === "usergroup") node = team(piece.usergroup_id);
  else if (piece.type === "channel") node = place(piece.channel_id);
  else if (piece.type === "broadcast") node = h("span.mention.mine", "@" + piece.range);
  else if (piece.type === "emoji") node = `:${piece.name}:`;
  else if (piece.type === "date") node = moment(Number(piece.timestamp), piece.format || "{date_num}", piece.fallback, piece.url);
  for (const [style, tag] of [["code", "code"], ["bold", "strong"], ["italic", "em"], ["strike", "s"]]) {
    if (piece.style?.[style]) node = h(tag, {}, node);
  }
  return typeof node === "string" ? lineBreaks(node) : node;
}

const lineBreaks = (words) => words.split("\n").flatMap((line, n) => (n ? [h("br"), line] : [line]));
