/** Booking changes: status changes under a precondition (RFC 9110 section 13.1.1), and availability. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import { type BookingClient, daysAfter } from './booking-client.ts';
import { absentBooking, call, callAsDemo } from './desk.ts';

const cancelled = { status: 'cancelled' };
const confirmed = { status: 'confirmed' };

export function bookingChangeCases(client: BookingClient): void {
  describe(`changing a booking at ${client.kind.prefix}`, () => {
    preconditionCases(client);
    statusCases(client);
    refusalCases(client);
  });
  describe(`availability at ${client.kind.prefix}`, () => {
    soldOutCases(client);
    raceCases(client);
  });
}

function preconditionCases(client: BookingClient): void {
  it('requires If-Match, and responds 428 without it', async () => {
    const { booking } = await client.bookNew();
    const { body } = await client.change(booking, cancelled).expect(428);
    assert.equal(body.message, '428: Precondition Required');
    assert.match(body.detail, /If-Match/);
    assert.deepEqual((await client.read(booking)).body, booking);
  });

  it('gives the booking a new tag, after which the old one, a weak one and a malformed one are rejected', async () => {
    const { booking, tag } = await client.bookNew({ hold: true });
    const { headers } = await client.change(booking, confirmed, tag).expect(200);
    assert.notEqual(headers['etag'], tag);
    assert.equal((await client.read(booking)).headers['etag'], headers['etag']);
    for (const old of [tag, `W/${headers['etag']}`, '"malformed'])
      await client.change(booking, cancelled, old).expect(412);
    await client.change(booking, cancelled, `"other", ${headers['etag']}`).expect(200);
  });
}

function statusCases(client: BookingClient): void {
  const newOffer = async () => ({ offer: await client.scarcest(), stay: client.nextStay() });

  it('to cancelled refunds as its policy says and frees the unit', async () => {
    const { offer, stay } = await newOffer();
    for (const hold of [true, false]) {
      const booking = await client.book({ ...offer.request, ...stay, hold });
      const { body } = await client.change(booking, cancelled, '*').expect(200);
      assert.deepEqual((await client.read(booking)).body, body);
      if (!hold) assert.deepEqual(body, { ...booking, ...cancelled, refund: booking.price });
      assert.equal(await client.left(offer, stay), offer.units);
    }
  });

  for (const change of [confirmed, cancelled])
    it(`to ${change.status} a second time responds 200 and changes nothing`, async () => {
      const { booking, tag } = await client.bookNew({ hold: true });
      const first = await client.change(booking, change, tag).expect(200);
      for (const ifMatch of [String(first.headers['etag']), tag, '*']) {
        const again = await client.change(booking, change, ifMatch).expect(200);
        assert.deepEqual([again.body, again.headers['etag']], [first.body, first.headers['etag']]);
      }
    });

  it('may be sent as a JSON merge patch', async () => {
    const { booking } = await client.bookNew();
    const patch = callAsDemo(client.desk, client.pathOf(booking), 'patch').type('application/merge-patch+json');
    const { body } = await patch.set('If-Match', '*').send(JSON.stringify(cancelled)).expect(200);
    assert.equal(body.status, 'cancelled');
  });

  it('from cancelled to confirmed responds 409', async () => {
    const { booking } = await client.bookNew();
    await client.change(booking, cancelled, '*').expect(200);
    const { body } = await client.change(booking, confirmed, '*').expect(409);
    assert.equal(body.message, '409: Conflict');
    assert.equal(body.detail, 'The booking is cancelled and can no longer change.');
    assert.equal((await client.read(booking)).body.status, 'cancelled');
  });

  it('from a 15-minute hold to confirmed keeps the unit, the price and the reference', async () => {
    const { offer, stay } = await newOffer();
    const held = await client.book({ ...offer.request, ...stay, hold: true });
    assert.equal(held.status, 'pending');
    assert.equal(Date.parse(held.expires_at ?? '') - Date.parse(held.created_at), 15 * 60_000);
    assert.equal(await client.left(offer, stay), offer.units - 1);
    const { body } = await client.change(held, confirmed, '*').expect(200);
    assert.ok(!('expires_at' in body));
    assert.deepEqual([body.status, body.price, body.reference], ['confirmed', held.price, held.reference]);
    assert.equal(await client.left(offer, stay), offer.units - 1);
  });
}

function refusalCases(client: BookingClient): void {
  const { desk, kind } = client;

  it('is rejected for a body that is not a change of status', async () => {
    const { booking } = await client.bookNew();
    for (const [body, pointer] of [
      [{}, '/status'],
      [{ status: 'lost' }, '/status'],
      [{ status: null }, '/status'],
      [{ ...cancelled, guests: 2 }, '/guests'],
      [{ ...cancelled, price: { amount: '0.01', currency: 'EUR' } }, '/price'],
    ] as const) {
      const response = await client.change(booking, body, '*').expect(400);
      assert.equal(response.body.errors[0].pointer, pointer);
    }
    const patch = callAsDemo(desk, client.pathOf(booking), 'patch').set('If-Match', '*');
    await patch
      .type('text/plain')
      .send(JSON.stringify(cancelled))
      .expect(415)
      .expect('Accept', 'application/json, application/merge-patch+json');
    assert.deepEqual((await client.read(booking)).body, booking);
  });

  it('responds 404 for a booking of another user, as for one that does not exist', async () => {
    const { booking } = await client.bookNew();
    const patch = (path: string, user: string, ifMatch = '*') =>
      call(desk, path, 'patch').auth(user, user).set('If-Match', ifMatch).send(cancelled);
    for (const ifMatch of ['*', '"1-json"'])
      await patch(client.pathOf(booking), 'guest', ifMatch).expect(bareProblem('not-found'));
    for (const id of [kind.guestBooking, absentBooking, 'no-uuid'])
      await patch(`${kind.prefix}/bookings/${id}`, 'demo').expect(bareProblem('not-found'));
    assert.deepEqual((await client.read(booking)).body, booking);
  });

  it('responds 401 without credentials, as does a new booking, and ignores identity headers', async () => {
    const { booking } = await client.bookNew();
    await call(desk, client.pathOf(booking), 'patch').set('If-Match', '*').send(cancelled).expect(401);
    await call(desk, `${kind.prefix}/bookings/`, 'post').send({}).expect(401);
    const { body } = await client.post(await client.newRequest(), 'guest').set('X-Travel-User', 'demo');
    await client.read(body, 'demo').expect(404);
    await client.read(body, 'guest').expect(200);
  });
}

function soldOutCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, idField, ends } = kind;

  it('ends with the last unit: a 409 lists up to five alternatives that can be booked', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    await client.bookAll(offer, stay);
    assert.equal(await client.left(offer, stay), 0);
    const soldOut: Record<string, unknown> = { ...offer.request, ...stay };
    const { body } = await client.post(soldOut).expect(409);
    assert.equal(body.message, '409: Conflict');
    assert.ok(body.detail.length > 0);
    assert.ok(body.alternatives.length >= 1 && body.alternatives.length <= 5);
    for (const alternative of body.alternatives) {
      const fields = Object.keys(soldOut).map((name) => [name, alternative[name] ?? soldOut[name]]);
      const booking = await client.book(Object.fromEntries(fields));
      await client.change(booking, cancelled, '*').expect(200);
    }
  });

  it('ends for exactly those stays that overlap a sold-out one', async () => {
    const offer = await client.scarcest();
    const { [ends[0]]: begin = '', [ends[1]]: end = '' } = client.nextStay(6);
    // Not computed from today, which may end during the test.
    const part = (from: number, length: number) => ({
      [ends[0]]: daysAfter(begin, from),
      [ends[1]]: daysAfter(end, from + length - 6),
    });
    const within = (from: number, length: number) => ({ ...offer.request, ...part(from, length) });
    await client.bookAll(offer, part(2, 2));
    for (const [from = 0, length] of [
      [0, 6],
      [0, 3],
      [1, 2],
      [2, 1],
      [3, 1],
      [3, 3],
    ])
      await client.post(within(from, length ?? 1)).expect(409);
    await client.book(within(0, 2));
    await client.book(within(4, 2));
  });

  it('is shown with prices in the list for a stay', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const idsFor = async (of: object) => {
      const path = `${prefix}/?limit=100&${new URLSearchParams({ ...of })}`;
      const { body } = await callAsDemo(desk, path).expect(200);
      for (const item of body.items) assert.ok(JSON.stringify(item.availability).includes('"amount"'));
      return body.items.map(({ id }: { id: string }) => id);
    };
    const id = offer.request[idField];
    assert.ok((await idsFor(stay)).includes(id));
    const { body } = await callAsDemo(desk, `${prefix}/${id}`).expect(200);
    for (const one of kind.offersOf(body)) await client.bookAll(one, stay);
    assert.ok(!(await idsFor(stay)).includes(id));
    assert.ok((await idsFor(client.nextStay())).includes(id));
  });
}

function raceCases(client: BookingClient): void {
  it('lets exactly one of 64 concurrent requests book the last unit', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay(2);
    await client.bookAll({ ...offer, units: offer.units - 1 }, stay);
    const race = Array.from({ length: 64 }, async () => client.post({ ...offer.request, ...stay }));
    const responses = await Promise.all(race);
    const statuses = responses.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, ...Array.from({ length: 63 }, () => 409)]);
    for (const { status, body } of responses) if (status === 409) assert.ok(body.alternatives.length > 0);
    assert.equal(await client.left(offer, stay), 0);
  });
}
