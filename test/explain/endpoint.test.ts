/** The endpoint `/gateway/v0/explain`, on its own and as part of a desk. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import request from 'supertest';
import { parse } from 'yaml';
import { createExplainEndpoint, type ExplainRequest } from '#explain';
import { silentLogger } from '#foundation';
import type { Gateway } from '#gateway';
import { createProblemResponses } from '#http';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { explainOf, gatewayOf, mappingOf } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';

const path = '/gateway/v0/explain';

describe('createExplainEndpoint', () => {
  let gateway: Gateway;
  const requests: ExplainRequest[] = [];
  const endpoint = createExplainEndpoint((one) => {
    requests.push(one);
    return explainOf(gateway)(one);
  });
  const app = new Koa()
    .use(createProblemResponses({ logger: silentLogger }))
    .use(endpoint.run)
    .callback();

  before(() => {
    const resolve = () => ({ kind: 'remote', origins: () => ['http://10.0.0.1:9001'], path: '' }) as const;
    gateway = gatewayOf({ mappings: [mappingOf({ name: '<hotel>' })], resolve });
  });

  after(() => gateway.close());

  it('reads method, URL, headers, user and address from the query', async () => {
    requests.length = 0;
    const query = 'method=POST&url=/v1/hotels/x%3Fa%3D1&header=X-A:%20b&header=X-C:d&user=ann&from=10.0.0.9&all=true';
    const { body } = await request(app).get(`${path}?${query}`).expect(200).expect('Cache-Control', 'no-store');
    assert.deepEqual(requests, [
      {
        method: 'POST',
        url: '/v1/hotels/x?a=1',
        headers: [
          ['X-A', 'b'],
          ['X-C', 'd'],
        ],
        user: 'ann',
        remoteAddress: '10.0.0.9',
        all: true,
      },
    ]);
    assert.deepEqual([body.target.method, body.target.path], ['POST', '/x?a=1']);
  });

  it('returns the same explanation as JSON, as YAML and as a page', async () => {
    const read = (accept: string) => request(app).get(`${path}?url=/v1/hotels/x`).set('Accept', accept);
    const { body } = await read('application/json').expect(200);
    const { text } = await read('application/yaml').expect(200);
    assert.deepEqual(parse(text), body);
    const page = await read('text/html').expect(200);
    assert.match(page.text, /Candidates.*10\.0\.0\.1:9001.*x-forwarded-prefix: \/v1\/hotels/s);
    await read('image/png').expect(406);
    await request(app).get(`${path}?uri=/`).set('Accept', 'image/png').expect(400);
  });

  async function checkFaults(query: string, ...parameters: (string | undefined)[]) {
    const { body } = await request(app).get(`${path}?${query}`).expect(400);
    const seen = body.errors.map(({ parameter }: { parameter?: string }) => parameter);
    assert.deepEqual(seen, parameters);
  }

  it('reports all faults of the query together', async () => {
    const faulty = ['method', 'uri', 'all', 'method', 'url', 'header', 'from'];
    await checkFaults('', 'url');
    await checkFaults('method=get&method=x&uri=/&url=x&header=plain&from=me&all=yes', ...faulty);
    await checkFaults(`url=/&${'header=A:b&'.repeat(65)}`, 'header');
    await checkFaults(`url=/${'x'.repeat(8192)}`, undefined);
  });

  it('has no other methods, and nothing below its path', async () => {
    await request(app).post(`${path}?url=/`).expect(405);
    await request(app).get(`${path}/x?url=/`).expect(404);
  });

  describe('the page', () => {
    const page = async (query: string) => {
      const response = await request(app)
        .get(path + query)
        .set('Accept', 'text/html')
        .expect(200);
      return { text: response.text, policy: response.headers['content-security-policy'] ?? '' };
    };

    it('is an empty form without a query', async () => {
      const { text } = await page('');
      assert.match(text, /<form [^>]*method="get" action="explain">.*name="url"/s);
      assert.doesNotMatch(text, /class="verdict"/);
    });

    it('keeps the values in the form, and escapes them', async () => {
      const { text } = await page('?url=/v1/hotels/%22%3Cb%3E&header=X-A:%20%22%3Ci%3E');
      assert.ok(text.includes('value="X-A: &#34;&#60;i&#62;"') && text.includes('&#60;hotel&#62;'));
      assert.doesNotMatch(text, /<b>|<i>|<hotel>/);
    });

    it('links to the diagnostics, uses their styles, and submits its form only to this endpoint', async () => {
      const { text, policy } = await page('?url=/v1/hotels');
      const links = [...text.matchAll(/(?:href|action)="([^"]*)"/g)].map(([, target = '']) => target);
      for (const target of links)
        assert.match(target, /^(?:#main|explain|diag\/(?:[a-z]+\.css)?|data:image\/svg\+xml,.*)$/);
      assert.match(text, /<a href="diag\/">Diagnostics<\/a>/);
      assert.match(policy, /default-src 'none'.*form-action 'self'/);
      assert.doesNotMatch(text, /<script|<style.*<style|style="/is);
    });
  });
});

describe('the explain endpoint of a desk', () => {
  const open = desksOf(testServers());

  it('requires credentials, and returns the result of desk.explain', async () => {
    const desk = await open();
    await call(desk, `${path}?url=/v1/hotels`).expect(401);
    const { body } = await callAsDemo(desk, `${path}?url=/v1/hotels/bookings&user=ann`).expect(200);
    assert.deepEqual([body.mapping.name, body.target.path], ['hotel', '/bookings']);
    const explained = await desk.explain({ method: 'GET', url: '/v1/hotels/bookings', user: 'ann' });
    assert.deepEqual(JSON.parse(JSON.stringify(explained)), body);
  });

  const explainedWith = (password: string) => {
    const credentials = Buffer.from(`guest:${password}`).toString('base64');
    return `${path}?url=/v1/hotels&header=${encodeURIComponent(`Authorization: Basic ${credentials}`)}`;
  };

  it('checks credentials without counting a login, and bounds how many passwords can be tried', async () => {
    const desk = await open();
    const decisionOf = async (password: string) => {
      const { body } = await callAsDemo(desk, explainedWith(password)).expect(200);
      return [body.auth.decision, body.outcome.kind === 'refused' ? body.outcome.problem : undefined];
    };
    const login = (password: string) => call(desk, '/v1/hotels').auth('guest', password);
    assert.deepEqual(await decisionOf('guest'), ['allowed', undefined]);
    for (let times = 0; times < 11; times += 1) assert.deepEqual(await decisionOf('no'), ['denied', 'unauthorized']);
    assert.deepEqual(await decisionOf('guest'), ['denied', 'login-throttled']);
    await login('guest').expect(200);
    const { text } = await callAsDemo(desk, '/gateway/v0/metrics').expect(200);
    assert.match(text, /^frontdesk_auth_logins_total\{result="wrong"\} 0$/m);
  });

  it('predicts that logins are throttled', async () => {
    const desk = await open();
    for (let times = 0; times < 11; times += 1) await call(desk, '/v1/hotels').auth('guest', `no${times}`).expect(401);
    await call(desk, '/v1/hotels').auth('guest', 'guest').expect(429);
    const { body } = await callAsDemo(desk, `${explainedWith('guest')}&from=127.0.0.1`).expect(200);
    assert.deepEqual([body.outcome.status, body.outcome.problem], [429, 'login-throttled']);
  });

  it('has a page with the same decision, which repeats no credentials', async () => {
    const desk = await open();
    const page = async (password: string) =>
      (await callAsDemo(desk, explainedWith(password)).set('Accept', 'text/html').expect(200)).text;
    assert.match(await page('guest'), /<td>decision<\/td><td>allowed: the credentials are those of guest<\/td>/);
    const wrong = await page('s3cret');
    assert.match(
      wrong,
      /rejected with 401 \(unauthorized\): no user has these credentials: the name or the password is wrong/,
    );
    assert.ok(!wrong.includes(Buffer.from('guest:s3cret').toString('base64')));
  });

  it('honours CORS_ORIGINS, also for preflights', async () => {
    const desk = await open({ corsOrigins: ['https://app.example'] });
    const headers = [
      ['Origin', 'https://app.example'],
      ['Access-Control-Request-Method', 'PUT'],
    ] as const;
    const { outcome, cors } = await desk.explain({ method: 'OPTIONS', url: '/v1/hotels', headers });
    assert.deepEqual([outcome, cors?.rule], [{ kind: 'preflight', status: 204 }, 'CORS_ORIGINS']);
    await request(desk.app.callback())
      .options('/v1/hotels')
      .set({ Origin: 'https://app.example', 'Access-Control-Request-Method': 'PUT' })
      .expect(204)
      .expect('Access-Control-Allow-Origin', 'https://app.example');
  });
});
