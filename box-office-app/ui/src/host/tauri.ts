// The desktop's window: everything goes through the shell to `box-office-app/core`.

import { Channel, invoke } from '@tauri-apps/api/core';
import { getCurrentWebviewWindow } from '@tauri-apps/api/webviewWindow';
import type { SocketHandlers } from '../../../../assets/hub-client/follow.ts';
import { ProblemError, UnknownOutcome } from '../../../../assets/hub-client/index.ts';
import type { StaffAtTerminal } from '../../../../assets/protocol/index.ts';
import type { About, Credentials, CustomerView, Enrolment, Host } from './port.ts';

interface Refusal {
  code: string;
  status: number;
  detail: string;
}

/** A command of the shell; its refusals in the words of the hub's. */
async function call<T>(command: string, args: Record<string, unknown> = {}): Promise<T> {
  try {
    return await invoke<T>(command, args);
  } catch (error) {
    const refusal = error as Refusal;
    if (typeof refusal?.code !== 'string') throw error; // a command that this window may not call
    if (refusal.code === 'no_answer') throw new UnknownOutcome(refusal.detail);
    const { code, status, detail } = refusal;
    throw new ProblemError({ type: 'about:blank', code, status, title: detail });
  }
}

/** A request of the hub's client, asked by the core, in the shape that `fetch` has. */
const fetchByCore =
  (approved: boolean): typeof globalThis.fetch =>
  async (input, init = {}) => {
    const headers = new Headers(init.headers);
    const bytes = await call<ArrayBuffer>('ask', {
      approved,
      ask: {
        method: init.method ?? 'GET',
        target: String(input),
        body: typeof init.body === 'string' ? JSON.parse(init.body) : null,
        key: headers.get('idempotency-key'),
      },
    });
    const head = new DataView(bytes);
    const status = head.getUint16(0, true);
    const retryAfter = head.getUint16(2, true);
    return new Response(status === 204 || status === 304 ? null : bytes.slice(4), {
      status,
      headers: retryAfter > 0 ? { 'retry-after': String(retryAfter) } : {},
    });
  };

type FeedEvent = ArrayBuffer | { open: true } | { close: number; reason: string };

let feeds = 0;

function openSocket(address: string, handlers: SocketHandlers): { close(): void } {
  const id = ++feeds;
  const events = new Channel<FeedEvent>();
  events.onmessage = (event) => {
    if (event instanceof ArrayBuffer) handlers.message(event);
    else if ('open' in event) handlers.open();
    else handlers.close(event.close, event.reason);
  };
  void call('open_feed', { id, target: address, events }).catch(() => handlers.close(1006));
  return { close: () => void call('close_feed', { id }) };
}

function channel<T>(tell: (value: T) => void): Channel<T> {
  const opened = new Channel<T>();
  opened.onmessage = tell;
  return opened;
}

export const windowHost: Host = {
  about: () => call<About>('about'),
  enrol: (hub, code) => call<Enrolment>('enrol', { hub, code }),
  begin: (exitPin) => call('begin', { exitPin }),
  enrolAnew: () => call('enrol_anew'),
  fetch: fetchByCore(false),
  openSocket,
  followReach(tell) {
    void call('follow_reach', { reach: channel(tell) });
  },
  signIn: (name: string, credentials: Credentials) =>
    call<StaffAtTerminal>('sign_in', { name, ...credentials }),
  signOut: () => call('sign_out'),
  async approve(name, credentials) {
    const who = await call<StaffAtTerminal>('approve', { name, ...credentials });
    return { who, fetch: fetchByCore(true), end: () => call('end_approval') };
  },
  printer: {
    print: (order, language) => call('print_order', { order, language }),
    doubts: () => call('print_doubts'),
    decide: (job, cameOut, replacedBy, by) =>
      call('decide_print', { job, cameOut, replacedBy, by }),
    openDrawer: () => call('open_drawer'),
    receipt: (order, paid, clerk) =>
      call('print_receipt', {
        order,
        cashMinor: paid.cash_minor,
        changeMinor: paid.change_minor,
        clerk,
      }),
    report: (shift) => call('print_report', { shift }),
    testPage: () => call('print_test_page'),
    elsewhere: 'lie as PDFs in this terminal’s folder: no printer is set up.',
  },
  followScanner(tell) {
    const scans = new Channel<string | null>();
    scans.onmessage = tell;
    void call('follow_scanner', { scans });
  },
  kiosk: {
    follow: (tell) => void call('follow_visit', { shown: channel(tell) }),
    touched: (what) => call('touched', { what }),
    serveAgain: (pin) => call('serve_again', { pin }),
    leave: (pin) => call('leave_kiosk', { pin }),
  },
  customer: {
    display: getCurrentWebviewWindow().label === 'customer',
    turn: (on) => call('turn_customer', { on }),
    show: (view) => void call('show_customer', { view }).catch(() => {}), // it is shown again soon
    follow: (tell) =>
      void call('follow_customer', {
        shown: channel((view: CustomerView | null) => view && tell(view)),
      }),
  },
  offline: {
    follow: (tell) => void call('follow_till', { shown: channel(tell) }),
    lease: (ask) => call('lease', { ask }),
    sell: (wish) => call('sell_leased', { wish }),
    close: (lease) => call('close_lease', { leaseId: lease }),
  },
};
