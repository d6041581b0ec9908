// What the customer's screen says.

import en from '../messages/customer.en.json';
import ja from '../messages/customer.ja.json';
import ko from '../messages/customer.ko.json';
import { saying } from '../lib/words.ts';

export const c = saying({ en, ja, ko });
