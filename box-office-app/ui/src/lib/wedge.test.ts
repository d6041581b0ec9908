// A scan is told from typing by its speed, and read by the places of its keys.

import { describe, expect, it } from 'vitest';
import { TEST_CODE } from './scans.ts';
import { Wedge } from './wedge.ts';

/** The keys by which a scanner that is set to a US keyboard types a text. */
function keysOf(text: string): string[] {
  const signs: Record<string, string[]> = { ':': ['ShiftLeft', 'Semicolon'], '-': ['Minus'] };
  return [...text].flatMap((one) => {
    if (signs[one]) return signs[one];
    return /\d/.test(one) ? [`Digit${one}`] : ['ShiftLeft', `Key${one}`];
  });
}

function type(wedge: Wedge<string>, codes: string[], everyMs: number, from = 1_000) {
  const released: string[] = [];
  const passed: string[] = [];
  let scan: string | null | undefined;
  let at = from;
  for (const code of codes) {
    const verdict = wedge.down(code, code, false, (at += everyMs));
    released.push(...verdict.released);
    if (!verdict.held) passed.push(code);
    if (verdict.scan !== undefined) scan = verdict.scan;
  }
  return { released, passed, scan, at };
}

describe('a scanner', () => {
  it('is read whole, and nothing of it is typed', () => {
    const wedge = new Wedge<string>();
    const told = type(wedge, [...keysOf(TEST_CODE), 'Enter'], 2);
    expect(told.scan).toBe(TEST_CODE);
    expect(told.released).toEqual([]);
    expect(told.passed).toEqual([]);
    expect(wedge.wait).toBeNull();
  });

  it('may send capital letters without a shift, as one does that knows of Caps Lock', () => {
    const codes = ['KeyA', 'KeyB', 'KeyC', 'Digit1', 'Digit2', 'Digit3', 'Enter'];
    expect(type(new Wedge(), codes, 2).scan).toBe('ABC123');
  });

  it('that sends more than any code has has to read again', () => {
    const codes = Array.from({ length: 700 }, () => 'KeyA');
    expect(type(new Wedge(), [...codes, 'Enter'], 1).scan).toBeNull();
  });
});

describe('a hand', () => {
  it('types on, a little late and in order', () => {
    const wedge = new Wedge<string>();
    const told = type(wedge, ['KeyA', 'KeyB', 'KeyC'], 120);
    expect(told.scan).toBeUndefined();
    expect(told.released).toEqual(['KeyA', 'KeyB']);
    expect(wedge.rest(told.at + 36)).toEqual(['KeyC']);
    expect(wedge.rest(told.at + 99)).toEqual([]);
  });

  it('that is quick for a moment loses nothing, and its Enter is an Enter', () => {
    const told = type(new Wedge(), ['Digit4', 'Digit2', 'Enter'], 10);
    expect(told.released).toEqual(['Digit4', 'Digit2']);
    expect(told.passed).toEqual(['Enter']);
    expect(told.scan).toBeUndefined();
  });

  it('commands the page at once', () => {
    const wedge = new Wedge<string>();
    expect(wedge.down('a', 'KeyA', true, 1).held).toBe(false);
    expect(wedge.down('F6', 'F6', false, 2).held).toBe(false);
    expect(wedge.down('space', 'Space', false, 3).held).toBe(false);
  });
});
