/** Calls to a service: repeated and aborted calls, their effect on the health of an address, and response bodies. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  type Attempt,
  type CallOptions,
  type Cluster,
  callUpstream,
  createClusters,
  type UpstreamRequest,
  wholeBody,
} from '#proxy';
import { createRetryRules } from '../../src/proxy/attempt-rules.ts';
import type { RequestBody } from '../../src/proxy/request-body.ts';
import { breakersOf, specOf } from '../support/clusters.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred } from '../support/waiting.ts';

const servers = testServers();

/**
 * Creates a cluster with one connection per address and no retries, which ejects an address after one failure. Its clock
 * stands still.
 */
function clusterOf(...services: readonly Served[]) {
  const clusters = createClusters({ random: () => 0, clock: () => 0 });
  servers.later(clusters.close);
  const outlierDetection = { consecutive5xx: 1, baseEjectionTimeMs: 60_000, maxEjectionPercent: 50 };
  const circuitBreakers = breakersOf({ maxConnections: 1, maxRetries: 0 });
  const spec = specOf(
    services.map(({ origin }) => origin),
    { outlierDetection, circuitBreakers },
  );
  return clusters.acquire(spec).cluster;
}

const post: UpstreamRequest = { method: 'POST', path: '/', headers: [], body: wholeBody('hello') };
const failover: CallOptions = { timeoutMs: 5000, repeat: 'failover' };
const never: CallOptions = { timeoutMs: 5000, repeat: 'never' };

/** Creates a stand-in for the response to the client. */
function clientOf({ destroyed = false } = {}) {
  return Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse;
}

async function startSilent() {
  const arrived = createDeferred();
  const closed = createDeferred();
  const served = await servers.tcp((socket) => void socket.once('data', arrived.resolve).once('close', closed.resolve));
  return { ...served, arrived: arrived.promise, closed: closed.promise };
}

const startReset = () => servers.tcp((socket) => void socket.once('data', () => socket.resetAndDestroy()));

describe('a call whose connection fails', () => {
  const idempotent: CallOptions = { timeoutMs: 5000, repeat: 'idempotent' };
  const get: UpstreamRequest = { method: 'GET', path: '/', headers: [], body: undefined };

  it('tries every other address while nothing was written, whatever its method', async () => {
    const upstream = await startUpstream(servers);
    const cluster = clusterOf(await servers.refusing(), await servers.refusing(), upstream);
    assert.equal((await callUpstream(cluster, post, idempotent)).head.status, 200);
    assert.equal(upstream.only().body, 'hello');
  });

  it('tries one address again when all refuse it, and then fails', async () => {
    const cluster = clusterOf(await servers.refusing(), await servers.refusing());
    const tried: string[] = [];
    const request = { ...post, onAttempt: (origin: string) => void tried.push(origin) };
    await assert.rejects(callUpstream(cluster, request, idempotent), { code: 'ECONNREFUSED' });
    assert.deepEqual([tried.length, new Set(tried).size], [3, 2]);
  });

  it('tries one other address after it may have arrived, if its method is idempotent', async () => {
    const upstream = await startUpstream(servers);
    assert.equal((await callUpstream(clusterOf(await startReset(), upstream), get, idempotent)).head.status, 200);
    for (const [request, ...before] of [
      [post, await startReset()],
      [get, await startReset(), await startReset()],
    ] as const)
      await assert.rejects(callUpstream(clusterOf(...before, upstream), request, idempotent), { code: 'ECONNRESET' });
    assert.equal(upstream.reached.length, 1);
  });

  it('does not use a connection that the service has just closed', async () => {
    let last: Socket | undefined;
    const upstream = await servers.http(async (req, res) => {
      last = req.socket;
      res.end('ok');
    });
    const cluster = clusterOf(upstream);
    for (let round = 0; round < 20; round += 1) {
      const { body } = await callUpstream(cluster, post, idempotent);
      await body.drain(5000);
      // The FIN has been sent, but our side has not read it yet.
      last?.end();
    }
  });
});

describe('a call after a response with Connection: close', () => {
  for (const connection of ['close', 'Close', 'X-Hop, close'])
    it(`prefers another address for a while (${connection})`, async () => {
      const stopping = await startUpstream(servers, (res) => void res.setHeader('Connection', connection).end());
      const other = await startUpstream(servers);
      const cluster = clusterOf(stopping, other);
      for (const { origin } of [stopping, other, other]) {
        const response = await callUpstream(cluster, post, never);
        await response.body.drain(5000);
        assert.equal(response.origin, origin);
      }
    });

  it('takes turns as usual if the request was a HEAD, on which the gateway itself closes the connection', async () => {
    const [first, second] = [await startUpstream(servers), await startUpstream(servers)];
    const cluster = clusterOf(first, second);
    const head = { ...post, method: 'HEAD', body: undefined };
    for (const [request, { origin }] of [
      [head, first],
      [post, second],
      [post, first],
    ] as const) {
      const response = await callUpstream(cluster, request, never);
      await response.body.drain(5000);
      assert.equal(response.origin, origin);
    }
  });
});

describe('the time-out of a call', () => {
  it('leaves time for a retry after a slow upload, because it starts at the end of the body', async () => {
    const statuses = [503, 200];
    const upstream = await startUpstream(servers, (res) => void res.writeHead(statuses.shift() ?? 500).end());
    const clusters = createClusters();
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([upstream.origin]));
    let nowMs = 0;
    let onEnd = () => {};
    const slow: RequestBody = {
      ...wholeBody('hello'),
      watch(watcher) {
        onEnd = watcher.onEnd;
      },
      buffer(done) {
        nowMs += 120_000;
        onEnd();
        done();
      },
    };
    const rules = createRetryRules({ retryOn: ['5xx'], numRetries: 1, perTryTimeoutMs: undefined, statusCodes: [] });
    const retries = { rules, random: () => 0, clock: () => nowMs, onRetry() {} };
    const options = { timeoutMs: 60_000, repeat: 'idempotent', retries } as const;
    const { head } = await callUpstream(cluster, { ...post, method: 'PUT', body: slow }, options);
    assert.equal(head.status, 200);
  });
});

describe('a call whose attempt has timed out', () => {
  it('is not repeated with a body that the attempt may still start to read', async () => {
    let attempts = 0;
    const waitsForConnection: Attempt = {
      origin: 'http://127.0.0.1:1',
      dispatch() {},
      isReused: () => false,
      reportOutcome() {},
      reportBody() {},
      reportSwitch() {},
      release() {},
    };
    const cluster: Cluster = {
      attempt() {
        attempts += 1;
        return waitsForConnection;
      },
      acquireRetry: () => () => {},
      isCrowded: () => false,
      createPaceMin: () => () => 0,
      snapshot: () => assert.fail('read'),
    };
    const streamed = { ...wholeBody(''), isWhole: () => false };
    const rules = createRetryRules({ retryOn: ['reset'], numRetries: 3, perTryTimeoutMs: 10, statusCodes: [] });
    const retries = { rules, random: () => 0, clock: () => 0, onRetry() {} };
    for (const [body, expected] of [
      [wholeBody('hello'), 4],
      [streamed, 1],
    ] as const) {
      attempts = 0;
      const call = callUpstream(
        cluster,
        { ...post, method: 'PUT', body },
        { timeoutMs: 0, repeat: 'idempotent', retries },
      );
      await assert.rejects(call, { code: 'ETIMEDOUT' });
      assert.equal(attempts, expected);
    }
  });
});

describe('a call with failover', () => {
  it('tries one other address, even for a POST, without counting as a retry', async () => {
    const upstream = await startUpstream(servers);
    const cluster = clusterOf(await servers.refusing(), upstream);
    const { head, origin } = await callUpstream(cluster, post, failover);
    assert.deepEqual([head.status, origin, upstream.only().body], [200, upstream.origin, 'hello']);
  });

  it('fails when the second address fails, when there is only one, and when it must not be repeated', async () => {
    const refusing = await servers.refusing();
    const upstream = await startUpstream(servers);
    const reset = await startReset();
    await assert.rejects(callUpstream(clusterOf(reset, await startReset(), upstream), post, failover), {
      code: 'ECONNRESET',
    });
    const single = clusterOf(refusing);
    await assert.rejects(callUpstream(single, post, failover), { code: 'ECONNREFUSED' });
    await assert.rejects(callUpstream(clusterOf(refusing, upstream), post, never), { code: 'ECONNREFUSED' });
    assert.deepEqual([single.snapshot().activeRequests, upstream.reached.length], [0, 0]);
  });
});

describe('a call that cannot open any file', () => {
  it('releases its slot, and does not count against the address', async () => {
    const upstream = await startUpstream(servers);
    const cluster = clusterOf(upstream);
    const cause = Object.assign(new Error('too many open files'), { code: 'ERR_INVALID_PACKAGE_CONFIG' });
    const dispatch = () => {
      throw cause;
    };
    const firstAttempt = Object.assign(cluster.attempt(), { dispatch });
    await assert.rejects(callUpstream(cluster, { ...post, firstAttempt }, failover), cause);
    const { activeRequests, addresses } = cluster.snapshot();
    assert.deepEqual([activeRequests, addresses[0]?.health], [0, 'unknown']);
  });
});

describe('an aborted call', () => {
  const healthOf = (cluster: ReturnType<typeof clusterOf>, { origin }: Served) =>
    cluster.snapshot().addresses.find((address) => address.origin === origin)?.health;

  it('does not count against the address if the client disconnected, and is not made if it did so before', async () => {
    const silent = await startSilent();
    const cluster = clusterOf(silent, await startSilent());
    const gone = clientOf({ destroyed: true });
    await assert.rejects(callUpstream(cluster, { ...post, client: gone }, failover), { code: 'ECONNRESET' });
    assert.equal(cluster.snapshot().isUsed, false);
    const client = clientOf();
    const call = callUpstream(cluster, { ...post, client }, failover);
    await silent.arrived;
    client.emit('close');
    await assert.rejects(call, { name: 'CallAborted', code: 'ECONNRESET' });
    await silent.closed;
    assert.deepEqual([healthOf(cluster, silent), cluster.snapshot().activeRequests], ['unknown', 0]);
  });

  it('counts against the address if it took too long', async () => {
    const silent = await startSilent();
    const cluster = clusterOf(silent, await startSilent());
    await assert.rejects(callUpstream(cluster, post, { ...failover, timeoutMs: 50 }), {
      name: 'CallAborted',
      code: 'ETIMEDOUT',
      message: 'no response within 50 ms',
    });
    assert.deepEqual([healthOf(cluster, silent), cluster.snapshot().activeRequests], ['ejected', 0]);
  });

  it('rejects a pending read of its response body', async () => {
    const half = await servers.tcp(
      (socket) => void socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')),
    );
    const client = clientOf();
    const { body } = await callUpstream(clusterOf(half), { ...post, client }, failover);
    const reading = body.read({ bytesMax: 100, timeoutMs: 0 });
    client.emit('close');
    await assert.rejects(reading, { code: 'ECONNRESET' });
  });
});

describe('a response body', () => {
  const bytes = 200_000;

  async function bodyOf(length: number) {
    const closed = createDeferred();
    const upstream = await startUpstream(servers, (res) => {
      res.socket?.once('close', closed.resolve);
      res.writeHead(200, { 'Content-Length': bytes }).write(Buffer.alloc(length, 'x'));
    });
    const { body } = await callUpstream(clusterOf(upstream), post, never);
    return { body, closed: closed.promise };
  }

  it('is read completely within its limits, immediately if it has already arrived', async () => {
    const { body } = await bodyOf(bytes);
    assert.equal((await body.read({ bytesMax: bytes, timeoutMs: 5000 })).length, bytes);
    const { body: small } = await callUpstream(clusterOf(await startUpstream(servers)), post, never);
    assert.equal(String(await small.read({ bytesMax: 2, timeoutMs: 0 })), 'ok');
  });

  it('closes its connection when it is too large or too late', async () => {
    const large = await bodyOf(bytes);
    await assert.rejects(large.body.read({ bytesMax: bytes - 1, timeoutMs: 0 }), RangeError);
    const late = await bodyOf(10);
    await assert.rejects(late.body.read({ bytesMax: bytes, timeoutMs: 20 }), { code: 'ETIMEDOUT' });
    const undrained = await bodyOf(10);
    await assert.rejects(undrained.body.drain(20), { code: 'ETIMEDOUT' });
    await Promise.all([late.closed, undrained.closed]);
  });

  it('is drained to its end, however long, and leaves the connection open for the next request', async () => {
    const sockets = new Set<unknown>();
    const upstream = await servers.http((req, res) => {
      sockets.add(req.socket);
      res.end(Buffer.alloc(bytes));
    });
    const cluster = clusterOf(upstream);
    for (let turn = 0; turn < 2; turn += 1) await (await callUpstream(cluster, post, never)).body.drain(5000);
    assert.equal(sockets.size, 1);
    assert.equal(cluster.snapshot().activeRequests, 0);
  });
});
