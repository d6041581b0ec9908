// The feed's ports in a real browser.

import type { FeedPorts } from './feed.ts';

const FETCH_TIMEOUT_MS = 8_000;

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
      addEventListener('online', () => wake(true), { signal });
      addEventListener('offline', () => wake(false), { signal });
      return () => stop.abort();
    },
  };
}
