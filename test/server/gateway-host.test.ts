/** One gateway after another in one process. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import type { Configuration } from '#config';
import { createEdges } from '../../src/server/gateway-host.ts';
import type { Edge } from '../../src/server/open-gateway.ts';
import type { Follower, Generations } from '../../src/server/reload.ts';
import { createSignal } from '../support/signal.ts';

const ctx = {} as Context;

/** Edges that write down what happens to them; each is known by the hash of its configuration. */
function setUp() {
  const events: string[] = [];
  const running = createSignal();
  const followers: Follower[] = [];
  const configuration = (name: string) => ({ name }) as unknown as Configuration;
  const generations = {
    current: () => ({ number: 1, hash: () => '', appliedAtMs: 0, configuration: configuration('first') }),
    follow: (follower: Follower) => void followers.push(follower),
  } as unknown as Generations;
  const edges = createEdges(generations, (made) => {
    const { name } = made as unknown as { name: string };
    if (name === 'impossible') throw new Error('no such gateway');
    const middleware = async () => {
      events.push(`${name} begins`);
      await running.given;
      events.push(`${name} ends`);
    };
    const close = async () => void events.push(`${name} is closed`);
    return { gateway: { middleware, snapshot: () => name, close }, close } as unknown as Edge;
  });
  const swap = (name: string) => followers.map((follower) => follower(configuration(name))).forEach((go) => void go());
  return { edges, events, running, swap };
}

describe('createEdges', () => {
  it('closes a gateway that is replaced when its last request has ended, and gives new ones to the next', async () => {
    const { edges, events, running, swap } = setUp();
    const requests = [edges.middleware(ctx), edges.middleware(ctx)];
    swap('second');
    requests.push(edges.middleware(ctx));
    assert.deepEqual(events, ['first begins', 'first begins', 'second begins']);
    running.give();
    await Promise.all(requests);
    assert.deepEqual(events.slice(3).sort(), ['first ends', 'first ends', 'first is closed', 'second ends']);
  });

  it('closes one that nobody uses at once', () => {
    const { events, swap } = setUp();
    swap('second');
    assert.deepEqual(events, ['first is closed']);
  });

  it('goes on with the one it has when the next cannot be made', () => {
    const { edges, events, swap } = setUp();
    assert.throws(() => swap('impossible'), /no such gateway/);
    assert.deepEqual([edges.snapshot(), events], ['first', []]);
  });

  it('closes the last one once, and waits for it', async () => {
    const { edges, events } = setUp();
    await Promise.all([edges.close(), edges.close()]);
    assert.deepEqual(events, ['first is closed']);
  });
});
