//! Every integration test, in one binary: the run's PostgreSQL is started once.

mod harness; // the ground under the others
mod layout; // the map of modules is true
mod sale; // an evening, as its actors see it
mod accounts; // who may act
mod edge; // what every address does alike
mod connections; // how many an address may have
mod push; // every map ends equal to the database
mod watch; // what must never be true
mod catalog; // events, lists
mod plans; // what an import keeps, and what it refuses
mod venues; // what an import does to its venue
mod waiting_room; // standing in line
mod admission; // coming in
mod line_commands; // queues and draws by commands
mod line_faults; // hubs that share a line, killed in the middle of it
mod line_edges; // addresses, times and mails at a line's door
mod line_devices; // one account on two devices
mod line_bounds; // pauses, redraws, entries that are missing
mod holding; // holding seats over the wire
mod desks; // what a hub's desks take up
mod box_office; // what each kind of terminal may do
mod terminals; // how terminals are; renamed, locked, revoked
mod leases; // seats that a terminal sells without a network
mod lease_races; // and who else is at them in the same moment
mod tills; // the core of a till at a real hub, with a network and without
mod kiosk_visits; // one customer of a kiosk after the other, carried out
mod enrolment; // a machine becomes a terminal with a code
mod split;
mod traits; // what a seat is for one performance
mod vouchers; // seats for nothing, for whoever brings a code
mod consign; // seats that a partner sells elsewhere
mod until_sold; // seats that wait until the others are sold
mod staff; // who stands at an attended counter, and what they may do
mod shift; // a drawer, from its float to its Z report
mod looking_up; // an order, by whatever somebody has
mod desk; // what a clerk does for a customer besides selling
mod fairness; // what each rule of the door is worth
mod load; // what hubs measure of themselves
mod pace; // how fast a line is called, whatever goes wrong
mod pace_real; // and of a real hub that is really too slow
mod races; // many at once, each with its control
mod aborts; // clients that hang up inside BEGIN and COMMIT
mod crash; // the hub killed at any moment
mod paying; // from an order to a ticket, and what the buyer is told
mod tickets; // on paper, at the door, printed again
mod printing; // a till's printer, its ledger, and the hub's
mod mail; // what buyers are told
mod payment_races; // the races of paying, by number
mod payment_races_webhooks; // those that webhooks run
mod payment_races_crash; // those against kill -9
mod payment_races_buyer; // those of buyers with themselves
mod payment_races_reader; // and the one at a card reader
mod peers; // clients and servers that we did not write
mod money_races; // more of them: refunds, orphans, the provider's bad days, clocks
mod money_races_refunds; // and of refunds alone
mod money_currency; // without hundredths, with thousandths; taken in another one than was asked for
mod letting_go; // what is decided leaves nothing at the provider
mod money_input; // amounts that are none, orders that are another's
mod money_holes_a; // what an attack on the money found
mod refunds; // money that goes back, and what becomes of the seats
mod giving_back; // what buyers give back by themselves
mod reconcile; // the provider's books beside ours, and the gate
mod reconcile_lists; // what the lists of money may hide or get wrong, knob by knob
mod exchange; // what staff do with an order besides
mod exchange_at_reader; // dearer seats, by a card that may be declined
mod swap; // seats of another evening, and what is paid up by card
mod money_holes_b; // what somebody who looked for holes in paying has found
mod secrets; // a talkative hub tells none
mod readme; // what the README says to type
mod command_line; // the binary as an operator meets it
mod demo; // one command, and gone without a trace
