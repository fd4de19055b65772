/** Safe retries: requests with the same idempotency key and body make one booking. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { BookingClient } from './booking-client.ts';

const keyHeader = 'Idempotency-Key';

export function bookingRetryCases(client: BookingClient): void {
  const newRequest = async () => ({ body: await client.newRequest(), key: randomUUID() });
  const send = (body: object, key: string, user?: string) => client.post(body, user).set(keyHeader, key);

  describe(`a retry at ${client.kind.prefix}`, () => {
    it('gets the stored response and books nothing, with or without quotes, even after a change', async () => {
      for (const [first, again] of [
        ['"', '"'],
        ['', ''],
        ['"', ''],
      ]) {
        const offer = await client.scarcest();
        const stay = client.nextStay();
        const key = randomUUID();
        const body = { ...offer.request, ...stay };
        const made = await send(body, `${first}${key}${first}`).expect(201);
        assert.equal(made.headers['idempotent-replayed'], undefined);
        const replay = async () => {
          const replayed = await send(body, `${again}${key}${again}`).expect(201);
          assert.equal(replayed.headers['idempotent-replayed'], 'true');
          assert.deepEqual(replayed.body, made.body);
          for (const name of ['location', 'etag', 'content-type'])
            assert.equal(replayed.headers[name], made.headers[name], name);
        };
        await replay();
        assert.equal(await client.left(offer, stay), offer.units - 1);
        await client.change(made.body, { status: 'cancelled' }, '*').expect(200);
        await replay();
      }
    });

    it('during the first request gets a 409 or the same response', async () => {
      const { body, key } = await newRequest();
      const responses = await Promise.all(Array.from({ length: 16 }, async () => send(body, key)));
      const made = responses.filter(({ status }) => status === 201);
      assert.equal(new Set(made.map((response) => response.body.id)).size, 1);
      assert.equal(made.filter(({ headers }) => headers['idempotent-replayed'] === undefined).length, 1);
      for (const { status, headers } of responses.filter((response) => !made.includes(response)))
        assert.deepEqual([status, headers['retry-after']], [409, '1']);
      await send(body, key).expect(201);
    });

    it('with another body is rejected with 422', async () => {
      const { body, key } = await newRequest();
      await send(body, key).expect(201);
      for (const other of [await client.newRequest(), { ...body, hold: true }]) {
        const { body: refusal } = await send(other, key).expect(422);
        assert.match(
          refusal.detail,
          /^The Idempotency-Key of this request belongs to a request with another body, sent at 20.*Z\. Send that body again, or another key\.$/,
        );
      }
    });

    it('by another user or without a key makes another booking', async () => {
      const { body, key } = await newRequest();
      const first = await send(body, key).expect(201);
      const second = await send(await client.newRequest(), key, 'guest').expect(201);
      assert.equal(second.headers['idempotent-replayed'], undefined);
      const third = await client.book(body);
      assert.equal(new Set([first.body.id, second.body.id, third.id]).size, 3);
    });

    it('of a change gets the stored response and changes nothing, although its entity tag is out of date', async () => {
      const { booking, tag } = await client.bookNew({ hold: true });
      const [confirmed, key] = [{ status: 'confirmed' }, randomUUID()];
      const change = () => client.change(booking, confirmed, tag).set(keyHeader, key);
      const first = await change().expect(200);
      assert.equal(first.headers['idempotent-replayed'], undefined);
      await client.change(booking, { status: 'cancelled' }, '*').expect(200);
      const again = await change().expect(200);
      assert.equal(again.headers['idempotent-replayed'], 'true');
      assert.deepEqual([again.body, again.headers['etag']], [first.body, first.headers['etag']]);
      assert.equal((await client.read(booking)).body.status, 'cancelled');
    });

    it('of a change with another body is rejected with 422, and with a malformed key with 400', async () => {
      const { booking } = await client.bookNew({ hold: true });
      const key = randomUUID();
      await client.change(booking, { status: 'confirmed' }, '*').set(keyHeader, key).expect(200);
      await client.change(booking, { status: 'cancelled' }, '*').set(keyHeader, key).expect(422);
      await client.change(booking, { status: 'cancelled' }, '*').set(keyHeader, 'two words').expect(400);
      const { booking: other } = await client.bookNew();
      await client.change(other, { status: 'cancelled' }, '*').set(keyHeader, key).expect(200);
      assert.equal((await client.read(booking)).body.status, 'confirmed');
    });

    it('after an error is processed again, because errors are not stored', async () => {
      const offer = await client.scarcest();
      const stay = client.nextStay();
      const body = { ...offer.request, ...stay };
      const [taken] = await client.bookAll(offer, stay);
      const key = randomUUID();
      await send({ ...body, colour: 'red' }, key).expect(400);
      await send(body, key).expect(409);
      assert.ok(taken !== undefined);
      await client.change(taken, { status: 'cancelled' }, '*').expect(200);
      await send(body, key).expect(201);
    });
  });
}
