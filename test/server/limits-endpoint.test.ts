/** The endpoint that shows and resets the limits of one client: only for administrators, and not for web pages. */
import assert from 'node:assert/strict';
import request, { type Test } from 'supertest';
import type { ConfigurationRecords, FrontdeskOptions } from '../../src/index.ts';
import { annRecord, authRecord, call, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

const labels = { gateway: [{ by_key: [{ key: { header: 'X-Key', omit_if_not_present: true } }] }] };
const config: ConfigurationRecords = {
  records: [authRecord, limitRecord, mappingRecord('open', '/open', 'open', { bypass_auth: true, labels })],
  users: [annRecord, demoRecord],
  limits: [{ domain: 'gateway', descriptors: [{ key: 'key', rate_limit: { unit: 'year', requests_per_unit: 2 } }] }],
};
const client = { domain: 'gateway', entries: [{ key: 'key', value: 'a' }] };

describe('the endpoint of the limits of a client', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  async function open(options: FrontdeskOptions = {}) {
    const services = { open: async (ctx: { body: unknown }) => void Object.assign(ctx, { body: 'ok' }) };
    const desk = await openDesk({ config, demo: false, services, ...options });
    const post = (action: string): Test => request(desk.app.callback()).post(`/gateway/v0/limits/${action}`);
    const ask = (action: string, body: object = client) => post(action).auth('demo', 'demo').send(body);
    const statusOf = async (key = 'a') => (await call(desk, '/open').set('X-Key', key)).status;
    return { desk, post, ask, statusOf };
  }

  it('shows what is left without counting, and lets one client start anew', async () => {
    const { ask, statusOf } = await open();
    const left = async (action: string) => (await ask(action).expect(200)).body.limits[0].left;
    assert.equal(await left('show'), 2);
    assert.deepEqual([await statusOf(), await statusOf(), await statusOf()], [200, 200, 429]);
    assert.deepEqual([await statusOf('b'), await statusOf('b'), await statusOf('b')], [200, 200, 429]);
    assert.deepEqual([await left('show'), await left('show'), await left('reset'), await left('show')], [0, 0, 2, 2]);
    assert.deepEqual([await statusOf(), await statusOf('b')], [200, 429]);
    const { body } = await ask('show').expect('Cache-Control', 'no-store');
    const { reset_seconds: seconds, ...limit } = body.limits[0];
    assert.ok(seconds > 0);
    assert.deepEqual([limit.limit, limit.descriptor, limit.left], ['2 per year', 'key', 1]);
  });

  it('is only for administrators', async () => {
    const { post } = await open();
    for (const action of ['show', 'reset']) {
      await post(action).send(client).expect(401);
      await post(action).auth('ann', 'secret').send(client).expect(403);
    }
  });

  it('accepts only a POST with a JSON body, and nothing that a web page can send', async () => {
    const { desk, post, ask } = await open();
    for (const headers of [
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { 'Sec-Fetch-Site': 'same-origin' },
    ] as const)
      await ask('reset').set(headers).expect(400);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
      await post('reset').auth('demo', 'demo').type(type).send(JSON.stringify(client)).expect(415);
    await call(desk, '/gateway/v0/limits/reset').auth('demo', 'demo').expect(405).expect('Allow', 'POST, OPTIONS');
    for (const path of ['', '/', '/other']) await ask(path).expect(404);
    for (const body of [{}, { ...client, entries: [] }, { ...client, entries: [{ key: 'key' }] }, { ...client, x: 1 }])
      await ask('reset', body).expect(400);
  });

  it('says which limits there are if none matches', async () => {
    const { ask } = await open();
    for (const [changes, detail] of [
      [{ domain: 'other' }, 'there is no domain "other"; the domains: gateway'],
      [{ entries: [{ key: 'kye', value: 'a' }] }, 'no limit of the domain "gateway" matches kye=a; the limits: key'],
    ] as const)
      assert.equal((await ask('reset', { ...client, ...changes }).expect(404)).body.detail, detail);
  });

  it('is not on the admin port, and says so if the limiter runs in another process', async () => {
    const { desk } = await open({ adminPort: 0 });
    const { admin } = await desk.listen();
    await request(admin.url).post('/gateway/v0/limits/reset').auth('demo', 'demo').send(client).expect(404);
    const { ask } = await open({ only: ['gateway', 'auth'] });
    assert.match((await ask('reset').expect(404)).body.detail, /^Another process runs the rate limiter/);
  });
});
