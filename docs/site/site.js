// The index of the search is larger than any page: it is fetched when somebody turns to the search, not with every page.
(() => {
  const send = XMLHttpRequest.prototype.send;
  const open = XMLHttpRequest.prototype.open;
  const wanted = new Promise((resolve) => {
    if (new URLSearchParams(location.search).has("q")) resolve();
    document.addEventListener("focusin", (event) => event.target.closest("[data-md-component=search]") && resolve());
    document.addEventListener("pointerdown", (event) => event.target.closest("[for=__search], .md-search") && resolve());
  });
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.isIndex = String(url).includes("search/search_index.json");
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    return this.isIndex ? wanted.then(() => send.apply(this, body)) : send.apply(this, body);
  };

  // What scrolls can be reached by the keyboard; what does not is no stop on the way.
  const reachable = () => {
    for (const box of document.querySelectorAll(".wide, .formula, figure, pre > code")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("load", reachable);
  addEventListener("resize", reachable);

  // Without a font for formulas a browser hardly lowers what stands below: the style sheet does it then.
  const LOWERED = 0.12; // of the size of letters: how far such a font lowers it
  const noteFont = () => {
    if (!document.querySelector("math")) return;
    const held = Object.assign(document.createElement("div"), { className: "md-typeset", ariaHidden: "true" });
    held.style.cssText = "position: absolute; visibility: hidden";
    held.innerHTML = "<math><msub><mi>x</mi><mi>x</mi></msub></math>";
    document.body.append(held);
    const letters = [...held.querySelectorAll("mi")];
    const [whole, small] = letters.map((letter) => letter.getBoundingClientRect());
    const lowered = small.top + small.bottom - whole.top - whole.bottom - (whole.height - small.height) / 2;
    const size = Number.parseFloat(getComputedStyle(letters[0]).fontSize);
    document.documentElement.classList.toggle("plain-math", lowered / 2 < LOWERED * size);
    held.remove();
  };
  noteFont();

  // The theme's script waits for the first look at the page. It listens for the end of the document, which it has missed.
  const start = () => {
    const theme = document.getElementById("theme");
    const ended = () => document.dispatchEvent(new Event("DOMContentLoaded"));
    if (theme) document.body.append(Object.assign(document.createElement("script"), { src: theme.dataset.src, onload: ended }));
  };
  document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(start)), { once: true });
})();
