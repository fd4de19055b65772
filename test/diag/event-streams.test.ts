/** Streams of events: bounded in number, in length and in what waits for a slow reader. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { mock } from 'node:test';
import { createEventStreams, type EventStreams, type EventStreamsOptions } from '../../src/diag/events.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';
import { readEvents } from '../support/wire/event-reader.ts';

describe('streams of events', () => {
  const servers = testServers();

  /** `read` says how often it was asked, and for what. */
  async function setUp(options: Partial<EventStreamsOptions> = {}) {
    const asked: string[] = [];
    const state = { generation: 1, streams: 0 };
    const streams: EventStreams = createEventStreams({
      read({ filter }) {
        asked.push(filter);
        return `${asked.length} ${filter}`;
      },
      generation: () => state.generation,
      intervalMs: 5,
      ...options,
    });
    servers.later(streams.close);
    const served = await servers.http((req, res) => {
      const filter = (req.url ?? '').slice(1);
      const opened = streams.open({ filter, offset: 0 }, res, filter);
      if (opened !== 'open') return void res.writeHead(503).end(`full for ${opened}`);
      state.streams += 1;
      res.once('close', () => {
        state.streams -= 1;
      });
    });
    return { ...served, asked, state, streams, look: (filter = '') => readEvents(`${served.origin}/${filter}`) };
  }

  it('begin with an event, and go on with one each round, under numbers that grow', async () => {
    const { look } = await setUp();
    const { next } = await look('x');
    const ids: number[] = [];
    for (let seen = 0; seen < 3; seen += 1) {
      const { id, event, retry, data } = (await next()) ?? assert.fail('it ended');
      assert.deepEqual([event, retry, data], ['diagnostics', '5', `${id} x`]);
      ids.push(Number(id));
    }
    assert.deepEqual(ids, [1, 2, 3]);
  });

  it('read once a round for all who ask for the same', async () => {
    const { look } = await setUp();
    const readers = [await look('a'), await look('a'), await look('b')] as const;
    const seen = readers.map(() => new Map<string, string>());
    const areShared = () => [...(seen[0]?.keys() ?? [])].some((id) => seen[1]?.has(id));
    while (!areShared()) {
      for (const [index, { next }] of readers.entries()) {
        const { id = '', data = '' } = (await next()) ?? assert.fail('it ended');
        seen[index]?.set(id, data);
      }
    }
    assert.ok([...(seen[2]?.entries() ?? [])].every(([id, data]) => data.endsWith(' b') && !seen[0]?.has(id)));
  });

  it('read nothing without subscribers, and have no timer then', async () => {
    const [set, clear] = [mock.method(globalThis, 'setTimeout'), mock.method(globalThis, 'clearTimeout')];
    servers.later(() => mock.restoreAll());
    const { look, asked, state } = await setUp({ intervalMs: 3_600_000 });
    const own = () => set.mock.calls.filter(({ arguments: [, delayMs] }) => delayMs === 3_600_000);
    const { next, leave } = await look();
    await next();
    leave();
    await eventually(() => assert.equal(state.streams, 0));
    assert.ok(clear.mock.calls.some(({ arguments: [timer] }) => timer === own()[0]?.result));
    await look();
    assert.deepEqual([own().length, asked.length], [2, 2]);
  });

  it('pause between two readings for other work, three times as long as a reading took', async () => {
    const took: string[] = [];
    let nowMs = 0;
    const { look } = await setUp({
      clock: () => nowMs,
      read({ filter }) {
        took.push(filter);
        setImmediate(() => took.push(''));
        nowMs += 7;
        return '';
      },
    });
    const readers = [await look('a'), await look('b'), await look('c')];
    const set = mock.method(globalThis, 'setTimeout');
    servers.later(() => mock.restoreAll());
    // Up to here, a stream that opens may be read for in the same turn as a round.
    took.splice(0);
    for (let round = 0; round < 3; round += 1) for (const { next } of readers) await next();
    assert.ok(took.some((filter) => filter !== ''));
    assert.ok(took.every((filter, index) => filter === '' || !took[index - 1]));
    const rests = set.mock.calls.filter(({ arguments: [, delayMs] }) => delayMs === 21);
    assert.ok(rests.length > 3);
  });

  it('are as many as there may be, and another when one has left', async () => {
    const { look, state } = await setUp({ streamsMax: 2 });
    const [first] = [await look(), await look()];
    const refused = await look();
    assert.equal(refused.status, 503);
    first.leave();
    await eventually(() => assert.equal(state.streams, 1));
    assert.equal((await look()).status, 200);
  });

  it('end of themselves when they have lasted long enough, whole', async () => {
    const { look, state } = await setUp({ lifeMs: 20 });
    const { next } = await look();
    let events = 0;
    while ((await next()) !== undefined) events += 1;
    assert.ok(events > 1);
    await eventually(() => assert.equal(state.streams, 0));
  });

  it('end with the event that tells of another configuration', async () => {
    const { look, state } = await setUp({ read: () => `generation ${state.generation}` });
    const { next } = await look();
    await next();
    state.generation = 2;
    const told: (string | undefined)[] = [];
    for (let event = await next(); event !== undefined; event = await next()) told.push(event.data);
    assert.equal(told.at(-1), 'generation 2');
    assert.equal(told.filter((data) => data === 'generation 2').length, 1);
  });

  it('end at once when they are closed, and none begins after that', async () => {
    const { look, streams } = await setUp({ intervalMs: 60_000 });
    const { next } = await look();
    await next();
    streams.close();
    assert.equal(await next(), undefined);
    assert.equal((await look()).status, 503);
  });

  it('leave rounds out for a reader that does not take what it was sent, and cut it off in the end', async () => {
    const bytes = 8 * 1024 * 1024;
    const { port, asked, state, look } = await setUp({ read: ({ filter }) => read(filter), lifeMs: 150 });
    function read(filter: string): string {
      asked.push(filter);
      return filter === 'slow' ? 'x'.repeat(bytes) : '';
    }
    const socket = connect(port, '127.0.0.1');
    servers.later(() => socket.destroy());
    socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    socket.pause();
    await eventually(() => assert.equal(state.streams, 1));
    const { next } = await look('quick');
    for (let count = 0; count < 10; count += 1) await next();
    assert.equal(asked.filter((filter) => filter === 'slow').length, 1);
    await eventually(() => assert.equal(state.streams, 0));
  });

  it('break off when nothing can be read any more, and the others go on', async () => {
    let isBroken = false;
    const { look } = await setUp({
      read({ filter }) {
        if (isBroken && filter === 'bad') throw new Error('broken');
        return filter;
      },
    });
    const [bad, good] = [await look('bad'), await look('good')];
    isBroken = true;
    await assert.rejects(async () => {
      while ((await bad.next()) !== undefined);
    });
    for (let count = 0; count < 5; count += 1) assert.equal((await good.next())?.data, 'good');
  });
});
