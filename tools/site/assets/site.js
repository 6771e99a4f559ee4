// Wide tables scroll inside their page; a keyboard must be able to reach them.
(function () {
  function reach() {
    document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach(function (one) {
      one.setAttribute("tabindex", "0");
    });
  }
  new MutationObserver(reach).observe(document.documentElement, { childList: true, subtree: true });
  reach();
})();
