/** The admin port, which serves metrics and probes without credentials, and nothing else. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { call, desksOf, mappingRecord } from '../support/desks.ts';
import { scrape, seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { createHeldMiddleware } from '../support/waiting.ts';

describe('the admin port', () => {
  const servers = testServers();
  const open = desksOf(servers);

  async function adminOf(options: Parameters<typeof open>[0] = {}) {
    const desk = await open({ adminPort: 0, ...options });
    const { admin } = await desk.listen();
    return { desk, ask: request(admin.url) };
  }

  it('serves metrics and probes without credentials', async () => {
    const { ask } = await adminOf();
    for (const path of ['/metrics', '/gateway/v0/metrics']) {
      const { text } = await ask
        .get(path)
        .expect(200)
        .expect('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
      assert.equal(seriesOf(text)['frontdesk_configuration_generation'], 1);
    }
    await ask.get('/gateway/v0/check_alive').expect(200, { status: 'alive' });
    await ask.get('/gateway/v0/check_ready').expect(200, { status: 'ready' });
    await ask.get('/livez').expect(200, { status: 'alive' });
    await ask.get('/readyz').expect(200, { status: 'ready' });
    await ask.post('/metrics').expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
    // Neither services nor pages that reveal more.
    for (const path of ['/', '/gateway/v0/diag/', '/gateway/v0/explain', '/v1/messages/1', '/v1/hotels', '/metrics/']) {
      const { body } = await ask.get(path).auth('demo', 'demo').expect(404);
      assert.deepEqual(body, { code: 404, message: '404: Not Found' }, path);
    }
    await ask.get('/gateway/v0/metrics/../diag/').expect(400);
  });

  it('also works without a gateway, and shows the counts of the limits', async () => {
    const limits = [
      { domain: 'd', descriptors: [{ key: 'k', rate_limit: { unit: 'year', requests_per_unit: 1 } }] },
    ] as const;
    const { desk, ask } = await adminOf({ only: ['ratelimit'], config: { records: [], limits }, ratelimitHttpPort: 0 });
    const { ratelimitHttp, gateway } = await desk.listen();
    assert.equal(gateway, undefined);
    const decide = () =>
      request(ratelimitHttp.url)
        .post('/json')
        .send({ domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] });
    await decide().expect(200);
    await decide().expect(429);
    const series = await scrape(desk);
    assert.equal(series['frontdesk_ratelimit_hits_total d k 1/31536000s'], 2);
    assert.equal(series['frontdesk_ratelimit_over_limit_total d k 1/31536000s'], 1);
    // The HTTP port of the rate-limit service shows the same counts.
    const { text } = await request(ratelimitHttp.url).get('/metrics');
    const ofLimits = (all: object) => Object.entries(all).filter(([key]) => / d k /.test(key));
    assert.deepEqual(ofLimits(series), ofLimits(seriesOf(text)));
    await ask.get('/gateway/v0/check_ready').expect(200);
  });

  it('does not log or count its requests', async () => {
    const lines: string[] = [];
    const line = (_fields: object, message = '') => void lines.push(message);
    const { desk, ask } = await adminOf({ logger: { info: line, warn: line, error: line } });
    for (let sent = 0; sent < 3; sent += 1) await ask.get('/metrics').expect(200);
    await ask.get('/nowhere').expect(404);
    assert.deepEqual(lines, []);
    const series = await scrape(desk);
    for (const mapping of ['metrics', '']) assert.equal(series[`frontdesk_requests_total ${mapping} 2xx`], 0);
  });

  it('logs a failing probe under its own name, so that a successful scrape does not end the outage', async () => {
    const logged: unknown[] = [];
    const log = (fields: { readonly service?: string }, message?: string) =>
      void logged.push([fields.service, message]);
    const { desk, ask } = await adminOf({
      only: ['ratelimit'],
      config: { records: [] },
      ratelimitFailOpen: false,
      redisUrl: `redis://127.0.0.1:${(await servers.refusing()).port}`,
      ratelimitHttpPort: 0,
      logger: { info() {}, warn: log, error: log },
    });
    await ask.get('/readyz').expect(503);
    await ask.get('/metrics').expect(200);
    await desk.close();
    assert.deepEqual(logged.at(-1), ['check_ready', 'The rate limiter cannot count in Redis.']);
  });

  it('cannot be used as a service by a record', async () => {
    const { desk } = await adminOf({ config: { records: [mappingRecord('a', '/a', 'http://admin')] } });
    await desk.listen();
    await call(desk, '/a/metrics').expect(503);
  });

  it('is served until the end of a shutdown, and reports that the process is not ready', async () => {
    const { hold, reached, release } = createHeldMiddleware();
    const config = { records: [mappingRecord('slow', '/slow', 'slow')] };
    const { desk, ask } = await adminOf({ config, services: { slow: hold } });
    const { gateway } = await desk.listen();
    const answered = fetch(`${gateway.url}/slow`);
    await reached;
    const closing = desk.close();
    for (const path of ['/gateway/v0/check_ready', '/readyz']) {
      const { body } = await ask.get(path).expect(503).expect('Retry-After', '1');
      assert.equal(body.detail, 'The server is stopping.');
    }
    for (const path of ['/gateway/v0/check_alive', '/livez']) await ask.get(path).expect(200);
    const { text } = await ask.get('/metrics').expect(200);
    assert.equal(seriesOf(text)['frontdesk_requests_in_flight slow'], 1);
    release();
    await answered;
    await closing;
    await assert.rejects(ask.get('/metrics'), /ECONNREFUSED/);
  });
});
