// The feed's ports in a real browser.

import type { FeedPorts } from './follow.ts';

const FETCH_TIMEOUT_MS = 8_000;
/** How often a page that is shown looks whether it has slept. */
const LOOK_MS = 1_000;
/** Time that passed between two looks, and that nothing but sleep explains. */
const SLEPT_MS = 5_000;

export function browserPorts(): FeedPorts {
  return {
    async fetchBytes(address) {
      const response = await fetch(address, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
      if (response.status === 404) return null;
      if (!response.ok) throw new Error(`${address}: ${response.status}`);
      return response.arrayBuffer();
    },
    openSocket(address, handlers) {
      const url = new URL(address, location.href);
      url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
      const socket = new WebSocket(url);
      socket.binaryType = 'arraybuffer';
      socket.onopen = () => handlers.open();
      socket.onmessage = ({ data }) => {
        if (data instanceof ArrayBuffer) handlers.message(data);
      };
      socket.onclose = ({ code, reason }) => handlers.close(code, reason);
      return { close: () => socket.close() };
    },
    now: () => performance.now(),
    after(ms, run) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    onWake(wake) {
      const stop = new AbortController();
      const { signal } = stop;
      document.addEventListener(
        'visibilitychange',
        () => document.visibilityState === 'visible' && wake(true),
        { signal },
      );
      // A page out of the back-forward cache has lost its socket without being told.
      addEventListener('pageshow', (event) => event.persisted && wake(true), { signal });
      // One that was frozen, and a laptop that was opened again: the page had been shown all the while.
      document.addEventListener('resume', () => wake(true), { signal });
      let looked = Date.now();
      const looking = setInterval(() => {
        const slept = Date.now() - looked > SLEPT_MS;
        looked = Date.now();
        if (slept && document.visibilityState === 'visible') wake(true);
      }, LOOK_MS);
      signal.addEventListener('abort', () => clearInterval(looking));
      addEventListener('online', () => wake(true), { signal });
      addEventListener('offline', () => wake(false), { signal });
      return () => stop.abort();
    },
  };
}
