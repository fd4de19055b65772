/** The gateway's own endpoints, as the gateway's table runs them. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { parse } from 'yaml';
import { createDiagnostics } from '#diag';
import { explainForm } from '#explain';
import type { InternalRoute } from '#gateway';
import { createProblemResponses, silentLogger } from '#http';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { parts } from './diagnostics-parts.ts';

/** An endpoint alone, below an error middleware. */
function appOf({ run }: InternalRoute): Koa {
  const app = new Koa();
  app.use(createProblemResponses({ logger: silentLogger }));
  app.use(run);
  return app;
}

const methods = 'GET, HEAD, OPTIONS';

describe('createDiagnostics', () => {
  const endpoint = createDiagnostics(parts, explainForm('../explain'));
  const app = appOf(endpoint).callback();

  it('is for the gateway to put behind the auth service', () => {
    assert.deepEqual([endpoint.prefix, endpoint.authenticated], ['/gateway/v0/diag', true]);
  });

  it('answers in JSON, in YAML, and as a page', async () => {
    const path = '/gateway/v0/diag/';
    const { body } = await request(app).get(path).expect(200).expect('Content-Type', 'application/json');
    assert.equal(body.version, '1.2.3');
    await request(app)
      .get(path)
      .set('Accept', 'application/yaml')
      .expect(200)
      .expect('Content-Type', 'application/yaml');
    const { text } = await request(app).get(path).set('Accept', 'text/html').expect(200);
    assert.match(text, /<h1>frontdesk diagnostics<\/h1>.*Routes/s);
    await request(app).get(path).set('Accept', 'image/png').expect(406);
  });

  it('redirects to its slash, with query and mount path', async () => {
    await request(app).get('/gateway/v0/diag?x=1').expect(308).expect('Location', '/gateway/v0/diag/?x=1');
    const host = new Koa().use(mount('/travel', appOf(endpoint)));
    await request(host.callback()).get('/travel/gateway/v0/diag').expect('Location', '/travel/gateway/v0/diag/');
  });

  it('has nothing below it', async () => {
    await request(app).get('/gateway/v0/diag/x').expect(404);
    await request(app).post('/gateway/v0/diag/x').expect(404);
  });

  it('is only read', async () => {
    await request(app).post('/gateway/v0/diag/').expect(405).expect('Allow', methods);
    await request(app).options('/gateway/v0/diag/').expect(204).expect('Allow', methods);
    await request(app).head('/gateway/v0/diag/').expect(200);
  });
});

describe('the diagnostics of a desk', () => {
  const open = desksOf(testServers());
  const read = async (config: string, accept = 'application/json') =>
    callAsDemo(await open({ config }), '/gateway/v0/diag/')
      .set('Accept', accept)
      .expect(200);

  it('list the routes in the order in which they are tried, each with the place of its record', async () => {
    const { body } = await read('./config');
    assert.deepEqual(
      body.routes.map(({ prefix, source = '-' }: { prefix: string; source?: string }) => [
        prefix,
        source.replace(/:\d+$/, ''),
      ]),
      [
        ['/gateway/v0/check_alive', '-'],
        ['/gateway/v0/check_ready', '-'],
        ['/gateway/v0/diag/events', '-'],
        ['/gateway/v0/problems', '-'],
        ['/gateway/v0/explain', '-'],
        ['/gateway/v0/metrics', '-'],
        ['/gateway/v0/diag', '-'],
        ['/v1/hotels', 'config/services/hotel.yaml'],
        ['/v1/cars', 'config/services/car.yaml'],
        ['/v1', '-'],
        ['/v2', '-'],
      ],
    );
  });

  it('name places as the directory is named: what is configured by its whole path has whole paths', async () => {
    const { body } = await read(resolve('config'));
    const places = [...body.routes, ...body.limits]
      .map(({ source }) => source)
      .filter((source) => source !== undefined);
    assert.ok(places.length > 2);
    for (const place of places) assert.ok(place.startsWith(`${resolve('config')}/`), place);
  });

  it('say the same to every reader', async () => {
    const { body } = await read('./config');
    const { text } = await read('./config', 'application/yaml');
    const timeless = (read: { configuration: object }) => ({
      ...read,
      at: '',
      uptime_seconds: 0,
      configuration: { ...read.configuration, applied_at: '' },
    });
    assert.deepEqual(timeless(parse(text)), timeless(body));
  });

  it('come to people with a policy that allows nothing inline and nothing from elsewhere', async () => {
    const { headers } = await read('./config', 'text/html');
    const policy = headers['content-security-policy'] ?? '';
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  });

  it('are never kept, and have no tag: no two are the same', async () => {
    const { headers } = await read('./config');
    assert.deepEqual([headers['cache-control'], headers.etag, headers.vary], ['no-store', undefined, 'Accept']);
  });

  it('pick rows by the query, and say what is wrong with it', async () => {
    const desk = await open();
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/?filter=HOTEL').expect(200);
    assert.deepEqual(
      [body.routes.map(({ name }: { name: string }) => name), body.routes_total, body.routes_matching],
      [['hotel'], 11, 1],
    );
    const { body: refused } = await callAsDemo(
      desk,
      `/gateway/v0/diag/?filter=${'x'.repeat(201)}&offset=x&a=1&a=2`,
    ).expect(400);
    assert.deepEqual(
      refused.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['#/query/a', '#/query/filter', '#/query/offset'],
    );
    await callAsDemo(desk, `/gateway/v0/diag/?filter=${'x'.repeat(2100)}`).expect(400);
  });

  it('bring along what the page asks for, to the same people, with a tag to ask by', async () => {
    const desk = await open();
    const script = '/gateway/v0/diag/diagnostics.js';
    await call(desk, script).expect(401);
    const { headers } = await callAsDemo(desk, script)
      .expect(200)
      .expect('Content-Type', 'text/javascript; charset=utf-8')
      .expect('Cache-Control', 'private, no-cache')
      .expect('X-Content-Type-Options', 'nosniff');
    await callAsDemo(desk, script)
      .set('If-None-Match', headers.etag ?? '')
      .expect(304);
    await callAsDemo(desk, '/gateway/v0/diag/assets.ts').expect(404);
    await callAsDemo(desk, '/gateway/v0/diag/browser/diagnostics.js').expect(404);
  });

  for (const accept of ['application/json', 'application/yaml', 'text/html']) {
    it(`hold nothing that is secret, nor where the rows are: ${accept}`, async () => {
      const { text } = await read('./config', accept);
      assert.doesNotMatch(text, /scrypt|password|_hash|guest|sqlite|memory|Basic |Dana/i);
    });
  }
});
