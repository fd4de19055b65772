/** The connection to a rate-limit service that dies, stays away and comes back, under traffic. */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { connectRateLimit, type RateLimitClient } from '#ratelimit';
import { openChannel } from '../../src/ratelimit/grpc-channel.ts';
import { descriptor } from '../support/limits.ts';
import { type RateLimitStranger, startRateLimitStranger } from '../support/wire/rate-limit-stranger.ts';

const request = { domain: 'd', descriptors: [descriptor('k=v')] };
const ok = { overallCode: 1 };

describe('a rate-limit service that is killed and restarted under traffic', () => {
  const time = { nowMs: 0 };
  const strangers: RateLimitStranger[] = [];
  let client: RateLimitClient;
  let connects: number;
  let hold: boolean;

  async function start(port = 0): Promise<RateLimitStranger> {
    const stranger = await startRateLimitStranger(() => (hold ? new Promise<object>(() => {}) : ok), port);
    strangers.push(stranger);
    return stranger;
  }

  beforeEach(() => {
    time.nowMs = 0;
    connects = 0;
    hold = false;
  });
  afterEach(async () => {
    await client.close();
    for (const stranger of strangers.splice(0)) stranger.stop();
  });

  function connect(port: number): void {
    client = connectRateLimit({
      target: () => {
        connects += 1;
        return { host: '127.0.0.1', port };
      },
      timeoutMs: 5_000,
      clock: () => time.nowMs,
      random: () => 0,
    });
  }

  /** What becomes of so many calls at once; `refused` are those that never left the process. */
  async function outcomes(calls: number) {
    const counts = { answered: 0, failed: 0, refused: 0 };
    const ask = () =>
      client.shouldRateLimit(request).then(
        () => (counts.answered += 1),
        ({ message }: Error) => (counts[/it is down/.test(message) ? 'refused' : 'failed'] += 1),
      );
    await Promise.all(Array.from({ length: calls }, ask));
    return { ...counts, connects };
  }

  it('costs the calls that are under way, then one call for each try, until it is back', async () => {
    const first = await start();
    connect(first.port);
    assert.deepEqual(await outcomes(50), { answered: 50, failed: 0, refused: 0, connects: 1 });

    hold = true;
    const underWay = outcomes(50);
    setImmediate(first.stop);
    assert.deepEqual(await underWay, { answered: 0, failed: 50, refused: 0, connects: 1 });

    assert.deepEqual(await outcomes(50), { answered: 0, failed: 0, refused: 50, connects: 1 });
    time.nowMs = 99;
    assert.deepEqual(await outcomes(50), { answered: 0, failed: 0, refused: 50, connects: 1 });
    time.nowMs = 100;
    assert.deepEqual(await outcomes(50), { answered: 0, failed: 1, refused: 49, connects: 2 });

    hold = false;
    await start(first.port);
    time.nowMs = 299;
    assert.deepEqual(await outcomes(50), { answered: 0, failed: 0, refused: 50, connects: 2 });
    time.nowMs = 300;
    assert.deepEqual(await outcomes(50), { answered: 1, failed: 0, refused: 49, connects: 3 });
    assert.deepEqual(await outcomes(50), { answered: 50, failed: 0, refused: 0, connects: 3 });
  });
});

describe('a connection to a rate-limit service', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
  afterEach(() => mock.timers.reset());

  /** The host's name is never found: such a connect goes on for as long as it is let. */
  function openNowhere(timeoutMs: number) {
    let connects = 0;
    const channel = openChannel({
      target: () => {
        connects += 1;
        return { host: 'nowhere.example', port: 1 };
      },
      path: '/',
      timeoutMs,
      clock: Date.now,
      random: () => 0,
      lookup: () => {},
    });
    return { channel, connects: () => connects };
  }

  it('is given up when it is not there within a second, and the call learns it', async () => {
    const { channel, connects } = openNowhere(5_000);
    const answer = channel.call(Buffer.alloc(0));
    mock.timers.tick(1_000);
    assert.match(JSON.stringify(await answer), /"lost".*no connection within 1000 ms/);
    assert.match(JSON.stringify(await channel.call(Buffer.alloc(0))), /it is down.*no connection within 1000 ms/);
    assert.equal(connects(), 1);
    await channel.close();
  });

  it('may take longer than a call waits for it: the next call finds it as far as it got', async () => {
    const { channel, connects } = openNowhere(100);
    for (let waited = 0; waited < 900; waited += 100) {
      const answer = channel.call(Buffer.alloc(0));
      mock.timers.tick(100);
      assert.deepEqual(await answer, { kind: 'late', reason: 'it said nothing for 100 ms' });
    }
    assert.equal(connects(), 1);
    const last = channel.call(Buffer.alloc(0));
    mock.timers.tick(100);
    assert.equal((await last).kind, 'lost');
    assert.match(JSON.stringify(await channel.call(Buffer.alloc(0))), /it is down/);
    assert.equal(connects(), 1);
    await channel.close();
  });
});
