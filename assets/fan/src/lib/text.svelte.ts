// The language of the page: chosen by the browser, or by hand and then remembered.

import en from '../messages/en.json';
import ja from '../messages/ja.json';
import ko from '../messages/ko.json';
import { formatMessage, type Values } from './message.ts';

export type Key = keyof typeof en;
export type Language = 'en' | 'ja' | 'ko';

export const LANGUAGES: { code: Language; name: string }[] = [
  { code: 'en', name: 'English' },
  { code: 'ja', name: '日本語' },
  { code: 'ko', name: '한국어' },
];

const CATALOGUES: Record<Language, Record<Key, string>> = { en, ja, ko };
const REMEMBERED = 'fullhouse.language';

let language = $state<Language>(initial());

export const text = {
  get language(): Language {
    return language;
  },
  set language(value: Language) {
    language = value;
    document.documentElement.lang = value;
    remember(value);
  },
  /** For numbers and dates: the browser's own regional flavour of the language, if it has one. */
  get locale(): string {
    return navigator.languages.find((tag) => tag.split('-')[0] === language) ?? language;
  },
};

document.documentElement.lang = text.language;

export function t(key: Key, values: Values = {}): string {
  return formatMessage(CATALOGUES[language][key] ?? CATALOGUES.en[key] ?? key, values, text.locale);
}

function initial(): Language {
  const known = (tag: string | null): Language | undefined =>
    LANGUAGES.find(({ code }) => code === tag?.split('-')[0].toLowerCase())?.code;
  let remembered: string | null = null;
  try {
    remembered = localStorage.getItem(REMEMBERED);
  } catch {
    // Storage may be forbidden; then the browser decides.
  }
  return known(remembered) ?? navigator.languages.map(known).find(Boolean) ?? 'en';
}

function remember(value: Language): void {
  try {
    localStorage.setItem(REMEMBERED, value);
  } catch {
    // See initial.
  }
}
