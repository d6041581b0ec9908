// Money as its reader writes it.

import { expect, it, vi } from 'vitest';
import { money } from './format.ts';
import { text } from './text.svelte.ts';

vi.hoisted(() => {
  vi.stubGlobal('navigator', { languages: ['en-GB', 'ja', 'ko'] });
  vi.stubGlobal('document', { documentElement: {} });
});

it('the yen is a ¥ in every language, and the yuan is none', () => {
  for (const [language, yen] of [
    ['en', '¥7,700'],
    ['ja', '￥7,700'],
    ['ko', '¥7,700'],
  ] as const) {
    text.language = language;
    expect(money(7700, 'JPY')).toBe(yen);
    expect(money(7700, 'CNY')).not.toMatch(/^[¥￥]/);
  }
});

it('dollars say whose they are where that is not plain', () => {
  text.language = 'ko';
  expect(money(7700, 'USD')).toBe('US$77.00');
  expect(money(7700, 'EUR')).toBe('€77.00');
});
