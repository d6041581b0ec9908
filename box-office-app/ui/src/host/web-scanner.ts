// A scanner that types into a page: its keys are held back before any field hears of them.

import { Wedge } from '../lib/wedge.ts';

export function followScanner(tell: (scan: string | null) => void): void {
  // A test's scanner is slower: each of its keys comes by way of a driver.
  const { scanGapMs } = globalThis as { scanGapMs?: number };
  const wedge = new Wedge<KeyboardEvent>(scanGapMs);
  const ours = new WeakSet<Event>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** A hand's key, where it was meant to go. */
  function type(event: KeyboardEvent): void {
    const target = document.activeElement;
    const field = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
    if (field && event.key.length === 1) document.execCommand('insertText', false, event.key);
    else if (target) {
      const again = new KeyboardEvent('keydown', {
        key: event.key,
        code: event.code,
        shiftKey: event.shiftKey,
        bubbles: true,
        cancelable: true,
      });
      ours.add(again);
      target.dispatchEvent(again);
    }
  }

  function wait(): void {
    clearTimeout(timer);
    if (wedge.wait !== null)
      timer = setTimeout(() => wedge.rest(performance.now()).forEach(type), wedge.wait);
  }

  addEventListener(
    'keydown',
    (event) => {
      if (ours.has(event) || event.isComposing) return;
      const commands = event.ctrlKey || event.altKey || event.metaKey;
      const verdict = wedge.down(event, event.code, commands, performance.now());
      verdict.released.forEach(type);
      if (verdict.held) {
        event.preventDefault();
        event.stopImmediatePropagation();
      }
      wait();
      if (verdict.scan !== undefined) tell(verdict.scan);
    },
    { capture: true },
  );
}
