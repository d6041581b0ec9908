// Builds the fan's page into assets/fan/dist, which the hub serves at `/`.

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
    // The page's policy allows no inline script, style or data: address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // `npm run dev` against a running hub: HUB=http://127.0.0.1:8080 npm run dev
  server: { proxy: { '/api': { target: hub, ws: true, changeOrigin: false } } },
});
