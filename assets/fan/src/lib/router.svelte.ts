// Addresses: a handful of pages, the browser's own history, ordinary links.

export type Route =
  | { page: 'programme' }
  | { page: 'event'; slug: string }
  | { page: 'draw'; slug: string }
  | { page: 'orders' }
  | { page: 'order'; id: string }
  | { page: 'signin'; next: string }
  | { page: 'address'; code: string }
  | { page: 'staff' }
  | { page: 'staff-line'; slug: string }
  | { page: 'nowhere' };

let current = $state.raw<Route>(read());

export const route = {
  get current(): Route {
    return current;
  },
};

export function go(path: string, replace = false): void {
  if (replace) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  current = read();
  scrollTo(0, 0);
}

/** An event by the name in its address; by its number where an older hub said nothing else. */
export function eventAddress(order: { event_slug?: string; event_id: number }): string {
  return `/events/${encodeURIComponent(order.event_slug || order.event_id)}`;
}

/** Links within the page stay ordinary links: new tabs, copying and middle clicks keep working. */
export function watchLinks(): void {
  addEventListener('popstate', () => (current = read()));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.('a');
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute('download'))
      return;
    if (link.hash && link.pathname === location.pathname) return;
    if (link.pathname.startsWith('/api/')) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

function read(): Route {
  const [first, second, third, ...rest] = location.pathname.split('/').filter(Boolean).map(decode);
  if (first === 'events' && second && third === 'draw' && rest.length === 0)
    return { page: 'draw', slug: second };
  if (first === 'staff' && !second) return { page: 'staff' };
  if (first === 'staff' && second === 'lines' && third && rest.length === 0)
    return { page: 'staff-line', slug: third };
  if (third !== undefined) return { page: 'nowhere' };
  if (first === undefined) return { page: 'programme' };
  if (first === 'events' && second) return { page: 'event', slug: second };
  if (first === 'orders') return second ? { page: 'order', id: second } : { page: 'orders' };
  if (first === 'signin' && !second) {
    const next = new URLSearchParams(location.search).get('next') ?? '/';
    // Only our own addresses: never a way to send somebody elsewhere.
    return { page: 'signin', next: /^\/(?![/\\])/.test(next) ? next : '/' };
  }
  // The link in the mail that shows whose address it is.
  if (first === 'signin' && second === 'check')
    return { page: 'address', code: new URLSearchParams(location.search).get('code') ?? '' };
  return { page: 'nowhere' };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
