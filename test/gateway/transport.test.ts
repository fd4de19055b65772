/** A service in this process sees its own path, which is restored afterwards. */
import assert from 'node:assert/strict';
import Koa, { type Context } from 'koa';
import { publicBase, requestContext } from '#http';
import type { PathRule } from '#routing';
import { rewritten } from '../../src/gateway/transport.ts';

function contextOf(url: string): Context {
  const headers = { host: 'front.example' };
  return new Koa().createContext({ headers, url, method: 'GET', socket: {} } as never, {} as never) as Context;
}

describe('a service in this process', () => {
  function check(rule: PathRule, asked: string, expected: { url: string; base: string }) {
    it(`sees ${expected.url} below ${expected.base} for ${asked} (${JSON.stringify(rule)})`, async () => {
      const ctx = contextOf(asked);
      let seen: { url: string; base: string } | undefined;
      await rewritten(rule, async () => {
        seen = { url: ctx.url, base: publicBase(ctx) };
      })(ctx);
      assert.deepEqual(seen, { ...expected, base: `http://front.example${expected.base}` });
      assert.equal(ctx.url, asked);
      assert.equal(requestContext(ctx).basePath, '');
    });
  }

  const byDefault = { prefix: '/v1/hotels', rewrite: '/' };
  check(byDefault, '/v1/hotels/bookings/1?a=1&a=2', { url: '/bookings/1?a=1&a=2', base: '/v1/hotels' });
  check(byDefault, '/v1/hotels?a', { url: '/?a', base: '/v1/hotels' });
  check(byDefault, '/v1/hotels//evil.example', { url: '/evil.example', base: '/v1/hotels' });
  check({ prefix: '/v1/hotels', rewrite: '' }, '/v1/hotels/x', { url: '/v1/hotels/x', base: '' });
  check({ prefix: '/', rewrite: '/' }, '/x', { url: '/x', base: '' });

  it('sees its path restored also when it fails', async () => {
    const ctx = contextOf('/v1/hotels/x?y');
    const failing = rewritten(byDefault, async () => {
      throw new Error('broken');
    });
    await assert.rejects(failing(ctx), /broken/);
    assert.equal(ctx.url, '/v1/hotels/x?y');
    assert.equal(requestContext(ctx).basePath, '');
  });

  it('runs without a wrapper where nothing is rewritten', () => {
    const run = async () => {};
    assert.equal(rewritten({ prefix: '/gateway', rewrite: '' }, run), run);
  });
});
