/** `/gateway/v0/diag/`: the endpoint on its own, and the diagnostics of a server. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import Koa from 'koa';
import request from 'supertest';
import { parse } from 'yaml';
import { createDiagnostics } from '#diag';
import { explainForm } from '#explain';
import { createProblemResponses, silentLogger } from '#http';
import type { Frontdesk } from '../../src/index.ts';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { parts } from './diagnostics-parts.ts';

const path = '/gateway/v0/diag/';

describe('createDiagnostics', () => {
  const koa = new Koa().use(createProblemResponses({ logger: silentLogger }));
  const app = koa.use(createDiagnostics(parts, explainForm('../explain')).run).callback();

  it('responds with JSON, YAML or HTML, and rejects other media types', async () => {
    const read = (accept: string, type: string) =>
      request(app).get(path).set('Accept', accept).expect(200).expect('Content-Type', type);
    const { body } = await read('*/*', 'application/json');
    assert.equal(body.version, '1.2.3');
    assert.deepEqual(parse((await read('application/yaml', 'application/yaml')).text), body);
    const { text, headers } = await read('text/html', 'text/html; charset=utf-8');
    assert.match(text, /<h1>frontdesk diagnostics<\/h1>.*Routes/s);
    assert.match(headers['content-security-policy'] ?? '', /^default-src 'none';.* script-src 'self';/);
    await request(app).get(path).set('Accept', 'image/png').expect(406);
  });
});

describe('the diagnostics of a server', () => {
  const open = desksOf(testServers(after));
  let desk: Frontdesk;

  before(async () => {
    desk = await open({ config: './config' });
  });

  const read = (accept = 'application/json') => callAsDemo(desk, path).set('Accept', accept).expect(200);

  it('list the routes in matching order, with the file of each record', async () => {
    const { body } = await read();
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

  it('show absolute file names when the configuration directory is absolute', async () => {
    const { body } = await callAsDemo(await open({ config: resolve('config') }), path).expect(200);
    const places = [...body.routes, ...body.limits].flatMap(({ source }) => source ?? []);
    assert.ok(places.length > 2);
    for (const place of places) assert.ok(place.startsWith(`${resolve('config')}/`), place);
  });

  it('cannot be cached, and have no ETag', async () => {
    const { headers } = await read();
    assert.deepEqual([headers['cache-control'], headers.etag, headers.vary], ['no-store', undefined, 'Accept']);
  });

  it('are filtered by the query, and each bad argument is reported', async () => {
    const { body } = await callAsDemo(desk, `${path}?filter=HOTEL`).expect(200);
    const names = body.routes.map(({ name }: { name: string }) => name);
    assert.deepEqual([names, body.routes_total, body.routes_matching], [['hotel'], 11, 1]);
    const { body: refused } = await callAsDemo(desk, `${path}?filter=${'x'.repeat(201)}&offset=x&a=1&a=2`).expect(400);
    assert.deepEqual(
      refused.errors.map(({ parameter }: { parameter: string }) => parameter),
      ['a', 'filter', 'offset'],
    );
    await callAsDemo(desk, `${path}?filter=${'x'.repeat(2100)}`).expect(400);
  });

  it('include the files of the page, which need the same credentials and have an ETag', async () => {
    const script = `${path}diagnostics.js`;
    await call(desk, script).expect(401);
    const { headers } = await callAsDemo(desk, script)
      .expect(200)
      .expect('Content-Type', 'text/javascript; charset=utf-8')
      .expect('Cache-Control', 'private, no-cache')
      .expect('X-Content-Type-Options', 'nosniff');
    await callAsDemo(desk, script)
      .set('If-None-Match', headers.etag ?? '')
      .expect(304);
    for (const name of ['assets.ts', 'browser/diagnostics.js']) await callAsDemo(desk, path + name).expect(404);
  });
});
