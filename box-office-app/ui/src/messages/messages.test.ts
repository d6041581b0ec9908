// Every language says everything, with the same values in it.

import { describe, expect, it } from 'vitest';
import en from './kiosk.en.json';
import ja from './kiosk.ja.json';
import ko from './kiosk.ko.json';

const values = (message: string) =>
  [...new Set([...message.matchAll(/\{(\w+)[,}]/g)].map(([, name]) => name))].sort();

describe.each([
  ['ja', ja],
  ['ko', ko],
])('a kiosk in %s', (_, catalogue) => {
  it('says all that it says in English, and of the same', () => {
    expect(Object.keys(catalogue)).toEqual(Object.keys(en));
    for (const [key, message] of Object.entries(en)) {
      const other = (catalogue as Record<string, string>)[key];
      expect(other.trim(), key).not.toBe('');
      const used = values(other);
      expect(
        used.every((name) => values(message).includes(name)),
        key,
      ).toBe(true);
      for (const name of values(message))
        if (name !== 'count' || used.length > 0) expect(used, key).toContain(name);
    }
  });
});
