/** The table of failures, and services that fail while a request or response body is sent. */
import assert from 'node:assert/strict';
import { errors } from 'undici';
import { Problem, problems } from '#http';
import { type Failure, failures, upstreamProblem } from '../../src/proxy/failures.ts';
import { startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

describe('a service that fails', () => {
  const servers = testServers();

  it('while the client sends a large body still has its failure sent to the client', async () => {
    const silent = await servers.tcp((socket) => void socket.on('data', () => {}));
    const body = 'x'.repeat(300_000);
    const request = rawRequest('POST /v1/hotels', [`Content-Length: ${body.length}`], body);
    for (const [upstream, status] of [
      [silent, 504],
      [await servers.refusing(), 503],
    ] as const) {
      const { port } = await startEdge(servers, { upstream, mapping: { timeoutMs: 100 } });
      assert.equal(statusOf(await sendRaw(port, request)), status);
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

  it('accepts any thrown value', () => {
    for (const thrown of [undefined, null, 'text', 7, {}, { code: 7 }, { code: 'toString' }, new Error('x')])
      assert.ok(upstreamProblem(thrown) instanceof Problem);
  });

  it('has Retry-After for each 503 and for nothing else', () => {
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
