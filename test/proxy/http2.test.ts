/** Services over HTTP/2: requests and responses, what is sent again, restarts, limits, and health checks. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Mapping } from '#config';
import { callUpstream, createClusters, wholeBody } from '#proxy';
import { ask, breakersOf, createManualTime, healthCheckOf, specOf } from '../support/clusters.ts';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { respond, startHttp2 } from '../support/http2-services.ts';
import { type Served, testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';
import { bodyOf, rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

const start = (onStream: OnStream, options?: Parameters<typeof startHttp2>[2]) =>
  startHttp2(servers, onStream, options);

function startTo(to: readonly Served[], mapping: Partial<Mapping> = {}, more: EdgeOptions = {}) {
  const targets = { hotel: { kind: 'remote', origins: () => to.map(({ origin }) => origin), path: '' } as const };
  return startEdge(servers, { mapping: { http2: true, timeoutMs: 5000, ...mapping }, targets, ...more });
}

describe('a request to a service over HTTP/2', () => {
  it('arrives like one over HTTP/1.1, with its host and its body', async () => {
    const received: unknown[] = [];
    const service = await start(async (stream, headers) => {
      const { ':method': method, ':authority': host, ':path': path, 'x-odd': odd, connection, via } = headers;
      received.push([method, host, path, odd, connection, via, String(await buffer(stream))]);
      respond(stream);
    });
    const edge = await startTo([service]);
    const headers = ['X-Odd: caf\u00e9', 'Connection: x-gone', 'X-Gone: 1', 'Transfer-Encoding: chunked'];
    const response = await sendRaw(edge.port, rawRequest('POST /v1/hotels/a?b=1', headers, '5\r\nhello\r\n0\r\n\r\n'));
    assert.equal(statusOf(response), 200);
    assert.deepEqual(received, [['POST', 'front.example', '/a?b=1', 'caf\u00e9', undefined, '1.1 frontdesk', 'hello']]);
  });

  it('is streamed, so that its service may respond before its end', async () => {
    const service = await start((stream) => {
      stream.respond({ ':status': 200 });
      stream.pipe(stream);
    });
    const { port } = await startTo([service]);
    const socket = connect(port, '127.0.0.1').setEncoding('latin1');
    socket.write(rawRequest('POST /v1/hotels', ['Transfer-Encoding: chunked'], '3\r\none\r\n'));
    let seen = '';
    socket.on('data', (data) => {
      seen += data;
    });
    await eventually(() => assert.match(seen, /^3\r\none\r\n/m));
    socket.write('3\r\ntwo\r\n0\r\n\r\n');
    await eventually(() => assert.match(seen, /^3\r\ntwo\r\n0\r\n\r\n/m));
    socket.destroy();
  });

  it('is cancelled when its client disconnects', async () => {
    const service = await start(() => {});
    const { port } = await startTo([service]);
    const socket = connect(port, '127.0.0.1');
    socket.write(rawRequest('GET /v1/hotels'));
    await eventually(() => assert.equal(service.streams.length, 1));
    socket.destroy();
    const [stream] = service.streams;
    await eventually(() => assert.equal(stream?.destroyed, true));
    assert.equal(stream?.rstCode, constants.NGHTTP2_CANCEL);
  });

  it('is mirrored to a shadow over HTTP/2, and checked by an auth service over HTTP/2', async () => {
    const paths: unknown[] = [];
    const note =
      (name: string): OnStream =>
      (stream, { ':path': path, ':authority': host }) => {
        paths.push([name, path, host]);
        if (name === 'auth') stream.respond({ ':status': 200, 'x-travel-user': 'demo' }, { endStream: true });
        else respond(stream);
      };
    const [auth, hotel, shadow] = [await start(note('auth')), await start(note('hotel')), await start(note('shadow'))];
    const edge = await startEdge(servers, {
      authService: authRecordOf({ http2: true }),
      mappings: [
        mappingOf({ http2: true }),
        mappingOf({ name: 'shadow', service: 'shadow', shadow: true, http2: true }),
      ],
      targets: { auth: remote(auth), hotel: remote(hotel), shadow: remote(shadow) },
    });
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels/1'))), 200);
    await eventually(() => assert.equal(paths.length, 3));
    assert.deepEqual(paths.sort(), [
      ['auth', '/v1/hotels/1', 'front.example'],
      ['hotel', '/1', 'front.example'],
      ['shadow', '/1', 'front.example-shadow'],
    ]);
  });
});

describe('a response of a service over HTTP/2', () => {
  it('reaches the client with its headers, trailers and early hints', async () => {
    const service = await start((stream) => {
      stream.additionalHeaders({ ':status': 103, link: '</v1/a.css>; rel=preload' });
      const headers = { ':status': 201, trailer: 'x-sum', 'x-odd': 'caf\u00e9', 'set-cookie': ['a=1; Path=/', 'b=2'] };
      stream.respond(headers, { waitForTrailers: true });
      stream.once('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }));
      stream.end('hello');
    });
    const { port } = await startTo([service], { rewrite: '' });
    const response = await sendRaw(port, rawRequest('GET /v1/hotels'));
    assert.match(
      response,
      /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/v1\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 201 Created\r\n/,
    );
    for (const line of ['x-odd: caf\u00e9', 'set-cookie: a=1; Path=/', 'set-cookie: b=2', 'Trailer: x-sum'])
      assert.ok(response.includes(`\r\n${line}\r\n`), line);
    assert.match(response, /\r\n5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n$/);
  });

  it('may have no body', async () => {
    const service = await start((stream, { ':path': path, ':method': method }) => {
      const status = Number(path?.slice(1));
      stream.respond({ ':status': status, ...(method === 'HEAD' && { 'content-length': '5' }) }, { endStream: true });
    });
    const { port } = await startTo([service]);
    for (const status of [200, 204, 304, 404]) {
      const response = await sendRaw(port, rawRequest(`GET /v1/hotels/${status}`));
      assert.deepEqual([statusOf(response), bodyOf(response)], [status, '']);
    }
    assert.match(await sendRaw(port, rawRequest('HEAD /v1/hotels/200')), /\r\ncontent-length: 5\r\n/i);
  });

  it('is not read while the client does not read it', async () => {
    let written = 0;
    const service = await start((stream) => {
      stream.respond({ ':status': 200 });
      const more = () => {
        while (stream.writable && stream.write(Buffer.alloc(65_536))) written += 65_536;
      };
      stream.on('drain', more);
      more();
    });
    const { port } = await startTo([service]);
    const socket = connect(port, '127.0.0.1');
    socket.write(rawRequest('GET /v1/hotels'));
    await once(socket, 'readable');
    let before = -1;
    await eventually(() => {
      const isStill = written === before;
      before = written;
      assert.ok(isStill);
    }, 50);
    socket.destroy();
    await eventually(() => assert.equal(service.streams[0]?.destroyed, true));
  });

  it('is cut off when the service breaks it off', async () => {
    const service = await start((stream) => {
      stream.respond({ ':status': 200, 'content-length': '10' });
      stream.write('part', () => stream.session?.socket.destroy());
    });
    const { port, log } = await startTo([service]);
    const response = await sendRaw(port, rawRequest('GET /v1/hotels')).catch(() => '');
    assert.notEqual(bodyOf(response).length, 10);
    await eventually(() => assert.match(JSON.stringify(log), /upstream-failed/));
  });
});

describe('a service over HTTP/2 that has not processed a request', () => {
  /** Refuses the first request in the way of `refuse`. */
  async function startRefusing(refuse: (stream: ServerHttp2Stream) => void, count = 1) {
    const bodies: string[] = [];
    let refused = 0;
    const service = await start(async (stream, { ':path': path }) => {
      if (refused < count && path !== '/first') {
        refused += 1;
        refuse(stream);
        return;
      }
      bodies.push(String(await buffer(stream)));
      respond(stream);
    });
    return { ...service, bodies, refused: () => refused };
  }

  const withRst = (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM);
  /** The stream before it is the last one that was processed. */
  const withGoaway = ({ session, id = 0 }: ServerHttp2Stream) => session?.goaway(constants.NGHTTP2_NO_ERROR, id - 2);
  const post = rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'hello');

  for (const [what, refuse] of [
    ['REFUSED_STREAM', withRst],
    ['GOAWAY', withGoaway],
  ] as const) {
    it(`and says so with ${what} gets it once more, even a POST`, async () => {
      const service = await startRefusing(refuse);
      const { port } = await startTo([service]);
      assert.equal(statusOf(await sendRaw(port, rawRequest('GET /v1/hotels/first'))), 200);
      assert.equal(statusOf(await sendRaw(port, post)), 200);
      assert.deepEqual(service.bodies, ['', 'hello']);
      assert.equal(service.sessions.length, 2);
    });
  }

  it('gets it six times at most, and is not ejected', async () => {
    const service = await startRefusing(withRst, 10);
    const outlierDetection = { consecutive5xx: 1, baseEjectionTimeMs: 60_000, maxEjectionPercent: 100 };
    const other = await startRefusing(withRst, 10);
    const clusters = createClusters();
    const { port } = await startTo([service, other], { outlierDetection }, { clusters });
    assert.equal(statusOf(await sendRaw(port, post)), 503);
    assert.equal(service.refused() + other.refused(), 6);
    for (const { health } of clusters.snapshot()[0]?.addresses ?? []) assert.equal(health, 'unknown');
  });

  it('does not get a body again that has been read', async () => {
    const service = await startRefusing((stream) => {
      stream.resume();
      stream.once('data', () => withRst(stream));
    });
    const { port } = await startTo([service]);
    const response = await sendRaw(
      port,
      rawRequest('POST /v1/hotels', ['Content-Length: 100000'], 'x'.repeat(100_000)),
    );
    assert.deepEqual([statusOf(response), service.refused()], [503, 1]);
  });

  it('gets a request again that it may have processed only if that is idempotent', async () => {
    for (const [method, expected, count] of [
      ['GET', 200, 1],
      ['POST', 502, 0],
    ] as const) {
      const service = await startRefusing((stream) => stream.session?.socket.destroy(), 0);
      const { port } = await startTo([service]);
      await sendRaw(port, rawRequest('GET /v1/hotels'));
      const [session] = service.sessions;
      session?.removeAllListeners('stream');
      session?.once('stream', () => session.socket.destroy());
      const before = service.bodies.length;
      const response = await sendRaw(port, rawRequest(`${method} /v1/hotels`));
      assert.equal(statusOf(response), expected);
      assert.equal(service.bodies.length - before, count);
    }
  });
});

describe('a service over HTTP/2 that restarts', () => {
  it('loses no request and gets none twice while it ends one session after another with GOAWAY', async () => {
    const counts = new Map<string, number>();
    const ofSession = new Map<unknown, number>();
    const service = await start(
      (stream, { ':path': path = '' }) => {
        const { session } = stream;
        const count = (ofSession.get(session) ?? 0) + 1;
        ofSession.set(session, count);
        counts.set(path, (counts.get(path) ?? 0) + 1);
        if (count === 45) session?.close();
        setTimeout(() => respond(stream), 5);
      },
      { settings: { maxConcurrentStreams: 50 } },
    );
    const clusters = createClusters();
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([service.origin], { http2: true }));
    const calls = Array.from({ length: 500 }, (_, index) =>
      callUpstream(
        cluster,
        { method: 'POST', path: `/${index}`, headers: [], body: wholeBody('hello') },
        { timeoutMs: 20_000, repeat: 'idempotent' },
      ),
    );
    const responses = await Promise.all(calls);
    assert.deepEqual(new Set(responses.map(({ head }) => head.status)), new Set([200]));
    assert.deepEqual([counts.size, Math.max(...counts.values())], [500, 1]);
    assert.ok(ofSession.size > 10);
  });

  it('is avoided for a moment if there is another address', async () => {
    const [one, other] = [await start((stream) => respond(stream)), await start((stream) => respond(stream))];
    const time = createManualTime();
    const clusters = createClusters(time);
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([one.origin, other.origin], { http2: true }));
    await ask(cluster);
    await ask(cluster);
    const [session] = one.sessions;
    session?.close();
    await once(session as NonNullable<typeof session>, 'close');
    const origins = async () => new Set([(await ask(cluster)).origin, (await ask(cluster)).origin]);
    await eventually(async () => assert.deepEqual(await origins(), new Set([other.origin])));
    time.advance(1000);
    assert.deepEqual(await origins(), new Set([one.origin, other.origin]));
  });
});

describe('a cluster over HTTP/2', () => {
  it('runs 100 requests a connection, lets others wait, and rejects the rest', async () => {
    const waiting: ServerHttp2Stream[] = [];
    const service = await start((stream) => void waiting.push(stream));
    const clusters = createClusters();
    servers.later(clusters.close);
    const circuitBreakers = breakersOf({ maxConnections: 1, maxPendingRequests: 10 });
    const { cluster } = clusters.acquire(specOf([service.origin], { http2: true, circuitBreakers }));
    const sent = Promise.allSettled(Array.from({ length: 120 }, () => ask(cluster)));
    await eventually(() => assert.equal(waiting.length, 100));
    const { circuit, overflows, activeRequests } = cluster.snapshot();
    assert.deepEqual([circuit, overflows, activeRequests], ['open', 10, 110]);
    await eventually(() => {
      for (const stream of waiting.splice(0)) respond(stream);
      assert.equal(cluster.snapshot().activeRequests, 0);
    });
    assert.equal((await sent).filter(({ status }) => status === 'fulfilled').length, 110);
    assert.deepEqual([service.sessions.length, cluster.snapshot().circuit], [1, 'closed']);
  });

  it('is not shared with one over HTTP/1.1', () => {
    const clusters = createClusters();
    servers.later(clusters.close);
    const acquire = (http2: boolean) => clusters.acquire(specOf(['http://127.0.0.1:1'], { http2 })).cluster;
    assert.notEqual(acquire(true), acquire(false));
    assert.equal(acquire(true), acquire(true));
  });

  it('ejects an address that resets its requests', async () => {
    const resetting = await start((stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
    const good = await start((stream) => respond(stream));
    const outlierDetection = { consecutive5xx: 2, baseEjectionTimeMs: 60_000, maxEjectionPercent: 50 };
    const clusters = createClusters();
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([resetting.origin, good.origin], { http2: true, outlierDetection }));
    await Promise.allSettled(Array.from({ length: 4 }, () => ask(cluster)));
    const { addresses } = cluster.snapshot();
    assert.deepEqual(
      addresses.map(({ health }) => health),
      ['ejected', 'unknown'],
    );
  });

  it('checks the health of its addresses over HTTP/2', async () => {
    let status = 200;
    const checks: unknown[] = [];
    const service = await start((stream, { ':path': path, ':authority': host }) => {
      checks.push([path, host]);
      stream.respond({ ':status': status }, { endStream: true });
    });
    const http1 = await servers.http((_req, res) => void res.end());
    const time = createManualTime();
    const clusters = createClusters(time);
    servers.later(clusters.close);
    const healthCheck = healthCheckOf({ hostname: 'shop.example', timeoutMs: 30_000 });
    const { cluster } = clusters.acquire(specOf([service.origin, http1.origin], { http2: true, healthCheck }));
    const until = (...expected: readonly string[]) =>
      eventually(() => {
        time.advance(1000);
        assert.deepEqual(
          cluster.snapshot().addresses.map(({ health }) => health),
          expected,
        );
      });
    await until('healthy', 'unhealthy');
    assert.deepEqual(checks[0], ['/health', 'shop.example']);
    status = 503;
    await until('unhealthy', 'unhealthy');
    await eventually(() => assert.ok(service.sessions.every(({ destroyed }) => destroyed)));
  });
});

describe('a service that does not speak HTTP/2', () => {
  it('gets no request, and the log says what to do', async () => {
    let requests = 0;
    const http1 = await servers.http((_req, res) => {
      requests += 1;
      res.end();
    });
    const { port, log } = await startTo([http1]);
    assert.equal(statusOf(await sendRaw(port, rawRequest('GET /v1/hotels'))), 502);
    assert.equal(requests, 0);
    const causes = log.map(({ fields }) => String(Reflect.get(fields, 'err')));
    assert.match(causes.join(), /does not speak HTTP\/2 .*: check .*, or remove http2 or grpc from the record, /);
  });
});
