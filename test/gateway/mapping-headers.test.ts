/** The add_… and remove_… header fields, for the request to the service and for every response. */
import assert from 'node:assert/strict';
import type { HeaderRules, HeaderValue } from '#config';
import { isolate } from '#http';
import { authRecordOf, type EdgeOptions, mappingOf, redirectOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const requestHeaders: HeaderRules = {
  add: [
    { name: 'x-added', value: 'ours', append: false },
    { name: 'x-list', value: 'ours', append: true },
  ],
  remove: ['x-removed'],
};

const responseHeaders: HeaderRules = {
  add: [
    { name: 'strict-transport-security', value: 'max-age=1', append: false },
    { name: 'x-list', value: 'ours', append: true },
  ],
  remove: ['x-inside'],
};

const sent = { 'X-Added': 'theirs', 'X-List': 'theirs', 'X-Removed': 'theirs' };
const serviceHeaders = { 'Strict-Transport-Security': 'theirs', 'X-List': 'theirs', 'X-Inside': 'theirs' };

describe('the header rules of a mapping', () => {
  const servers = testServers();
  const mappings = [mappingOf({ requestHeaders, responseHeaders })];

  async function checkBoth(service: EdgeOptions, seen: readonly unknown[]) {
    const edge = await startEdge(servers, { mappings, ...service });
    const { status, headers } = await fetch(`${edge.origin}/v1/hotels`, { headers: sent });
    assert.equal(status, 200);
    assert.deepEqual(seen, ['ours', 'theirs, ours', undefined]);
    const names = ['strict-transport-security', 'x-list', 'x-inside'];
    assert.deepEqual(
      names.map((name) => headers.get(name)),
      ['max-age=1', 'theirs, ours', null],
    );
  }

  it('apply to the request and the response of a service over HTTP', async () => {
    const seen: unknown[] = [];
    const upstream = await startUpstream(servers, (res, { headers }) => {
      seen.push(headers['x-added'], headers['x-list'], headers['x-removed']);
      res.writeHead(200, serviceHeaders).end();
    });
    await checkBoth({ upstream }, seen);
  });

  it('apply to the request and the response of a service in this process', async () => {
    const seen: unknown[] = [];
    const hotel = isolate(async (ctx) => {
      seen.push(ctx.get('x-added'), ctx.get('x-list'), ctx.req.headers['x-removed']);
      ctx.set(serviceHeaders);
      ctx.status = 200;
    });
    await checkBoth({ services: { hotel } }, seen);
  });

  it('leave a response alone that a service in this process has sent itself', async () => {
    const hotel = isolate(async (ctx) => {
      ctx.respond = false;
      ctx.res.end('sent');
    });
    const edge = await startEdge(servers, { mappings, services: { hotel } });
    assert.equal(await (await fetch(`${edge.origin}/v1/hotels`)).text(), 'sent');
    assert.deepEqual(edge.log, []);
  });

  const added = (name: string, value: string, append = false): HeaderValue => ({ name, value, append });
  const variables = '%PROTOCOL% from %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%';
  const values = [added('x-a', variables, true), added('x-b', '100%% of %ODD%', true)];

  for (const [what, rules, expected] of [
    ['replace a repeated header', { add: [added('x-a', 'ours')] }, { 'x-a': 'ours' }],
    ['remove a header of the gateway', { remove: ['x-forwarded-for'] }, { 'x-forwarded-for': undefined }],
    ['replace one', { add: [added('x-forwarded-proto', 'https')] }, { 'x-forwarded-proto': 'https' }],
    [
      'substitute the same variables as Envoy',
      { add: values, remove: ['x-a'] },
      { 'x-a': 'HTTP/1.1 from 127.0.0.1', 'x-b': '100% of %ODD%' },
    ],
  ] as const)
    it(`can ${what} for a service over HTTP`, async () => {
      const upstream = await startUpstream(servers);
      const { port } = await startEdge(servers, {
        upstream,
        mapping: { requestHeaders: { add: [], remove: [], ...rules } },
      });
      await sendRaw(port, rawRequest('GET /v1/hotels', ['X-A: 1', 'X-A: 2']));
      const { headers } = upstream.only();
      for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value, name);
    });

  const refusal = { outcome: 'deny', status: 401, headers: {} } as const;
  const [authService, body] = [authRecordOf(), Buffer.from('no')];
  const redirect = redirectOf({ host: 'a.example', status: 302 });
  const broken = isolate(async () => {
    throw new Error('broken');
  });

  for (const [status, what, options] of [
    [401, 'a denial', { authService, authPort: () => refusal }],
    [403, 'a denial with a body', { authService, authPort: () => ({ ...refusal, status: 403, body }) }],
    [503, 'an error when the service is down', {}],
    [500, 'a failure of the service', { targets: {}, services: { hotel: broken } }],
    [302, 'a redirect', { mappings: [mappingOf({ responseHeaders, redirect })] }],
  ] as const) {
    it(`apply to ${what}`, async () => {
      const targets = { hotel: remote(await servers.refusing()) };
      const edge = await startEdge(servers, { mappings, targets, ...options });
      const response = await fetch(`${edge.origin}/v1/hotels`, { redirect: 'manual' });
      const seen = [response.status, response.headers.get('strict-transport-security'), response.headers.get('x-list')];
      assert.deepEqual(seen, [status, 'max-age=1', 'ours']);
    });
  }
});
