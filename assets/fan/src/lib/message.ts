// Message patterns: ICU MessageFormat, as much of it as a box office needs: {name}, and
// {count, plural, =0 {…} one {# seat} other {# seats}}. Texts only, never markup.

export type Values = Record<string, string | number>;
type Part = string | { name: string } | { name: string; cases: Map<string, Part[]> };

const compiled = new Map<string, Part[]>();

export function formatMessage(pattern: string, values: Values, locale: string): string {
  let parts = compiled.get(pattern);
  if (!parts) compiled.set(pattern, (parts = compile(pattern)));
  return render(parts, values, locale, undefined);
}

/** The names that a pattern needs; translations must need the same. */
export function placeholders(pattern: string): string[] {
  const names = new Set<string>();
  const walk = (parts: Part[]) => {
    for (const part of parts) {
      if (typeof part === 'string') continue;
      names.add(part.name);
      if ('cases' in part) part.cases.forEach(walk);
    }
  };
  walk(compile(pattern));
  return [...names].sort();
}

function render(parts: Part[], values: Values, locale: string, count: number | undefined): string {
  return parts
    .map((part) => {
      if (typeof part === 'string') {
        return count === undefined ? part : part.replaceAll('#', number(count, locale));
      }
      const value = values[part.name] ?? '';
      if ('cases' in part) {
        const n = Number(value);
        const rule = new Intl.PluralRules(locale).select(n);
        const chosen =
          part.cases.get(`=${n}`) ?? part.cases.get(rule) ?? part.cases.get('other') ?? [];
        return render(chosen, values, locale, n);
      }
      return typeof value === 'number' ? number(value, locale) : value;
    })
    .join('');
}

function number(value: number, locale: string): string {
  return new Intl.NumberFormat(locale).format(value);
}

function compile(pattern: string): Part[] {
  let at = 0;
  const fail = (): never => {
    throw new SyntaxError(`bad message: ${pattern}`);
  };
  const word = (): string => {
    const match = /^\s*([=\w]+)\s*/.exec(pattern.slice(at));
    if (!match) return fail();
    at += match[0].length;
    return match[1];
  };
  const expect = (char: string) => {
    if (pattern[at++] !== char) fail();
  };
  const parts = (nested: boolean): Part[] => {
    const result: Part[] = [];
    let text = '';
    while (at < pattern.length && pattern[at] !== '}') {
      if (pattern[at] !== '{') {
        text += pattern[at++];
        continue;
      }
      if (text) result.push(text);
      text = '';
      at++;
      const name = word();
      if (pattern[at] === '}') {
        at++;
        result.push({ name });
        continue;
      }
      expect(',');
      if (word() !== 'plural') fail();
      expect(',');
      const cases = new Map<string, Part[]>();
      while (pattern[at] !== '}') {
        const label = word();
        expect('{');
        cases.set(label, parts(true));
        expect('}');
        at += /^\s*/.exec(pattern.slice(at))![0].length;
      }
      expect('}');
      if (!cases.has('other')) fail();
      result.push({ name, cases });
    }
    if (text) result.push(text);
    if (!nested && at < pattern.length) fail();
    return result;
  };
  return parts(false);
}
