// What the tests ask a page: an expression, so that `(FILE).contrast()` can be evaluated in it.
({
  /** Texts whose contrast with what lies below them is less than 4.5, computed from the colours of the styles. */
  contrast() {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3]));
    const ground = (el) => {
      const layers = [];
      for (let at = el; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
      return layers.reduce((below, top) => over(top, below), [255, 255, 255]);
    };
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = (colour) => {
      const [r, g, b] = colour.map((v) => linear(v / 255));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const visible = { opacityProperty: true, visibilityProperty: true };
    const found = [];
    let looked = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const words = walker.currentNode.data.trim();
      const el = walker.currentNode.parentElement;
      if (!words || !el.checkVisibility(visible) || el.closest("option, script, .unseen, .skip")) continue;
      looked += 1;
      const below = ground(el);
      const [a, b] = [light(over(rgba(getComputedStyle(el).color), below)), light(below)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) found.push(`${words.slice(0, 30)} (${el.className || el.tagName}): ${ratio.toFixed(2)}`);
    }
    return { looked, found };
  },

  /** Elements that a screen reader could not name, and ids that are doubled or lead nowhere. */
  names() {
    const titled = (el) => document.getElementById(el.getAttribute("aria-labelledby"))?.textContent;
    const labelled = (el) => [...(el.labels || [])].map((one) => one.textContent).join("");
    const own = (el) => /^(BUTTON|A|SUMMARY)$/.test(el.tagName) && el.textContent;
    const name = (el) => el.getAttribute("aria-label") || titled(el) || labelled(el) || own(el) || "";
    const parts = "button, a, input, select, textarea, summary, dialog, nav, aside, section, [role=log], [role=region]";
    const ids = [...document.querySelectorAll("[id]")].map((el) => el.id);
    const referring = ["aria-controls", "aria-labelledby", "aria-activedescendant"];
    const refers = referring.flatMap((key) =>
      [...document.querySelectorAll(`[${key}]`)].map((el) => el.getAttribute(key)));
    const shown = [...document.querySelectorAll(parts)].filter((el) => el.checkVisibility());
    return {
      nameless: shown.filter((el) => !name(el).trim()).map((el) => el.outerHTML.slice(0, 90)),
      doubled: ids.filter((id, n) => ids.indexOf(id) !== n),
      dangling: refers.filter((id) => !document.getElementById(id)),
      pictures: document.querySelectorAll("img:not([alt])").length,
      headings: document.querySelectorAll("h1").length,
    };
  },

  /** What sticks out of the window on the right. */
  wide() {
    const parts = [...document.querySelectorAll("#bar, #bar *, .message, .card, .composer, .button, .rows li")];
    const out = parts.filter((el) => el.checkVisibility() && el.getBoundingClientRect().right > innerWidth + 1);
    const page = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    return [...(page ? [`the page scrolls by ${page}`] : []), ...out.map((el) => el.outerHTML.slice(0, 80))];
  },

  /** Whether the focus can be seen; a message field shows it by its frame. */
  ringed() {
    const at = document.activeElement;
    return at.tagName === "TEXTAREA" || getComputedStyle(at).outlineStyle !== "none";
  },
})
