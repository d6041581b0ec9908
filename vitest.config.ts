// One test run for everything in the browser's side; nothing here needs a DOM.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // For what words and amounts hang on: the language is a rune.
  plugins: [svelte({ configFile: false })],
  test: { include: ['assets/**/*.test.ts', 'box-office-app/ui/**/*.test.ts'], environment: 'node' },
});
