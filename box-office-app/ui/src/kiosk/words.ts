// What a kiosk says, in the language that its customer chose.

import { formatMessage, type Values } from '../../../../assets/fan/src/lib/message.ts';
import type { Language } from '../../../../assets/fan/src/lib/text.svelte.ts';
import { saying } from '../lib/words.ts';
import en from '../messages/kiosk.en.json';
import ja from '../messages/kiosk.ja.json';
import ko from '../messages/kiosk.ko.json';

export type KioskKey = keyof typeof en;

const CATALOGUES: Record<Language, Record<KioskKey, string>> = { en, ja, ko };

/** The same in a language that need not be the customer's: where nobody has chosen one, and for the staff. */
export function inLanguage(language: Language, key: KioskKey, values: Values = {}): string {
  return formatMessage(CATALOGUES[language][key], values, language);
}

export const k = saying(CATALOGUES);
