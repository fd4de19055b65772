/** Retries: which failures are retried, how often and how soon, and never after a possible side effect. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import type { Mapping, RetryCondition, RetryPolicy } from '#config';
import { createClusters } from '#proxy';
import { backOffMs, createRetryRules, pushbackMs, retryAfterMs } from '../../src/proxy/attempt-rules.ts';
import { breakersOf } from '../support/clusters.ts';
import { type EdgeOptions, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { createDeferred } from '../support/waiting.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();

const policyOf = (...retryOn: readonly RetryCondition[]): RetryPolicy => ({
  retryOn,
  numRetries: 1,
  perTryTimeoutMs: undefined,
  statusCodes: [418],
});

describe('the rules of a retry policy', () => {
  const failuresBy = {
    connect: { code: 'ECONNREFUSED' },
    refused: { code: 'HTTP2_REFUSED' },
    reset: { code: 'ECONNRESET' },
    timeout: { code: 'ETIMEDOUT' },
    never: { code: 'OVERFLOW' },
  };

  function check(on: RetryCondition, statuses: readonly number[], failed: readonly (keyof typeof failuresBy)[]) {
    it(`cover statuses (${statuses.join(', ')}) and failures (${failed.join(', ')}) for ${on}`, () => {
      const rules = createRetryRules(policyOf(on));
      const found = [200, 400, 404, 409, 418, 429, 500, 501, 502, 503, 504, 599].filter(rules.isRetriableStatus);
      assert.deepEqual(found, statuses);
      const kinds = Object.entries(failuresBy).filter(([, cause]) => rules.isRetriableFailure(cause));
      assert.deepEqual(Object.keys(Object.fromEntries(kinds)), failed);
    });
  }

  check('5xx', [500, 501, 502, 503, 504, 599], ['connect', 'refused', 'reset', 'timeout']);
  check('gateway-error', [502, 503, 504], ['connect', 'refused', 'reset', 'timeout']);
  check('reset', [], ['connect', 'refused', 'reset', 'timeout']);
  check('connect-failure', [], ['connect']);
  check('refused-stream', [], ['refused']);
  check('unavailable', [], ['connect', 'refused', 'reset']);
  check('deadline-exceeded', [], ['timeout']);
  check('resource-exhausted', [], []);
  check('retriable-4xx', [409], []);
  check('retriable-status-codes', [418], []);

  it('cover the statuses of gRPC that they name', () => {
    const { isRetriableGrpcStatus } = createRetryRules(policyOf('unavailable', 'cancelled', '5xx'));
    const codes = Array.from({ length: 17 }, (_, code) => code);
    assert.deepEqual(codes.filter(isRetriableGrpcStatus), [1, 14]);
  });

  it('wait as long as a gRPC service asks for, and forever for anything but milliseconds', () => {
    assert.deepEqual([undefined, '0', '250'].map(pushbackMs), [0, 0, 250]);
    for (const value of ['-1', '', '1.5', 'soon', '9999999999'])
      assert.equal(pushbackMs(value), Number.POSITIVE_INFINITY);
  });

  it('retry nothing without a policy', () => {
    const rules = createRetryRules(undefined);
    assert.equal(rules.retriesMax, 0);
    assert.ok(!rules.isRetriableStatus(503) && !rules.isRetriableFailure({ code: 'ECONNREFUSED' }));
  });

  it('wait for a random time that grows up to a maximum', () => {
    const most = [1, 2, 3, 4, 5, 60].map((retry) => backOffMs(retry, () => 1));
    assert.deepEqual(most, [25, 75, 175, 250, 250, 250]);
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), random, (retry, drawn) => {
        const pauseMs = backOffMs(retry, () => drawn);
        assert.ok(pauseMs >= 0 && pauseMs < 250.1);
      }),
    );
  });

  it('accept Retry-After only in seconds', () => {
    assert.deepEqual([retryAfterMs('2'), retryAfterMs('0')], [2000, 0]);
    for (const value of [undefined, '', '-1', '1.5', 'soon', 'Wed, 21 Oct 2026 07:28:00 GMT', '9999999'])
      assert.equal(retryAfterMs(value), undefined);
  });
});

const responding = (status: number, ...headers: readonly string[]) => {
  const head = [`HTTP/1.1 ${status} Odd`, ...headers, 'Content-Length: 2', '', 'ok'];
  return (socket: Socket) => void socket.write(head.join('\r\n'));
};
const reset = (socket: Socket) => void socket.resetAndDestroy();
const silent = () => {};

/** Handles each request with the next of `turns`, and all further requests with the last. */
async function startService(...turns: readonly ((socket: Socket) => void)[]) {
  const requests: string[] = [];
  const served = await servers.tcp((socket) => {
    socket.on('data', (bytes) => {
      turns[Math.min(requests.push(String(bytes)), turns.length) - 1]?.(socket);
    });
  });
  return { ...served, requests };
}

describe('a retry', () => {
  async function startEdgeTo(to: readonly Served[], mapping: Partial<Mapping>, more: EdgeOptions = {}) {
    const targets = { hotel: { kind: 'remote', origins: () => to.map(({ origin }) => origin), path: '' } as const };
    const edge = await startEdge(servers, { mapping: { timeoutMs: 5000, ...mapping }, targets, ...more });
    return { ...edge, send: (request = rawRequest('GET /v1/hotels')) => sendRaw(edge.port, request) };
  }

  const put = rawRequest('PUT /v1/hotels', ['Content-Length: 5'], 'hello');

  interface Expected {
    readonly status: number;
    readonly requests: number;
  }

  /** Sends one request through a gateway to a service that handles its requests with `turns`. */
  function check(
    what: string,
    turns: readonly ((socket: Socket) => void)[],
    mapping: Partial<Mapping>,
    expected: Expected,
    request?: string,
  ) {
    it(what, async () => {
      const service = await startService(...turns);
      const { send, log } = await startEdgeTo([service], mapping);
      const response = await send(request);
      assert.deepEqual({ status: statusOf(response), requests: service.requests.length }, expected);
      assert.doesNotMatch(response, /X-Turn: 1/);
      if (expected.requests > 1) assert.equal(service.requests[0], service.requests[1]);
      if (expected.status === 200) assert.deepEqual(log, []);
    });
  }

  const on5xx = { retryPolicy: policyOf('5xx') };
  const onGatewayError = { retryPolicy: policyOf('gateway-error') };
  const once = { status: 503, requests: 1 };
  const twice = { status: 200, requests: 2 };
  const failing = responding(503, 'X-Turn: 1');
  const waiting = (seconds: number) => [responding(503, `Retry-After: ${seconds}`), responding(200)];

  check('hides a reset from the client', [reset, responding(200)], on5xx, twice);
  check('hides a retriable status from the client', [failing, responding(200)], on5xx, twice);
  check(
    'happens once: if it fails too, the client gets its response',
    [reset, responding(503), responding(200)],
    on5xx,
    {
      status: 503,
      requests: 2,
    },
  );
  check('does not happen for a status that the policy does not include', [responding(500)], onGatewayError, {
    status: 500,
    requests: 1,
  });
  for (const method of ['POST', 'PATCH'])
    check(`does not happen for ${method}`, [responding(503)], on5xx, once, rawRequest(`${method} /v1/hotels`));
  check('sends a small body again, because it is buffered', [reset, responding(200)], on5xx, twice, put);
  const large = rawRequest('PUT /v1/hotels', ['Content-Length: 70000'], 'x'.repeat(70_000));
  check('does not happen once the body has been read', [reset], on5xx, { status: 502, requests: 1 }, large);
  check('waits for the time in Retry-After', waiting(0), on5xx, twice);
  check('does not happen when Retry-After exceeds the deadline', waiting(6), on5xx, once);
  check('does not happen when Retry-After is more than 10 seconds', waiting(11), { ...on5xx, timeoutMs: 0 }, once);
  check(
    'follows an attempt that exceeds its own time-out',
    [silent, responding(200)],
    {
      retryPolicy: { ...policyOf('reset'), perTryTimeoutMs: 1000 },
    },
    twice,
  );
  check(
    'needs a free retry slot',
    [responding(503)],
    {
      ...on5xx,
      circuitBreakers: breakersOf({ maxRetries: 0 }),
    },
    once,
  );

  it('prefers another address', async () => {
    const [bad, good] = [await startService(responding(503)), await startService(responding(200))];
    const { send } = await startEdgeTo([bad, good, bad], onGatewayError);
    for (let turn = 0; turn < 4; turn += 1) assert.equal(statusOf(await send()), 200);
  });

  it('sends the body again if the connection was refused before it was read', async () => {
    const service = await startService(responding(200));
    const to = [await servers.refusing(), service];
    const { send } = await startEdgeTo(to, { retryPolicy: policyOf('connect-failure') });
    for (let turn = 0; turn < 2; turn += 1) assert.equal(statusOf(await send(put)), 200);
    assert.match(service.requests.join(''), /\r\n\r\nhello/);
  });

  const flood = (socket: Socket) => {
    const more = () => void (socket.write('x'.repeat(10_000)) ? setImmediate(more) : socket.once('drain', more));
    more();
  };
  const trickle = (socket: Socket) => {
    const timer = setInterval(() => socket.write('x'), 100);
    socket.once('close', () => clearInterval(timer));
  };
  for (const [how, sendBody] of [
    ['endless', flood],
    ['slow', trickle],
  ] as const)
    it(`does not wait for the rest of a first response that is ${how}, and closes its connection`, async () => {
      const gone = createDeferred();
      const first = (socket: Socket) => {
        socket.write('HTTP/1.1 503 Odd\r\n\r\n');
        socket.once('close', gone.resolve);
        sendBody(socket);
      };
      const { send } = await startEdgeTo([await startService(first, responding(200))], on5xx);
      assert.equal(statusOf(await send()), 200);
      await gone.promise;
    });

  it('happens within the deadline of the whole call', async () => {
    const service = await startService(silent);
    const retryPolicy = { ...policyOf('reset'), numRetries: 50, perTryTimeoutMs: 50 };
    const { send } = await startEdgeTo([service], { timeoutMs: 500, retryPolicy });
    assert.equal(statusOf(await send()), 504);
    assert.ok(service.requests.length > 1 && service.requests.length < 12);
  });

  for (const earlier of [[], [reset]])
    it(`does not happen for a client that has disconnected after ${earlier.length} retries, and frees its slots`, async () => {
      const [reached, finished] = [createDeferred(), createDeferred()];
      const service = await startService(...earlier, reached.resolve);
      const clusters = createClusters();
      const { origin } = await startEdgeTo([service], on5xx, {
        clusters,
        host: [(_ctx, next) => next().finally(finished.resolve)],
      });
      const leaving = new AbortController();
      const pending = fetch(`${origin}/v1/hotels`, { signal: leaving.signal }).catch(() => {});
      await reached.promise;
      leaving.abort();
      await Promise.all([pending, finished.promise]);
      assert.equal(service.requests.length, earlier.length + 1);
      const [cluster] = clusters.snapshot();
      assert.deepEqual([cluster?.activeRequests, cluster?.activeRetries], [0, 0]);
    });
});

describe('a connection that the service closes as it is reused', () => {
  /**
   * The service responds to the first request on each connection, and resets the connection at the next one. The first
   * responses wait for a request on each of `connections`.
   */
  async function startResetting(connections = 1) {
    const methods: string[] = [];
    const waiting: Socket[] = [];
    const upstream = await servers.tcp((socket) => {
      waiting.push(socket);
      socket.on('data', (bytes) => {
        methods.push(String(bytes).split(' ', 1)[0] ?? '');
        if (!waiting.includes(socket)) reset(socket);
        else if (methods.length >= connections) waiting.splice(0).forEach(responding(200));
      });
    });
    const { port } = await startEdge(servers, { upstream });
    return { methods, send: (request = rawRequest('GET /v1/hotels')) => sendRaw(port, request) };
  }

  function check(what: string, status: number, request: string, expected: readonly string[]) {
    it(what, async () => {
      const { methods, send } = await startResetting();
      await send();
      assert.equal(statusOf(await send(request)), status);
      assert.deepEqual(methods, ['GET', ...expected]);
    });
  }

  it('is replaced by a new one, even if there are other idle connections', async () => {
    const { methods, send } = await startResetting(2);
    await Promise.all([send(), send()]);
    assert.equal(statusOf(await send()), 200);
    assert.equal(methods.length, 4);
  });

  check('is replaced for an idempotent request', 200, rawRequest('GET /v1/hotels'), ['GET', 'GET']);
  check('fails a POST', 502, rawRequest('POST /v1/hotels'), ['POST']);
  const put = rawRequest('PUT /v1/hotels', ['Content-Length: 5'], 'hello');
  check('is replaced for a PUT with a small body', 200, put, ['PUT', 'PUT']);
  const large = rawRequest('PUT /v1/hotels', ['Content-Length: 70000'], 'x'.repeat(70_000));
  check('fails a PUT whose body is not buffered', 502, large, ['PUT']);

  it('is replaced once, by a new connection, even if there is another idle one', async () => {
    const waiting: Socket[] = [];
    const requestsOf: number[] = [];
    const upstream = await servers.tcp((socket) => {
      const index = requestsOf.push(0) - 1;
      socket.on('data', () => {
        requestsOf[index] = (requestsOf[index] ?? 0) + 1;
        if (index > 1 || requestsOf[index] > 1) reset(socket);
        else if (waiting.push(socket) === 2) waiting.forEach(responding(200));
      });
    });
    const { port } = await startEdge(servers, { upstream });
    const get = () => sendRaw(port, rawRequest('GET /v1/hotels'));
    await Promise.all([get(), get()]);
    assert.equal(statusOf(await get()), 502);
    assert.deepEqual(requestsOf.toSorted(), [1, 1, 2]);
  });
});
