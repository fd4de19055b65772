/** Safe retries: the same key and the same body are one booking, however often they are sent. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { BookingClient } from './booking-client.ts';

const anyKey = 'Idempotency-Key';

export function retryCases(client: BookingClient): void {
  describe(`a retry at ${client.kind.prefix}`, () => {
    replayCases(client);
    scopeCases(client);
    unansweredCases(client);
  });
}

/** A request that nobody has made before, and a key for it. */
async function requestNew(client: BookingClient): Promise<{ body: object; key: string }> {
  const { request } = await client.scarcest();
  return { body: { ...request, ...client.nextStay() }, key: randomUUID() };
}

function replayCases(client: BookingClient): void {
  /** How a client writes the key first, and again. */
  const spellings: readonly (readonly [(key: string) => string, (key: string) => string])[] = [
    [(key) => `"${key}"`, (key) => `"${key}"`],
    [(key) => key, (key) => key],
    [(key) => `"${key}"`, (key) => key],
  ];

  for (const [first, again] of spellings) {
    it(`with the key ${first('k')} and then ${again('k')} gets the same answer and books nothing`, async () => {
      const { body, key } = await requestNew(client);
      const made = await client.post(body).set(anyKey, first(key)).expect(201);
      assert.equal(made.headers['idempotent-replayed'], undefined);
      for (let retry = 0; retry < 2; retry += 1) {
        const replayed = await client.post(body).set(anyKey, again(key)).expect(201);
        assert.equal(replayed.headers['idempotent-replayed'], 'true');
        assert.deepEqual(replayed.body, made.body);
        for (const name of ['location', 'etag', 'content-type']) {
          assert.equal(replayed.headers[name], made.headers[name], name);
        }
      }
    });
  }

  it('gets the stored answer, even when the booking has changed since', async () => {
    const { body, key } = await requestNew(client);
    const made = await client.post(body).set(anyKey, key).expect(201);
    await client.change(made.body, { status: 'cancelled' }, '*').expect(200);
    const replayed = await client.post(body).set(anyKey, key).expect(201);
    assert.deepEqual(replayed.body, made.body);
  });

  it('takes nothing of what is left', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const key = randomUUID();
    for (let sent = 0; sent < 3; sent += 1) {
      await client
        .post({ ...offer.request, ...stay })
        .set(anyKey, key)
        .expect(201);
    }
    assert.equal(await client.left(offer, stay), offer.units - 1);
  });

  it('that comes while the first still runs is told so, or gets its answer', async () => {
    const { body, key } = await requestNew(client);
    const send = async () => client.post(body).set(anyKey, key);
    const answers = await Promise.all(Array.from({ length: 16 }, send));
    const made = answers.filter(({ status }) => status === 201);
    assert.equal(new Set(made.map((answer) => answer.body.id)).size, 1);
    assert.equal(made.filter(({ headers }) => headers['idempotent-replayed'] === undefined).length, 1);
    for (const { headers } of answers.filter(({ status }) => status !== 201)) {
      assert.equal(headers['retry-after'], '1');
    }
    assert.deepEqual(
      answers.map(({ status }) => status).filter((status) => status !== 201 && status !== 409),
      [],
    );
    assert.equal((await send()).status, 201);
  });
}

function scopeCases(client: BookingClient): void {
  it('with another body is refused with 422', async () => {
    const { body, key } = await requestNew(client);
    await client.post(body).set(anyKey, key).expect(201);
    const other = await requestNew(client);
    const { body: told } = await client.post(other.body).set(anyKey, key).expect(422);
    assert.equal(told.code, 422);
    const { body: hold } = await client
      .post({ ...body, hold: true })
      .set(anyKey, key)
      .expect(422);
    assert.equal(hold.code, 422);
  });

  it('of another user is a booking of its own', async () => {
    const { body, key } = await requestNew(client);
    const first = await client.post(body).set(anyKey, key).expect(201);
    const second = await client
      .post((await requestNew(client)).body, 'guest')
      .set(anyKey, key)
      .expect(201);
    assert.notEqual(second.body.id, first.body.id);
    assert.equal(second.headers['idempotent-replayed'], undefined);
  });

  it('without a key is another booking, even with the same X-Request-ID', async () => {
    const { request } = await client.scarcest();
    const id = randomUUID();
    const post = () => client.post({ ...request, ...client.nextStay() }).set('X-Request-ID', id);
    const [first, second] = [await post().expect(201), await post().expect(201)];
    assert.notEqual(first.body.id, second.body.id);
  });

  for (const key of ['""', `"${'k'.repeat(256)}"`, '"a" "b"', '"unfinished']) {
    it(`with a key that is none is refused: ${key.slice(0, 20)}`, async () => {
      const { body } = await requestNew(client);
      await client.post(body).set(anyKey, key).expect(400);
    });
  }

  it('may have a key of 255 characters', async () => {
    const { body } = await requestNew(client);
    const key = randomUUID().padEnd(255, 'k');
    const made = await client.post(body).set(anyKey, key).expect(201);
    assert.equal((await client.post(body).set(anyKey, key).expect(201)).body.id, made.body.id);
  });
}

function unansweredCases(client: BookingClient): void {
  it('after a mistake may mend it: a refusal is not kept', async () => {
    const { body, key } = await requestNew(client);
    await client
      .post({ ...body, colour: 'red' })
      .set(anyKey, key)
      .expect(400);
    await client.post(body).set(anyKey, key).expect(201);
  });

  it('after "sold out" may have more luck', async () => {
    const offer = await client.scarcest();
    const stay = client.nextStay();
    const [taken] = await client.bookAll(offer, stay);
    const key = randomUUID();
    const send = () => client.post({ ...offer.request, ...stay }).set(anyKey, key);
    await send().expect(409);
    assert.ok(taken !== undefined);
    await client.change(taken, { status: 'cancelled' }, '*').expect(200);
    await send().expect(201);
  });
}
