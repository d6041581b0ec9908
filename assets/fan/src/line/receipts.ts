// The place-tickets that this browser was given: the receipt of a stand, which shows that it was there
// and with which number, whatever anybody says later.

const name = (event: number) => `fullhouse.place.${event}`;

export interface Receipt {
  account: number | string;
  number: number;
  ticket: string;
  at: string;
  /** What was published of the draw as we joined: another commitment in its place would be found out. */
  draw?: KeptDraw;
}

export interface KeptDraw {
  no: number;
  commitment: string;
}

export function keepReceipt(event: number, receipt: Receipt): void {
  try {
    localStorage.setItem(name(event), JSON.stringify(receipt));
  } catch {
    // Without storage the hub still shows it to whoever signs in.
  }
}

export function receiptOf(event: number): Receipt | null {
  try {
    const kept = JSON.parse(localStorage.getItem(name(event)) ?? 'null') as Receipt | null;
    return kept && typeof kept.ticket === 'string' && Number.isInteger(kept.number) ? kept : null;
  } catch {
    return null;
  }
}
