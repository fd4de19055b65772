/** Clusters of one or several addresses: sharing, limits, ejection and closing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ClusterRegistryOptions, createClusters } from '#proxy';
import { ask, breakersOf, createManualTime, exchangeOn, healthCheckOf, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';

const servers = testServers();

/** Makes a second request wait for the connection instead of opening another. */
const oneConnection = { circuitBreakers: breakersOf({ maxConnections: 1 }) };

function openClusters(options?: ClusterRegistryOptions) {
  const clusters = createClusters(options);
  servers.later(clusters.close);
  return clusters;
}

const openCluster = (...spec: Parameters<typeof specOf>) => openClusters().acquire(specOf(...spec)).cluster;

/** Makes a round trip, after which the pending events of other sockets have been handled too. */
async function askElsewhere(): Promise<void> {
  const { origin } = await startUpstream(servers);
  await ask(openCluster([origin]));
}

/** Starts a service that responds when `respondNext` is called, in the order of arrival. */
async function startPatientUpstream() {
  const waiting: ServerResponse[] = [];
  const sockets = new Set<Socket>();
  const { origin, reached } = await startUpstream(servers, (res) => {
    if (res.socket !== null) sockets.add(res.socket);
    waiting.push(res);
  });
  const hasWaiting = (count: number) => eventually(() => assert.ok(waiting.length >= count));
  return {
    origin,
    sockets,
    hasWaiting,
    urls: () => reached.map(({ url }) => url),
    async respondNext(count = 1) {
      for (let responded = 0; responded < count; responded += 1) {
        await hasWaiting(1);
        waiting.shift()?.end('late');
      }
    },
  };
}

/** Returns copies of `whole`, each with a different field changed. */
function changesOf<T extends object>(whole: T): T[] {
  const changed = (value: unknown) => (typeof value === 'number' ? value + 1 : [{ min: 200, max: 204 }]);
  const text = (name: string, value: unknown) => (['path', 'hostname'].includes(name) ? '/other' : changed(value));
  return Object.entries(whole).map(([name, value]) => ({ ...whole, [name]: text(name, value) }));
}

describe('a cluster of one address', () => {
  it('opens no connection for a snapshot', async () => {
    const { origin } = await startUpstream(servers);
    const cluster = openCluster([origin, origin]);
    const unused = {
      service: 'hotel',
      isUsed: false,
      addresses: [{ origin, health: 'unknown', activeRequests: 0, activeUpgrades: 0 }],
      circuit: 'closed',
      activeRequests: 0,
      activeUpgrades: 0,
      activeRetries: 0,
      overflows: 0,
    };
    assert.deepEqual([cluster.snapshot(), cluster.snapshot()], [unused, unused]);
    await ask(cluster);
    assert.deepEqual(cluster.snapshot(), { ...unused, isUsed: true });
  });

  it('runs one request per connection, queues others in the order of arrival, and rejects the rest', async () => {
    const upstream = await startPatientUpstream();
    const cluster = openCluster([upstream.origin], {
      circuitBreakers: breakersOf({ maxConnections: 2, maxPendingRequests: 3 }),
    });
    const pending = Promise.allSettled(Array.from({ length: 9 }, (_, index) => ask(cluster, { path: `/${index}` })));
    await upstream.hasWaiting(2);
    const { circuit, overflows, addresses } = cluster.snapshot();
    assert.deepEqual([circuit, overflows, addresses[0]?.activeRequests], ['open', 4, 5]);
    await upstream.respondNext(5);
    assert.deepEqual(
      (await pending).map((result) => (result.status === 'fulfilled' ? result.value.body : result.reason.code)),
      [...Array(5).fill('late'), ...Array(4).fill('OVERFLOW')],
    );
    assert.deepEqual(upstream.urls().slice(2), ['/2', '/3', '/4']);
    assert.equal(upstream.sockets.size, 2);
    assert.deepEqual([cluster.snapshot().activeRequests, cluster.snapshot().circuit], [0, 'closed']);
  });

  it('never sends a request that was removed from the queue', async () => {
    const upstream = await startPatientUpstream();
    const cluster = openCluster([upstream.origin], oneConnection);
    const first = ask(cluster, { path: '/first' });
    const attempt = cluster.attempt();
    void exchangeOn(attempt, { path: '/given-up' });
    const last = ask(cluster, { path: '/last' });
    attempt.release();
    attempt.release();
    assert.equal(cluster.snapshot().activeRequests, 2);
    await upstream.respondNext(2);
    await Promise.all([first, last]);
    assert.deepEqual(upstream.urls(), ['/first', '/last']);
  });

  it('frees its connection when the service refuses it and when undici rejects the request', async () => {
    const refusing = openCluster([(await servers.refusing()).origin], oneConnection);
    for (const { reason } of (await Promise.allSettled([ask(refusing), ask(refusing)])) as PromiseRejectedResult[])
      assert.equal(reason.code, 'ECONNREFUSED');
    const cluster = openCluster([(await startUpstream(servers)).origin], oneConnection);
    const [bad, good] = await Promise.allSettled([ask(cluster, { path: '/ ' }), ask(cluster)]);
    assert.deepEqual([bad?.status, good?.status], ['rejected', 'fulfilled']);
    assert.equal((await ask(cluster)).isReused, true);
  });

  it('opens a fresh connection if one is required, within its limit', async () => {
    const upstream = await startPatientUpstream();
    const cluster = openCluster([upstream.origin], oneConnection);
    const pending = [false, true, true].map((isFresh) => {
      const attempt = cluster.attempt();
      return exchangeOn(attempt, {}, isFresh).finally(() => attempt.release());
    });
    await upstream.respondNext(3);
    for (const { isReused } of await Promise.all(pending)) assert.equal(isReused, false);
    assert.equal(upstream.sockets.size, 3);
  });

  it('closes an idle connection for a fresh one, and then still has all of its connections', async () => {
    const upstream = await startPatientUpstream();
    const cluster = openCluster([upstream.origin], { circuitBreakers: breakersOf({ maxConnections: 2 }) });
    const askTwice = async () => {
      const both = Promise.all([ask(cluster), ask(cluster)]);
      await upstream.hasWaiting(2);
      await upstream.respondNext(2);
      await both;
      await askElsewhere();
    };
    await askTwice();
    const attempt = cluster.attempt();
    const fresh = exchangeOn(attempt, {}, true).finally(() => attempt.release());
    await upstream.respondNext();
    assert.equal((await fresh).isReused, false);
    await askTwice();
    assert.equal(upstream.sockets.size, 3);
  });

  it('does not count switched connections as requests, and rejects those beyond max_upgrades', async () => {
    const { origin } = await servers.tcp((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n'));
    });
    const cluster = openCluster([origin], {
      circuitBreakers: breakersOf({ maxConnections: 1, maxPendingRequests: 0, maxUpgrades: 2 }),
    });
    const upgrade = async () => {
      const attempt = cluster.attempt([], true);
      const switched = createDeferred();
      attempt.dispatch(
        { method: 'GET', path: '/', upgrade: 'echo' },
        {
          onRequestStart() {},
          onRequestUpgrade: switched.resolve,
          onResponseError: (_controller, error) => assert.fail(error),
        },
      );
      await switched.promise;
      attempt.reportSwitch();
      return attempt;
    };
    const [first] = [await upgrade(), await upgrade()];
    await assert.rejects(upgrade(), { code: 'OVERFLOW', message: 'hotel has reached max_upgrades (2)' });
    const { activeRequests, activeUpgrades, circuit, overflows } = cluster.snapshot();
    assert.deepEqual([activeRequests, activeUpgrades, circuit, overflows], [0, 2, 'open', 1]);
    cluster.attempt().release();
    first.release();
    first.release();
    assert.equal(cluster.snapshot().circuit, 'closed');
    await upgrade();
    assert.equal(cluster.snapshot().activeUpgrades, 2);
  });

  it('drops a connection that the service has closed', async () => {
    const closed = createDeferred();
    const { origin } = await servers.http((req, res) => {
      req.socket.once('close', closed.resolve);
      res.once('finish', () => req.socket.end()).end('bye');
    });
    const cluster = openCluster([origin], oneConnection);
    await ask(cluster);
    await closed.promise;
    await askElsewhere();
    const { body, isReused } = await ask(cluster);
    assert.deepEqual([body, isReused], ['bye', false]);
  });
});

describe('a cluster of several addresses', () => {
  const outlierDetection = { consecutive5xx: 2, baseEjectionTimeMs: 1000, maxEjectionPercent: 50 };

  it('uses its addresses in turn, preferring those that a request has not tried', async () => {
    const upstreams = [await startUpstream(servers), await startUpstream(servers), await startUpstream(servers)];
    const origins = upstreams.map(({ origin }) => origin);
    const cluster = openCluster(origins);
    for (let count = 0; count < 6; count += 1) await ask(cluster);
    for (const { reached } of upstreams) assert.equal(reached.length, 2);
    const [first, second, third] = origins as [string, string, string];
    assert.equal((await ask(cluster, {}, [first, third])).origin, second);
  });

  it('picks the address with the fewest active requests', async () => {
    const busy = await startPatientUpstream();
    const free = await startUpstream(servers);
    const spec = specOf([busy.origin, free.origin], { loadBalancer: 'least_request' });
    const { cluster } = openClusters({ random: () => 0 }).acquire(spec);
    const first = ask(cluster);
    await busy.hasWaiting(1);
    for (let count = 0; count < 3; count += 1) await ask(cluster);
    await busy.respondNext();
    await first;
    assert.equal(free.reached.length, 3);
  });

  it('rejects no request because one address is full while another has room', () => {
    const cluster = openCluster(['http://127.0.0.1:1', 'http://127.0.0.1:2'], {
      circuitBreakers: breakersOf({ maxConnections: 1, maxPendingRequests: 0 }),
    });
    const hanging = cluster.attempt();
    for (let turn = 0; turn < 3; turn += 1) {
      const other = cluster.attempt();
      assert.notEqual(other.origin, hanging.origin);
      other.release();
    }
    cluster.attempt();
    assert.throws(() => cluster.attempt(), { code: 'OVERFLOW' });
  });

  it('rejects requests beyond max_requests, counted over all addresses', async () => {
    const upstreams = [await startPatientUpstream(), await startPatientUpstream()];
    const origins = upstreams.map(({ origin }) => origin);
    const cluster = openCluster(origins, { circuitBreakers: breakersOf({ maxRequests: 4 }) });
    const results = Promise.allSettled(Array.from({ length: 8 }, () => ask(cluster)));
    for (const { respondNext } of upstreams) await respondNext(2);
    assert.equal((await results).filter(({ status }) => status === 'fulfilled').length, 4);
    assert.equal(cluster.snapshot().overflows, 4);
  });

  it('ejects a failing address, logs the last failure, and uses the address again after the ejection time', async () => {
    const good = await startUpstream(servers);
    const { origin: dead } = await servers.refusing();
    const time = createManualTime();
    const warned: { readonly err?: { readonly code?: string } }[] = [];
    const logger = { info() {}, error() {}, warn: (fields: object) => void warned.push(fields) };
    const { cluster } = openClusters({ ...time, logger }).acquire(specOf([good.origin, dead], { outlierDetection }));
    const failuresOf = async (count: number) => {
      const results = await Promise.allSettled(Array.from({ length: count }, () => ask(cluster)));
      return results.filter(({ status }) => status === 'rejected').length;
    };
    assert.equal(await failuresOf(4), 2);
    assert.equal(await failuresOf(10), 0);
    assert.equal(cluster.snapshot().addresses.find(({ origin }) => origin === dead)?.health, 'ejected');
    const [{ err, ...fields } = {}, ...others] = warned;
    assert.deepEqual(
      [fields, err?.code, others],
      [{ service: 'hotel', origin: dead, forMs: 1000 }, 'ECONNREFUSED', []],
    );
    time.advance(1000);
    assert.equal(await failuresOf(2), 1);
  });

  it('logs once that an address responds again after its ejection', () => {
    const time = createManualTime();
    const logged: (readonly [fields: object, message?: string])[] = [];
    const log = (...line: (typeof logged)[number]) => void logged.push(line);
    const logger = { info: log, warn: log, error: log };
    const [origin, other] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
    const { cluster } = openClusters({ ...time, logger }).acquire(specOf([origin, other], { outlierDetection }));
    const respond = (status: number) => cluster.attempt([other]).reportOutcome({ kind: 'responded', status });
    for (const status of [500, 503, 200]) respond(status);
    time.advance(1000);
    for (const status of [500, 200, 200]) respond(status);
    const fields = { service: 'hotel', origin };
    assert.deepEqual(logged, [
      [{ ...fields, forMs: 1000, status: 503 }, 'address ejected after consecutive failures'],
      [fields, 'address is responding again after its ejection'],
    ]);
  });

  it('does not blame an address for a request that undici refuses to send', async () => {
    const origins = [(await startUpstream(servers)).origin, (await startUpstream(servers)).origin];
    const cluster = openCluster(origins, { outlierDetection: { ...outlierDetection, consecutive5xx: 1 } });
    const refused = [{ path: '/ ' }, { headers: { 'content-length': '5' }, body: 'four', method: 'POST' }] as const;
    for (const options of [...refused, ...refused]) await assert.rejects(ask(cluster, options));
    for (const { health } of cluster.snapshot().addresses) assert.equal(health, 'unknown');
  });

  it('does not blame an address for failures that a client can provoke', () => {
    const cluster = openCluster(['http://127.0.0.1:1', 'http://127.0.0.1:2'], {
      outlierDetection: { ...outlierDetection, consecutive5xx: 1 },
    });
    const codes = ['UND_ERR_HEADERS_OVERFLOW', 'EMFILE', 'EADDRNOTAVAIL'];
    const causes = [
      ...codes.map((code) => Object.assign(new Error('failed'), { code })),
      Object.assign(new Error('Response does not match the HTTP/1.1 protocol (Invalid header value char)'), {
        name: 'HTTPParserError',
      }),
    ];
    for (const cause of causes) cluster.attempt().reportOutcome({ kind: 'failed', cause });
    for (const status of [501, 505, 508]) cluster.attempt().reportOutcome({ kind: 'responded', status });
    for (const { health } of cluster.snapshot().addresses) assert.equal(health, 'unknown');
    cluster.attempt().reportOutcome({ kind: 'responded', status: 503 });
    assert.ok(cluster.snapshot().addresses.some(({ health }) => health === 'ejected'));
  });

  it('ejects an address that breaks off one body after another, until one is complete, and says why', () => {
    const warned: object[] = [];
    const logger = { info() {}, error() {}, warn: (fields: object) => void warned.push(fields) };
    const [origin, other] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
    const clusters = openClusters({ ...createManualTime(), logger });
    const { cluster } = clusters.acquire(specOf([origin, other], { outlierDetection }));
    const broken = Object.assign(new Error('broken'), { code: 'ECONNRESET' });
    const respond = (cause?: Error) => {
      const attempt = cluster.attempt([other]);
      attempt.reportOutcome({ kind: 'responded', status: 200 });
      attempt.reportBody(cause);
      return cluster.snapshot().addresses[0]?.health;
    };
    const seen = [respond(broken), respond(), respond(broken), respond(broken)];
    assert.deepEqual(seen, ['unknown', 'unknown', 'unknown', 'ejected']);
    assert.deepEqual(warned, [{ service: 'hotel', origin, forMs: 1000, err: broken }]);
  });

  it('counts an attempt as failed if its first outcome is a 5xx, and ignores attempts without an outcome', () => {
    const cluster = openCluster(['http://127.0.0.1:1', 'http://127.0.0.1:2'], { outlierDetection });
    const attempt = (...statuses: readonly number[]) => {
      const place = cluster.attempt(['http://127.0.0.1:2']);
      for (const status of statuses) place.reportOutcome({ kind: 'responded', status });
      place.release();
      return cluster.snapshot().addresses[0]?.health;
    };
    const seen = [attempt(500), attempt(499, 500), attempt(500), attempt(), attempt(599)];
    assert.deepEqual(seen, ['unknown', 'unknown', 'unknown', 'unknown', 'ejected']);
  });

  it('follows its origins as they change, and finishes requests to removed ones', async () => {
    const old = await startPatientUpstream();
    let kept: Socket | null = null;
    const fresh = await startUpstream(servers, (res) => {
      kept = res.socket;
      res.end('ok');
    });
    let origins = [old.origin];
    const cluster = openCluster(() => origins);
    const running = ask(cluster);
    await old.hasWaiting(1);
    origins = [fresh.origin];
    assert.equal((await ask(cluster)).origin, fresh.origin);
    const closed = [...old.sockets].map((socket) => once(socket, 'close'));
    await old.respondNext();
    assert.equal((await running).body, 'late');
    await Promise.all(closed);
    // The old connection closed because its address is gone, not because it was idle: this one was idle for longer.
    assert.equal((kept as Socket | null)?.destroyed, false);
  });
});

describe('clusters', () => {
  it('are shared by equal specs, whatever the order of their fields', () => {
    const clusters = openClusters();
    const spec = specOf(['http://127.0.0.1:1']);
    const { cluster } = clusters.acquire(spec);
    const turned = Object.fromEntries(Object.entries(spec.circuitBreakers).reverse());
    const circuitBreakers = turned as unknown as typeof spec.circuitBreakers;
    assert.equal(clusters.acquire({ ...spec, circuitBreakers }).cluster, cluster);
    assert.equal(clusters.snapshot().length, 1);
    assert.notEqual(openClusters().acquire(spec).cluster, cluster);
  });

  it('are not shared by specs that differ in one field', () => {
    const healthCheck = healthCheckOf();
    const plain = specOf(['http://127.0.0.1:1']);
    const others = [
      { service: 'car' },
      { serverName: 'hotel' },
      { connectTimeoutMs: 1 },
      { loadBalancer: 'least_request' as const },
      ...changesOf(plain.circuitBreakers).map((circuitBreakers) => ({ circuitBreakers })),
      ...changesOf(plain.outlierDetection).map((changed) => ({ outlierDetection: changed })),
      { healthCheck },
      ...changesOf(healthCheck).map((changed) => ({ healthCheck: changed })),
    ];
    const clusters = openClusters({ timer: createManualTime().timer });
    const all = [{}, ...others].map((fields) => clusters.acquire({ ...plain, ...fields }).cluster);
    assert.equal(new Set(all).size, 1 + 4 + 5 + 3 + 1 + 8);
  });

  it('keep connections and counts from one configuration to the next', async () => {
    const { origin } = await startUpstream(servers);
    const clusters = openClusters();
    const spec = specOf([origin], oneConnection);
    const before = clusters.acquire(spec);
    await ask(before.cluster);
    const after = clusters.acquire({ ...spec, origins: () => [origin] });
    before.release();
    before.release();
    assert.equal(clusters.snapshot().length, 1);
    assert.equal((await ask(after.cluster)).isReused, true);
  });

  it('finish running requests after the last release, and serve later ones without keeping a connection', async () => {
    const upstream = await startPatientUpstream();
    const clusters = openClusters();
    const { cluster, release } = clusters.acquire(specOf([upstream.origin], oneConnection));
    const running = ask(cluster);
    await upstream.hasWaiting(1);
    const ended = [...upstream.sockets].map((socket) => once(socket, 'close'));
    release();
    assert.deepEqual(clusters.snapshot(), []);
    await upstream.respondNext();
    assert.equal((await running).body, 'late');
    await Promise.all(ended);
    for (let count = 0; count < 2; count += 1) {
      const later = ask(cluster);
      await upstream.respondNext();
      const { body, isReused } = await later;
      assert.deepEqual([body, isReused], ['late', false]);
      await askElsewhere();
    }
  });

  it('abort the requests to removed addresses, too, at the deadline', async () => {
    const old = await startPatientUpstream();
    let origins = [old.origin];
    const clusters = openClusters();
    const { cluster } = clusters.acquire(specOf(() => origins));
    const running = assert.rejects(ask(cluster));
    await old.hasWaiting(1);
    origins = ['http://127.0.0.1:1'];
    assert.equal(cluster.snapshot().addresses[0]?.origin, origins[0]);
    await Promise.all([clusters.close(0), running]);
  });

  it('close idle connections immediately and wait for the others, however often close is called', async () => {
    const upstream = await startPatientUpstream();
    const clusters = openClusters();
    const { cluster } = clusters.acquire(specOf([upstream.origin]));
    const pending = [ask(cluster), ask(cluster)] as const;
    await upstream.hasWaiting(2);
    const [idle, busy] = [...upstream.sockets] as [Socket, Socket];
    await upstream.respondNext();
    await pending[0];
    const ended = once(idle, 'close');
    let isClosed = false;
    const closed = Promise.all([clusters.close(), clusters.close()]).then(() => {
      isClosed = true;
    });
    await ended;
    assert.deepEqual([isClosed, busy.destroyed], [false, false]);
    await upstream.respondNext();
    assert.equal((await pending[1]).body, 'late');
    await closed;
    await clusters.close();
  });
});
