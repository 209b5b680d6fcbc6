/* What scrolls can be reached by keyboard: tables, and code by a few pixels too. */
window.addEventListener("load", () =>
  setTimeout(() => {
    for (const scrolling of document.querySelectorAll(".md-typeset__scrollwrap, pre > code")) {
      const wide = scrolling.scrollWidth > scrolling.clientWidth;
      if (wide || scrolling.scrollHeight > scrolling.clientHeight) {
        scrolling.tabIndex = 0;
      }
    }
    document.documentElement.dataset.scrolling = "reachable";
  }, 500),
);
