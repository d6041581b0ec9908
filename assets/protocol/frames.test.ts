// Every golden frame, as the Rust side writes them into protocol/golden, read from TypeScript.
// Nothing is skipped: a file whose meaning this test doesn't know makes it fail.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  decodeFrame,
  decodeFrames,
  encodeFrame,
  encodeFrames,
  FrameError,
  type Frame,
} from './frames.ts';

const golden = new URL('../../protocol/golden/', import.meta.url);

interface Golden {
  description: string;
  file: string;
  decoded?: Meaning;
  error?: string;
}

interface Meaning {
  kind: string;
  event_id?: number;
  epoch?: number;
  frame?: number;
  seat_count?: number;
  committed_at?: number;
  since?: number;
  changes?: [number, number][];
  first?: number;
  json?: string;
  statuses?: number[];
  head?: Meaning;
  frames?: Meaning[];
}

const files = readdirSync(golden, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.json'))
  // The hub's own bus carries kinds that a browser never gets.
  .filter((name) => !name.startsWith('bus/'))
  .sort();

function meaningOf(frame: Frame): Meaning {
  const header = {
    kind: frame.kind,
    event_id: frame.eventId,
    epoch: frame.epoch,
    frame: frame.frame,
    seat_count: frame.seatCount,
    committed_at: frame.committedAt,
  };
  if ('seats' in frame) {
    const changes = [...frame.seats].map((seat, i): [number, number] => [seat, frame.statuses[i]]);
    return frame.kind === 'span'
      ? { ...header, since: frame.since, changes }
      : { ...header, changes };
  }
  switch (frame.kind) {
    case 'range':
      return {
        ...header,
        since: frame.since,
        first: frame.first,
        statuses: [...frame.statuses],
      };
    case 'line':
      return { ...header, json: frame.json };
    case 'snapshot':
      return { ...header, statuses: [...frame.statuses] };
    case 'resync':
      return header;
  }
}

describe('golden frames', () => {
  it('are there', () => expect(files.length).toBeGreaterThan(10));

  for (const name of files) {
    const folder = new URL('.', new URL(name, golden));
    const { description, file, decoded, error } = JSON.parse(
      readFileSync(new URL(name, golden), 'utf8'),
    ) as Golden;
    const bytes = new Uint8Array(readFileSync(new URL(file, folder)));

    it(`${name}: ${description}`, () => {
      if (error !== undefined) {
        const thrown = (() => {
          try {
            return decodeFrame(bytes);
          } catch (caught) {
            return caught;
          }
        })();
        expect(thrown).toBeInstanceOf(FrameError);
        expect((thrown as FrameError).fault).toBe(error);
      } else if (decoded?.kind === 'body') {
        const body = decodeFrames(bytes);
        expect({
          kind: 'body',
          head: meaningOf(body.head),
          frames: body.frames.map(meaningOf),
        }).toEqual(decoded);
        expect([...encodeFrames(body.head, body.frames)]).toEqual([...bytes]);
      } else {
        const frame = decodeFrame(bytes);
        expect(meaningOf(frame)).toEqual(decoded);
        expect([...encodeFrame(frame)]).toEqual([...bytes]);
      }
    });
  }
});
