// What a scanner reads, for whoever waits for it: the screen that asked last.

/** Null: something was scanned that can't be read; it has to be scanned again. */
export type Scan = string | null;

/** What stands on the test page as a QR code; the core knows a scanner's layout by how it types this. */
export const TEST_CODE = 'FULLHOUSE:0123456789-AQWZYM';

const listeners: ((scan: Scan) => void)[] = [];

/** Listens until the answer is called. */
export function onScan(listener: (scan: Scan) => void): () => void {
  listeners.push(listener);
  return () => void listeners.splice(listeners.indexOf(listener), 1);
}

export function scanned(scan: Scan): void {
  listeners.at(-1)?.(scan);
}
