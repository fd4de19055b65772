/** Services that misbehave, for real: each way of failing in the table has one here, and each one here its row. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import type { Socket } from 'node:net';
import { errors } from 'undici';
import { Problem, problems } from '#http';
import { type Failure, failures, upstreamProblem } from '../../src/proxy/failures.ts';
import { mappingOf, remote, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

describe('a service that fails', () => {
  const servers = testServers();

  const misbehaving = (behave: (socket: Socket) => void) => () =>
    servers.tcp((socket) => void socket.once('data', () => behave(socket)));

  const silent = misbehaving(() => {});

  function check(how: string, start: () => Promise<Served>, expected: { status: number; retryAfter?: string }) {
    it(`because it ${how} is a ${expected.status} that tells nothing of the inside`, async () => {
      const upstream = await start();
      const edge = await startEdge(servers, {
        mappings: [mappingOf({ timeoutMs: 150 })],
        targets: { hotel: remote(upstream) },
      });
      const answer = await fetch(`${edge.origin}/v1/hotels`);
      assert.equal(answer.status, expected.status);
      assert.equal(answer.headers.get('retry-after') ?? undefined, expected.retryAfter);
      assert.equal(answer.headers.get('content-type'), 'application/json');
      assert.deepEqual(await answer.json(), {
        code: expected.status,
        message: `${expected.status}: ${answer.statusText}`,
      });
      assert.deepEqual(
        edge.log.map(({ level }) => level),
        ['warn'],
      );
      assert.deepEqual(edge.errors, []);
    });
  }

  check('refuses the connection', servers.refusing, { status: 503, retryAfter: '1' });
  check('has no such name', async () => ({ origin: 'http://no-such-host.invalid', port: 80 }), {
    status: 503,
    retryAfter: '5',
  });
  check('never answers', silent, { status: 504 });
  check(
    'answers too slowly',
    misbehaving((socket) => void socket.write('HTTP/1.1 200 OK\r\n')),
    { status: 504 },
  );
  check(
    'ends the connection before it answers',
    misbehaving((socket) => socket.end()),
    { status: 502 },
  );
  check(
    'resets the connection before it answers',
    misbehaving((socket) => socket.resetAndDestroy()),
    { status: 502 },
  );
  check(
    'answers with something that is not HTTP',
    misbehaving((socket) => socket.end('220 mail.example ESMTP\r\n')),
    { status: 502 },
  );
  check(
    'answers with two lengths',
    misbehaving((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab')),
    { status: 502 },
  );
  check(
    'splits a header over lines',
    misbehaving((socket) => socket.end('HTTP/1.1 200 OK\r\nX-A: b\r\n c: d\r\n\r\n')),
    { status: 502 },
  );
  check(
    'answers with endless headers',
    misbehaving((socket) => socket.write(`HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(20_000)}\r\n`)),
    { status: 502 },
  );
  check(
    'switches to a protocol that nobody asked for',
    misbehaving((socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: odd\r\nConnection: upgrade\r\n\r\n'),
    ),
    { status: 502 },
  );

  it('with the body of a POST on its way answers the client all the same', async () => {
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ timeoutMs: 150 }), mappingOf({ prefix: '/v1/cars', service: 'car' })],
      targets: { hotel: remote(await silent()), car: remote(await servers.refusing()) },
    });
    const body = 'x'.repeat(300_000);
    const request = (path: string) => rawRequest(`POST ${path}`, [`Content-Length: ${body.length}`], body);
    assert.match(await sendRaw(edge.port, request('/v1/hotels')), /^HTTP\/1\.1 504 /);
    assert.match(await sendRaw(edge.port, request('/v1/cars')), /^HTTP\/1\.1 503 /);
  });

  it('in the middle of its answer breaks the connection with the client, and harms nothing else', async () => {
    for (const die of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
      for (const head of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
        let service: Socket | undefined;
        const upstream = await servers.tcp((socket) => {
          service = socket;
          socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\nhello\r\n`));
        });
        const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
        const [answer] = await once(get(`${edge.origin}/v1/hotels`, { agent: false }), 'response');
        await once(answer, 'data');
        assert.ok(service !== undefined);
        die(service);
        const [error] = await once(answer.resume(), 'error');
        assert.equal(error.code, 'ECONNRESET');
        assert.ok(edge.errors.length > 0, 'the app hears of it');
        assert.equal((await fetch(`${edge.origin}/nowhere`)).status, 404);
      }
    }
  });
});

describe('the table of failures', () => {
  function check(code: string, { slug, retryAfter, remedy }: Failure) {
    it(`makes ${code} ${slug}`, () => {
      const cause = Object.assign(new Error('connect 10.0.0.7:80'), { code });
      const found = upstreamProblem(cause);
      assert.equal(found.slug, slug);
      assert.equal(found.headers?.['Retry-After'], retryAfter?.toString());
      assert.equal(found.detail, undefined);
      if (remedy === undefined) assert.equal(found.cause, cause);
      else {
        assert.match(String(found.cause), /^Error: connect 10\.0\.0\.7:80: \w/);
        assert.equal((found.cause as Error).cause, cause);
      }
    });
  }

  for (const [code, failure] of Object.entries(failures)) check(code, failure);
  check('SOMETHING_NEW', { slug: 'upstream-failed', retry: 'reset' });
  check('HPE_SOMETHING_NEW', failures['HPE_'] as Failure);
  check('ERR_SSL_SOMETHING_NEW', failures['ERR_SSL_'] as Failure);

  it('takes whatever is thrown', () => {
    for (const thrown of [undefined, null, 'text', 7, {}, { code: 7 }, { code: 'toString' }, new Error('x')])
      assert.ok(upstreamProblem(thrown) instanceof Problem);
  });

  it('says to try again exactly where the problem promises it', () => {
    for (const [code, { slug, retryAfter }] of Object.entries(failures))
      assert.equal(retryAfter !== undefined, problems[slug].status === 503, code);
  });

  it('has a row for every error that the client library exports, and no other of its kind', () => {
    const codes = Object.values(errors).map((Kind) => {
      const one = new (Kind as unknown as new (...some: unknown[]) => Error & { code?: string })('', undefined, {});
      return one.code ?? (one.name === 'HTTPParserError' ? 'HPE_' : 'UND_ERR_SOCKS5');
    });
    const known = Object.keys(failures).filter(
      (code) => code.startsWith('UND_') || code.startsWith('ERR_WEB') || code === 'HPE_',
    );
    assert.deepEqual([...new Set(codes)].sort(), known.sort());
  });
});
