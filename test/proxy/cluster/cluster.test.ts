/** Services at one or several addresses: what is shared, what is bounded, and what is let go. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ClusterRegistryOptions, createClusters } from '#proxy';
import { ask, breakersOf, createManualTime, exchangeOn, healthCheckOf, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createSignal } from '../../support/waiting.ts';

const servers = testServers();

/** Who follows another on it waits until the connection is free, instead of opening a second. */
const oneConnection = breakersOf({ maxConnections: 1 });

function openClusters(options?: ClusterRegistryOptions) {
  const clusters = createClusters(options);
  servers.later(clusters.close);
  return clusters;
}

/** By the time that this has its answer, what was about to happen on other sockets has happened, or will not. */
async function askElsewhere(): Promise<void> {
  const { origin } = await startUpstream(servers);
  await ask(openClusters().acquire(specOf([origin])).cluster);
}

/** Answers when it is told to, in the order of arrival. */
async function startPatientUpstream() {
  const waiting: ServerResponse[] = [];
  const heard: (() => void)[] = [];
  const sockets = new Set<Socket>();
  const { origin, reached } = await startUpstream(servers, (res) => {
    if (res.socket !== null) sockets.add(res.socket);
    waiting.push(res);
    for (const hear of heard.splice(0)) hear();
  });
  return {
    origin,
    reached,
    sockets,
    waiting,
    async hasWaiting(count: number) {
      while (waiting.length < count) await new Promise<void>((resolve) => heard.push(resolve));
    },
    answerNext: () => void waiting.shift()?.end('late'),
  };
}

/** `whole` with one field after the other changed. */
function changesOf<T extends object>(whole: T): T[] {
  const changed = (value: unknown) => (typeof value === 'number' ? value + 1 : [{ min: 200, max: 204 }]);
  const text = (name: string, value: unknown) => (['path', 'hostname'].includes(name) ? '/other' : changed(value));
  return Object.entries(whole).map(([name, value]) => ({ ...whole, [name]: text(name, value) }));
}

describe('a cluster of one address', () => {
  it('uses a connection again, and says so', async () => {
    const { origin } = await startUpstream(servers);
    const { cluster } = openClusters().acquire(specOf([origin], { circuitBreakers: oneConnection }));
    const answers = [await ask(cluster), await ask(cluster), await ask(cluster)];
    assert.deepEqual(
      answers.map(({ body, isReused }) => [body, isReused]),
      [
        ['ok', false],
        ['ok', true],
        ['ok', true],
      ],
    );
  });

  it('lets no more through than there may be connections, in the order of arrival, and refuses what may not wait', async () => {
    const upstream = await startPatientUpstream();
    const circuitBreakers = breakersOf({ maxConnections: 2, maxPendingRequests: 3 });
    const { cluster } = openClusters().acquire(specOf([upstream.origin], { circuitBreakers }));
    const asked = Promise.allSettled(Array.from({ length: 9 }, (_, index) => ask(cluster, { path: `/${index}` })));
    await upstream.hasWaiting(2);
    assert.deepEqual(cluster.snapshot(), {
      service: 'hotel',
      isUsed: true,
      addresses: [{ origin: upstream.origin, health: 'unknown', activeRequests: 5 }],
      circuit: 'open',
      activeRequests: 5,
      activeRetries: 0,
      overflows: 4,
    });
    for (let count = 0; count < 5; count += 1) {
      await upstream.hasWaiting(1);
      upstream.answerNext();
    }
    const results = await asked;
    assert.deepEqual(
      results.map((result) => (result.status === 'fulfilled' ? result.value.body : result.reason.code)),
      [...Array(5).fill('late'), ...Array(4).fill('OVERFLOW')],
    );
    assert.deepEqual(upstream.reached.map(({ url }) => url).slice(2), ['/2', '/3', '/4']);
    assert.equal(upstream.sockets.size, 2);
    assert.equal(cluster.snapshot().activeRequests, 0);
    assert.equal(cluster.snapshot().circuit, 'closed');
  });

  it('is not opened by a look: nobody is asked for anything, and no connection is made', async () => {
    const upstream = await startUpstream(servers);
    const { cluster } = openClusters().acquire(specOf([upstream.origin, upstream.origin]));
    const unused = {
      service: 'hotel',
      isUsed: false,
      addresses: [{ origin: upstream.origin, health: 'unknown', activeRequests: 0 }],
      circuit: 'closed',
      activeRequests: 0,
      activeRetries: 0,
      overflows: 0,
    };
    assert.deepEqual([cluster.snapshot(), cluster.snapshot()], [unused, unused]);
    await ask(cluster);
    assert.deepEqual(cluster.snapshot(), { ...unused, isUsed: true });
  });

  it('refuses what goes beyond max_requests, wherever it would go', async () => {
    const upstreams = [await startPatientUpstream(), await startPatientUpstream()] as const;
    const origins = upstreams.map(({ origin }) => origin);
    const { cluster } = openClusters().acquire(specOf(origins, { circuitBreakers: breakersOf({ maxRequests: 4 }) }));
    const results = Promise.allSettled(Array.from({ length: 20 }, () => ask(cluster)));
    for (const upstream of upstreams) await upstream.hasWaiting(2);
    for (const { answerNext } of [...upstreams, ...upstreams]) answerNext();
    assert.equal((await results).filter(({ status }) => status === 'fulfilled').length, 4);
    assert.equal(cluster.snapshot().overflows, 16);
  });

  it('never begins an exchange that gave up its place in line', async () => {
    const upstream = await startPatientUpstream();
    const spec = specOf([upstream.origin], { circuitBreakers: oneConnection });
    const { cluster } = openClusters().acquire(spec);
    const first = ask(cluster, { path: '/first' });
    const given = cluster.attempt();
    void exchangeOn(given, { path: '/given-up' });
    const last = ask(cluster, { path: '/last' });
    given.release();
    given.release();
    assert.equal(cluster.snapshot().activeRequests, 2);
    await upstream.hasWaiting(1);
    upstream.answerNext();
    await first;
    await upstream.hasWaiting(1);
    upstream.answerNext();
    await last;
    assert.deepEqual(
      upstream.reached.map(({ url }) => url),
      ['/first', '/last'],
    );
  });

  it('keeps its connections when one is refused, and when the library refuses the request', async () => {
    const { origin } = await servers.refusing();
    const circuitBreakers = oneConnection;
    const { cluster } = openClusters().acquire(specOf([origin], { circuitBreakers }));
    const refused = await Promise.allSettled([ask(cluster), ask(cluster), ask(cluster)]);
    for (const result of refused) assert.equal((result as PromiseRejectedResult).reason.code, 'ECONNREFUSED');
    const upstream = await startUpstream(servers);
    const { cluster: other } = openClusters().acquire(specOf([upstream.origin], { circuitBreakers }));
    const [bad, good] = await Promise.allSettled([ask(other, { path: '/ ' }), ask(other)]);
    assert.equal(bad?.status, 'rejected');
    assert.equal(good?.status, 'fulfilled');
    assert.equal((await ask(other)).isReused, true);
  });

  it('says of a reset whether the connection was open before', async () => {
    let answers = 1;
    const { origin } = await servers.tcp((socket) => {
      socket.on('data', () => {
        if (answers > 0) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.destroy();
        answers -= 1;
      });
    });
    const { cluster } = openClusters().acquire(specOf([origin], { circuitBreakers: oneConnection }));
    await ask(cluster);
    await assert.rejects(ask(cluster), { code: 'UND_ERR_SOCKET', isReused: true });
    await assert.rejects(ask(cluster), { code: 'UND_ERR_SOCKET', isReused: false });
  });

  it('takes a fresh connection where one is asked for, and no more than there may be', async () => {
    const upstream = await startPatientUpstream();
    const { cluster } = openClusters().acquire(specOf([upstream.origin], { circuitBreakers: oneConnection }));
    const asked = Array.from({ length: 3 }, (_, index) => {
      const attempt = cluster.attempt();
      return exchangeOn(attempt, {}, index === 0 ? undefined : 'fresh').finally(attempt.release);
    });
    for (let count = 0; count < 3; count += 1) {
      await upstream.hasWaiting(1);
      upstream.answerNext();
    }
    const answers = await Promise.all(asked);
    assert.deepEqual(
      answers.map(({ isReused }) => isReused),
      [false, false, false],
    );
    assert.equal(upstream.sockets.size, 3);
  });

  it('counts a connection that was switched until it is given back', async () => {
    let connections = 0;
    const { origin } = await servers.tcp((socket) => {
      connections += 1;
      socket.once('data', () => socket.write('HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n'));
    });
    const { cluster } = openClusters().acquire(
      specOf([origin], { circuitBreakers: breakersOf({ maxConnections: 1, maxPendingRequests: 1 }) }),
    );
    const upgrade = () => {
      const attempt = cluster.attempt();
      const switched = createSignal();
      const options = { method: 'GET', path: '/', upgrade: 'echo' };
      attempt.dispatch(options, {
        onRequestStart() {},
        onRequestUpgrade: switched.give,
        onResponseError: (_controller, error) => assert.fail(error),
      });
      return { release: attempt.release, switched: switched.given };
    };
    const first = upgrade();
    await first.switched;
    const second = upgrade();
    assert.throws(() => cluster.attempt(), { code: 'OVERFLOW' });
    await askElsewhere();
    assert.equal(connections, 1);
    first.release();
    await second.switched;
    second.release();
  });

  it('forgets a connection that the service has closed', async () => {
    const closed = createSignal();
    const { origin } = await servers.http((req, res) => {
      req.socket.once('close', closed.give);
      res.once('finish', () => req.socket.end()).end('bye');
    });
    const { cluster } = openClusters().acquire(specOf([origin], { circuitBreakers: oneConnection }));
    await ask(cluster);
    await closed.given;
    await askElsewhere();
    const { body, isReused } = await ask(cluster);
    assert.deepEqual([body, isReused], ['bye', false]);
  });
});

describe('a cluster of several addresses', () => {
  it('goes round, and where a request was not tried before', async () => {
    const upstreams = [await startUpstream(servers), await startUpstream(servers), await startUpstream(servers)];
    const origins = upstreams.map(({ origin }) => origin);
    const { cluster } = openClusters().acquire(specOf(origins));
    for (let count = 0; count < 12; count += 1) await ask(cluster);
    assert.deepEqual(
      upstreams.map(({ reached }) => reached.length),
      [4, 4, 4],
    );
    const [first, second, third] = origins as [string, string, string];
    assert.equal((await ask(cluster, {}, [first, third])).origin, second);
  });

  it('goes where the fewest requests are under way', async () => {
    const busy = await startPatientUpstream();
    const free = await startUpstream(servers);
    const spec = specOf([busy.origin, free.origin], { loadBalancer: 'least_request' });
    const { cluster } = openClusters({ random: () => 0 }).acquire(spec);
    const first = ask(cluster);
    await busy.hasWaiting(1);
    for (let count = 0; count < 3; count += 1) await ask(cluster);
    busy.answerNext();
    await first;
    assert.equal(free.reached.length, 3);
  });

  it('leaves out an address that fails, says so, and takes it back by the clock', async () => {
    const good = await startUpstream(servers);
    const { origin: dead } = await servers.refusing();
    const time = createManualTime();
    const warned: object[] = [];
    const logger = { info() {}, error() {}, warn: (fields: object) => void warned.push(fields) };
    const outlierDetection = { consecutive5xx: 2, baseEjectionTimeMs: 1000, maxEjectionPercent: 50 };
    const { cluster } = openClusters({ ...time, logger }).acquire(specOf([good.origin, dead], { outlierDetection }));
    const failuresOf = async (count: number) => {
      const results = await Promise.allSettled(Array.from({ length: count }, () => ask(cluster)));
      return results.filter(({ status }) => status === 'rejected').length;
    };
    assert.equal(await failuresOf(4), 2);
    assert.equal(await failuresOf(10), 0);
    assert.equal(cluster.snapshot().addresses.find(({ origin }) => origin === dead)?.health, 'ejected');
    assert.deepEqual(warned, [{ service: 'hotel', origin: dead, forMs: 1000 }]);
    time.advance(1000);
    assert.equal(await failuresOf(2), 1);
  });

  it('counts nothing against an address that the library refuses to send', async () => {
    const upstreams = [await startUpstream(servers), await startUpstream(servers)];
    const origins = upstreams.map(({ origin }) => origin);
    const outlierDetection = { consecutive5xx: 1, baseEjectionTimeMs: 1000, maxEjectionPercent: 50 };
    const { cluster } = openClusters().acquire(specOf(origins, { outlierDetection }));
    const refused = [{ path: '/ ' }, { headers: { 'content-length': '5' }, body: 'four', method: 'POST' }] as const;
    for (const options of [...refused, ...refused]) await assert.rejects(ask(cluster, options));
    assert.deepEqual(
      cluster.snapshot().addresses.map(({ health }) => health),
      ['unknown', 'unknown'],
    );
  });

  it('counts each 5xx as a failure, by the first outcome of an attempt alone; what has no outcome ends no row', () => {
    const { cluster } = openClusters().acquire(
      specOf(['http://127.0.0.1:1', 'http://127.0.0.1:2'], {
        outlierDetection: { consecutive5xx: 2, baseEjectionTimeMs: 1000, maxEjectionPercent: 50 },
      }),
    );
    const attempt = (...statuses: readonly number[]) => {
      const place = cluster.attempt(['http://127.0.0.1:2']);
      for (const status of statuses) place.reportOutcome({ kind: 'answered', status });
      place.release();
      return cluster.snapshot().addresses[0]?.health;
    };
    const seen = [attempt(500), attempt(499, 500), attempt(500), attempt(), attempt(599)];
    assert.deepEqual(seen, ['unknown', 'unknown', 'unknown', 'unknown', 'ejected']);
  });

  it('follows its origins as they come and go, and finishes what runs at those that are gone', async () => {
    const old = await startPatientUpstream();
    let kept: Socket | null = null;
    const fresh = await startUpstream(servers, (res) => {
      kept = res.socket;
      res.end('ok');
    });
    let origins = [old.origin];
    const { cluster } = openClusters().acquire(specOf(() => origins));
    const running = ask(cluster);
    await old.hasWaiting(1);
    origins = [fresh.origin];
    assert.equal((await ask(cluster)).origin, fresh.origin);
    const closed = [...old.sockets].map((socket) => once(socket, 'close'));
    old.answerNext();
    assert.equal((await running).body, 'late');
    await Promise.all(closed);
    // Closed for being gone and not for being idle: this one has been idle for longer.
    assert.equal((kept as Socket | null)?.destroyed, false);
  });
});

describe('clusters', () => {
  it('share what says the same in any order', () => {
    const clusters = openClusters();
    const spec = specOf(['http://127.0.0.1:1']);
    const { cluster } = clusters.acquire(spec);
    const turned = Object.fromEntries(Object.entries(spec.circuitBreakers).reverse());
    const circuitBreakers = turned as unknown as typeof spec.circuitBreakers;
    assert.equal(clusters.acquire({ ...spec, circuitBreakers }).cluster, cluster);
    assert.equal(clusters.snapshot().length, 1);
    assert.notEqual(openClusters().acquire(spec).cluster, cluster);
  });

  it('share nothing else, whatever the difference', () => {
    const healthCheck = healthCheckOf();
    const { circuitBreakers, outlierDetection, ...plain } = specOf(['http://127.0.0.1:1']);
    const others = [
      { service: 'car' },
      { serverName: 'hotel' },
      { connectTimeoutMs: 1 },
      { loadBalancer: 'least_request' as const },
      ...changesOf(circuitBreakers).map((changed) => ({ circuitBreakers: changed })),
      ...changesOf(outlierDetection).map((changed) => ({ outlierDetection: changed })),
      { healthCheck },
      ...changesOf(healthCheck).map((changed) => ({ healthCheck: changed })),
    ];
    const { timer } = createManualTime();
    const clusters = openClusters({ timer });
    const all = [{}, ...others].map(
      (fields) => clusters.acquire({ ...plain, circuitBreakers, outlierDetection, ...fields }).cluster,
    );
    assert.equal(new Set(all).size, 1 + 4 + 4 + 3 + 1 + 7);
  });

  it('keep connections and counts from one configuration to the next', async () => {
    const { origin } = await startUpstream(servers);
    const clusters = openClusters();
    const spec = specOf([origin], { circuitBreakers: oneConnection });
    const before = clusters.acquire(spec);
    await ask(before.cluster);
    const after = clusters.acquire({ ...spec, origins: () => [origin] });
    before.release();
    before.release();
    assert.equal(clusters.snapshot().length, 1);
    assert.equal((await ask(after.cluster)).isReused, true);
  });

  it('let the last holder go with what still runs, which may even be tried again', async () => {
    const upstream = await startPatientUpstream();
    const clusters = openClusters();
    const { cluster, release } = clusters.acquire(specOf([upstream.origin]));
    const running = ask(cluster);
    await upstream.hasWaiting(1);
    const [socket] = upstream.sockets;
    assert.ok(socket !== undefined);
    const ended = once(socket, 'close');
    release();
    assert.deepEqual(clusters.snapshot(), []);
    upstream.answerNext();
    assert.equal((await running).body, 'late');
    await ended;
    const again = ask(cluster);
    await upstream.hasWaiting(1);
    upstream.answerNext();
    assert.equal((await again).body, 'late');
  });

  it('carry out what comes only after the last holder, and keep no connection for more', async () => {
    const { origin } = await startUpstream(servers);
    const { cluster, release } = openClusters().acquire(specOf([origin]));
    release();
    const first = await ask(cluster);
    await askElsewhere();
    const second = await ask(cluster);
    assert.deepEqual([first.body, second.body, second.isReused], ['ok', 'ok', false]);
  });

  it('end idle connections at once when they close, and wait for the others, however often that is asked', async () => {
    const upstream = await startPatientUpstream();
    const clusters = openClusters();
    const { cluster } = clusters.acquire(specOf([upstream.origin]));
    const asked = [ask(cluster), ask(cluster)] as const;
    await upstream.hasWaiting(2);
    const [idle, busy] = [...upstream.sockets] as [Socket, Socket];
    upstream.answerNext();
    await asked[0];
    const ended = once(idle, 'close');
    let isClosed = false;
    const closed = Promise.all([clusters.close(), clusters.close()]).then(() => {
      isClosed = true;
    });
    await ended;
    assert.deepEqual([isClosed, busy.destroyed], [false, false]);
    upstream.answerNext();
    assert.equal((await asked[1]).body, 'late');
    await closed;
    await clusters.close();
  });
});
