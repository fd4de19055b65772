/** Mappings that redirect, without authentication or rate limits. */
import assert from 'node:assert/strict';
import type { Middleware } from 'koa';
import type { Redirect } from '#config';
import { requestContext } from '#http';
import {
  authRecordOf,
  type EdgeOptions,
  labelled,
  limitRecordOf,
  mappingOf,
  redirectOf,
  startEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

describe('a mapping that is a redirect', () => {
  const servers = testServers();

  const labels = { gateway: labelled('host') };
  const setUp = (redirect: Partial<Redirect>, options: EdgeOptions = {}) =>
    startEdge(servers, {
      mappings: [mappingOf({ labels, redirect: redirectOf(redirect) })],
      authService: authRecordOf(),
      authPort: () => assert.fail('asked'),
      rateLimitService: limitRecordOf(),
      limiter: { shouldRateLimit: () => ({ overallCode: 'OVER_LIMIT', statuses: [] }) },
      ...options,
    });

  it('responds to every method with status and Location, without a body, authentication or rate limits', async () => {
    const seen: unknown[] = [];
    const edge = await setUp(
      { host: 'new.example', status: 308 },
      { inside: [(ctx, next) => next().then(() => seen.push(requestContext(ctx).mapping))] },
    );
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
      const response = await fetch(`${edge.origin}/v1/hotels/x?y=%20&y=2`, { method, redirect: 'manual' });
      assert.equal(response.status, 308);
      assert.equal(response.headers.get('location'), 'http://new.example/v1/hotels/x?y=%20&y=2');
      assert.equal(response.headers.get('content-type'), null);
      assert.equal(await response.text(), '');
    }
    assert.deepEqual(new Set(seen), new Set(['hotel']));
  });

  it('keeps the host of the request, and ignores X-Forwarded-Host from a client', async () => {
    const edge = await setUp({ path: { kind: 'prefix', value: '/v2/hotels' } });
    const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels/x', ['X-Forwarded-Host: evil.example']));
    assert.match(response, /\r\nLocation: http:\/\/front\.example\/v2\/hotels\/x\r\n/i);
  });

  it('keeps the path where a host app has mounted the gateway', async () => {
    const unmount: Middleware = (ctx, next) => {
      ctx.url = ctx.url.slice('/travel'.length);
      return next();
    };
    const edge = await setUp({ path: { kind: 'path', value: '/v2' }, status: 302 }, { host: [unmount] });
    const response = await fetch(`${edge.origin}/travel/v1/hotels?y`, { redirect: 'manual' });
    assert.deepEqual([response.status, response.headers.get('location')], [302, `${edge.origin}/travel/v2?y`]);
  });

  /** Each request is for `http://front.example/v1/hotels/x?y`. */
  for (const [what, redirect, expected] of [
    ['regex matches', { path: { kind: 'regex', pattern: '/x$', substitution: '/z' } }, '/v1/hotels/z?y'],
    ['regex does not match', { path: { kind: 'regex', pattern: '/q$', substitution: '/z' } }, undefined],
    ['target is the path of the request', { path: { kind: 'path', value: '/v1/hotels/x' } }, undefined],
    ['target is the prefix itself', { path: { kind: 'prefix', value: '/v1/hotels' } }, undefined],
    ['host is the one of the request', { host: 'front.example' }, undefined],
  ] as const)
    it(`${expected === undefined ? 'responds with 404 instead of an endless redirect' : 'redirects'} when its ${what}`, async () => {
      const edge = await setUp(redirect);
      const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels/x?y'));
      const location = /\r\nLocation: http:\/\/front\.example(.*)\r\n/i.exec(response)?.[1];
      assert.deepEqual([response.slice(9, 12), location], [expected === undefined ? '404' : '301', expected]);
    });

  /** Each row has the method of the request, of the redirect and of another mapping. Undefined means any method. */
  for (const [expected, sent, own, other] of [
    ['303', 'POST', undefined, 'GET'],
    ['303', 'POST', 'POST', undefined],
    ['404', 'POST', undefined, 'PUT'],
    ['404', 'GET', undefined, 'POST'],
    ['404', 'HEAD', 'HEAD', 'GET'],
  ] as const)
    it(`responds with ${expected} to ${sent} if a 303 for ${own ?? 'any method'} leads to its own URL, beside a mapping for ${other ?? 'any'}`, async () => {
      const mapping = (name: string, method: string | undefined, host?: string) =>
        mappingOf({
          name,
          redirect: redirectOf({ host, status: 303 }),
          method: method === undefined ? undefined : { kind: 'exact', value: method },
        });
      const edge = await setUp({}, { mappings: [mapping('own', own), mapping('other', other, 'other.example')] });
      const response = await sendRaw(edge.port, rawRequest(`${sent} /v1/hotels/x?y`));
      assert.equal(response.slice(9, 12), expected);
    });
});
