/** The pages about problems, alone and as errors of a desk lead to them. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { parse } from 'yaml';
import { createProblemPages, problemPagesPath } from '#diag';
import { createProblemResponses, problems, problemTitle, silentLogger } from '#http';
import type { FrontdeskOptions } from '../../src/index.ts';
import { authRecord, call, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

const methods = 'GET, HEAD, OPTIONS';

describe('createProblemPages', () => {
  const endpoint = createProblemPages();
  const pages = new Koa().use(createProblemResponses({ logger: silentLogger })).use(endpoint.run);
  const app = pages.callback();
  const page = `${problemPagesPath}sold-out`;

  it('is open', () => {
    assert.deepEqual([endpoint.prefix, endpoint.authenticated], ['/gateway/v0/problems', false]);
  });

  it('tells all that the table has of each problem', async () => {
    for (const [slug, { status, meaning, remedy }] of Object.entries(problems)) {
      const title = problemTitle(slug as keyof typeof problems);
      await request(app)
        .get(problemPagesPath + slug)
        .expect(200, { problem: slug, title, status, meaning, remedy });
    }
  });

  it('lists them in the order of the table', async () => {
    const { body } = await request(app).get(problemPagesPath).expect(200);
    assert.deepEqual(
      body.problems.map(({ problem }: { problem: string }) => problem),
      Object.keys(problems),
    );
    const [first] = body.problems;
    await request(app)
      .get(problemPagesPath + first.problem)
      .expect(200, first);
  });

  it('says the same in YAML', async () => {
    const { body } = await request(app).get(page);
    const { body: yaml } = await request(app).get(page).set('Accept', 'application/yaml').buffer(true).parse(asText);
    assert.deepEqual(parse(yaml), body);
  });

  it('tells people title, status, meaning and what to do, with one style and no script', async () => {
    const { text, headers } = await request(app).get(page).set('Accept', 'text/html').expect(200);
    assert.ok(text.includes('<title>Sold out</title>') && text.includes('<h1>Sold out</h1>'));
    assert.ok(text.includes('<dd>409 Conflict</dd>'));
    assert.ok(text.includes(`<dd>${problems['sold-out'].meaning}</dd>`));
    assert.ok(text.includes('<dd>Book one of <code>alternatives</code>, or other dates.</dd>'));
    assert.ok(text.includes('color-scheme:light dark'));
    assert.match(headers['content-security-policy'] ?? '', /^default-src 'none'; style-src 'sha256-[\w+/]+=';/);
    assert.doesNotMatch(text, /<script|style=|https?:\/\//);
  });

  it('leads people from the list to each page and back, wherever it is mounted', async () => {
    const host = new Koa().use(mount('/travel', pages)).callback();
    const follow = async (path: string, link: RegExp) => {
      const { text } = await request(host).get(path).set('Accept', 'text/html').expect(200);
      const [, href = ''] = link.exec(text) ?? [];
      return new URL(href, `http://desk.test${path}`).pathname;
    };
    const list = `/travel${problemPagesPath}`;
    assert.equal(await follow(list, /<a href="([^"]*)">Sold out</), `${list}sold-out`);
    assert.equal(await follow(`${list}sold-out`, /<a href="([^"]*)">All problems</), list);
  });

  it('puts nothing of the request on the page', async () => {
    for (const accept of ['application/json', 'application/yaml', 'text/html'])
      for (const path of [page, problemPagesPath]) {
        const plain = await request(app).get(path).set('Accept', accept).buffer(true).parse(asText);
        const odd = await request(app)
          .get(`${path}?mark=mark`)
          .set({ Accept: accept, Host: 'mark.example', Referer: 'http://mark', 'X-Request-Id': 'mark' })
          .buffer(true)
          .parse(asText);
        assert.equal(odd.body, plain.body);
        assert.ok(plain.body.length > 50);
      }
  });

  it('has a tag for each representation, so that who has a page is not sent it again', async () => {
    const { headers } = await request(app).get(page).expect(200);
    await request(app)
      .get(page)
      .set('If-None-Match', headers['etag'] ?? '')
      .expect(304);
    const html = await request(app).get(page).set('Accept', 'text/html');
    assert.notEqual(html.headers['etag'], headers['etag']);
  });

  it('redirects to the slash of the list, with query and mount path', async () => {
    await request(app).get('/gateway/v0/problems?x').expect(308).expect('Location', '/gateway/v0/problems/?x');
    const host = new Koa().use(mount('/travel', pages)).callback();
    await request(host).get('/travel/gateway/v0/problems').expect('Location', '/travel/gateway/v0/problems/');
  });

  for (const name of ['nothing', 'not-found/', 'Not-Found', 'constructor', '__proto__', 'not-found/x'])
    it(`has no page ${name}`, async () => {
      await request(app)
        .get(problemPagesPath + name)
        .expect(404);
      await request(app)
        .post(problemPagesPath + name)
        .expect(404);
    });

  it('is only read', async () => {
    for (const path of [page, problemPagesPath]) {
      await request(app).put(path).expect(405).expect('Allow', methods);
      await request(app).options(path).expect(204).expect('Allow', methods);
      const { text } = await request(app).head(path).expect(200);
      assert.equal(text, undefined);
    }
  });
});

describe('info_url of a desk', () => {
  const servers = testServers();
  const open = desksOf(servers);

  async function infoUrl(options: FrontdeskOptions, path: string, headers: Readonly<Record<string, string>> = {}) {
    const { body } = await call(await open(options), path).set({ Host: 'desk.test', ...headers });
    return body.info_url as string | undefined;
  }

  it('is at the root of the desk, however deep the error comes from', async () => {
    const page = (slug: string) => `http://desk.test/gateway/v0/problems/${slug}`;
    assert.equal(await infoUrl({}, '/nowhere'), page('not-found'));
    assert.equal(await infoUrl({}, '/v1/hotels'), page('unauthorized'));
    assert.equal(await infoUrl({}, '/v1/messages/0'), page('not-found'));
    assert.equal(await infoUrl({}, '/a/%2e%2e/b'), page('bad-path'));
    const authorization = `Basic ${btoa('demo:demo')}`;
    assert.equal(await infoUrl({}, '/v1/hotels/bookings/?limit=x', { authorization }), page('bad-argument'));
  });

  it('leads to a page in a process without a gateway too', async () => {
    const desk = await open({ only: ['hotel', 'car'] });
    const { body } = await call(desk, '/hotel/bookings/').expect(401);
    const { body: page } = await call(desk, new URL(body.info_url).pathname).expect(200);
    assert.equal(page.problem, 'unauthorized');
  });

  it('begins with PUBLIC_URL where that is set', async () => {
    const publicUrl = 'https://api.example.com/shop';
    assert.equal(
      await infoUrl({ publicUrl }, '/v1/messages/0'),
      'https://api.example.com/shop/gateway/v0/problems/not-found',
    );
  });

  it('has the prefix that a trusted proxy took off, and nobody else’s', async () => {
    const headers = { 'X-Forwarded-Prefix': '/travel', 'X-Forwarded-Host': 'api.example.com' };
    for (const path of ['/nowhere', '/v1/messages/0']) {
      assert.equal(
        await infoUrl({ trustedProxies: ['127.0.0.1', '::1'] }, path, headers),
        'http://api.example.com/travel/gateway/v0/problems/not-found',
      );
      assert.equal(await infoUrl({}, path, headers), 'http://desk.test/gateway/v0/problems/not-found');
    }
  });

  it('has the path under which a host mounts the desk', async () => {
    const desk = await open();
    const host = new Koa().use(mount('/travel', desk.middleware)).callback();
    for (const path of ['/travel/nowhere', '/travel/v1/messages/0', '/travel/v1/hotels']) {
      const { body } = await request(host).get(path).set('Host', 'desk.test');
      assert.match(body.info_url, /^http:\/\/desk\.test\/travel\/gateway\/v0\/problems\/[a-z-]+$/);
      await request(host).get(new URL(body.info_url).pathname).expect(200);
    }
  });

  describe('is left out', () => {
    it('where a service of the host chose a status that is no problem of ours', async () => {
      const desk = await open({
        config: { records: [mappingRecord('own', '/own', 'own')] },
        services: { own: (ctx) => ctx.throw(409, 'Taken.') },
      });
      const { text } = await call(desk, '/own').set('Accept', 'application/problem+json').expect(409);
      const body = { code: 409, message: '409: Conflict', detail: 'Taken.' };
      assert.deepEqual(JSON.parse(text), { type: 'about:blank', title: 'Conflict', status: 409, ...body });
    });

    it('where an auth service would rather have it that there is nothing', async () => {
      const guard = await servers.http((_request, response) => void response.writeHead(404).end());
      const desk = await open({
        config: { records: [{ ...authRecord, auth_service: guard.origin }, mappingRecord('own', '/own', 'own')] },
        services: { own: () => {} },
      });
      await call(desk, '/own').expect(404, { code: 404, message: '404: Not Found' });
    });

    it('by the auth service on its own listener, which has no pages', async () => {
      const { auth } = await (await open()).listen();
      await request(auth?.url ?? '')
        .get('/')
        .expect(401, { code: 401, message: '401: Unauthorized' });
    });
  });
});

/** Whatever it is, `body` is its text. */
function asText(response: request.Response, done: (error: Error | null, text: string) => void): void {
  let text = '';
  response.on('data', (chunk) => {
    text += String(chunk);
  });
  response.on('end', () => done(null, text));
}
