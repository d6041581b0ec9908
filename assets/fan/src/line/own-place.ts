// Work on a draw in a worker of its own, which is loaded when it is wanted and ends with its answer.

import type { Line, LineEntry } from '../../../protocol/index.ts';
import type { Asked, Finding } from './draw-check.ts';
import type { DrawRequest, DrawWord } from './draw.worker.ts';

/**
 * Our place from what everybody can read, so that half a million people do not ask for it at the same
 * moment. Null where it does not follow yet; rejects where this browser can't compute it.
 */
export async function placeFromPublished(
  event: number,
  line: Line,
  entry: LineEntry,
): Promise<number | null> {
  if (line.drawn_count !== null && entry.number >= line.drawn_count) return entry.number;
  if (!line.draw.secret) return null;
  let place: number | null = null;
  await work({ do: 'place', event, line, number: entry.number }, (word) => {
    if ('place' in word) place = word.place;
    return 'place' in word;
  });
  return place;
}

/** Every step of the check, as it is done. */
export function checkDraw(asked: Asked, found: (finding: Finding) => void, signal: AbortSignal) {
  const heard = (word: DrawWord) => {
    if ('finding' in word) found(word.finding);
    return 'done' in word;
  };
  return work({ do: 'check', asked }, heard, signal);
}

async function work(
  request: DrawRequest,
  heard: (word: DrawWord) => boolean,
  signal?: AbortSignal,
): Promise<void> {
  const worker = new Worker(new URL('./draw.worker.ts', import.meta.url), { type: 'module' });
  try {
    await new Promise<void>((done, failed) => {
      signal?.addEventListener('abort', () => failed(signal.reason as Error), { once: true });
      worker.onerror = ({ message }) => failed(new Error(message));
      worker.onmessage = ({ data }: MessageEvent<DrawWord>) => {
        if ('failed' in data) failed(new Error(data.failed));
        else if (heard(data)) done();
      };
      worker.postMessage(request);
    });
  } finally {
    worker.terminate();
  }
}
