/** Errors: the same body in every representation, a page about each problem, and the request id. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { below, call, callAsDemo, type OpenDesk } from './desk.ts';

/** One error from each layer: the gateway, a version, a service and the query parser. */
const errors: readonly (readonly [path: string, status: number, reason: string, title: string])[] = [
  ['/nowhere', 404, 'Not Found', 'Not found'],
  ['/v1/messages/999', 404, 'Not Found', 'Not found'],
  ['/v1/hotels/bookings/none', 404, 'Not Found', 'Not found'],
  ['/v1/messages/?limit=none', 400, 'Bad Request', 'Bad argument'],
  ['/v1/hotels?limit=none', 400, 'Bad Request', 'Bad argument'],
];

export function errorCases(desk: OpenDesk): void {
  const get = (path: string, accept = '*/*') => callAsDemo(desk, path).set('Accept', accept);
  const pageOf = (body: { info_url: string }) => below(desk, new URL(body.info_url).pathname);

  describe('errors', () => {
    for (const [path, status, reason, title] of errors) {
      it(`have the same body in JSON, YAML, HTML and application/problem+json: ${path}`, async () => {
        const { body } = await get(path).expect(status).expect('Cache-Control', 'no-store');
        const { code, message, info_url: page, detail: _detail, errors: _errors, ...unknown } = body;
        assert.deepEqual([code, message, unknown], [status, `${status}: ${reason}`, {}]);
        assert.deepEqual(parse((await get(path, 'application/yaml').expect(status)).text), body);
        const html = await get(path, 'text/html').expect(status);
        assert.ok(html.text.includes(`${status}: ${reason}`) && html.text.includes(`<a href="${page}">`));
        // RFC 9457.
        const { text } = await get(path, 'application/json, application/problem+json').expect(status);
        assert.deepEqual(JSON.parse(text), { ...body, type: new URL(page).pathname, title, status });
      });

      it(`have a type that does not depend on the host that the client asked for: ${path}`, async () => {
        const typeFor = async (host: string) => {
          const response = await get(path, 'application/problem+json').set('Host', host);
          return JSON.parse(response.text).type;
        };
        assert.equal(await typeFor('one.test'), await typeFor('other.test:8080'));
      });

      it(`link to a page about the problem: ${path}`, async () => {
        const { body } = await get(path);
        assert.ok(body.info_url.startsWith(`${desk().gatewayUrl}/`), body.info_url);
        const page = await get(pageOf(body)).expect(200);
        const slug = pageOf(body).split('/').at(-1);
        assert.deepEqual([page.body.problem, page.body.title, page.body.status], [slug, title, status]);
        const html = await get(pageOf(body), 'text/html').expect(200);
        assert.ok(html.text.includes(`<h1>${title}</h1>`));
      });
    }

    it('have pages that are listed and that need no credentials', async () => {
      const { body } = await call(desk, '/gateway/v0/problems/').expect(200);
      assert.ok(body.problems.length > 30);
      for (const { problem } of body.problems) await call(desk, `/gateway/v0/problems/${problem}`).expect(200);
      await call(desk, '/gateway/v0/problems/nothing').expect(404);
      assert.equal(pageOf((await call(desk, '/nowhere')).body), '/gateway/v0/problems/not-found');
    });
  });

  describe('the request id', () => {
    const paths = ['/v1/messages/1', '/v1/hotels', '/nowhere', '/v1/messages'];

    it('is generated for each request without one', async () => {
      const ids = await Promise.all(paths.map(async (path) => (await call(desk, path)).headers['x-request-id']));
      for (const id of ids) assert.match(id ?? '', /^[\w.-]{8,128}$/);
      assert.equal(new Set(ids).size, paths.length);
    });

    it('is that of the client if it is well-formed', async () => {
      for (const path of paths)
        await callAsDemo(desk, path).set('X-Request-Id', 'order-66.a_b').expect('X-Request-Id', 'order-66.a_b');
      const { headers } = await call(desk, '/v1/messages/1').set('X-Request-Id', '<script>');
      assert.notEqual(headers['x-request-id'], '<script>');
    });
  });
}
