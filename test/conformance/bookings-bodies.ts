/** What a booking service reads of a body, and how it says what is wrong with one. */
import assert from 'node:assert/strict';
import type { BookingClient } from './booking-client.ts';
import { mountPath } from './desk.ts';

const refusedTypes = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/xml',
  'application/jsonx',
  'application/json; charset=iso-8859-1',
];

const acceptedTypes = ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'];

const unreadable = ['', '{', '{"a":}', '[]', '"text"', 'null', '1', '{}{}', "{'a':1}"];

export function bodyCases(client: BookingClient): void {
  describe(`bodies at ${client.kind.prefix}`, () => {
    typeCases(client);
    contentCases(client);
  });
}

function typeCases(client: BookingClient): void {
  const { desk, kind } = client;

  for (const type of acceptedTypes) {
    it(`are read as ${type}`, async () => {
      const { request } = await client.scarcest();
      const body = JSON.stringify({ ...request, ...client.nextStay() });
      await client.post(body).set('Content-Type', type).expect(201);
    });
  }

  for (const type of refusedTypes) {
    it(`are refused with 415 and what is taken: ${type}`, async () => {
      const { request } = await client.scarcest();
      const body = JSON.stringify({ ...request, ...client.nextStay() });
      const answer = await client.post(body).set('Content-Type', type).expect(415);
      assert.match(answer.headers['accept'] ?? '', /^application\/json\b/);
      assert.equal(answer.body.code, 415);
    });
  }

  it('are refused without a type', async () => {
    const { request } = await client.scarcest();
    const bytes = Buffer.from(JSON.stringify({ ...request, ...client.nextStay() }));
    const url = `${desk().gatewayUrl}${kind.prefix}/bookings/`;
    const { status } = await fetch(url, { method: 'POST', body: bytes, headers: { authorization: demo } });
    assert.equal(status, 415);
  });

  it('are refused with 413 beyond 1 MiB', async () => {
    const { request } = await client.scarcest();
    const body = JSON.stringify({ ...request, ...client.nextStay() });
    const { body: told } = await client.post(body.padEnd(1_048_577)).expect(413);
    assert.equal(told.code, 413);
    await client.post(body.padEnd(1_048_576)).expect(201);
  });
}

const demo = `Basic ${btoa('demo:demo')}`;

function contentCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { thing, ends } = kind;

  for (const text of unreadable) {
    it(`are refused with 400 when they are no JSON object: ${text}`, async () => {
      const { body } = await client.post(text).expect(400);
      assert.equal(body.message, '400: Bad Request');
      assert.ok(`${body.detail ?? ''}${JSON.stringify(body.errors ?? '')}`.length > 0, 'what is wrong is not told');
    });
  }

  it('are refused when they are no UTF-8', async () => {
    const url = `${desk().gatewayUrl}${kind.prefix}/bookings/`;
    const headers = { authorization: demo, 'content-type': 'application/json' };
    const body = Buffer.from(`{"${thing}":"\u00ff"}`, 'latin1');
    const { status } = await fetch(url, { method: 'POST', body, headers });
    // A host app whose parser has decoded them before leaves nothing that could be judged.
    assert.ok(status === 400 || (status === 500 && mountPath(desk) !== ''), String(status));
  });

  it('are told everything that is wrong with them at once, each by its pointer', async () => {
    const wrong = { [thing]: 'no-uuid', [ends[0]]: 'soon', [ends[1]]: 7, hold: 'yes', 'colour/tone~1': 'red' };
    const { body } = await client.post(wrong).expect(400);
    const pointers = new Set(body.errors.map(({ pointer }: { pointer: string }) => pointer));
    // RFC 6901: `~` is written ~0, `/` is written ~1.
    const expected = [`/${thing}`, `/${ends[0]}`, `/${ends[1]}`, '/hold', '/colour~1tone~01'];
    assert.deepEqual([...pointers].sort(), expected.sort());
    for (const { detail } of body.errors) assert.ok(detail.length > 0);
  });

  it('are refused when they name nothing to book', async () => {
    const { body } = await client.post({}).expect(400);
    assert.equal(body.errors[0].pointer, `/${thing}`);
  });

  for (const name of ['__proto__', 'constructor', 'toString', 'status', 'price', 'id', 'user']) {
    it(`are refused when they hold a field that is none: ${name}`, async () => {
      const { request } = await client.scarcest();
      const text = JSON.stringify(request).replace('{', `{"${name}":{"amount":"0.01"},`);
      const { body } = await client.post(text).expect(400);
      assert.deepEqual(
        body.errors.map(({ pointer }: { pointer: string }) => pointer),
        [`/${name}`],
      );
    });
  }
}
