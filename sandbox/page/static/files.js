// Files of messages: pictures are shown, everything else can be kept; and files that wait to be sent with a message.

import { $, h, notice } from "./dom.js";
import { me, user } from "./store.js";

const MOST = 20;
const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const address = (file) => `/_page/files/${encodeURIComponent(file.id)}/${encodeURIComponent(file.name)}?as=${encodeURIComponent(user(me())?.name ?? "")}`;

/** What a message shows of its files. */
export const filesOf = (m) => (m.files?.length ? h("div.files", m.files.map(shown)) : null);

function shown(file) {
  if (file.gone) return h("p.small", `${file.name} was deleted`);
  const title = file.title || file.name;
  if (!file.picture) {
    const props = { href: address(file) + "&download", download: file.name, "aria-label": `Download ${file.name}, ${size(file.bytes)}` };
    return h("a.chip", props, h("span", title), h("small", size(file.bytes)));
  }
  const picture = h("img.shared", { src: address(file), alt: file.alt || title });
  const open = { href: address(file), target: "_blank", rel: "noopener", "aria-label": `Open ${title}` };
  const keep = { href: address(file) + "&download", download: file.name, "aria-label": `Download ${file.name}` };
  return h("figure", h("figcaption", title, " ", h("a", keep, "download")), h("a", open, picture));
}

/** Files that wait in a message field: `list` and `button` are parts of the field, `taken()` empties it. */
export function waiting(id) {
  let files = [];
  const list = h("ul.pending", { id: id + "-files", "aria-label": "Attached files", hidden: true });
  const spoken = h("span.unseen", { role: "status" });
  const chooser = h("input", { type: "file", multiple: true, hidden: true, onchange: () => (add(chooser.files), (chooser.value = "")) });
  const button = h("button.quiet", { type: "button", "aria-label": "Attach files", onclick: () => chooser.click() }, $("clip").content.cloneNode(true));

  function add(more) {
    const all = [...files, ...more];
    if (all.length > MOST) notice(`no more than ${MOST} files at once, these are ${all.length}`);
    files = all.slice(0, MOST);
    draw();
  }

  function draw() {
    list.hidden = !files.length;
    list.replaceChildren(...files.map((file) => {
      const drop = () => ((files = files.filter((one) => one !== file)), draw(), button.focus());
      return h("li", h("span", file.name), h("small", size(file.size)),
        h("button.quiet", { type: "button", "aria-label": `Remove ${file.name}`, onclick: drop }, "×"));
    }));
    spoken.textContent = files.length ? `${files.length} file${files.length > 1 ? "s" : ""} attached` : "";
  }

  return { list, button, chooser, spoken, add, all: () => files, clear: () => ((files = []), draw()) };
}
