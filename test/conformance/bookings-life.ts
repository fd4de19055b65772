/** What becomes of a booking: confirmed, cancelled, changed under a precondition (RFC 9110 section 13.1.1). */
import assert from 'node:assert/strict';
import type { Booking, BookingClient } from './booking-client.ts';
import { callAsDemo } from './desk.ts';

const cancelled = { status: 'cancelled' };
const confirmed = { status: 'confirmed' };

export function lifeCases(client: BookingClient): void {
  describe(`the life of a booking at ${client.kind.prefix}`, () => {
    preconditionCases(client);
    cancellationCases(client);
    holdCases(client);
    refusalCases(client);
  });
}

/** A new booking, and the tag that a GET of it tells. */
async function bookNew(client: BookingClient, more: object = {}): Promise<{ booking: Booking; tag: string }> {
  const { request } = await client.scarcest();
  const booking = await client.book({ ...request, ...client.nextStay(), ...more });
  const { headers } = await client.read(booking).expect(200);
  return { booking, tag: String(headers['etag']) };
}

function preconditionCases(client: BookingClient): void {
  it('is not changed without a precondition, and the answer says how to send one', async () => {
    const { booking } = await bookNew(client);
    const { body } = await client.change(booking, cancelled).expect(428);
    assert.equal(body.message, '428: Precondition Required');
    assert.match(body.detail, /If-Match/);
    assert.equal((await client.read(booking)).body.status, 'confirmed');
  });

  it('is not changed when the tag is another, or weak, or none', async () => {
    const { booking, tag } = await bookNew(client);
    for (const other of ['"other"', `W/${tag}`, '"other", "another"', tag.slice(0, -1), tag.slice(1, -1)]) {
      const { status } = await client.change(booking, cancelled, other);
      assert.ok([400, 412].includes(status), `${other}: ${status}`);
    }
    await client.change(booking, cancelled, '"other"').expect(412);
    await client.change(booking, cancelled, `W/${tag}`).expect(412);
    assert.equal((await client.read(booking)).body.status, 'confirmed');
  });

  it('is changed when one of the tags is its own, or any will do', async () => {
    for (const ifMatch of [(tag: string) => `"other", ${tag}`, () => '*']) {
      const { booking, tag } = await bookNew(client);
      await client.change(booking, cancelled, ifMatch(tag)).expect(200);
    }
  });

  it('has a new tag once it is changed, so that the old one does not change it again', async () => {
    const { booking, tag } = await bookNew(client, { hold: true });
    const { headers } = await client.change(booking, confirmed, tag).expect(200);
    assert.notEqual(headers['etag'], tag);
    assert.equal((await client.read(booking)).headers['etag'], headers['etag']);
    await client.change(booking, cancelled, tag).expect(412);
    await client.change(booking, cancelled, String(headers['etag'])).expect(200);
  });
}

function cancellationCases(client: BookingClient): void {
  it('ends with a refund by its policy, and what was booked is free again', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay(2);
    const booking = await client.book({ ...offer.request, ...stay });
    const { headers } = await client.read(booking);
    const { body } = await client.change(booking, cancelled, String(headers['etag'])).expect(200);
    assert.deepEqual(body, { ...booking, ...cancelled, refund: booking.price });
    assert.deepEqual((await client.read(booking)).body, body);
    assert.equal(await client.left(offer, stay), offer.units);
  });

  it('ends once: cancelling again is 200 and changes nothing', async () => {
    const { booking, tag } = await bookNew(client);
    const first = await client.change(booking, cancelled, tag).expect(200);
    for (const ifMatch of [String(first.headers['etag']), tag, '*']) {
      const again = await client.change(booking, cancelled, ifMatch).expect(200);
      assert.deepEqual(again.body, first.body);
      assert.equal(again.headers['etag'], first.headers['etag']);
    }
  });

  it('is over when it is cancelled: 409 to confirming it', async () => {
    const { booking } = await bookNew(client);
    await client.change(booking, cancelled, '*').expect(200);
    const { body } = await client.change(booking, confirmed, '*').expect(409);
    assert.equal(body.message, '409: Conflict');
    assert.ok(body.detail.includes('cancelled'), body.detail);
    assert.equal((await client.read(booking)).body.status, 'cancelled');
  });
}

function holdCases(client: BookingClient): void {
  it('begins with a hold of 15 minutes when that is asked for, which takes what it holds', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const held = await client.book({ ...offer.request, ...stay, hold: true });
    assert.equal(held.status, 'pending');
    assert.equal(Date.parse(held.expires_at ?? '') - Date.parse(held.created_at), 15 * 60_000);
    assert.equal(await client.left(offer, stay), offer.units - 1);
    const { body } = await client.change(held, confirmed, '*').expect(200);
    assert.equal(body.status, 'confirmed');
    assert.ok(!('expires_at' in body), 'a confirmed booking does not expire');
    assert.deepEqual([body.price, body.reference], [held.price, held.reference]);
    assert.equal(await client.left(offer, stay), offer.units - 1);
  });

  it('ends with a hold that is cancelled, which frees what it held', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const held = await client.book({ ...offer.request, ...stay, hold: true });
    await client.change(held, cancelled, '*').expect(200);
    assert.equal(await client.left(offer, stay), offer.units);
  });
}

function refusalCases(client: BookingClient): void {
  const wrong: readonly (readonly [object, string])[] = [
    [{}, '/status'],
    [{ status: 'lost' }, '/status'],
    [{ status: null }, '/status'],
    [{ ...cancelled, guests: 2 }, '/guests'],
    [{ ...cancelled, price: { amount: '0.01', currency: 'EUR' } }, '/price'],
  ];

  for (const [body, pointer] of wrong) {
    it(`is not changed by what is no change of status: ${JSON.stringify(body)}`, async () => {
      const { booking } = await bookNew(client);
      const { body: told } = await client.change(booking, body, '*').expect(400);
      assert.equal(told.errors[0].pointer, pointer);
      assert.deepEqual((await client.read(booking)).body, booking);
    });
  }

  it('is not changed by a body of another type', async () => {
    const { booking } = await bookNew(client);
    const patch = callAsDemo(client.desk, client.pathOf(booking), 'patch').set('If-Match', '*');
    await patch.type('text/plain').send(JSON.stringify(cancelled)).expect(415).expect('Accept', 'application/json');
    assert.deepEqual((await client.read(booking)).body, booking);
  });
}
