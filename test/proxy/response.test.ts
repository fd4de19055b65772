/** The details of forwarding: status lines, interim responses, trailers, cookies, Via, Host and slow bodies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Mapping } from '#config';
import { createUpgrades } from '#http';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { breakersOf } from '../support/clusters.ts';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred, eventually } from '../support/waiting.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';
import { bytesOf, startSwitchingUpstream, switching } from '../support/wire/switching-upstream.ts';

const servers = testServers();

/** Does not fit into the buffers of two sockets. */
const large = Buffer.alloc(32 * 1024 * 1024);

describe('a response', () => {
  /** Responds with these bytes to every request. */
  async function startResponding(bytes: string, more: EdgeOptions = {}) {
    const sockets: Socket[] = [];
    const upstream = await servers.tcp((socket) => {
      sockets.push(socket);
      socket.on('data', () => socket.write(bytes, 'latin1'));
    });
    return { edge: await startEdge(servers, { upstream, ...more }), sockets };
  }

  async function get(port: number): Promise<IncomingMessage> {
    const [response] = await once(request({ port, path: '/v1/hotels', agent: false }).end(), 'response');
    return response;
  }

  function checkStatusLine(statusLine: string, expected: string) {
    it(`with the status line "${statusLine}" reaches the client as "${expected}"`, async () => {
      const { edge } = await startResponding(`HTTP/1.1 ${statusLine}\r\nContent-Length: 0\r\n\r\n`);
      const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
      assert.equal(response.slice('HTTP/1.1 '.length, response.indexOf('\r\n')), expected);
    });
  }

  checkStatusLine('200 Very Well', '200 Very Well');
  checkStatusLine('299', '299 unknown');
  checkStatusLine('200', '200 OK');
  checkStatusLine('404 Zo\u00eb', '404 Not Found');

  it('extends Via, preserves repeated headers and their spelling, drops hop-by-hop ones, and restores cookie paths', async () => {
    const head = 'HTTP/1.1 200 OK\r\nVia: 1.0 inner\r\nSet-Cookie: a=1; Path=/x\r\n';
    const nominated = 'X-One: 1\r\nConnection: X-One\r\nX-Two: 2\r\nConnection: X-Two\r\n';
    const { edge } = await startResponding(
      `${head}WWW-Authenticate: A\r\nWWW-Authenticate: B\r\nContent-Length: 0\r\n${nominated}\r\n`,
    );
    const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
    assert.match(response, /\r\nvia: 1\.0 inner\r\nvia: 1\.1 frontdesk\r\n/i);
    assert.match(response, /\r\nWWW-Authenticate: A\r\nWWW-Authenticate: B\r\n/);
    assert.match(response, /\r\nset-cookie: a=1; Path=\/v1\/hotels\/x\r\n/i);
    assert.doesNotMatch(response, /x-one|x-two/i);
  });

  it('keeps the paths of cookies, and rewrites the targets of links, if the mapping says so', async () => {
    const head = 'Set-Cookie: a=1; Path=/x\r\nContent-Location: /y\r\nLink: </b>; rel=next\r\nLink: </c>; rel=last\r\n';
    const bytes = `HTTP/1.1 200 OK\r\n${head}Content-Length: 0\r\n\r\n`;
    const headersWith = async (fields: Partial<Mapping>) => {
      const { edge } = await startResponding(bytes, { mappings: [mappingOf(fields)] });
      const { headers } = await get(edge.port);
      return [headers['set-cookie'], headers['content-location'], headers.link];
    };
    assert.deepEqual(await headersWith({}), [
      ['a=1; Path=/v1/hotels/x'],
      '/v1/hotels/y',
      '</b>; rel=next, </c>; rel=last',
    ]);
    assert.deepEqual(await headersWith({ cookiePath: 'keep', rewriteLinks: true }), [
      ['a=1; Path=/x'],
      '/v1/hotels/y',
      '</v1/hotels/b>; rel=next, </v1/hotels/c>; rel=last',
    ]);
  });

  it('rewrites the links of early hints too', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n';
    const { edge } = await startResponding(`${hints}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`, {
      mappings: [mappingOf({ rewriteLinks: true })],
    });
    const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
    assert.match(response, /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/v1\/hotels\/a\.css>; rel=preload\r\n/);
  });

  it('with status 205 leaves the connection open for the next request', async () => {
    const { edge } = await startResponding('HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n');
    const first = 'GET /v1/hotels HTTP/1.1\r\nHost: a\r\n\r\n';
    const responses = await sendRaw(edge.port, first + rawRequest('POST /v1/hotels', ['Content-Length: 0']));
    assert.equal(responses.match(/\r\nContent-Length: 0\r\n/g)?.length, 2);
  });

  const old = 'GET /v1/hotels HTTP/1.0\r\nHost: a\r\n\r\n';

  it('may follow early hints, which are not sent to an HTTP/1.0 client', async () => {
    const interim = [
      'HTTP/1.1 102 Processing\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload, </b.js>; rel=preload\r\nX-A: secret\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: nonsense\r\n\r\n',
      `HTTP/1.1 103 Early Hints\r\nLink: </a>${'; a=b=c'.repeat(40)}; d="\r\n\r\n`,
    ];
    const { edge } = await startResponding(`${interim.join('')}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
    const pending = request({ port: edge.port, path: '/v1/hotels', agent: false }).end();
    const hints: unknown[] = [];
    pending.on('information', ({ statusCode, headers }) => hints.push([statusCode, headers]));
    const [response] = await once(pending, 'response');
    assert.equal(await text(response), 'ok');
    assert.deepEqual(hints, [[103, { link: '</a.css>; rel=preload, </b.js>; rel=preload' }]]);
    assert.match(await sendRaw(edge.port, old), /^HTTP\/1\.1 200 OK\r\n/);
  });

  it('may follow a 100 Continue that was not requested, again and again on one connection', async () => {
    let connections = 0;
    const upstream = await servers.tcp((socket) => {
      connections += 1;
      const ok = 'HTTP/1.1 200 OK\r\nX-Travel-User: demo\r\nContent-Length: 2\r\n\r\nok';
      socket.on('data', () => socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${ok}`));
    });
    const targets = { hotel: remote(upstream), auth: remote(upstream) };
    const edge = await startEdge(servers, { targets, authService: authRecordOf() });
    for (const [line, headers, body] of [
      ['GET /v1/hotels', [], ''],
      ['POST /v1/hotels', ['Content-Length: 5'], 'hello'],
      ['GET /v1/hotels', [], ''],
    ] as const)
      assert.match(
        await sendRaw(edge.port, rawRequest(line, headers, body)),
        /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nok$/,
      );
    assert.ok(connections <= 2, `${connections} connections`);
  });

  it('may switch protocols after a 100 Continue that was not requested', async () => {
    const upstream = await startSwitchingUpstream(servers, (socket) => {
      socket.write(`HTTP/1.1 100 Continue\r\n\r\n${bytesOf(switching)}`, 'latin1');
    });
    const edge = await startEdge(servers, { upstream, mapping: { allowUpgrade: ['websocket'] } });
    const upgrades = createUpgrades(() => true);
    const { port } = await startHttp(servers, { handler: edge.listener, upgrades });
    servers.later(() => upgrades.close(0));
    const client = speak(port, upgradeRequest('/v1/hotels'));
    await client.until('101 Switching Protocols');
    client.socket.destroy();
  });

  it('has no early hints while a pipelined client waits for an earlier response', async () => {
    const first = createDeferred();
    const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n';
    const upstream = await servers.tcp((socket) => {
      socket.on('data', async (request) => {
        if (String(request).startsWith('GET /1 ')) await first.promise;
        else socket.once('close', first.resolve).write(hint);
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
    });
    const edge = await startEdge(servers, { upstream });
    const keep = 'GET /v1/hotels/1 HTTP/1.1\r\nHost: front.example\r\n\r\n';
    const responses = await sendRaw(edge.port, keep + rawRequest('GET /v1/hotels/2'));
    assert.doesNotMatch(responses, /HTTP\/1\.1 103/);
    assert.match(responses, /\r\n\r\nokHTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\nok$/);
  });

  it('keeps its trailers, except those that concern more than the body', async () => {
    const trailers = 'X-Sum: 7\r\nContent-Type: odd\r\nSet-Cookie: a=1\r\nConnection: close\r\n';
    const head = 'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { edge } = await startResponding(`${head}2\r\nok\r\n0\r\n${trailers}\r\n`);
    const response = await get(edge.port);
    assert.equal(await text(response), 'ok');
    assert.equal(response.headers.trailer, 'X-Sum');
    assert.deepEqual(response.trailers, { 'x-sum': '7' });
    assert.match(await sendRaw(edge.port, old), /\r\n\r\nok$/);
  });

  it('has its headers forwarded before the first byte of its body arrives', async () => {
    const { edge, sockets } = await startResponding(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const response = await get(edge.port);
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      sockets[0]?.write(`${event.length.toString(16)}\r\n${event}\r\n`);
      const [chunk] = await once(response, 'data');
      assert.equal(String(chunk), event);
    }
    response.destroy();
  });

  it('is aborted when its body is idle for too long, unless it is an event stream', async () => {
    const endless = (type: string) => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: 10\r\n\r\nhello`;
    const plain = await startResponding(endless('text/plain'), { idleTimeoutMs: 40 });
    const strict = await startResponding(endless('text/event-stream'), { mapping: { idleTimeoutMs: 40 } });
    await assert.rejects(text(await get(strict.edge.port)), { code: 'ECONNRESET' });
    const events = await startResponding(endless('text/event-stream'), { idleTimeoutMs: 40 });
    const stream = await get(events.edge.port);
    await assert.rejects(text(await get(plain.edge.port)), { code: 'ECONNRESET' });
    events.sockets[0]?.write('world');
    assert.equal(await text(stream), 'helloworld');
  });

  it('is cut off when its client reads so slowly that other requests get no slot', async () => {
    const upstream = await servers.http(({ url }, res) => void res.end(url === '/' ? 'ok' : large));
    const circuitBreakers = breakersOf({ maxRequests: 4 });
    const traffic = createTraffic();
    const edge = await startEdge(servers, { upstream, traffic, mapping: { circuitBreakers, idleTimeoutMs: 0 } });
    // Each reads something now and then, so that its response never pauses for long.
    const readers = Array.from({ length: 4 }, () => {
      const client = connect(edge.port, '127.0.0.1', () =>
        client.write('GET /v1/hotels/large HTTP/1.1\r\nHost: a\r\n\r\n'),
      );
      client.on('data', () => client.pause()).on('error', () => {});
      return { client, timer: setInterval(() => client.resume(), 4000) };
    });
    await eventually(() => assert.equal(traffic.of('hotel')?.inFlight, 4));
    assert.equal((await get(edge.port)).statusCode, 503);
    await eventually(async () => assert.equal((await get(edge.port)).statusCode, 200), 300);
    assert.deepEqual(
      edge.log.filter(({ fields }) => fields['problem'] !== 'upstream-overloaded'),
      [],
    );
    for (const { client, timer } of readers) {
      clearInterval(timer);
      client.destroy();
    }
  });

  it('is complete when a host app has sent its headers before', async () => {
    const { edge } = await startResponding(
      'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n',
      { host: [(ctx, next) => next().then(() => ctx.flushHeaders())] },
    );
    assert.equal(await text(await get(edge.port)), 'ok');
  });

  for (const framing of ['Content-Length: 5\r\n\r\nhello', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'])
    it(`with ${framing.slice(0, framing.indexOf(':'))} may be changed by a host app after the gateway`, async () => {
      const { edge, sockets } = await startResponding(`HTTP/1.1 200 OK\r\n${framing}`, {
        host: [
          async (ctx, next) => {
            await next();
            await new Promise((resolve) => setImmediate(resolve));
            ctx.set('X-Host', String(ctx.status));
          },
        ],
      });
      const response = await get(edge.port);
      sockets[0]?.write('0\r\n\r\n');
      assert.equal(await text(response), 'hello');
      assert.equal(response.headers['x-host'], '200');
    });

  it('is aborted when a host app replaces it', async () => {
    const gone = createDeferred();
    const upstream = await servers.http((_req, res) => {
      res.once('close', gone.resolve);
      res.write('first');
    });
    const replace: EdgeOptions['host'] = [
      async (ctx, next) => {
        await next();
        ctx.body = 'other';
        await gone.promise;
      },
    ];
    const edge = await startEdge(servers, { upstream, host: replace });
    assert.equal(await text(await get(edge.port)), 'other');
  });

  for (const [who, holdsBack] of [
    ['the client does not read it', false],
    ['a host app delays it', true],
  ] as const)
    it(`is not read while ${who}`, async () => {
      const bytes = 32 * 1024 * 1024;
      let sent = 0;
      function* chunks() {
        for (const chunk = Buffer.alloc(256 * 1024); sent < bytes; sent += chunk.length) yield chunk;
      }
      const upstream = await servers.http((_req, res) => void Readable.from(chunks()).pipe(res));
      const go = createDeferred();
      const edge = await startEdge(servers, {
        upstream,
        host: holdsBack ? [(_ctx, next) => next().then(() => go.promise)] : [],
      });
      const pending = get(edge.port);
      if (!holdsBack) (await pending).pause();
      for (let before = -1; before !== sent || sent === 0; await sleep(20)) before = sent;
      assert.ok(sent < bytes / 2, `${sent} bytes were read for a client that reads none`);
      go.resolve();
      const received = Buffer.concat(await (await pending).toArray()).length;
      assert.equal(received, bytes);
    });
});

describe('a forwarded request', () => {
  it('extends Via, and is rejected with 508 after too many passes through the gateway', async () => {
    const upstream = await startUpstream(servers);
    const { port } = await startEdge(servers, { upstream });
    const via = (...values: string[]) =>
      sendRaw(port, rawRequest('GET /v1/hotels', values.length > 0 ? [`Via: ${values.join(', ')}`] : []));
    await via();
    await via('1.0 fred', '1.1 frontdesk');
    assert.deepEqual(
      upstream.reached.map(({ headers }) => headers.via),
      ['1.1 frontdesk', '1.0 fred, 1.1 frontdesk, 1.1 frontdesk'],
    );
    assert.equal(statusOf(await via(...Array(4).fill('1.1 frontdesk'))), 200);
    assert.equal(statusOf(await via(...Array(5).fill('1.1 frontdesk'))), 508);
    assert.equal(upstream.reached.length, 3);
  });

  it('is rejected with 508 when its service is the gateway itself', async () => {
    let own = '';
    const edge = await startEdge(servers, {
      mapping: { rewrite: '' },
      targets: { hotel: { kind: 'remote', origins: () => [own], path: '' } },
    });
    own = edge.origin;
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))), 508);
  });

  const own = 'the address of the service';
  for (const [what, sent, hostRewrite, expected] of [
    [
      'the host that the client requested, in the same spelling',
      'API.example.com:8080',
      undefined,
      'API.example.com:8080',
    ],
    ['an address that the client requested', '[::1]:8080', undefined, '[::1]:8080'],
    ['the host that the mapping sets', 'front.example', 'inner.example', 'inner.example'],
    ['the host of the service if the mapping says so', 'front.example', '{service}', own],
    ['the host of the service instead of an empty one', '', undefined, own],
    ['the host of the service instead of one that is invalid in a URL', "a;b'c", undefined, own],
    ['the host of the service instead of an invalid address', '1.2.3.4.5', undefined, own],
    ['the host of the service instead of one with an invalid port', 'front.example:99999', undefined, own],
  ] as const)
    it(`has ${what}`, async () => {
      const upstream = await startUpstream(servers);
      const edge = await startEdge(servers, { upstream, mapping: { hostRewrite } });
      await sendRaw(edge.port, `GET /v1/hotels HTTP/1.1\r\nHost: ${sent}\r\nConnection: close\r\n\r\n`);
      const authority = upstream.origin.slice('http://'.length);
      assert.equal(upstream.only().headers.host, expected === own ? authority : expected);
    });

  it('has the X-Forwarded-Host of a trusted proxy as its host', async () => {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, { upstream, addresses: { trustedProxies: ['127.0.0.1'] } });
    await sendRaw(edge.port, rawRequest('GET /v1/hotels', ['X-Forwarded-Host: travel.example']));
    assert.equal(upstream.only().headers.host, 'travel.example');
  });

  it('is rejected if it has two hosts or an invalid one', async () => {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, { upstream });
    for (const hosts of ['front.example/x', 'user@front.example', 'a\r\nHost: b'])
      assert.equal(
        statusOf(await sendRaw(edge.port, `GET /v1/hotels HTTP/1.1\r\nHost: ${hosts}\r\nConnection: close\r\n\r\n`)),
        400,
      );
    assert.equal(upstream.reached.length, 0);
  });

  for (const [what, status, timeoutMs] of [
    // Long enough for the response to arrive in time on a busy machine.
    ['does not time out while the client sends its body', 200, 700],
    ['times out when the response is late after the end of its body', 504, 50],
  ] as const)
    it(what, async () => {
      const bodies: string[] = [];
      const upstream = await servers.http(async (req, res) => {
        bodies.push(await text(req));
        if (status === 200) res.end();
      });
      const edge = await startEdge(servers, { upstream, mapping: { timeoutMs } });
      const socket = connect(edge.port, '127.0.0.1');
      socket.write(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'hel'));
      await sleep(timeoutMs + 30);
      socket.write('lo');
      assert.equal(statusOf(await text(socket)), status);
      assert.deepEqual(bodies, ['hello']);
    });

  it('gets a 408 when the client stalls within its body', async () => {
    const aborted = createDeferred();
    const upstream = await servers.http((req) => void req.on('error', aborted.resolve).resume());
    const edge = await startEdge(servers, { upstream, idleTimeoutMs: 50 });
    const head = ['Content-Length: 80000'];
    for (const sent of ['hel', 'x'.repeat(70_000)]) {
      const response = await sendRaw(edge.port, rawRequest('POST /v1/hotels', head, sent));
      assert.match(response, /^HTTP\/1\.1 408 [\s\S]*connection: close/i);
    }
    await aborted.promise;
  });

  it('gets a 503 when the service refuses connections, even if the client is sending a large body', async () => {
    const edge = await startEdge(servers, { upstream: await servers.refusing() });
    const body = 'x'.repeat(300_000);
    const response = await sendRaw(edge.port, rawRequest('POST /v1/hotels', [`Content-Length: ${body.length}`], body));
    assert.equal(statusOf(response), 503);
  });

  it('gets a 504 when the service does not read its body', async () => {
    const upstream = await servers.tcp((socket) => void socket.pause());
    const bodyBytesMax = 32 * 1024 * 1024;
    const edge = await startEdge(servers, { upstream, bodyBytesMax, idleTimeoutMs: 200 });
    const body = 'x'.repeat(bodyBytesMax / 2);
    const response = await sendRaw(edge.port, rawRequest('POST /v1/hotels', [`Content-Length: ${body.length}`], body));
    assert.equal(statusOf(response), 504);
  });

  const perTry = { retryOn: [], numRetries: 0, perTryTimeoutMs: 700, statusCodes: [] };
  for (const [name, mapping] of [
    ['timeout_ms', { timeoutMs: 700 }],
    ['per_try_timeout_ms', { retryPolicy: perTry }],
  ] as const)
    it(`may exceed ${name} while the service reads its body, after which the time starts again`, async () => {
      const upstream = await servers.http((req, res) => {
        setTimeout(() => req.resume().once('end', () => req.url === '/read' && res.end('read')), 900);
      });
      const bodyBytesMax = 32 * 1024 * 1024;
      const edge = await startEdge(servers, { upstream, bodyBytesMax, mapping });
      const body = 'x'.repeat(bodyBytesMax / 2);
      const head = [`Content-Length: ${body.length}`];
      for (const [path, status] of [
        ['read', 200],
        ['ignored', 504],
      ] as const)
        assert.equal(statusOf(await sendRaw(edge.port, rawRequest(`POST /v1/hotels/${path}`, head, body))), status);
    });
});
