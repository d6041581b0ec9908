"""The provider's own SDK drives the simulator, and checks and makes signatures for webhooks.

    stripe_sdk.py SIMULATOR CONTROL HUB OLD_SECRET NEW_SECRET

The simulator signs with NEW_SECRET; the hub accepts both. Every check says its name; the first that fails
ends the run with exit code 1.
"""

import http.server
import json
import queue
import sys
import threading
import time
import urllib.error
import urllib.request

import stripe

SIMULATOR, CONTROL, HUB, OLD_SECRET, NEW_SECRET = sys.argv[1:]
CARD = "pm_card_visa"

client = stripe.StripeClient("sk_test_simulator", base_addresses={"api": SIMULATOR}, max_network_retries=0)
intents, refunds = client.v1.payment_intents, client.v1.refunds
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
passed = 0


def check(what, holds=True, *shown):
    global passed
    if not holds:
        print("FAILED:", what, *shown)
        sys.exit(1)
    passed += 1
    print("ok:", what)


def fails(what, error, call, **wanted):
    """The call fails with exactly this class of the SDK's, and the error says what is wanted."""
    try:
        call()
    except stripe.StripeError as caught:
        said = {name: getattr(caught, name, None) for name in wanted}
        check(what, type(caught) is error and said == wanted, type(caught), said, caught)
        return caught
    check(what, False, "it did not fail")


def control(what, body):
    request = urllib.request.Request(
        f"{CONTROL}/_sim/{what}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    return opener.open(request, timeout=10).read()


def create(payment_method=CARD, key=None, **more):
    params = {
        "amount": 12500,
        "currency": "jpy",
        "capture_method": "manual",
        "confirmation_method": "manual",
        "payment_method": payment_method,
        "metadata": {"attempt": "a-1", "order": "o-1"},
        **more,
    }
    return intents.create(params, {"idempotency_key": key} if key else {})


def the_life_of_an_intent():
    intent = create()
    check("create", intent.status == "requires_confirmation" and intent.amount == 12500, intent)
    check("metadata comes back", intent.metadata["attempt"] == "a-1")
    intent = intents.confirm(intent.id)
    check("confirm authorises", intent.status == "requires_capture" and intent.amount_capturable == 12500, intent)
    intent = intents.capture(intent.id)
    check("capture", intent.status == "succeeded" and intent.amount_received == 12500, intent)
    check("retrieve", intents.retrieve(intent.id).status == "succeeded")
    charge = client.v1.charges.retrieve(intent.latest_charge)
    check("its charge", charge.payment_intent == intent.id and charge.captured and charge.amount == 12500, charge)

    part = refunds.create({"payment_intent": intent.id, "amount": 2500, "metadata": {"refund": "r-1"}})
    check("refund a part", part.status == "succeeded" and part.amount == 2500 and part.metadata["refund"] == "r-1")
    rest = refunds.create({"payment_intent": intent.id})
    check("refund the rest", rest.amount == 10000)
    check("retrieve a refund", refunds.retrieve(rest.id).id == rest.id)
    listed = [r.id for r in refunds.list({"payment_intent": intent.id})]
    check("list refunds, newest first", listed == [rest.id, part.id], listed)
    fails(
        "nothing is left to refund",
        stripe.InvalidRequestError,
        lambda: refunds.create({"payment_intent": intent.id, "amount": 1}),
        code="charge_already_refunded",
        http_status=400,
    )
    money = list(client.v1.balance_transactions.list({"limit": 3}))
    check("what was captured and refunded is in the books", [t.amount for t in money] == [-10000, -2500, 12500], money)
    check("net is amount less fee", all(t.net == t.amount - t.fee for t in money))

    cancelled = intents.cancel(intents.confirm(create().id).id)
    check("cancel lets the money go", cancelled.status == "canceled" and cancelled.amount_capturable == 0)
    fails(
        "what is cancelled can't be captured",
        stripe.InvalidRequestError,
        lambda: intents.capture(cancelled.id),
        code="payment_intent_unexpected_state",
    )


def keys():
    first = create(key="once")
    again = create(key="once")
    check("the same key answers with the same intent", again.id == first.id)
    check("and says so", again.last_response.headers.get("idempotent-replayed") == "true", again.last_response.headers)
    fails(
        "the same key with other parameters is an error",
        stripe.IdempotencyError,
        lambda: create(key="once", amount=1),
        http_status=400,
    )
    card = create("pm_card_chargeDeclined")
    for when in ("first", "replayed"):
        options = {"idempotency_key": "declined"}
        fails(
            f"a decline, {when}",
            stripe.CardError,
            lambda: intents.confirm(card.id, options=options),
            code="card_declined",
            http_status=402,
        )
    check("declined once, not twice", intents.retrieve(card.id).status == "requires_payment_method")


def errors():
    declined = fails(
        "insufficient funds",
        stripe.CardError,
        lambda: intents.confirm(create("pm_card_chargeDeclinedInsufficientFunds").id),
        code="card_declined",
    )
    check("with its own code", declined.error.decline_code == "insufficient_funds", declined.error)
    check("and the intent", declined.error.payment_intent.status == "requires_payment_method")
    fails("no such intent", stripe.InvalidRequestError, lambda: intents.retrieve("pi_none"), code="resource_missing", http_status=404)
    fails("an amount of 0", stripe.InvalidRequestError, lambda: create(amount=0), param="amount")
    fails("an amount below 0", stripe.InvalidRequestError, lambda: create(amount=-1), param="amount")
    fails("an amount beyond all", stripe.InvalidRequestError, lambda: create(amount="1e308"), param="amount")
    fails("no amount", stripe.InvalidRequestError, lambda: create(amount="many"), param="amount")
    fails("no currency", stripe.InvalidRequestError, lambda: create(currency="euros"), param="currency")
    stranger = stripe.StripeClient("sk_test_other", base_addresses={"api": SIMULATOR})
    fails("another key", stripe.AuthenticationError, lambda: stranger.v1.payment_intents.list(), http_status=401)
    for status, error, code in [
        ("429", stripe.RateLimitError, 429),
        ("500_before", stripe.APIError, 500),
        ("503", stripe.APIError, 503),
    ]:
        control("rules", [{"match": {"op": "list"}, "effect": {"status": status}}])
        fails(f"{status}", error, lambda: intents.list(), http_status=code)
    control("rules", [{"match": {"op": "list"}, "effect": {"network": "reset_before"}}])
    fails("a connection that breaks", stripe.APIConnectionError, lambda: intents.list())
    control("rules", [])


def challenge():
    intent = intents.confirm(create("pm_card_threeDSecure2Required").id, {"return_url": "https://fans.test/orders/1"})
    check("a challenge is asked for", intent.status == "requires_action" and intent.amount_capturable == 0, intent)
    url = intent.next_action.redirect_to_url.url
    secret = url.split("secret=")[1]
    answer = urllib.request.Request(url.split("?")[0], f"answer=approve&secret={secret}".encode())
    check("the buyer meets it", opener.open(answer, timeout=10).status == 204)
    check("which authorises nothing yet", intents.retrieve(intent.id).status == "requires_confirmation")
    check("a second confirmation does", intents.confirm(intent.id).status == "requires_capture")


def pages():
    made = [create(metadata={"attempt": f"many-{n}", "batch": "many"}).id for n in range(23)]
    listed = [i.id for i in intents.list({"limit": 5}).auto_paging_iter()]
    check("pages one after another, newest first", listed[:23] == made[::-1], listed[:23])
    check("and each only once", len(set(listed)) == len(listed))
    found = [i.id for i in intents.search({"query": "metadata['batch']:'many'", "limit": 10}).auto_paging_iter()]
    check("search, in pages", sorted(found) == sorted(made), len(found))
    one = intents.search({"query": "metadata['attempt']:'many-7' AND metadata['batch']:'many'"})
    check("search for both", [i.id for i in one] == [made[7]])
    before = intents.list({"ending_before": made[20], "limit": 10})
    check("backwards too", [i.id for i in before] == [made[22], made[21]])


def reader():
    intent = intents.create(
        {"amount": 700, "currency": "eur", "capture_method": "manual", "payment_method_types": ["card_present"]}
    )
    readers = client.v1.terminal.readers
    told = readers.process_payment_intent("tmr_1", {"payment_intent": intent.id})
    check("a reader is told to collect", told.action.status == "in_progress", told)
    check("which authorises nothing", intents.retrieve(intent.id).status == "requires_payment_method")
    fails("nor can it be captured", stripe.InvalidRequestError, lambda: intents.capture(intent.id), http_status=400)
    client.v1.test_helpers.terminal.readers.present_payment_method("tmr_1")
    check("the card does", intents.retrieve(intent.id).status == "requires_capture")
    check("then it is captured", intents.capture(intent.id).status == "succeeded")
    other = intents.create({"amount": 700, "currency": "eur", "payment_method_types": ["card_present"], "capture_method": "manual"})
    readers.process_payment_intent("tmr_1", {"payment_intent": other.id})
    check("a reader is told to stop", readers.cancel_action("tmr_1").action is None)


def webhooks_of_the_simulator():
    arrived = queue.Queue()

    class Sink(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            arrived.put((self.headers["stripe-signature"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    sink = http.server.HTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    control("webhook", {"url": f"http://127.0.0.1:{sink.server_port}/"})

    def next_event(effect):
        control("rules", [{"effect": {"webhook": effect}}])
        created = create()
        header, body = arrived.get(timeout=10)
        return created, header, body

    created, header, body = next_event({})
    event = stripe.Webhook.construct_event(body, header, NEW_SECRET)
    check("the SDK accepts our signature", event.type == "payment_intent.created" and event.data.object.id == created.id)
    check("the event can be asked for", client.v1.events.retrieve(event.id).id == event.id)
    listed = client.v1.events.list({"type": "payment_intent.created", "limit": 1})
    check("and is listed", listed.data[0].id == event.id)

    def refused(what, effect, secret=NEW_SECRET):
        _, header, body = next_event(effect)
        fails(what, stripe.SignatureVerificationError, lambda: stripe.Webhook.construct_event(body, header, secret))

    refused("not under another secret", {}, "whsec_other")
    refused("nor a bad signature", {"bad_signature": True})
    refused("nor an old one", {"signed_ago_s": 301})
    _, header, body = next_event({"two_secrets": True})
    stripe.Webhook.construct_event(body, header, NEW_SECRET)
    check("a second signature harms nobody", header.count("v1=") == 2, header)
    control("rules", [])
    control("webhook", {"url": None})
    sink.shutdown()


def webhooks_for_the_hub():
    def deliver(header, body):
        headers = {"content-type": "application/json", "stripe-signature": header}
        request = urllib.request.Request(f"{HUB}/api/webhooks/payments", body.encode(), headers)
        try:
            return opener.open(request, timeout=10).status
        except urllib.error.HTTPError as error:
            return error.code

    def event(name):
        return json.dumps({"id": f"evt_peer_{name}", "type": "charge.updated", "livemode": False, "data": {"object": {"object": "charge"}}})

    def header(body, secret, ago=0):
        return stripe.WebhookSignature.generate_signature_header(body, secret, timestamp=int(time.time()) - ago)

    for name, secret in [("new", NEW_SECRET), ("old", OLD_SECRET)]:
        body = event(name)
        check(f"the hub accepts what the SDK signs with the {name} secret", deliver(header(body, secret), body) == 200)
    body = event("both")
    both = header(body, "whsec_other") + "," + header(body, OLD_SECRET).split(",")[1]
    check("one of two signatures is enough", deliver(both, body) == 200)
    check("another secret is not", deliver(header(body, "whsec_other"), body) == 400)
    check("nor an old signature", deliver(header(body, NEW_SECRET, ago=301), body) == 400)
    check("nor one from the future", deliver(header(body, NEW_SECRET, ago=-400), body) == 400)
    check("nor one over another body", deliver(header(event("x"), NEW_SECRET), body) == 400)


for part in [the_life_of_an_intent, keys, errors, challenge, pages, reader, webhooks_of_the_simulator, webhooks_for_the_hub]:
    print(f"== {part.__name__}")
    part()
print(f"{passed} checks passed with stripe {stripe.VERSION}")
