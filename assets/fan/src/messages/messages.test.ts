// The three catalogues say the same things, with the same blanks, and nothing that nobody says.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatMessage, placeholders } from '../lib/message.ts';
import en from './en.json';
import ja from './ja.json';
import ko from './ko.json';

const english: Record<string, string> = en;
const source = new URL('..', import.meta.url);

describe('the message catalogues', () => {
  for (const [language, catalogue] of Object.entries({ ja, ko } as Record<
    string,
    Record<string, string>
  >)) {
    it(`${language} has the keys and the placeholders of en`, () => {
      expect(Object.keys(catalogue).sort()).toEqual(Object.keys(english).sort());
      for (const [key, pattern] of Object.entries(catalogue)) {
        expect(placeholders(pattern), key).toEqual(placeholders(english[key]));
      }
    });
  }

  it('holds no text that no page shows', () => {
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' });
    const code = files
      .filter((file) => /\.(svelte|ts)$/.test(file) && !file.endsWith('.test.ts'))
      .map((file) => readFileSync(new URL(file, source), 'utf8'))
      .join('\n');
    const unused = Object.keys(english).filter((key) => !code.includes(`'${key}'`));
    expect(unused).toEqual([]);
  });

  it('never uses markup', () => {
    for (const catalogue of [en, ja, ko]) {
      for (const pattern of Object.values(catalogue)) expect(pattern).not.toMatch(/[<>]/);
    }
  });
});

describe('a message', () => {
  it('chooses the plural of its language', () => {
    const seats = '{count, plural, =0 {none} one {# seat} other {# seats}} in {place}';
    expect(formatMessage(seats, { count: 0, place: 'A' }, 'en')).toBe('none in A');
    expect(formatMessage(seats, { count: 1, place: 'A' }, 'en')).toBe('1 seat in A');
    expect(formatMessage(seats, { count: 62000, place: 'A' }, 'en')).toBe('62,000 seats in A');
    expect(formatMessage(seats, { count: 1, place: 'A' }, 'ko')).toBe('1 seats in A');
  });

  it('puts values in as they are', () => {
    expect(formatMessage('{name}!', { name: '<b>{x}</b>' }, 'en')).toBe('<b>{x}</b>!');
  });

  it('refuses a pattern that is broken', () => {
    expect(() => formatMessage('{count, plural, one {# seat}}', { count: 1 }, 'en')).toThrow(
      SyntaxError,
    );
    expect(() => formatMessage('} oops', {}, 'en')).toThrow(SyntaxError);
  });
});
