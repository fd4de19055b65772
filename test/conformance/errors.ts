/** Section 7: the error body, in whatever representation, and the request id to ask about it. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { call, callAsDemo, type OpenDesk } from './desk.ts';

/** One of each layer: the gateway, a version, a service, the language of lists. */
const errors: readonly (readonly [string, number, string])[] = [
  ['/nowhere', 404, 'Not Found'],
  ['/v1/messages/999', 404, 'Not Found'],
  ['/v1/hotels/bookings/none', 404, 'Not Found'],
  ['/v1/messages/?limit=none', 400, 'Bad Request'],
  ['/v1/hotels?limit=none', 400, 'Bad Request'],
];

/** As clients ask that know of both. */
const both = 'application/json, application/problem+json';

export function errorCases(desk: OpenDesk): void {
  describe('errors', () => {
    for (const [path, status, reason] of errors) {
      it(`have code and message, and nothing that is not in the contract: ${path}`, async () => {
        const { body } = await callAsDemo(desk, path).expect(status);
        assert.equal(body.code, status);
        assert.equal(body.message, `${status}: ${reason}`);
        const known = ['code', 'message', 'info_url', 'detail', 'errors'];
        assert.deepEqual(
          Object.keys(body).filter((name) => !known.includes(name)),
          [],
        );
      });

      it(`are the same in YAML and readable in HTML: ${path}`, async () => {
        const { body } = await callAsDemo(desk, path);
        const yaml = await callAsDemo(desk, path).set('Accept', 'application/yaml').expect(status);
        assert.deepEqual(parse(yaml.text), body);
        const html = await callAsDemo(desk, path).set('Accept', 'text/html').expect(status);
        assert.ok(html.text.includes(`${status}: ${reason}`));
      });

      it(`are RFC 9457 for whoever asks for it, with the members of the contract beside: ${path}`, async () => {
        const { text } = await callAsDemo(desk, path).set('Accept', both).expect(status);
        const { type, title, status: told, ...body } = JSON.parse(text);
        assert.deepEqual({ type, title, told }, { type: 'about:blank', title: reason, told: status });
        const plain = await callAsDemo(desk, path);
        assert.deepEqual(body, plain.body);
      });

      it(`are not to be kept by a cache: ${path}`, async () => {
        await callAsDemo(desk, path).expect('Cache-Control', 'no-store');
      });
    }
  });

  describe('the request id', () => {
    const paths = ['/v1/messages/1', '/v1/hotels', '/nowhere', '/v1/messages'];

    it('is made for whoever brings none, a new one each time', async () => {
      const ids = await Promise.all(paths.map(async (path) => (await call(desk, path)).headers['x-request-id']));
      for (const id of ids) assert.match(id ?? '', /^[\w.-]{8,128}$/);
      assert.equal(new Set(ids).size, paths.length);
    });

    it('is passed through when it is fit to be', async () => {
      for (const path of paths) {
        await callAsDemo(desk, path).set('X-Request-Id', 'order-66.a_b').expect('X-Request-Id', 'order-66.a_b');
      }
      const { headers } = await call(desk, '/v1/messages/1').set('X-Request-Id', '<script>');
      assert.notEqual(headers['x-request-id'], '<script>');
    });
  });
}
