/** Lists of addresses: who may come to a mapping and to the gateway at all, by the address that limits use. */
import assert from 'node:assert/strict';
import request from 'supertest';
import type { FrontdeskOptions, MappingInput } from '../../src/index.ts';
import { authRecord, desksOf, mappingRecord, type TestDesk } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

const servers = testServers();
const open = desksOf(servers);

/** The tests are a trusted proxy, which names the client. */
const trustedProxies = ['127.0.0.0/8', '::1', '10.9.0.0/16'];

async function openDesk(fields: Partial<MappingInput> | readonly MappingInput[], options: FrontdeskOptions = {}) {
  let reached = 0;
  const own = (ctx: { body: unknown }) => {
    reached += 1;
    ctx.body = 'ok';
  };
  const records = Array.isArray(fields) ? fields : [mappingRecord('own', '/', 'own', fields as Partial<MappingInput>)];
  const desk = await open({
    demo: false,
    only: ['gateway'],
    services: { own },
    trustedProxies,
    ...options,
    config: { records: [...records] },
  });
  return { desk, reached: () => reached };
}

const from = (desk: TestDesk, client: string | undefined, path = '/', method: 'get' | 'options' = 'get') => {
  const asked = request(desk.app.callback())[method](path);
  return client === undefined ? asked : asked.set('X-Forwarded-For', client);
};

const both = { allow_addresses: ['10.0.0.0/8', '2001:db8::/32'], deny_addresses: ['10.0.0.66'] };

for (const [where, fields, options] of [
  ['a mapping', both, {}],
  ['the settings', {}, { allowAddresses: both.allow_addresses, denyAddresses: both.deny_addresses }],
] as const)
  describe(`the lists of addresses of ${where}`, () => {
    for (const [client, status, why] of [
      ['10.0.0.1', 200, 'is in an allowed network'],
      ['::ffff:10.0.0.1', 200, 'is an allowed address in IPv6 form'],
      ['2001:DB8:0:0::7', 200, 'is in an allowed IPv6 network'],
      ['203.0.113.7', 403, 'is in no allowed network'],
      ['10.0.0.66', 403, 'is allowed and denied'],
      ['::ffff:10.0.0.66', 403, 'is a denied address in IPv6 form'],
      ['203.0.113.7, 10.9.0.1', 403, 'is behind two trusted proxies'],
      ['10.0.0.1, 203.0.113.7', 403, 'claims to be a proxy of an allowed client'],
      ['unknown, 10.9.0.1', 403, 'is unknown to a trusted proxy that is allowed itself'],
      ['10.0.0.1, , 10.9.0.1', 403, 'is unknown, because a hop is empty'],
    ] as const)
      it(`answer ${status} if the client ${why}: ${client}`, async () => {
        const { desk, reached } = await openDesk(fields, options);
        await from(desk, client).expect(status);
        assert.equal(reached(), status === 200 ? 1 : 0);
      });
  });

describe('lists of addresses', () => {
  it('let everyone come who is not denied if no address is listed as allowed', async () => {
    const { desk } = await openDesk({ deny_addresses: ['203.0.113.0/24'] });
    await from(desk, '198.51.100.1').expect(200);
    await from(desk, '203.0.113.7').expect(403);
    await from(desk, 'unknown').expect(200);
  });

  it('apply to the address of the connection without trusted proxies, whatever the client claims', async () => {
    const { desk } = await openDesk({ allow_addresses: ['10.0.0.0/8'] }, { trustedProxies: [] });
    await from(desk, '10.0.0.1').expect(403);
  });

  it('refuse before a redirect, a preflight, the auth service, an ended version and a 404', async () => {
    const cors = { origins: ['https://app.example'] };
    const denied = { allow_addresses: ['10.0.0.0/8'] };
    const { desk } = await openDesk([
      { ...authRecord, auth_service: 'http://127.0.0.1:1' },
      mappingRecord('old', '/old', 'own', { prefix_redirect: '/new', ...denied }),
      mappingRecord('cors', '/cors', 'own', { cors, ...denied }),
      mappingRecord('new', '/new', 'own', denied),
    ] as unknown as readonly MappingInput[]);
    const preflight = (client: string) =>
      from(desk, client, '/cors', 'options')
        .set('Origin', 'https://app.example')
        .set('Access-Control-Request-Method', 'GET');
    await from(desk, '203.0.113.7', '/old').expect(403);
    await from(desk, '10.0.0.1', '/old').expect(301);
    await from(desk, '203.0.113.7', '/new').expect(403);
    await from(desk, '10.0.0.1', '/new').expect(503);
    await preflight('203.0.113.7').expect(403);
    await preflight('10.0.0.1').expect(204);
  });

  it('of the settings apply to all paths, to preflights for CORS_ORIGINS and to the built-in routes, but not to the admin port', async () => {
    const { desk } = await openDesk(
      {},
      { allowAddresses: ['10.0.0.0/8'], corsOrigins: ['https://app.example'], adminPort: 0 },
    );
    for (const path of ['/', '/gateway/v0/check_alive', '/none']) await from(desk, '203.0.113.7', path).expect(403);
    const preflight = (client: string) =>
      from(desk, client, '/', 'options')
        .set('Origin', 'https://app.example')
        .set('Access-Control-Request-Method', 'GET');
    await preflight('203.0.113.7').expect(403);
    await preflight('10.0.0.1').expect(204);
    const { admin } = await desk.listen();
    assert.equal((await fetch(`${admin.url}/livez`)).status, 200);
  });

  it('do not tell the client which list it is, but explanations do', async () => {
    const { desk } = await openDesk(both, { denyAddresses: ['198.51.100.0/24'] });
    const { body } = await from(desk, '203.0.113.7').set('Accept', 'application/json').expect(403);
    assert.ok(!JSON.stringify(body).includes('10.0.0.0'), JSON.stringify(body));
    const outcomeFrom = async (remoteAddress: string) =>
      (await desk.explain({ method: 'GET', url: '/', remoteAddress })).outcome;
    for (const [address, stage, detail] of [
      ['203.0.113.7', 'routing', '203.0.113.7 is not in allow_addresses of Mapping own.'],
      ['10.0.0.66', 'routing', '10.0.0.66 is in deny_addresses of Mapping own.'],
      ['198.51.100.9', 'before_routing', '198.51.100.9 is in DENY_ADDRESSES.'],
    ] as const) {
      const outcome = await outcomeFrom(address);
      assert.ok(outcome.kind === 'refused');
      assert.deepEqual([outcome.stage, outcome.status, outcome.problem], [stage, 403, 'address-denied']);
      assert.ok(outcome.detail.endsWith(detail), outcome.detail);
    }
    assert.equal((await outcomeFrom('10.0.0.1')).kind, 'forwarded');
  });

  it('show in the access log, in the counts of the route and in the metrics', async () => {
    const log: LogLine[] = [];
    const options = { denyAddresses: ['198.51.100.0/24'], logger: recordingLogger(log), adminPort: 0 };
    const { desk } = await openDesk(both, options);
    const { admin } = await desk.listen();
    await from(desk, '203.0.113.7');
    await from(desk, '198.51.100.7');
    await from(desk, '10.0.0.1');
    const lines = () => log.filter(({ message }) => message === 'request').map(({ fields }) => fields);
    await eventually(() => assert.equal(lines().length, 3));
    assert.deepEqual(
      lines().map(({ client, mapping, status, problem }) => [client, mapping, status, problem]),
      [
        ['203.0.113.7', 'own', 403, 'address-denied'],
        ['198.51.100.7', undefined, 403, 'address-denied'],
        ['10.0.0.1', 'own', 200, undefined],
      ],
    );
    const text = await (await fetch(`${admin.url}/metrics`)).text();
    const metric = (mapping: string) => `frontdesk_requests_refused_total{mapping="${mapping}",by="address"} 1\n`;
    for (const mapping of ['own', '']) assert.ok(text.includes(metric(mapping)), mapping);
  });
});

describe('mappings with different lists of addresses', () => {
  it('have different protection, so that a path which a service could take for the other is refused', async () => {
    const { desk } = await openDesk([
      mappingRecord('all', '/', 'own'),
      mappingRecord('admin', '/admin', 'own', { allow_addresses: ['10.0.0.0/8'] }),
    ]);
    await from(desk, '203.0.113.7', '/admin').expect(403);
    await from(desk, '203.0.113.7', '/ADMIN').expect(400);
  });
});
