// A list of hundreds of sections, cut into the parts of the house that their names tell: "Block 101"
// to "Block 144" are one ring, "Block 301" begins another, and a section of its own stands alone.

export interface SectionGroup<T> {
  /** Empty for sections that belong to no group. */
  label: string;
  members: T[];
}

/** Numbers further apart than this belong to different rings. */
const GAP = 40;
/** Fewer sections than this need no groups. */
const MANY = 12;

export function grouped<T extends { name: string }>(sections: readonly T[]): SectionGroup<T>[] {
  if (sections.length < MANY) return sections.length ? [{ label: '', members: [...sections] }] : [];
  const groups: { word: string; last: number; members: T[] }[] = [];
  for (const section of sections) {
    const { word, number } = parts(section.name);
    const open = groups.findLast((group) => group.word === word);
    if (open && word && Math.abs(number - open.last) <= GAP) {
      open.members.push(section);
      open.last = number;
    } else groups.push({ word, last: number, members: [section] });
  }
  return groups.map(({ word, members }) => ({
    label: members.length > 1 ? `${word} ${end(members[0])}–${end(members.at(-1)!)}` : '',
    members,
  }));
}

/** "Block 112" is word and number; "Platform C" counts by letters; anything else is a word of its own. */
function parts(name: string): { word: string; number: number } {
  const match = /^(.*\S)\s+(\d+|[A-Z])$/.exec(name);
  if (!match) return { word: '', number: 0 };
  const [, word, tail] = match;
  return { word, number: /\d/.test(tail) ? Number(tail) : tail.charCodeAt(0) };
}

function end({ name }: { name: string }): string {
  return name.slice(name.lastIndexOf(' ') + 1);
}
