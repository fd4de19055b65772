/** The problem pages, and the `info_url` of errors, which links to them. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { parse } from 'yaml';
import { createProblemPages, problemPagesPath } from '#diag';
import { silentLogger } from '#foundation';
import { createProblemResponses, problemTitle } from '#http';
import type { FrontdeskOptions } from '../../src/index.ts';
import { problemTable } from '../../src/server/problems.ts';
import { authRecord, call, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

describe('createProblemPages', () => {
  const pages = new Koa()
    .use(createProblemResponses({ logger: silentLogger }))
    .use(createProblemPages(problemTable).run);
  const app = pages.callback();
  const host = new Koa().use(mount('/travel', pages)).callback();
  const page = `${problemPagesPath}sold-out`;
  const all = Object.entries(problemTable).map(([problem, kind]) => {
    const { status, meaning, remedy } = kind;
    return { problem, title: problemTitle(problem, kind), status, meaning, remedy };
  });

  it('serves a page for each problem, and a list of all in the order of the table', async () => {
    for (const shown of all)
      await request(app)
        .get(problemPagesPath + shown.problem)
        .expect(200, shown);
    await request(app).get(problemPagesPath).expect(200, { problems: all });
  });

  it('renders title, status, meaning and remedy as HTML, with one style and no script', async () => {
    const { text, headers } = await request(app).get(page).set('Accept', 'text/html').expect(200);
    for (const part of [
      '<title>Sold out</title>',
      '<h1>Sold out</h1>',
      'Status 409 Conflict',
      `<p class="lead">${problemTable['sold-out']?.meaning}</p>`,
      '<p>Book one of <code>alternatives</code>, or other dates.</p>',
    ])
      assert.ok(text.includes(part), part);
    assert.match(headers['content-security-policy'] ?? '', /^default-src 'none';.* style-src 'sha256-[\w+/]+=';/);
    assert.doesNotMatch(text.replace('http://www.w3.org/2000/svg', ''), /<script|style=|https?:\/\//);
  });

  it('links the list and the pages to each other, also below a mount path', async () => {
    const check = async (path: string, link: RegExp, expected: string) => {
      const { text } = await request(host).get(path).set('Accept', 'text/html').expect(200);
      const [, href = ''] = link.exec(text) ?? [];
      assert.equal(new URL(href, `http://desk.test${path}`).pathname, expected);
    };
    const list = `/travel${problemPagesPath}`;
    await check(list, /<a href="([^"]*)">Sold out</, `${list}sold-out`);
    await check(`${list}sold-out`, /<a href="([^"]*)">All problems</, list);
  });

  it('responds the same to every request, with an ETag for each representation', async () => {
    const tags = new Set<string | undefined>();
    for (const accept of ['application/json', 'application/yaml', 'text/html'])
      for (const path of [page, problemPagesPath]) {
        const plain = await request(app).get(path).set('Accept', accept).buffer(true);
        const { text } = await request(app)
          .get(`${path}?mark=mark`)
          .set({ Accept: accept, Host: 'mark.example', Referer: 'http://mark', 'X-Request-Id': 'mark' })
          .buffer(true);
        assert.ok(text.length > 0);
        assert.equal(text, plain.text);
        if (accept === 'application/yaml' && path === page)
          assert.deepEqual(
            parse(text),
            all.find(({ problem }) => problem === 'sold-out'),
          );
        const tag = plain.headers['etag'] ?? '';
        tags.add(tag);
        await request(app).get(path).set({ Accept: accept, 'If-None-Match': tag }).expect(304);
      }
    assert.equal(tags.size, 6);
  });

  it('responds with 404 to any other name and method', async () => {
    for (const name of ['nothing', 'not-found/', 'Not-Found', 'constructor', '__proto__', 'not-found/x'])
      for (const method of ['get', 'post'] as const)
        await request(app)
          [method](problemPagesPath + name)
          .expect(404);
  });
});

describe('info_url', () => {
  const servers = testServers();
  const open = desksOf(servers);

  /** `expected` is relative to `base`, the URL of the problem pages. */
  const checks = async (options: FrontdeskOptions, base: string, headers: Readonly<Record<string, string>> = {}) => {
    const opened = await open(options);
    return async (path: string, expected: string, more: Readonly<Record<string, string>> = {}) => {
      const { body } = await call(opened, path).set({ Host: 'desk.test', ...headers, ...more });
      assert.equal(body.info_url, `${base}/gateway/v0/problems/${expected}`);
    };
  };

  it('is relative to the root of the server for errors of every layer', async () => {
    const check = await checks({}, 'http://desk.test');
    await check('/nowhere', 'not-found');
    await check('/v1/hotels', 'unauthorized');
    await check('/v1/messages/0', 'not-found');
    await check('/a/%2e%2e/b', 'bad-path');
    await check('/v1/hotels/bookings/?limit=x', 'bad-argument', { authorization: `Basic ${btoa('demo:demo')}` });
  });

  it('links to a page in a process without a gateway too', async () => {
    const services = await open({ only: ['hotel', 'car'] });
    const { body } = await call(services, '/hotel/bookings/').expect(401);
    const { body: page } = await call(services, new URL(body.info_url).pathname).expect(200);
    assert.equal(page.problem, 'unauthorized');
  });

  it('starts with PUBLIC_URL if that is set', async () => {
    const publicUrl = 'https://api.example.com/shop';
    await (await checks({ publicUrl }, publicUrl))('/v1/messages/0', 'not-found');
  });

  it('includes the prefix that a trusted proxy stripped, and ignores that of other clients', async () => {
    const headers = { 'X-Forwarded-Prefix': '/travel', 'X-Forwarded-Host': 'api.example.com' };
    const trusting = await checks({ trustedProxies: ['127.0.0.1', '::1'] }, 'http://api.example.com/travel', headers);
    const ignoring = await checks({}, 'http://desk.test', headers);
    for (const check of [trusting, ignoring])
      for (const path of ['/nowhere', '/v1/messages/0']) await check(path, 'not-found');
  });

  it('includes the path under which an app mounts the server', async () => {
    const host = new Koa().use(mount('/travel', (await open({})).middleware)).callback();
    for (const path of ['/travel/nowhere', '/travel/v1/messages/0', '/travel/v1/hotels', '/travel/v1/..%2fx']) {
      const { body } = await request(host).get(path).set('Host', 'desk.test');
      assert.match(body.info_url, /^http:\/\/desk\.test\/travel\/gateway\/v0\/problems\/[a-z-]+$/);
      await request(host).get(new URL(body.info_url).pathname).expect(200);
    }
  });

  it('is the type of problem details: as a path, or with PUBLIC_URL as the same URL for every host', async () => {
    const typeOf = async (handler: RequestListener, path: string, host: string) => {
      const response = await request(handler).get(path).set({ Host: host, Accept: 'application/problem+json' });
      return JSON.parse(response.text).type;
    };
    const mounted = new Koa().use(mount('/travel', (await open({})).middleware)).callback();
    const published = (await open({ publicUrl: 'https://travel.example/api' })).app.callback();
    for (const host of ['one.test', 'other.test:8080'])
      for (const path of ['/nowhere', '/v1/messages/0', '/v1/..%2fx']) {
        const slug = path.includes('..') ? 'bad-path' : 'not-found';
        assert.equal(await typeOf(mounted, `/travel${path}`, host), `/travel/gateway/v0/problems/${slug}`);
        assert.equal(await typeOf(published, path, host), `https://travel.example/api/gateway/v0/problems/${slug}`);
      }
  });

  it("is omitted from an error whose status was chosen by a program's own service", async () => {
    const own = await open({
      config: { records: [mappingRecord('own', '/own', 'own')] },
      services: { own: (ctx) => ctx.throw(409, 'Taken.') },
    });
    const { text } = await call(own, '/own').set('Accept', 'application/problem+json').expect(409);
    const body = { code: 409, message: '409: Conflict', detail: 'Taken.' };
    assert.deepEqual(JSON.parse(text), { type: 'about:blank', title: 'Conflict', status: 409, ...body });
  });

  it('is omitted from a 404 of an auth service', async () => {
    const guard = await servers.http((_request, response) => void response.writeHead(404).end());
    const guarded = await open({
      config: { records: [{ ...authRecord, auth_service: guard.origin }, mappingRecord('own', '/own', 'own')] },
      services: { own: () => {} },
    });
    await call(guarded, '/own').expect(404, { code: 404, message: '404: Not Found' });
  });
});
