// What a cashier types is an amount, or it is refused; it is never another amount.

import { describe, expect, it } from 'vitest';
import { counted, kinds, likely, readAmount } from './cash.ts';

describe('an amount in writing', () => {
  it('is read with the currency’s own digits', () => {
    expect(readAmount('12.5', 'EUR')).toBe(1250);
    expect(readAmount('12,50', 'EUR')).toBe(1250);
    expect(readAmount(' 1 200 ', 'EUR')).toBe(120000);
    expect(readAmount('12.', 'EUR')).toBe(1200);
    expect(readAmount('1200', 'JPY')).toBe(1200);
    expect(readAmount('1.234', 'KWD')).toBe(1234);
  });

  it('is refused if it could mean another one', () => {
    for (const text of ['', '.', '-5', '1.234', '1,2,3', '1e3', 'ten', '12 €', '9999999999'])
      expect(readAmount(text, 'EUR'), text).toBeNull();
    expect(readAmount('12.5', 'JPY')).toBeNull();
  });
});

describe('notes and coins', () => {
  it('are those of the currency, large ones first', () => {
    expect(kinds('EUR')[0]).toBe(20000);
    expect(kinds('SEK')).toEqual([...kinds('SEK')].sort((a, b) => b - a));
  });

  it('offer the sum itself, and the next round ones', () => {
    expect(likely(4750, 'EUR')).toEqual([4750, 5000, 6000, 10000, 20000]);
    expect(likely(1200, 'JPY')).toEqual([1200, 1500, 2000, 5000, 10000]);
    expect(likely(5000, 'EUR')[0]).toBe(5000);
  });
});

describe('a count', () => {
  it('has what was typed, and nothing of what was left empty', () => {
    expect(counted([500, 200, 100], { 500: '3', 200: '', 100: ' 12 ' })).toEqual([
      { value_minor: 500, count: 3 },
      { value_minor: 100, count: 12 },
    ]);
  });

  it('is refused if a kind is no number of pieces', () => {
    for (const text of ['3.5', '-1', 'two', '1e3', '12345678'])
      expect(counted([500], { 500: text }), text).toBeNull();
  });
});
