import { describe, expect, it } from 'vitest';
import { grouped } from './section-groups.ts';

const named = (...names: string[]) => names.map((name) => ({ name }));
const run = (word: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `${word} ${from + i}`);

describe('sections in groups', () => {
  it('are the rings of a stadium, and what stands alone', () => {
    const names = [
      ...run('Block', 101, 144).filter((name) => name !== 'Block 120'),
      ...run('Club', 201, 220),
      ...run('Block', 301, 352),
      ...run('Box', 1, 100),
      'Platform A',
      'Platform B',
      'Skyline',
      'Golden Circle',
    ];
    const groups = grouped(named(...names));
    expect(groups.map(({ label }) => label)).toEqual([
      'Block 101–144',
      'Club 201–220',
      'Block 301–352',
      'Box 1–100',
      'Platform A–B',
      '',
      '',
    ]);
    expect(groups.flatMap(({ members }) => members.map(({ name }) => name))).toEqual(names);
  });

  it('are one list where there are few', () => {
    expect(grouped(named('Stalls 1', 'Stalls 2'))).toEqual([
      { label: '', members: named('Stalls 1', 'Stalls 2') },
    ]);
    expect(grouped([])).toEqual([]);
  });
});
