// Builds the screens of till and kiosk into box-office-app/ui/dist, which the shell carries in its program.

import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

const hub = process.env.HUB ?? 'http://127.0.0.1:8080';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [svelte()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // The window's policy allows no inline script, style or data: address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // In a browser against a running hub: `HUB=http://127.0.0.1:8080 npm run dev:till`.
  // Kiosks and selling without a network need the core: `cargo run -p fullhouse-tests --bin page-host -- --hub $HUB
  // --folder /tmp/core`, and what it says it listens on as DESK.
  server: {
    proxy: {
      '/api': { target: hub, ws: true, changeOrigin: true },
      '/healthz': hub,
      ...(process.env.DESK ? { '/desk': process.env.DESK } : {}),
    },
  },
  preview: { proxy: { '/api': { target: hub, ws: true, changeOrigin: true }, '/healthz': hub } },
});
