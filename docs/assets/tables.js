/* What scrolls can be reached by keyboard: tables, and code by a few pixels too. */
window.addEventListener("load", () =>
  setTimeout(() => {
    const scrolled = ".md-typeset__scrollwrap, pre > code, .highlight-ipynb";
    for (const scrolling of document.querySelectorAll(scrolled)) {
      const wide = scrolling.scrollWidth > scrolling.clientWidth;
      if (wide || scrolling.scrollHeight > scrolling.clientHeight) {
        scrolling.tabIndex = 0;
      }
    }
    document.documentElement.dataset.scrolling = "reachable";
  }, 500),
);

/* The theme puts the copy button of each block into a landmark without a name. */
new MutationObserver(() => {
  for (const [index, buttons] of document.querySelectorAll("nav.md-code__nav").entries()) {
    buttons.setAttribute("aria-label", `Code ${index + 1}`);
  }
}).observe(document.body, { childList: true, subtree: true });
