// Checks a draw, or finds one place, off the page's thread: half a million hashes take a second or two.

import type { Line, LineProof } from '../../../protocol/index.ts';
import { checkSteps, placeOf, type Asked, type Finding } from './draw-check.ts';

export type DrawRequest =
  { do: 'check'; asked: Asked } | { do: 'place'; event: number; line: Line; number: number };
export type DrawWord =
  { finding: Finding } | { place: number | null } | { done: true } | { failed: string };

const say = (word: DrawWord) => postMessage(word);

onmessage = ({ data }: MessageEvent<DrawRequest>) => {
  work(data).catch((error: unknown) =>
    say({ failed: error instanceof Error ? error.message : String(error) }),
  );
};

async function work(request: DrawRequest): Promise<void> {
  if (request.do === 'place') {
    return say({ place: await placeOf(request.event, request.line.draw, request.number) });
  }
  const { asked } = request;
  const queue = `/api/events/${asked.event}/queue`;
  await checkSteps(
    asked,
    {
      leaves: async () =>
        new Uint8Array(await (await get(`${queue}/draws/${asked.draw.no}/leaves`)).arrayBuffer()),
      proof: async (number) => (await get(`${queue}/proof/${number}`)).json() as Promise<LineProof>,
    },
    (finding) => say({ finding }),
  );
  say({ done: true });
}

async function get(address: string): Promise<Response> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response;
}
