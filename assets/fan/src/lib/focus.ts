// When the control that has the focus vanishes, browsers drop the focus to the body, and whoever
// works by keyboard starts over at the top of the page. Here it goes to what took its place.

/**
 * Attached to a region: if the focused control inside vanishes, the first element with `data-focus`
 * gets the focus, or the region itself. A control that was only disabled gets it back.
 */
export function keepFocus(region: HTMLElement): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let last: HTMLElement | null = null;

  const remember = () => {
    const now = document.activeElement;
    if (!(now instanceof HTMLElement) || now === document.body) return;
    if (region.contains(now)) last = now;
    // A dialog gives the focus back when it closes.
    else if (!now.closest('dialog')) last = null;
  };
  document.addEventListener('focusin', remember, { signal });
  // The focus went into a frame: only the window is told.
  window.addEventListener('blur', remember, { signal });
  document.addEventListener(
    'pointerdown',
    (event) => {
      if (!(event.target instanceof Element && event.target.closest('dialog'))) last = null;
    },
    { signal, capture: true },
  );

  const observer = new MutationObserver(() => {
    if (!last || (document.activeElement && document.activeElement !== document.body)) return;
    if (last.isConnected) {
      // Still disabled: this does nothing, and its next change brings us here again.
      last.focus();
      return;
    }
    const next = region.querySelector<HTMLElement>('[data-focus]') ?? region;
    next.focus();
  });
  observer.observe(region, { childList: true, subtree: true, attributeFilter: ['disabled'] });

  return () => {
    stop.abort();
    observer.disconnect();
  };
}
