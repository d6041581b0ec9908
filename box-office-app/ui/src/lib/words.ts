// What is said in the language of whoever reads it: catalogues of texts, by language and key.

import { formatMessage, type Values } from '../../../../assets/fan/src/lib/message.ts';
import { text, type Language } from '../../../../assets/fan/src/lib/text.svelte.ts';

/** Says a text of these, in the language of the page. */
export const saying =
  <Key extends string>(texts: Record<Language, Record<Key, string>>) =>
  (key: Key, values: Values = {}): string =>
    formatMessage(texts[text.language][key], values, text.locale);
