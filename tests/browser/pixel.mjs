// From a commit to its seats on a browser's canvas: `node tests/browser/pixel.mjs URL SLUG`.
//
// Says "open" when the page shows the event's map; answers each line with how long the drawings since took. The clocks
// of page and database are one machine's.

import { createInterface } from 'node:readline';

import { browser, openEvent } from './house.mjs';

const [url, slug] = process.argv.slice(2);
const chrome = await browser();
const page = await (await chrome.newContext()).newPage();
await page.addInitScript(() => {
  window.drawnMs = [];
  new PerformanceObserver((list) => {
    for (const { name, startTime, detail } of list.getEntries())
      if (name === 'seats drawn') window.drawnMs.push(performance.timeOrigin + startTime - detail);
  }).observe({ type: 'mark' });
});
await openEvent(page, { url }, slug);
console.log('open');
for await (const _ of createInterface({ input: process.stdin })) {
  const ms = await page.evaluate(() => window.drawnMs.splice(0));
  ms.sort((a, b) => a - b);
  const part = (part) => ms[Math.min(ms.length - 1, Math.floor(ms.length * part))] ?? null;
  console.log(JSON.stringify({ drawings: ms.length, p50_ms: part(0.5), p99_ms: part(0.99) }));
}
await chrome.close();
