// One test run for everything in the browser's side; nothing here needs a DOM.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['assets/**/*.test.ts', 'box-office-app/ui/**/*.test.ts'], environment: 'node' },
});
