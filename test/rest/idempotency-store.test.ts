/** Repeated requests with an `Idempotency-Key`, with responses in memory and in a store of the app. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { z } from 'zod';
import { silentLogger } from '#foundation';
import { problem, type StoredResponse } from '#http';
import { createView } from '#query';
import { createItem, createResourceApp, type IdempotencyOptions, type KnownRequest, updateItem } from '#rest';
import { createMemoryStore } from '../../src/rest/idempotency-store.ts';
import { createDeferred } from '../support/waiting.ts';

interface Order {
  readonly id: number;
  readonly item: string;
  readonly version: number;
}

const view = createView<Order>({
  key: 'id',
  fields: { id: { column: 'id', schema: z.int() }, item: { column: 'item', schema: z.string() } },
});
const schema = z.strictObject({ item: z.string() });

/** `wait` delays each order. Rejects the item `none` with 409. */
function createShop(idempotency?: IdempotencyOptions, wait: () => Promise<void> = async () => {}) {
  const orders: Order[] = [];
  const app = createResourceApp({
    ...(idempotency && { idempotency }),
    logger: silentLogger,
    routes: [
      createItem({
        docs: { operationId: 'createOrder', summary: 'Order' },
        path: '/orders/',
        title: 'Order',
        view,
        schema,
        create: (_ctx, { input, once }) =>
          once(async () => {
            await wait();
            if (input.item === 'none') throw problem('forbidden-transition');
            const order = { id: orders.length + 1, item: input.item, version: 1 };
            orders.push(order);
            return order;
          }),
      }),
      updateItem({
        docs: { operationId: 'changeOrder', summary: 'Change an order' },
        path: '/orders/:id',
        title: 'Order',
        view,
        version: ({ version }) => version,
        schema,
        find: () => orders[0] ?? { id: 0, item: '', version: 0 },
        update: (_ctx, { input, requireCurrent, once }) =>
          once(() => {
            const [order] = orders;
            if (order === undefined) return undefined;
            requireCurrent(order);
            orders[0] = { ...order, item: input.item, version: order.version + 1 };
            return orders[0];
          }),
      }),
    ],
  });
  const handler = new Koa().use(mount('/v1', app)).use(mount('/v2', app)).callback();
  const order = (key: string, item = 'tea', path = '/v1/orders/') =>
    request(handler).post(path).set('Idempotency-Key', key).send({ item });
  return { orders, handler, order };
}

describe('once', () => {
  it('creates one item, and responds to a repetition as to the first request', async () => {
    const { orders, order } = createShop();
    const first = await order('k1').expect(201);
    assert.equal(first.headers['idempotent-replayed'], undefined);
    const again = await order('k1').expect(201, first.body).expect('Idempotent-Replayed', 'true');
    assert.deepEqual(
      [again.headers['location'], again.headers['etag']],
      [first.headers['location'], first.headers['etag']],
    );
    assert.equal(orders.length, 1);
  });

  it('creates an item for each request without a key, and for each key', async () => {
    const { orders, handler, order } = createShop();
    for (let sent = 0; sent < 2; sent += 1)
      await request(handler).post('/v1/orders/').send({ item: 'tea' }).expect(201);
    await order('k1').expect(201);
    await order('k2').expect(201);
    assert.equal(orders.length, 4);
  });

  it('distinguishes callers and paths that use the same key', async () => {
    const { orders, order } = createShop();
    await order('k1').auth('ann', 'x').expect(201);
    await order('k1').auth('bob', 'x').expect(201);
    await order('k1').set('X-Travel-User', 'ann').expect(201);
    await order('k1', 'tea', '/v2/orders/').expect(201);
    assert.equal(orders.length, 4);
  });

  it('recognises callers as the app says', async () => {
    const { orders, order } = createShop({ caller: (ctx) => ctx.get('X-Session') });
    await order('k1').set('X-Session', 'a').auth('ann', 'old').expect(201);
    await order('k1').set('X-Session', 'a').auth('ann', 'new').expect(201).expect('Idempotent-Replayed', 'true');
    assert.equal(orders.length, 1);
  });

  it('rejects a key with another body', async () => {
    const { order } = createShop();
    await order('k1').expect(201);
    await order('k1', 'coffee').expect(422, /belongs to a request with another body/);
  });

  it('rejects a repetition while the first request is under way', async () => {
    const [began, gate] = [createDeferred(), createDeferred()];
    const { orders, order } = createShop({}, () => {
      began.resolve();
      return gate.promise;
    });
    const first = order('k1').then(({ status }) => status);
    await began.promise;
    await order('k1').expect(409).expect('Retry-After', '1');
    gate.resolve();
    assert.equal(await first, 201);
    assert.equal(orders.length, 1);
  });

  it('carries out a request again after it failed', async () => {
    const { order } = createShop();
    await order('k1', 'none').expect(409, { code: 409, message: '409: Conflict' });
    await order('k1').expect(201);
  });

  it('responds to the repetition of a change as to the first, although its If-Match is out of date', async () => {
    const { orders, handler, order } = createShop();
    await order('k0').expect(201);
    const change = () =>
      request(handler)
        .patch('/v1/orders/1')
        .set({ 'Idempotency-Key': 'k1', 'If-Match': '"1-x"' })
        .send({ item: 'mate' });
    const { body } = await change().expect(200);
    await change().expect(200, body).expect('Idempotent-Replayed', 'true');
    assert.deepEqual(orders, [{ id: 1, item: 'mate', version: 2 }]);
  });

  it('responds 404 to a change of an item that was deleted meanwhile, and remembers nothing', async () => {
    const { handler } = createShop();
    const change = () =>
      request(handler).patch('/v1/orders/1').set({ 'Idempotency-Key': 'k1', 'If-Match': '*' }).send({ item: 'mate' });
    await change().expect(404);
    await change()
      .expect(404)
      .expect((response) => assert.equal(response.headers['idempotent-replayed'], undefined));
  });

  it('uses the store of the app, whose apps recognise the requests of each other', async () => {
    const known = new Map<string, KnownRequest>();
    const calls: string[] = [];
    const store = {
      async begin(id: string, fingerprint: string) {
        calls.push('begin');
        const found = known.get(id);
        if (found === undefined) known.set(id, { fingerprint, response: undefined });
        return found;
      },
      async finish(id: string, response: StoredResponse) {
        calls.push('finish');
        // As plain data, which a database or Redis can keep.
        known.set(id, JSON.parse(JSON.stringify({ ...known.get(id), response })));
      },
      async cancel(id: string) {
        calls.push('cancel');
        known.delete(id);
      },
    };
    const [one, other] = [createShop({ store }), createShop({ store })];
    await one.order('k1', 'none').expect(409);
    await one.order('k1').expect(201);
    await other.order('k1').expect(201).expect('Idempotent-Replayed', 'true');
    assert.deepEqual([one.orders.length, other.orders.length], [1, 0]);
    assert.deepEqual(calls, ['begin', 'cancel', 'begin', 'finish', 'begin']);
    for (const id of known.keys()) assert.match(id, /^[0-9a-f]{64}$/);
  });
});

describe('the store in memory', () => {
  const response = { status: 201, headers: {}, body: '' };

  it('forgets a response after 24 hours', async () => {
    let nowMs = 0;
    const store = createMemoryStore({ clock: () => nowMs });
    await store.begin('a', 'x');
    store.finish('a', response);
    nowMs = 24 * 3_600_000 - 1;
    assert.deepEqual(await store.begin('a', 'x'), { fingerprint: 'x', response, finishedAtMs: 0 });
    nowMs += 1;
    assert.equal(await store.begin('a', 'x'), undefined);
  });

  it('keeps the last 10,000 responses, and every request that is under way', async () => {
    const store = createMemoryStore({ clock: () => 0 });
    await store.begin('running', 'x');
    for (let id = 1; id <= 10_001; id += 1) {
      await store.begin(String(id), 'x');
      store.finish(String(id), response);
    }
    for (const id of ['running', '10001', '2']) assert.notEqual(await store.begin(id, 'x'), undefined, id);
    assert.equal(await store.begin('1', 'x'), undefined);
  });
});
