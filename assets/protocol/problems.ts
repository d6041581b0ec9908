// Refusals: `application/problem+json` with a stable code. A code is listed here only if a client
// acts on it; any other is shown by its title.

export interface Problem {
  type: string;
  code: string;
  title: string;
  status: number;
  detail?: string;
  /** seats_unavailable */
  lost?: number[];
  offers?: number[][];
  /** account_invalid */
  field?: string;
  fields?: string[];
  /** seat_unknown, seats_repeated */
  seats?: number[];
  /** limit_reached, seats_too_many */
  limit?: number;
  held?: number;
  bought?: number;
  left?: number;
  /** seats_too_few */
  minimum?: number;
  /** leaves_single_seat */
  singles?: number[];
  /** sale_not_open */
  opens_at?: string;
  /** attempt_live */
  attempt_id?: string;
  /** until_invalid */
  latest?: string;
  /** shifts_open */
  shifts?: { terminal_name: string; opened_by: string }[];
  /** variance_unexplained */
  expected_minor?: number;
  counted_minor?: number;
  variance_minor?: number;
  /** From the header `Retry-After`, in seconds. */
  retry_after_s?: number;
}

export function isProblem(value: unknown): value is Problem {
  if (typeof value !== 'object' || value === null) return false;
  return typeof (value as Problem).code === 'string';
}
