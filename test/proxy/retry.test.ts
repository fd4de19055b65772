/** Second attempts: after which failures, how many, how soon, and never where the first one may have had an effect. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import type { RetryCondition, RetryPolicy } from '#config';
import { createClusters } from '#proxy';
import { backOffMs, createRetryRules, retryAfterMs } from '../../src/proxy/retry.ts';
import { type EdgeOptions, mappingOf, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { createSignal } from '../support/waiting.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const policyOf = (...retryOn: readonly RetryCondition[]): RetryPolicy => ({
  retryOn,
  numRetries: 1,
  perTryTimeoutMs: undefined,
  statusCodes: [418],
});

const statusOf = (answer: string) => Number(answer.split(' ')[1]);

describe('the rules of a retry policy', () => {
  const failuresBy = {
    connect: { code: 'ECONNREFUSED' },
    reset: { code: 'ECONNRESET' },
    timeout: { code: 'ETIMEDOUT' },
    never: { code: 'OVERFLOW' },
  };

  function check(on: RetryCondition, statuses: readonly number[], failed: readonly (keyof typeof failuresBy)[]) {
    it(`retry on ${on} the statuses ${statuses.join(', ') || '(none)'} and the failures ${failed.join(', ') || '(none)'}`, () => {
      const rules = createRetryRules(policyOf(on));
      const found = [200, 400, 404, 409, 418, 429, 500, 501, 502, 503, 504, 599].filter(rules.isRetriableStatus);
      assert.deepEqual(found, statuses);
      const kinds = Object.entries(failuresBy).filter(([, cause]) => rules.isRetriableFailure(cause));
      assert.deepEqual(
        kinds.map(([kind]) => kind),
        failed,
      );
    });
  }

  check('5xx', [500, 501, 502, 503, 504, 599], ['connect', 'reset', 'timeout']);
  check('gateway-error', [502, 503, 504], ['connect', 'reset', 'timeout']);
  check('reset', [], ['connect', 'reset', 'timeout']);
  check('connect-failure', [], ['connect']);
  check('refused-stream', [], []);
  check('retriable-4xx', [409], []);
  check('retriable-status-codes', [418], []);

  it('without a policy retry nothing', () => {
    const rules = createRetryRules(undefined);
    assert.equal(rules.retriesMax, 0);
    assert.ok(!rules.isRetriableStatus(503) && !rules.isRetriableFailure({ code: 'ECONNREFUSED' }));
  });

  it('pause for a random time that grows to a bound', () => {
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

  it('read Retry-After in seconds alone', () => {
    assert.equal(retryAfterMs('2'), 2000);
    assert.equal(retryAfterMs('0'), 0);
    for (const value of [undefined, '', '-1', '1.5', 'soon', 'Wed, 21 Oct 2026 07:28:00 GMT', '9999999'])
      assert.equal(retryAfterMs(value), undefined);
  });
});

describe('a second attempt', () => {
  const servers = testServers();

  /** Behaves in turn, by connection. */
  async function startService(...turns: readonly ((socket: Socket) => void)[]) {
    const requests: string[] = [];
    const served = await servers.tcp((socket) => {
      socket.on('data', (bytes) => {
        turns[Math.min(requests.push(String(bytes)), turns.length) - 1]?.(socket);
      });
    });
    return { ...served, requests };
  }

  const answering = (status: number, ...headers: readonly string[]) => {
    const head = [`HTTP/1.1 ${status} Odd`, ...headers, 'Content-Length: 2', '', 'ok'];
    return (socket: Socket) => void socket.write(head.join('\r\n'));
  };
  const reset = (socket: Socket) => void socket.resetAndDestroy();

  async function startEdgeTo(to: readonly Served[], retryPolicy: RetryPolicy | undefined, more: EdgeOptions = {}) {
    const mapping = mappingOf({ retryPolicy, timeoutMs: 1000 });
    const origins = () => to.map(({ origin }) => origin);
    const targets = { hotel: { kind: 'remote', origins, path: '' } as const };
    return startEdge(servers, { mappings: [mapping], targets, ...more });
  }

  it('follows a failure that the policy names, and the client learns nothing of the first', async () => {
    for (const turn of [reset, answering(503)]) {
      const service = await startService(turn, answering(200));
      const edge = await startEdgeTo([service], policyOf('5xx'));
      const answer = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
      assert.equal(statusOf(answer), 200);
      assert.equal(service.requests.length, 2);
      assert.equal(service.requests[0], service.requests[1]);
      assert.deepEqual(edge.log, []);
    }
  });

  it('prefers another address', async () => {
    const [bad, good] = [await startService(answering(503)), await startService(answering(200))];
    const edge = await startEdgeTo([bad, good, bad], policyOf('gateway-error'));
    for (let turn = 0; turn < 4; turn += 1)
      assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), 200);
  });

  it('is the last one: its failure is what the client gets', async () => {
    const service = await startService(reset, answering(503, 'X-Turn: 2'), answering(200));
    const edge = await startEdgeTo([service], policyOf('5xx'));
    assert.match(await sendRaw(edge.port, rawRequest('GET /v1/hotels')), /^HTTP\/1\.1 503 [\s\S]*X-Turn: 2/);
    assert.equal(service.requests.length, 2);
  });

  it('is not made for a method that may have had an effect, nor for a status that is not named', async () => {
    for (const [method, status] of [
      ['POST', 503],
      ['PATCH', 503],
      ['GET', 500],
    ] as const) {
      const service = await startService(answering(status), answering(200));
      const edge = await startEdgeTo([service], policyOf('gateway-error'));
      assert.equal(statusOf(await sendRaw(edge.port, rawRequest(`${method} /v1/hotels`))), status);
      assert.equal(service.requests.length, 1);
    }
  });

  it('is made with a body only when the first did not touch it', async () => {
    const put = rawRequest('PUT /v1/hotels', ['Content-Length: 5'], 'hello');
    const service = await startService(reset, answering(200));
    const edge = await startEdgeTo([service], policyOf('5xx'));
    assert.equal(statusOf(await sendRaw(edge.port, put)), 502);
    const reached = await startService(answering(200));
    const other = await startEdgeTo([await servers.refusing(), reached], policyOf('connect-failure'));
    for (let turn = 0; turn < 2; turn += 1) assert.equal(statusOf(await sendRaw(other.port, put)), 200);
    assert.match(reached.requests.join(''), /\r\n\r\nhello/);
  });

  it('waits as long as Retry-After asks, up to the deadline and up to 10 seconds; otherwise the response is the answer', async () => {
    for (const [timeoutMs, seconds, status] of [
      [1000, 0, 200],
      [1000, 2, 503],
      [0, 11, 503],
    ] as const) {
      const service = await startService(answering(503, `Retry-After: ${seconds}`), answering(200));
      const mappings = [mappingOf({ retryPolicy: policyOf('5xx'), timeoutMs })];
      const edge = await startEdgeTo([service], undefined, { mappings });
      assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), status);
    }
  });

  it('does not wait for the rest of the first answer, however long that is', async () => {
    const gone = createSignal();
    const endless = (socket: Socket) => {
      socket.write('HTTP/1.1 503 Odd\r\n\r\n');
      const more = () => void (socket.write('x'.repeat(10_000)) ? setImmediate(more) : socket.once('drain', more));
      socket.once('close', gone.give);
      more();
    };
    const service = await startService(endless, answering(200));
    const edge = await startEdgeTo([service], policyOf('5xx'));
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), 200);
    await gone.given;
  });

  it('follows an attempt that is too slow, inside the time of the whole', async () => {
    const service = await startService(() => {}, answering(200));
    const edge = await startEdgeTo([service], { ...policyOf('reset'), perTryTimeoutMs: 50 });
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), 200);
    const silent = await startService(() => {});
    const hopeless = await startEdgeTo(
      [silent],
      { ...policyOf('reset'), numRetries: 50, perTryTimeoutMs: 50 },
      {
        mappings: [
          mappingOf({ timeoutMs: 200, retryPolicy: { ...policyOf('reset'), numRetries: 50, perTryTimeoutMs: 50 } }),
        ],
      },
    );
    assert.equal(statusOf(await sendRaw(hopeless.port, rawRequest('GET /v1/hotels'))), 504);
    assert.ok(silent.requests.length > 1 && silent.requests.length < 6);
  });

  it('needs a place among the retries under way', async () => {
    const service = await startService(answering(503), answering(200));
    const circuitBreakers = { maxConnections: 9, maxPendingRequests: 9, maxRequests: 9, maxRetries: 0 };
    const mappings = [mappingOf({ retryPolicy: policyOf('5xx'), circuitBreakers })];
    const edge = await startEdgeTo([service], undefined, { mappings });
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), 503);
    assert.equal(service.requests.length, 1);
  });

  it('is not made for a client that has left', async () => {
    const [reached, finished] = [createSignal(), createSignal()];
    let hold: ServerResponse | undefined;
    const upstream = await servers.http((_req, res) => {
      hold = res;
      reached.give();
    });
    const clusters = createClusters();
    servers.later(clusters.close);
    const edge = await startEdgeTo([upstream], policyOf('5xx'), {
      clusters,
      host: [(_ctx, next) => next().finally(() => finished.give())],
    });
    const leaving = new AbortController();
    const asked = fetch(`${edge.origin}/v1/hotels`, { signal: leaving.signal }).catch(() => {});
    await reached.given;
    leaving.abort();
    await Promise.all([asked, finished.given]);
    assert.ok(hold !== undefined);
    assert.equal(clusters.snapshot()[0]?.activeRequests, 0);
  });
});

describe('a connection that the service closes as it is used again', () => {
  const servers = testServers();

  /** Answers the first request of each connection, and resets it at the second. */
  async function startHasty() {
    const requests: string[] = [];
    const served = await servers.tcp((socket) => {
      let turn = 0;
      socket.on('data', (bytes) => {
        requests.push(String(bytes).split(' ', 1)[0] ?? '');
        turn += 1;
        if (turn === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.resetAndDestroy();
      });
    });
    const origins = () => [served.origin];
    const edge = await startEdge(servers, { targets: { hotel: { kind: 'remote', origins, path: '' } } });
    return { edge, requests };
  }

  it('costs nobody anything where the request has no effect', async () => {
    const { edge, requests } = await startHasty();
    for (let turn = 0; turn < 3; turn += 1)
      assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), 200);
    assert.deepEqual(requests, ['GET', 'GET', 'GET', 'GET', 'GET']);
  });

  it('is a failure of a request that may have had one', async () => {
    for (const request of [
      rawRequest('POST /v1/hotels'),
      rawRequest('PUT /v1/hotels', ['Content-Length: 5'], 'hello'),
    ]) {
      const { edge } = await startHasty();
      await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
      assert.equal(statusOf(await sendRaw(edge.port, request)), 502);
    }
  });
});
