// The last word to whoever has signed out: shown above any page until it is dismissed, or somebody
// signs in.

let word = $state<string | null>(null);

export const parting = {
  get word(): string | null {
    return word;
  },
  say(text: string | null): void {
    word = text;
  },
};
