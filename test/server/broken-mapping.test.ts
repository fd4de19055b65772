/** A Mapping that is broken at the start: its requests are blocked or nothing starts, so that none passes unchecked. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Context } from 'koa';
import { configurationFrom, finish } from '#config';
import { createGatewayState } from '#gateway';
import { silentLogger } from '#http';
import { createClusters } from '#proxy';
import type { RequestAttributes } from '#routing';
import { openGateway } from '../../src/server/open-gateway.ts';
import { resolveOptions } from '../../src/server/options.ts';
import { resolverOf } from '../../src/server/record-services.ts';
import { authRecord, call, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';

type Fields = Readonly<Record<string, unknown>>;

const open = mappingRecord('all', '/', 'own', { bypass_auth: true });
const guarded = (name: string, prefix: string, more: Fields) => mappingRecord(name, prefix, 'own', more);

const echo = (ctx: Context) => {
  ctx.body = ctx.path;
};

describe('a Mapping that is broken at the start', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  const services = { own: echo };

  async function start(...records: readonly object[]) {
    const config = await writeFiles({ 'services/x.yaml': yamlOf(authRecord, ...records) });
    return openDesk({ config, services, only: ['gateway', 'auth'] });
  }

  const soon = { timeout_ms: 'soon' };
  const first = { precedence: 5, method: 'POST', bypass_auth: true };
  const blocking: readonly (readonly [string, readonly object[]])[] = [
    ['a regex with another field broken', [guarded('a', '/a(/.*)?', { prefix_regex: true, ...soon })]],
    ['a regex whose AuthService is missing', [guarded('a', '/a(/.*)?', { prefix_regex: true, auth_service: 'no' })]],
    [
      'a method and a precedence above that of an open mapping',
      [guarded('a', '/a', { method: 'GET', precedence: 10, ...soon }), mappingRecord('b', '/', 'own', first)],
    ],
    ['a host', [guarded('a', '/a', { host: '127.0.0.1', ...soon }), mappingRecord('b', '/a', 'own', first)]],
    [
      'the match of an open mapping',
      [guarded('a', '/a', soon), mappingRecord('b', '/a', 'own', { bypass_auth: true })],
    ],
  ];
  for (const [what, records] of blocking)
    it(`gets 503 for all its requests: ${what}`, async () => {
      const desk = await start(open, ...records);
      await call(desk, '/a').expect(503);
      await call(desk, '/open').expect(200);
      const { outcome, target } = desk.explain({ method: 'GET', url: '/a', headers: [['Host', '127.0.0.1']] });
      assert.ok(outcome.kind === 'refused');
      assert.deepEqual([outcome.status, outcome.problem, target], [503, 'misconfigured', undefined]);
    });

  it('prevents the start if a file that may contain it cannot be parsed', async () => {
    for (const bomb of ['['.repeat(1000), '? '.repeat(400), 'a: [']) {
      const config = await writeFiles({ 'services/a.yaml': yamlOf(open), 'services/x.yaml': `a: 1\n---\n${bomb}` });
      await assert.rejects(openDesk({ config, services, only: ['gateway'] }), /services\/x\.yaml:3 {2}this is /);
    }
  });

  it('does not affect requests that do not match it', async () => {
    const desk = await start(open, guarded('a', '/a', { method: 'POST', headers: { 'X-Plan': 'gold' }, ...soon }));
    await call(desk, '/a').expect(200);
  });

  it('is left out if it is a canary, and the good mapping with the same match gets all requests', async () => {
    const desk = await start(open, guarded('a', '/a', {}), guarded('b', '/a', { weight: 'ten' }));
    await call(desk, '/a').expect(401);
  });

  const refusing: readonly (readonly [string, string, Fields])[] = [
    ['the prefix', 'admin', {}],
    ['a regex', '/a(', { prefix_regex: true }],
    ['a regex that matches no path', 'admin/.*', { prefix_regex: true }],
    ['the precedence', '/a', { precedence: 'high' }],
    ['a mistyped condition', '/a', { mehtod: 'GET' }],
    ['a key that resembles no known key', '/a', { zone: 'x' }],
    ['a header that is stripped from requests', '/a', { headers: { 'X-Travel-User': 'ann' } }],
  ];
  for (const [what, prefix, more] of refusing)
    it(`prevents the start if its match is broken, unless it bypasses auth: ${what}`, async () => {
      await assert.rejects(start(open, guarded('a', prefix, more)), /services\/x\.yaml:\d+ {2}Mapping a: /);
      await start(open, guarded('a', prefix, { ...more, bypass_auth: true }));
    });

  /** Returns a function that says how a request is handled, or undefined if the configuration does not start. */
  async function gatewayOf(records: readonly object[]) {
    const config = await writeFiles({ 'services/x.yaml': yamlOf(authRecord, ...records) });
    const setup = await resolveOptions({ config, services, only: ['gateway', 'auth'] }).catch(() => undefined);
    if (setup === undefined) return undefined;
    const clusters = createClusters({ logger: silentLogger });
    servers.later(clusters.close);
    const check = async () => ({ kind: 'denied' }) as never;
    const auth = { checkFor: () => check };
    const { gateway } = finish(
      openGateway(setup, setup.loaded.configuration, {
        state: createGatewayState(clusters),
        routes: [],
        limiter: undefined,
        services: { auth, byName: { own: async () => {} } },
        listenerAddresses: new Map(),
        resolve: resolverOf(setup, {}),
      }),
    );
    return (attributes: RequestAttributes) => {
      const route = gateway.parts.table.match(attributes, () => 0)?.route;
      if (route?.isBlock === true) return 'blocked';
      return route?.auth === undefined ? 'open' : 'authenticated';
    };
  }

  it('never opens requests that would be authenticated if it were not broken', async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(recordSet, fc.nat(), breakage, async (records, position, broken) => {
        fc.pre(configurationFrom({ records: [authRecord, ...records] }).errors.length === 0);
        const index = position % records.length;
        const whole = await gatewayOf(records);
        const part = await gatewayOf(records.map((one, at) => (at === index ? { ...one, ...broken } : one)));
        if (whole === undefined || part === undefined) return;
        for (const attributes of requests)
          if (whole(attributes) === 'authenticated') {
            compared += 1;
            assert.notEqual(part(attributes), 'open', JSON.stringify(attributes));
          }
      }),
      { numRuns: 60 },
    );
    assert.ok(compared > 100, String(compared));
  });
});

const prefixes = ['/', '/a', '/a/b', '/b'];
const record = fc
  .record(
    {
      path: fc.constantFrom(
        ...prefixes.map((prefix): Fields => ({ prefix })),
        { prefix: '/a(/.*)?', prefix_regex: true },
        { prefix: '(?i)/[ab]', prefix_regex: true },
        { prefix: '/A', case_sensitive: false },
        { prefix: '/a', prefix_exact: true },
      ),
      host: fc.constantFrom('a.example', 'b.example'),
      method: fc.constantFrom('GET', 'POST'),
      headers: fc.constantFrom({ 'X-A': '1' }, { 'X-B': '1' }),
      query_parameters: fc.constant({ q: true }),
      precedence: fc.integer({ min: -1, max: 1 }),
      bypass_auth: fc.boolean(),
    },
    { requiredKeys: ['path'] },
  )
  .map(({ path, ...fields }): Fields => ({ ...path, ...fields }));

const recordSet = fc
  .array(record, { minLength: 1, maxLength: 4 })
  .map((all) => [...all, { prefix: '/', precedence: -2, bypass_auth: true }])
  .map((all) => all.map((fields, index) => ({ ...mappingRecord(`m${index}`, '', 'own'), ...fields })));

const breakage = fc.constantFrom<Fields>(
  ...[{ timeout_ms: 'soon' }, { auth_service: 'nobody' }, { service: '' }, { weight: 200 }, { apiVersion: 'x' }],
  ...[{ prefix: 'a' }, { prefix: '(' }, { prefix: undefined }, { prefix_regex: 'yes' }, { precedence: 'high' }],
  ...[{ method: 'get' }, { host: 'a:80' }, { headers: [] }, { headers: { 'X-Travel-User': '1' } }, { prefix_exact: 1 }],
  ...[{ mehtod: 'GET' }, { zone: 'x' }, { timeout: 1 }, { kind: 'Maping' }, { kind: undefined }, { name: 'm0' }],
  ...[{ name: '' }, { bypass_auth: 'no' }, { bypass_auth: true, auth_service: 'auth' }, { query_parameters: 'q' }],
);

const requests: readonly RequestAttributes[] = ['/', '/a', '/A', '/a/b', '/b', '/B'].flatMap((path) =>
  ['GET', 'POST'].flatMap((method) =>
    ['a.example', 'c.example'].flatMap((host) =>
      [{}, { 'x-a': '1' }, { 'x-a': '1', 'x-b': '1' }].flatMap((headers) =>
        ['', '?q=1'].map((search) => ({ path, method, host, headers, search, client: '127.0.0.1' })),
      ),
    ),
  ),
);
