/** What is logged about the outages of services, of the database and of Redis. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import Koa, { type Context } from 'koa';
import request from 'supertest';
import { createProblemResponses, problem, requestContext } from '#http';
import { authRecord, call, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../support/temporary-files.ts';

const servers = testServers();
const open = desksOf(servers);

describe('requests that fail because of one outage', () => {
  const writeFiles = temporaryFiles();
  let lines: string[];
  const warn = (fields: object, message?: string) => {
    const { redis, mapping } = fields as { redis?: string; mapping?: string };
    lines.push(`${message} ${mapping ?? (redis && 'redis')}`);
  };
  const logger = { info() {}, warn, error: warn };

  beforeEach(() => {
    lines = [];
  });

  it('are logged once for several mappings of a service', async () => {
    const { port } = await servers.refusing();
    const unguarded = { bypass_auth: true };
    const records = [
      mappingRecord('one', '/one', `http://127.0.0.1:${port}`, unguarded),
      mappingRecord('two', '/two', `127.0.0.1:${port}`, unguarded),
      mappingRecord('deep', '/deep', `http://127.0.0.1:${port}`, { ...unguarded, timeout_ms: 999 }),
      mappingRecord('other', '/other', `http://127.0.0.1:${(await servers.refusing()).port}`, unguarded),
    ];
    const desk = await open({ config: { records }, only: ['gateway'], logger });
    for (const path of ['/one', '/two', '/deep', '/one', '/other']) await call(desk, path).expect(503);
    const away = 'The service behind the gateway could not be reached.';
    assert.deepEqual(lines, [`${away} one`, `${away} other`]);
  });

  it('are logged with the service, the address that was tried last and the record', async () => {
    const logged: Record<string, unknown>[] = [];
    const warn = (fields: object) => void logged.push({ ...fields });
    const [upstream, auth, limiter] = [await servers.refusing(), await servers.refusing(), await servers.refusing()];
    const askers = [
      { ...authRecord, auth_service: auth.origin, failure_mode_allow: true },
      { ...limitRecord, service: `grpc://127.0.0.1:${limiter.port}` },
    ];
    const labels = { gateway: [{ all: [{ generic_key: 'all' }] }] };
    const records = [mappingRecord('one', '/one', 'http://rooms', { labels }), ...askers];
    const serviceAddresses = { rooms: `127.0.0.1:${upstream.port}` };
    const desk = await open({
      config: { records },
      only: ['gateway'],
      serviceAddresses,
      logger: { info() {}, warn, error: warn },
    });
    await call(desk, '/one').expect(503);
    const found = logged.filter(({ mapping }) => mapping === 'one');
    assert.deepEqual(
      found.map(({ record, service, upstream }) => ({ record, service, upstream })),
      [
        { record: 'auth', service: auth.origin, upstream: undefined },
        { record: 'limits', service: `grpc://127.0.0.1:${limiter.port}`, upstream: undefined },
        { record: undefined, service: 'rooms:80', upstream: upstream.origin },
      ],
    );
  });

  it('are logged once across reloads while a record names the auth or rate-limit service', async () => {
    const away = async () => `127.0.0.1:${(await servers.refusing()).port}`;
    const askers = [
      { ...authRecord, auth_service: await away(), failure_mode_allow: true },
      { ...limitRecord, service: `grpc://${await away()}` },
    ];
    const mapping = (rewrite: string) =>
      mappingRecord('one', '/one', 'own', { rewrite, labels: { gateway: [{ all: ['remote_address'] }] } });
    const config = await writeFiles({ 'services/one.yaml': yamlOf(mapping('/a'), ...askers) });
    const own = async (ctx: Context) => {
      ctx.body = 'ok';
    };
    const desk = await open({ config, services: { own }, only: ['gateway'], logger });
    const meet = async (...records: object[]) => {
      await replaceFile(join(config, 'services/one.yaml'), yamlOf(...records));
      await desk.reload();
      lines = [];
      await call(desk, '/one').expect(200);
      return lines;
    };
    const first = ['the rate-limit service returned no decision one', 'the auth service returned no decision one'];
    assert.deepEqual(await meet(mapping('/a'), ...askers), first);
    assert.deepEqual(await meet(mapping('/b'), ...askers), []);
    assert.deepEqual(await meet(mapping('/b')), []);
    assert.deepEqual(await meet(mapping('/b'), ...askers), first);
  });

  it('are logged once across reloads while a record names the service', async () => {
    const ports = { one: (await servers.refusing()).port, two: (await servers.refusing()).port };
    type Name = keyof typeof ports;
    const yaml = (names: readonly Name[]) =>
      yamlOf(
        ...names.map((name) => mappingRecord(name, `/${name}`, `127.0.0.1:${ports[name]}`, { bypass_auth: true })),
      );
    const config = await writeFiles({ 'services/all.yaml': yaml(['one', 'two']) });
    const desk = await open({ config, only: ['gateway'], logger });
    const meet = async (...names: Name[]) => {
      await replaceFile(join(config, 'services/all.yaml'), yaml(names));
      await desk.reload();
      lines = [];
      for (const name of names) await call(desk, `/${name}`).expect(503);
      return lines;
    };
    const away = 'The service behind the gateway could not be reached.';
    assert.deepEqual(await meet('one', 'two'), [`${away} one`, `${away} two`]);
    assert.deepEqual(await meet('one'), []);
    assert.deepEqual(await meet('one', 'two'), [`${away} two`]);
  });

  it('are logged once if Redis is unavailable and requests are denied because of it', async () => {
    const redisUrl = `redis://127.0.0.1:${(await servers.refusing()).port}`;
    const more = { bypass_auth: true, labels: { gateway: [{ group: [{ k: { header: 'x-k' } }] }] } };
    const records = [
      mappingRecord('one', '/one', 'http://127.0.0.1:1', more),
      { ...limitRecord, failure_mode_deny: true },
    ];
    const limits = [
      { domain: 'gateway', descriptors: [{ key: 'k', rate_limit: { unit: 'day', requests_per_unit: 1 } }] },
    ] as const;
    const settings = { redisUrl, ratelimitFailOpen: false, only: ['gateway', 'ratelimit'] as const };
    const desk = await open({ config: { records, limits }, ...settings, logger });
    for (let sent = 0; sent < 3; sent += 1) await call(desk, '/one').expect(503);
    assert.deepEqual(lines, ['hits cannot be counted in Redis: requests are not decided redis']);
  });

  it('are logged once if in-process services cannot reach the database', async () => {
    const app = new Koa().use(createProblemResponses({ logger })).use((ctx) => {
      Object.assign(requestContext(ctx), { mapping: ctx.path, service: ctx.path });
      throw problem('storage-unavailable');
    });
    for (const path of ['/hotel', '/car', '/hotel']) await request(app.callback()).get(path).expect(503);
    assert.deepEqual(lines, ['The database could not be used. /hotel']);
  });
});
