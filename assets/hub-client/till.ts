// What a till or kiosk asks the hub. The tokens are added by whoever sends it: the desktop's core, or a test's page.

import type {
  AuditLog,
  Consignment,
  ConsignWish,
  CustomerHold,
  CustomerHoldWish,
  DayLocked,
  EventList,
  EventPage,
  ExchangeAnswer,
  ExchangeOffer,
  ExchangeWish,
  Geometry,
  GivenBack,
  HoldAnswer,
  LogWanted,
  Order,
  OrderFound,
  Partner,
  PartnerPaymentWish,
  PartnerWish,
  PriceOverride,
  RefundWish,
  SeatStory,
  SectionBlocked,
  ShiftCheckWhat,
  ShiftListed,
  ShiftMoveKind,
  ShiftReport,
  Denomination,
  StaffAtTerminal,
  StaffOrder,
  Statement,
  TerminalSelf,
  TicketChoice,
  TillBasket,
  TillHoldAnswer,
  TillHoldRequest,
  TillSaleAnswer,
  TillTender,
  TraitsSet,
  TraitsWish,
  UntilSold,
  UntilSoldList,
  UntilSoldWish,
  Voucher,
  VoucherMade,
  VoucherWish,
  WillCallOrder,
} from '../protocol/index.ts';
import { Requests, TRIES } from './requests.ts';

const AT = '/api/box-office';

/** Out of the sale; back on sale; given up for good; and on sale after all. */
export type SeatVerb = 'block' | 'unblock' | 'kill' | 'revive';

export class TillHub extends Requests {
  terminal = () => this.get<TerminalSelf>(`${AT}/terminal`);
  staff = () => this.get<StaffAtTerminal>(`${AT}/staff`);

  // ---- what is on ----

  events = () => this.get<EventList>('/api/events');
  event = (id: number) => this.get<EventPage>(`/api/events/${id}?seats=none`);
  geometry = (address: string) => this.get<Geometry>(address);

  // ---- a customer ----

  hold = (request: TillHoldRequest) =>
    this.once<TillHoldAnswer>('till.hold', `${AT}/holds`, request);
  quote = (hold: string, buyer: string, tickets: TicketChoice[], prices: PriceOverride[]) =>
    this.again<{ order: Order }>(`${AT}/holds/${hold}/quote`, { buyer_id: buyer, tickets, prices });
  release = (hold: string, buyer: string) =>
    this.again<HoldAnswer>(`${AT}/holds/${hold}/release`, { buyer_id: buyer });
  /** Asked again with the same tender, it answers with the same order. */
  sell = (basket: TillBasket, tender: TillTender) =>
    this.again<TillSaleAnswer>(`${AT}/sales`, { ...basket, tender });
  /** The card pays what the cash beside it does not. */
  sellByCard = (basket: TillBasket, reader: string, cashMinor = 0) =>
    this.once<{ order: Order }>('till.card', `${AT}/card-sales`, {
      ...basket,
      reader,
      cash_minor: cashMinor,
    });
  cardSale = (order: string) => this.get<{ order: Order }>(`${AT}/card-sales/${order}`);
  /** The card may have been faster: then the sale is kept, or not, as `keepIfPaid` says. */
  stopCard = (order: string, keepIfPaid: boolean) =>
    this.again<{ order: Order }>(`${AT}/card-sales/${order}/stop`, { keep_if_paid: keepIfPaid });

  // ---- seats put aside ----

  customerHolds = (event: number) =>
    this.get<{ holds: CustomerHold[] }>(`${AT}/customer-holds?event_id=${event}`);
  putAside = (wish: CustomerHoldWish) =>
    this.once<CustomerHold>('till.aside', `${AT}/customer-holds`, wish);
  letGo = (hold: string, reason: string) =>
    this.again<void>(`${AT}/customer-holds/${hold}/release`, { reason });

  // ---- vouchers ----

  vouchers = (event: number) => this.get<{ vouchers: Voucher[] }>(`${AT}/events/${event}/vouchers`);
  makeVoucher = (wish: VoucherWish) =>
    this.once<VoucherMade>('till.voucher', `${AT}/vouchers`, wish);
  /** What a code is good for. */
  voucher = (code: string) => this.again<Voucher>(`${AT}/vouchers/look`, { code });
  withdrawVoucher = (id: string, reason: string) =>
    this.again<void>(`${AT}/vouchers/${id}/withdraw`, { reason });

  // ---- seats that a partner sells ----

  partners = () => this.get<{ partners: Partner[] }>(`${AT}/partners`);
  addPartner = (wish: PartnerWish) => this.once<Partner>('till.partner', `${AT}/partners`, wish);
  consignments = (event: number) =>
    this.get<{ consignments: Consignment[] }>(`${AT}/events/${event}/consignments`);
  consign = (wish: ConsignWish) =>
    this.once<Consignment>('till.consign', `${AT}/consignments`, wish);
  /** What a partner reports sold; all of the seats, or none. */
  sellConsigned = (id: string, seats: number[]) =>
    this.once<{ order: Order; consignment: Consignment }>(
      `till.consigned.${id}`,
      `${AT}/consignments/${id}/sales`,
      { seats },
    );
  /** Back on sale before the cut-off. */
  returnConsigned = (id: string, seats: number[], reason: string) =>
    this.again<Consignment>(`${AT}/consignments/${id}/returns`, { seats, reason });
  /** While it has not come. */
  moveCutOff = (id: string, until: string, reason: string) =>
    this.again<Consignment>(`${AT}/consignments/${id}/cut-off`, { until, reason });
  statement = (partner: string, event: number) =>
    this.get<Statement>(`${AT}/partners/${partner}/statement?event_id=${event}`);
  payAccount = (partner: string, wish: PartnerPaymentWish) =>
    this.once<Statement>(`till.account.${partner}`, `${AT}/partners/${partner}/payments`, wish);
  /** Of what it paid and owes no more. */
  payBack = (partner: string, wish: PartnerPaymentWish) =>
    this.once<Statement>(`till.repay.${partner}`, `${AT}/partners/${partner}/repayments`, wish);

  // ---- seats of the house ----

  /** All of them, or none if one can't be. */
  setSeats = (event: number, verb: SeatVerb, seats: number[], reason: string) =>
    this.again<void>(`${AT}/events/${event}/${verb}`, { seats, reason });
  /** Whatever can be of a section. */
  setSection = (event: number, verb: SeatVerb, section: string, reason: string) =>
    this.again<SectionBlocked>(`${AT}/events/${event}/${verb}`, { section, reason });
  /** What waits until the others are sold. */
  untilSold = (event: number) => this.get<UntilSoldList>(`${AT}/events/${event}/until-sold`);
  waitUntilSold = (event: number, wish: UntilSoldWish) =>
    this.once<UntilSold>('till.until-sold', `${AT}/events/${event}/until-sold`, wish);
  /** On sale now, or blocked for good. */
  endUntilSold = (id: string, verb: 'open' | 'drop', reason: string) =>
    this.again<UntilSold>(`${AT}/until-sold/${id}/${verb}`, { reason });
  /** What seats are for this performance; a companion's seat goes with its place. */
  setTraits = (event: number, wish: TraitsWish) =>
    this.again<TraitsSet>(`${AT}/events/${event}/traits`, wish);
  seat = (event: number, seat: number) =>
    this.get<SeatStory>(`${AT}/events/${event}/seats/${seat}`);

  // ---- orders ----

  find = (words: string) =>
    this.get<{ orders: OrderFound[] }>(`/api/staff/orders?q=${encodeURIComponent(words)}`);
  order = (id: string) => this.get<StaffOrder>(`/api/staff/orders/${id}`);
  refund = (order: string, wish: RefundWish) =>
    this.once<GivenBack>(`till.refund.${order}`, `/api/staff/orders/${order}/refunds`, wish);
  exchange = (order: string, wish: ExchangeWish) =>
    this.once<ExchangeAnswer>(
      `till.exchange.${order}`,
      `/api/staff/orders/${order}/exchange`,
      wish,
    );
  exchangeOffer = (order: string, seats: ExchangeWish['seats']) =>
    this.again<ExchangeOffer>(`/api/staff/orders/${order}/exchange-offer`, { seats });
  /** The new seats go back; the old ones stay. */
  leaveExchange = (order: string) =>
    this.again<void>(`/api/staff/orders/${order}/leave-exchange`, {});
  /** The card may have been faster: then the exchange is paid. */
  stopReader = (order: string) =>
    this.again<{ order: Order }>(`/api/staff/orders/${order}/stop-reader`, {});
  mail = (order: string) => this.once<void>(`till.mail.${order}`, `${AT}/orders/${order}/mail`, {});
  /** The old code is dead from then on. */
  reissue = (ticket: string, reason: string) =>
    this.again<{ ticket_id: string }>(`${AT}/tickets/${ticket}/reissue`, { reason });

  /** Of an order whose card could not be charged, or of an exchange that waits to be paid: cash, handed over. */
  payDue = (order: string, receivedMinor: number) =>
    this.once<TillSaleAnswer>(`till.due.${order}`, `/api/staff/orders/${order}/pay`, {
      received_minor: receivedMinor,
    });
  /** The same, by another card. */
  payDueByCard = (order: string, reader: string) =>
    this.once<TillSaleAnswer>(`till.due.${order}`, `/api/staff/orders/${order}/pay`, { reader });
  willCall = (event: number) =>
    this.get<{ orders: WillCallOrder[] }>(`${AT}/events/${event}/will-call`);

  // ---- the drawer ----

  shift = () => this.get<ShiftReport>(`${AT}/shifts/current`);
  shifts = () => this.get<{ shifts: ShiftListed[] }>(`${AT}/shifts`);
  /** Of terminals that are revoked or locked; a manager's to see. */
  stoppedShifts = () => this.get<{ shifts: ShiftListed[] }>(`${AT}/shifts/stopped`);
  shiftOf = (id: string) => this.get<ShiftReport>(`${AT}/shifts/${id}`);
  lockDay = (date: string) => this.again<DayLocked>(`${AT}/day-lock`, { date });
  openShift = (floatMinor: number, currency: string) =>
    this.send<ShiftReport>('POST', `${AT}/shifts`, { body: { float_minor: floatMinor, currency } });
  moveCash = (kind: ShiftMoveKind, amountMinor: number, reason: string) =>
    this.once<ShiftReport>('till.move', `${AT}/shifts/current/moves`, {
      kind,
      amount_minor: amountMinor,
      reason,
    });
  checkShift = (what: ShiftCheckWhat, skipped?: string) =>
    this.again<ShiftReport>(`${AT}/shifts/current/checks`, { what, skipped });
  closeShift = (shift: string, counted: Denomination[], explanation: string | undefined) =>
    this.again<ShiftReport>(`${AT}/shifts/current/close`, {
      shift_id: shift,
      counted,
      explanation,
    });

  // ---- what people did ----

  log = (wanted: LogWanted) => {
    const given = Object.entries(wanted).filter(([, value]) => value !== undefined && value !== '');
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
    return this.get<AuditLog>(`/api/staff/audit?${query}`);
  };

  /** A write that answers the same when it is asked again. */
  private again<T>(address: string, body: unknown): Promise<T> {
    return this.send<T>('POST', address, { body, tries: TRIES });
  }
}
