// The draw of a line, checked step by step from what is published: nothing is believed that can be computed.
// Runs in a worker; a step that can't be done yet says so instead of passing.

import {
  commitment,
  fromHex,
  HASH_BYTES,
  leafOf,
  placesOf,
  proves,
  rootOf,
  same,
  seedOf,
  toHex,
} from '../../../protocol/draw.ts';
import type { LineDraw, LineProof } from '../../../protocol/index.ts';
import type { KeptDraw } from './receipts.ts';

export type Step = 'commitment' | 'value' | 'root' | 'proof' | 'place';
export const STEPS: readonly Step[] = ['commitment', 'value', 'root', 'proof', 'place'];

export interface Finding {
  step: Step;
  /** `open`: not published yet; `none`: nothing to check there; `given`: for people to compare. */
  is: 'right' | 'wrong' | 'open' | 'none' | 'given';
  /** What was computed, or the place (from 0). */
  found?: string;
  place?: number;
}

export interface Asked {
  event: number;
  draw: LineDraw;
  /** Whose place: from 0. */
  number: number | null;
  /** With it the leaf itself can be made; only its owner knows it. */
  entryKey: string | null;
  /** What the hub said. */
  place: number | null;
  /** What this browser kept as it joined; of a draw that was made anew it says nothing. */
  kept?: KeptDraw | null;
}

/** Whoever fixed the entries could know the value by then, and with it try which would win. */
export function fixedLate(draw: LineDraw): boolean {
  const fixed = draw.rooted_at ?? draw.closed_at;
  return !!fixed && !!draw.value_due_at && Date.parse(fixed) >= Date.parse(draw.value_due_at);
}

/** The commitment that this browser kept of this very draw. */
export function keptCommitment({ draw, kept }: Pick<Asked, 'draw' | 'kept'>): string | null {
  return kept?.no === draw.no ? kept.commitment.toLowerCase() : null;
}

/** Bytes of all leaves, and the path of one: as they are published. */
export interface Published {
  leaves(): Promise<Uint8Array>;
  proof(number: number): Promise<LineProof>;
}

export async function checkSteps(
  asked: Asked,
  published: Published,
  say: (finding: Finding) => void,
): Promise<void> {
  const { draw, number } = asked;
  const secret = draw.secret ? fromHex(draw.secret) : null;
  const root = draw.root ? fromHex(draw.root) : null;
  const count = draw.entry_count ?? null;
  const value = draw.public_value ? fromHex(draw.public_value) : null;

  const kept = keptCommitment(asked);
  const other = kept !== null && kept !== draw.commitment.toLowerCase();
  if (!secret) say({ step: 'commitment', is: other ? 'wrong' : 'open' });
  else {
    const made = commitment({
      eventId: asked.event,
      drawNo: draw.no,
      source: draw.source ?? null,
      round: draw.round ?? null,
      secret,
    });
    say({
      step: 'commitment',
      is: !other && toHex(made) === draw.commitment.toLowerCase() ? 'right' : 'wrong',
      found: toHex(made),
    });
  }

  // The source is part of the commitment; whether it really gave this value, only the source can say.
  if (draw.source && fixedLate(draw)) say({ step: 'value', is: 'wrong' });
  else if (draw.source)
    say({ step: 'value', is: value ? 'given' : 'open', found: draw.public_value ?? '' });
  else say({ step: 'value', is: value ? 'wrong' : 'none' });

  let leaves: Uint8Array | null = null;
  if (!root || count === null) say({ step: 'root', is: 'open' });
  else {
    leaves = await published.leaves();
    const made = leaves.length === count * HASH_BYTES ? rootOf(leaves) : null;
    say({
      step: 'root',
      is: made && same(made, root) ? 'right' : 'wrong',
      found: made ? toHex(made) : '',
    });
  }

  if (number === null || (count !== null && number >= count)) say({ step: 'proof', is: 'none' });
  else if (!root || count === null || !leaves) say({ step: 'proof', is: 'open' });
  else {
    const proof = await published.proof(number);
    const own = leaves.subarray(number * HASH_BYTES, (number + 1) * HASH_BYTES);
    const leaf = fromHex(proof.leaf);
    const mine = asked.entryKey ? leafOf(asked.event, number, fromHex(asked.entryKey)) : null;
    const holds =
      same(leaf, own) &&
      (!mine || same(mine, leaf)) &&
      proves(root, count, number, leaf, proof.path.map(fromHex));
    say({ step: 'proof', is: holds ? 'right' : 'wrong', found: proof.leaf });
  }

  if (number !== null && count !== null && number >= count) {
    // Joined after the draw: the place is the number.
    const right = asked.place === null || asked.place === number;
    say({ step: 'place', is: right ? 'right' : 'wrong', place: number });
  } else if (!secret || !root || count === null || (draw.source && !value) || number === null)
    say({ step: 'place', is: number === null ? 'none' : 'open' });
  else {
    const places = await placesOf(seedOf(secret, root, value), count);
    const place = places[number];
    const right = asked.place === null || asked.place === place;
    say({ step: 'place', is: right ? 'right' : 'wrong', place });
  }
}

/** The place that follows from what was published; null while it does not, or if the commitment is broken. */
export async function placeOf(
  event: number,
  draw: LineDraw,
  number: number,
): Promise<number | null> {
  if (!draw.secret || !draw.root || draw.entry_count == null) return null;
  if (number >= draw.entry_count) return number;
  if (draw.source && !draw.public_value) return null;
  const secret = fromHex(draw.secret);
  const made = commitment({
    eventId: event,
    drawNo: draw.no,
    source: draw.source ?? null,
    round: draw.round ?? null,
    secret,
  });
  if (toHex(made) !== draw.commitment.toLowerCase()) return null;
  const value = draw.public_value ? fromHex(draw.public_value) : null;
  return (await placesOf(seedOf(secret, fromHex(draw.root), value), draw.entry_count))[number];
}
