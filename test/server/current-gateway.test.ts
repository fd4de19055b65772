/** Replacing the gateway of a running process. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import { createCurrentGateway, type OpenGateway } from '../../src/server/current-gateway.ts';
import { createDeferred } from '../support/waiting.ts';

const ctx = {} as Context;

/** Opens a gateway named `first`. The gateways record their requests and when they are closed. */
function setUp() {
  const events: string[] = [];
  const go = createDeferred();
  const current = createCurrentGateway();
  function replace(name: string): void {
    const middleware = async () => {
      events.push(`${name} begins`);
      await go.promise;
      events.push(`${name} ends`);
    };
    const close = async () => void events.push(`${name} is closed`);
    current.replace({ gateway: { middleware, snapshot: () => name }, close } as unknown as OpenGateway);
  }
  replace('first');
  return { current, events, go, replace };
}

describe('createCurrentGateway', () => {
  it('sends new requests to the next gateway, and closes the previous one after its last request', async () => {
    const { current, events, go, replace } = setUp();
    const requests = [current.middleware(ctx), current.middleware(ctx)];
    replace('second');
    assert.equal(current.snapshot(), 'second');
    requests.push(current.middleware(ctx));
    assert.deepEqual(events, ['first begins', 'first begins', 'second begins']);
    go.resolve();
    await Promise.all(requests);
    assert.deepEqual(events.slice(3).sort(), ['first ends', 'first ends', 'first is closed', 'second ends']);
  });

  it('immediately closes a replaced gateway without requests', () => {
    const { events, replace } = setUp();
    replace('second');
    assert.deepEqual(events, ['first is closed']);
  });

  it('closes all gateways once, when their requests have finished', async () => {
    const { current, events, go, replace } = setUp();
    const requests = [current.middleware(ctx)];
    replace('second');
    requests.push(current.middleware(ctx));
    const closed = Promise.all([current.close(60_000), current.close(60_000)]);
    go.resolve();
    await Promise.all([closed, ...requests]);
    const ended = ['first ends', 'first is closed', 'second ends', 'second is closed'];
    assert.deepEqual(events.slice(2).sort(), ended);
  });

  it('closes the gateway at the deadline, even if requests finish later', async () => {
    const { current, events, go } = setUp();
    const request = current.middleware(ctx);
    await current.close(1);
    go.resolve();
    await request;
    assert.deepEqual(events, ['first begins', 'first is closed', 'first ends']);
  });

  it('rejects requests with 503 while it closes, and afterwards', async () => {
    const { current, events, go } = setUp();
    const request = current.middleware(ctx);
    const closed = current.close(60_000);
    const refused = { slug: 'not-ready', headers: { 'Retry-After': '1' } };
    await assert.rejects(current.middleware(ctx), refused);
    go.resolve();
    await Promise.all([closed, request]);
    await assert.rejects(current.middleware(ctx), refused);
    assert.deepEqual(events, ['first begins', 'first ends', 'first is closed']);
  });

  it('throws when there is no gateway yet', async () => {
    await assert.rejects(createCurrentGateway().middleware(ctx), /no gateway is open yet/);
  });
});
