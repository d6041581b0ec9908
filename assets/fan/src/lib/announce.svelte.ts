// What a screen reader should say. Polite texts wait their turn; urgent ones (a hold that ended)
// don't. The same text twice is said twice: it gets an invisible mark.

let polite = $state('');
let urgent = $state('');
let flip = false;

export const announcements = {
  get polite(): string {
    return polite;
  },
  get urgent(): string {
    return urgent;
  },
};

/** Nothing of the page that was left is still to be read. */
export function hush(): void {
  polite = urgent = '';
}

export function announce(message: string, isUrgent = false): void {
  flip = !flip;
  const marked = flip ? message : `${message}\u200b`;
  if (isUrgent) urgent = marked;
  else polite = marked;
}
