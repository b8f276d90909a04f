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

  // The theme's script waits for the first look at the page. It listens for the end of the document, which it has missed.
  const start = () => {
    const theme = document.getElementById("theme");
    const ended = () => document.dispatchEvent(new Event("DOMContentLoaded"));
    if (theme) document.body.append(Object.assign(document.createElement("script"), { src: theme.dataset.src, onload: ended }));
  };
  document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(start)), { once: true });
})();
