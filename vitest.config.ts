// One test run for everything in the browser's side; nothing here needs a DOM.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['assets/**/*.test.ts'], environment: 'node' },
});
