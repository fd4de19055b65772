/** Booking a room or a car: the answer, what it changes, and stays that cannot be. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import type { BookingClient, Money } from './booking-client.ts';
import { dateIn } from './booking-kinds.ts';
import { below, call, callAsDemo, uuid } from './desk.ts';

export function creationCases(client: BookingClient): void {
  describe(`a new booking at ${client.kind.prefix}`, () => {
    answerCases(client);
    formCases(client);
    nextFreeCases(client);
    stayCases(client);
  });
}

const money = { amount: /^\d+\.\d\d$/, currency: /^[A-Z]{3}$/ };
/** Crockford's base32: no I, L, O or U. */
const reference = /^[\dA-HJKMNP-TV-Z]{4}-[\dA-HJKMNP-TV-Z]{4}$/;

function answerCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, thing, ends } = kind;

  it('is answered with 201, its absolute URL, and itself', async () => {
    const { request } = await client.scarcest();
    const stay = client.nextStay(2);
    const { status, headers, body } = await client.post({ ...request, ...stay });
    assert.equal(status, 201, JSON.stringify(body));
    assert.match(body.id, uuid);
    assert.equal(body.url, `${desk().gatewayUrl}${prefix}/bookings/${body.id}`);
    assert.equal(headers['location'], body.url);
    assert.equal(body[thing], request[thing]);
    assert.equal(body.status, 'confirmed');
    assert.match(body.reference, reference);
    assert.match(body.price.amount, money.amount);
    assert.match(body.price.currency, money.currency);
    for (const end of ends) assert.equal(Date.parse(body[end]), Date.parse(stay[end] ?? ''), end);
    assert.ok(Math.abs(Date.parse(body.created_at) - Date.now()) < 60_000, body.created_at);
    assert.ok(!('expires_at' in body) && !('refund' in body));
  });

  it('reads at its URL as it was answered, and stands among the bookings of its owner alone', async () => {
    const { request } = await client.scarcest();
    const booking = await client.book({ ...request, ...client.nextStay() });
    const { body } = await callAsDemo(desk, client.pathOf(booking)).expect(200);
    assert.deepEqual(body, booking);
    const listed = (user: string) => call(desk, `${prefix}/bookings/?id=${booking.id}`).auth(user, user).expect(200);
    assert.deepEqual((await listed('demo')).body.items, [booking]);
    assert.deepEqual((await listed('guest')).body.items, []);
  });

  it('takes one of what is left, costs what was shown, and has a reference of its own', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay(3);
    const left = await client.left(offer, stay);
    assert.equal(left, offer.units);
    const shown = await callAsDemo(desk, `${prefix}/${offer.request[thing]}?${new URLSearchParams(stay)}`).expect(200);
    const booking = await client.book({ ...offer.request, ...stay });
    assert.ok(JSON.stringify(shown.body.availability).includes(JSON.stringify(booking.price)), 'the price shown');
    assert.equal(await client.left(offer, stay), left - 1);
    const other = await client.book({ ...offer.request, ...client.nextStay() });
    assert.notEqual(other.reference, booking.reference);
  });

  it('is made with a policy: all back until two days before, then half, then nothing', async () => {
    const { request } = await client.scarcest();
    const stay = client.nextStay();
    const booking = await client.book({ ...request, ...stay });
    const [free, half, ...others] = booking.cancellation_policy;
    const beginsAt = Date.parse(stay[ends[0]] ?? '');
    assert.ok(free !== undefined && half !== undefined);
    assert.deepEqual(free.refund, booking.price);
    assert.equal(beginsAt - Date.parse(free.before), 48 * 3_600_000);
    const cents = (of: Money) => Math.round(Number(of.amount) * 100);
    assert.equal(cents(half.refund), Math.floor(cents(booking.price) / 2));
    assert.equal(Date.parse(half.before), beginsAt);
    for (const { refund } of others) assert.equal(Number(refund.amount), 0);
  });
}

function formCases(client: BookingClient): void {
  const { desk, kind } = client;

  it('is answered in the representation and with the fields that are asked for', async () => {
    const { request } = await client.scarcest();
    const yaml = await client.post({ ...request, ...client.nextStay() }).set('Accept', 'application/yaml');
    assert.equal(yaml.status, 201);
    const { id, status } = parse(yaml.text);
    assert.equal(status, 'confirmed');
    assert.ok(yaml.headers['location']?.endsWith(`/bookings/${id}`));
    const path = `${kind.prefix}/bookings/?fields=id,url`;
    const order = { ...request, ...client.nextStay() };
    const { body } = await callAsDemo(desk, path, 'post').send(order).expect(201);
    assert.deepEqual(Object.keys(body), ['id', 'url']);
  });

  it('is not made where its answer would not be understood', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const order = { ...offer.request, ...stay };
    await client.post(order).set('Accept', 'image/png').expect(406);
    await callAsDemo(desk, `${kind.prefix}/bookings/?fields=colour`, 'post').send(order).expect(400);
    assert.equal(await client.left(offer, stay), offer.units);
  });

  it('is sent on with its body by whoever forgets the slash', async () => {
    const { request } = await client.scarcest();
    const answer = await callAsDemo(desk, `${kind.prefix}/bookings`, 'post').send(request).expect(308);
    assert.equal(below(desk, answer.headers['location'] ?? ''), `${kind.prefix}/bookings/`);
  });
}

function nextFreeCases(client: BookingClient): void {
  const { thing, ends } = client.kind;

  it('of the thing alone is the next free night or day for one, as it always was', async () => {
    const { request } = await client.scarcest();
    const alone = { [thing]: request[thing] };
    const [first, second] = [await client.book(alone), await client.book(alone)];
    const begins = [first, second].map((booking) => String(booking[ends[0]]).slice(0, 10));
    assert.ok((begins[0] ?? '') >= dateIn(0) && (begins[0] ?? '') <= (begins[1] ?? ''), begins.join());
    for (const booking of [first, second]) {
      assert.equal(booking.status, 'confirmed');
      assert.ok(Date.parse(String(booking[ends[1]])) - Date.parse(String(booking[ends[0]])) <= 86_400_000);
    }
  });
}

function stayCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, thing, ends, stay } = kind;
  const [from, to] = ends;
  const { [from]: start = '', [to]: end = '' } = stay(40, 2);
  const { [to]: farEnd = '' } = stay(40, 92);
  const { [from]: past = '', [to]: pastEnd = '' } = stay(-3, 2);

  /** Fields of a request beside the thing. */
  const impossible: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['ends before it begins', { [from]: end, [to]: start }],
    ['begins and does not end', { [from]: start }],
    ['ends and does not begin', { [to]: end }],
    ['is longer than 90 nights or days', { [from]: start, [to]: farEnd }],
    ['lies in the past', { [from]: past, [to]: pastEnd }],
    [
      'lies at the end of the calendar',
      { [from]: start.replace(/^\d{4}/, '9999'), [to]: end.replace(/^\d{4}/, '9999') },
    ],
    ['is not on the calendar', { [from]: start.replace(/-\d\d-\d\d/, '-02-30'), [to]: end }],
  ];

  for (const [what, dates] of impossible) {
    it(`is refused when its stay ${what}, and so is a list`, async () => {
      const { request } = await client.scarcest();
      const { status, body } = await client.post({ ...request, ...dates });
      assert.equal(status, 400, JSON.stringify(body));
      assert.ok(body.errors.length > 0);
      const pointers = body.errors.map(({ pointer }: { pointer: string }) => pointer);
      for (const pointer of pointers) assert.ok([`/${from}`, `/${to}`].includes(pointer), pointer);
      if (what !== 'lies in the past') await callAsDemo(desk, `${prefix}/?${new URLSearchParams(dates)}`).expect(400);
    });
  }

  it('is refused where there is no such thing', async () => {
    const { body } = await client.post({ [thing]: '00000000-0000-4000-8000-000000000000' });
    assert.ok([400, 404].includes(body.code), JSON.stringify(body));
  });
}
