/** Bookings of hotels and cars: who can read them, how they are made, and which requests are rejected. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { bareProblem } from '../support/error-body.ts';
import { type BookingClient, dateIn, type Money } from './booking-client.ts';
import { absentBooking, below, call, callAsDemo, mountPath, pointersOf, uuid } from './desk.ts';

export function bookingCases(client: BookingClient): void {
  describe(`bookings at ${client.kind.prefix}`, () => {
    readCases(client);
    creationCases(client);
    stayCases(client);
    bodyCases(client);
  });
}

function readCases({ desk, kind }: BookingClient): void {
  const { prefix, idField, demoBooking, guestBooking } = kind;
  const idsOf = async (user: string) => {
    const { body } = await call(desk, `${prefix}/bookings/`).auth(user, user).expect(200);
    return body.items.map(({ id }: { id: string }) => id);
  };

  it('can be read by id, with the id, the idField and the status first in the body', async () => {
    for (const id of [demoBooking, demoBooking.toUpperCase()]) {
      const { body } = await callAsDemo(desk, `${prefix}/bookings/${id}`).expect(200);
      assert.deepEqual(Object.keys(body).slice(0, 3), ['id', idField, 'status']);
      assert.deepEqual([body.id, body.status], [demoBooking, 'confirmed']);
      assert.match(body[idField], uuid);
    }
  });

  it('are visible only to their own user', async () => {
    const [demo, guest] = [await idsOf('demo'), await idsOf('guest')];
    assert.ok(demo.includes(demoBooking) && !demo.includes(guestBooking));
    assert.ok(guest.includes(guestBooking) && !guest.includes(demoBooking));
    await callAsDemo(desk, `${prefix}/bookings/${guestBooking}`).expect(bareProblem('not-found'));
    await call(desk, `${prefix}/bookings/${guestBooking}`).auth('guest', 'guest').expect(200);
  });

  it('are those of the authenticated user, whatever identity header the client sends', async () => {
    for (const name of ['X-Travel-User', 'x-travel-user', 'X-TRAVEL-USER', 'x_travel_user']) {
      await callAsDemo(desk, `${prefix}/bookings/${guestBooking}`).set(name, 'guest').expect(404);
      await callAsDemo(desk, `${prefix}/bookings/${demoBooking}`).set(name, 'guest').expect(200);
    }
    await call(desk, `${prefix}/bookings/${guestBooking}`).set('X-Travel-User', 'guest').expect(401);
  });

  it('respond 404 for any other id', async () => {
    for (const id of [absentBooking, 'no-uuid', demoBooking.slice(1), `${demoBooking}0`, '%27'])
      await callAsDemo(desk, `${prefix}/bookings/${id}`).expect(bareProblem('not-found'));
  });

  it('are pending, confirmed or cancelled', async () => {
    const { body } = await callAsDemo(desk, `${prefix}/bookings/`).expect(200);
    const statuses = new Set(body.items.map(({ status }: { status: string }) => status));
    assert.deepEqual([...statuses].sort(), ['cancelled', 'confirmed', 'pending']);
    await callAsDemo(desk, `${prefix}/bookings/?status=lost`).expect(400);
  });
}

/** Crockford's base32: no I, L, O or U. */
const reference = /^[\dA-HJKMNP-TV-Z]{4}-[\dA-HJKMNP-TV-Z]{4}$/;

function creationCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, idField, ends } = kind;

  it('are made with a 201 that contains their URL and the same body as a GET', async () => {
    const { request } = await client.scarcest();
    const stay = client.nextStay(2);
    const { status, headers, body } = await client.post({ ...request, ...stay });
    assert.equal(status, 201, JSON.stringify(body));
    assert.match(body.id, uuid);
    assert.equal(body.url, `${desk().gatewayUrl}${prefix}/bookings/${body.id}`);
    assert.equal(headers['location'], body.url);
    assert.deepEqual([body[idField], body.status], [request[idField], 'confirmed']);
    assert.match(body.reference, reference);
    assert.match(body.price.amount, /^\d+\.\d\d$/);
    assert.match(body.price.currency, /^[A-Z]{3}$/);
    for (const end of ends) assert.equal(Date.parse(body[end]), Date.parse(stay[end] ?? ''), end);
    assert.ok(Math.abs(Date.parse(body.created_at) - Date.now()) < 60_000, body.created_at);
    assert.ok(!('expires_at' in body) && !('refund' in body));
    const read = await client.read(body).expect(200);
    assert.deepEqual(read.body, body);
    for (const name of ['etag', 'content-type', 'vary', 'cache-control'])
      assert.equal(headers[name], read.headers[name], name);
    const listed = await callAsDemo(desk, `${prefix}/bookings/?id=${body.id}`).expect(200);
    assert.deepEqual(listed.body.items, [body]);
  });

  it('use one unit, cost the price shown before, and have different references', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay(3);
    assert.equal(await client.left(offer, stay), offer.units);
    const item = `${prefix}/${offer.request[idField]}?${new URLSearchParams(stay)}`;
    const { body } = await callAsDemo(desk, item).expect(200);
    const booking = await client.book({ ...offer.request, ...stay });
    assert.ok(JSON.stringify(body.availability).includes(JSON.stringify(booking.price)));
    assert.equal(await client.left(offer, stay), offer.units - 1);
    assert.notEqual((await client.bookNew()).booking.reference, booking.reference);
  });

  it('have a refund policy: everything until two days before, then half, then nothing', async () => {
    const stay = client.nextStay();
    const booking = await client.book({ ...(await client.scarcest()).request, ...stay });
    const [free, half, ...others] = booking.cancellation_policy;
    const beginsAt = Date.parse(stay[ends[0]] ?? '');
    const cents = (of: Money | undefined) => Math.round(Number(of?.amount) * 100);
    assert.deepEqual(free?.refund, booking.price);
    assert.equal(beginsAt - Date.parse(free?.before ?? ''), 48 * 3_600_000);
    assert.equal(cents(half?.refund), Math.floor(cents(booking.price) / 2));
    assert.equal(Date.parse(half?.before ?? ''), beginsAt);
    for (const { refund } of others) assert.equal(Number(refund.amount), 0);
  });

  it('are returned in the requested media type and with the requested fields', async () => {
    const yaml = await client.post(await client.newRequest()).set('Accept', 'application/yaml');
    const { id, status } = parse(yaml.text);
    assert.deepEqual([yaml.status, status], [201, 'confirmed']);
    assert.ok(yaml.headers['location']?.endsWith(`/bookings/${id}`));
    const path = `${prefix}/bookings/?fields=id,url`;
    const { body } = await callAsDemo(desk, path, 'post')
      .send(await client.newRequest())
      .expect(201);
    assert.deepEqual(Object.keys(body), ['id', 'url']);
  });

  it('are not made when the requested response is impossible', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const body = { ...offer.request, ...stay };
    await client.post(body).set('Accept', 'image/png').expect(406);
    await callAsDemo(desk, `${prefix}/bookings/?fields=colour`, 'post').send(body).expect(400);
    assert.equal(await client.left(offer, stay), offer.units);
  });

  it('redirect a POST without the trailing slash with a 308, which keeps the body', async () => {
    const response = await callAsDemo(desk, `${prefix}/bookings`, 'post').send({}).expect(308);
    assert.equal(below(desk, response.headers['location'] ?? ''), `${prefix}/bookings/`);
  });

  it('without dates are for the next free night or day', async () => {
    const { request } = await client.scarcest();
    const alone = { [idField]: request[idField] };
    const bookings = [await client.book(alone), await client.book(alone)];
    const [from = '', next = ''] = bookings.map((booking) => String(booking[ends[0]]).slice(0, 10));
    assert.ok(from >= dateIn(0) && from <= next, `${from} ${next}`);
    for (const { status, [ends[0]]: begin, [ends[1]]: end } of bookings) {
      assert.equal(status, 'confirmed');
      assert.ok(Date.parse(String(end)) - Date.parse(String(begin)) <= 86_400_000);
    }
  });
}

function stayCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, idField, ends, stay } = kind;
  const [from, to] = ends;
  const { [from]: start = '', [to]: end = '' } = stay(40, 2);
  const { [to]: farEnd = '' } = stay(40, 92);
  const { [from]: past = '', [to]: pastEnd = '' } = stay(-3, 2);
  const in9999 = (date: string) => date.replace(/^\d{4}/, '9999');

  const impossible: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'ends before it begins': { [from]: end, [to]: start },
    'has a start but no end': { [from]: start },
    'has an end but no start': { [to]: end },
    'is longer than 90 nights or days': { [from]: start, [to]: farEnd },
    'is in the past': { [from]: past, [to]: pastEnd },
    'is in the year 9999': { [from]: in9999(start), [to]: in9999(end) },
    'starts on a date that does not exist': { [from]: start.replace(/-\d\d-\d\d/, '-02-30'), [to]: end },
  };

  for (const [what, dates] of Object.entries(impossible)) {
    it(`are rejected for a stay that ${what}, as are lists`, async () => {
      const { request } = await client.scarcest();
      const { body } = await client.post({ ...request, ...dates }).expect(400);
      assert.ok(body.errors.length > 0);
      for (const pointer of pointersOf(body)) assert.ok([`/${from}`, `/${to}`].includes(pointer), pointer);
      await callAsDemo(desk, `${prefix}/?${new URLSearchParams(dates)}`).expect(400);
    });
  }

  it('are rejected for a idField that does not exist', async () => {
    const { status, body } = await client.post({ [idField]: absentBooking });
    assert.ok([400, 404].includes(status), JSON.stringify(body));
  });
}

function bodyCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, idField, ends } = kind;
  const send = (body: Buffer, headers = {}) => callAsDemo(desk, `${prefix}/bookings/`, 'post').set(headers).send(body);

  it('accept JSON in UTF-8, and respond 415 to other media types', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])
      await client
        .post(JSON.stringify(await client.newRequest()))
        .set('Content-Type', type)
        .expect(201);
    const others = ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'application/jsonx'];
    for (const type of [...others, 'application/json; charset=iso-8859-1']) {
      const { headers, body } = await client.post('{}').set('Content-Type', type).expect(415);
      assert.match(headers['accept'] ?? '', /^application\/json\b/);
      assert.equal(body.code, 415);
    }
    assert.equal((await send(Buffer.from('{}'))).status, 415);
  });

  for (const text of ['', '{', '{"a":}', '[]', '"text"', 'null', '1', '{}{}', "{'a':1}"]) {
    it(`reject a body that is not a JSON object: ${text}`, async () => {
      const { body } = await client.post(text).expect(400);
      assert.equal(body.message, '400: Bad Request');
      assert.ok(body.detail !== undefined || body.errors !== undefined);
    });
  }

  it('reject a body that is not UTF-8', async () => {
    const bytes = Buffer.from(`{"${idField}":"\u00ff"}`, 'latin1');
    const { status } = await send(bytes, { 'content-type': 'application/json' });
    // If a host app has already decoded the body, the original bytes are lost.
    assert.ok(status === 400 || (status === 500 && mountPath(desk) !== ''), String(status));
  });

  it('report all faults of a body together, each with its JSON pointer', async () => {
    const wrong = { [idField]: 'no-uuid', [ends[0]]: 'soon', [ends[1]]: 7, hold: 'yes', 'colour/tone~1': 'red' };
    const { body } = await client.post(wrong).expect(400);
    // RFC 6901 encodes `~` as ~0 and `/` as ~1.
    const expected = [`/${idField}`, `/${ends[0]}`, `/${ends[1]}`, '/hold', '/colour~1tone~01'];
    assert.deepEqual([...new Set(pointersOf(body))].sort(), expected.sort());
    for (const { detail } of body.errors) assert.ok(detail.length > 0);
    assert.equal((await client.post({}).expect(400)).body.errors[0].pointer, `/${idField}`);
  });

  it('reject fields that are unknown or that clients cannot set', async () => {
    const { request } = await client.scarcest();
    for (const name of ['__proto__', 'constructor', 'toString', 'status', 'price', 'id', 'user']) {
      const text = JSON.stringify(request).replace('{', `{"${name}":{"amount":"0.01"},`);
      assert.deepEqual(pointersOf((await client.post(text).expect(400)).body), [`/${name}`]);
    }
  });
}
