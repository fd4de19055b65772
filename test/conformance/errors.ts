/** Section 7: the error body, in whatever representation, and the request id to ask about it. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { below, call, callAsDemo, type OpenDesk } from './desk.ts';

/** One of each layer: the gateway, a version, a service, the language of lists. */
const errors: readonly (readonly [path: string, status: number, reason: string, title: string])[] = [
  ['/nowhere', 404, 'Not Found', 'Not found'],
  ['/v1/messages/999', 404, 'Not Found', 'Not found'],
  ['/v1/hotels/bookings/none', 404, 'Not Found', 'Not found'],
  ['/v1/messages/?limit=none', 400, 'Bad Request', 'Bad argument'],
  ['/v1/hotels?limit=none', 400, 'Bad Request', 'Bad argument'],
];

/** As clients ask that know of both. */
const both = 'application/json, application/problem+json';

export function errorCases(desk: OpenDesk): void {
  describe('errors', () => {
    for (const [path, status, reason, problemTitle] of errors) {
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
        const plain = await callAsDemo(desk, path);
        assert.deepEqual({ type, title, told }, { type: plain.body.info_url, title: problemTitle, told: status });
        assert.deepEqual(body, plain.body);
      });

      it(`lead to a page about the problem, for programs and for people: ${path}`, async () => {
        const { body } = await callAsDemo(desk, path);
        assert.ok(body.info_url.startsWith(`${desk().gatewayUrl}/`), body.info_url);
        const page = below(desk, new URL(body.info_url).pathname);
        const { body: told } = await callAsDemo(desk, page).expect(200);
        assert.deepEqual([told.problem, told.title, told.status], [page.split('/').at(-1), problemTitle, status]);
        const shown = await callAsDemo(desk, page).set('Accept', 'text/html').expect(200);
        assert.ok(shown.text.includes(`<h1>${problemTitle}</h1>`));
        const html = await callAsDemo(desk, path).set('Accept', 'text/html');
        assert.ok(html.text.includes(`<a href="${body.info_url}">`));
      });

      it(`are not to be kept by a cache: ${path}`, async () => {
        await callAsDemo(desk, path).expect('Cache-Control', 'no-store');
      });
    }
  });

  describe('the pages about problems', () => {
    it('need no credentials', async () => {
      const { body } = await call(desk, '/nowhere').expect(404);
      const page = below(desk, new URL(body.info_url).pathname);
      assert.equal(page, '/gateway/v0/problems/not-found');
      const { body: told } = await call(desk, page).expect(200);
      assert.equal(told.problem, 'not-found');
    });

    it('are listed, and there are no others', async () => {
      const { body } = await call(desk, '/gateway/v0/problems/').expect(200);
      assert.ok(body.problems.length > 30);
      for (const { problem } of body.problems) await call(desk, `/gateway/v0/problems/${problem}`).expect(200);
      await call(desk, '/gateway/v0/problems/nothing').expect(404);
    });
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
