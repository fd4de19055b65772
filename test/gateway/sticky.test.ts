/** Sticky canaries: the cookie that a new client gets, what the service sees of it, and wrong records. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';
import type { MappingInput } from '../../src/index.ts';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

const servers = testServers();
const open = desksOf(servers);

async function setUp(sticky: MappingInput['sticky']) {
  const upstream = async (name: string) =>
    startUpstream(servers, (res) => void res.writeHead(200, { 'X-Part': name, 'Set-Cookie': 'own=1' }).end());
  const [app, canary] = await Promise.all([upstream('app'), upstream('canary')]);
  const desk = await open({
    demo: false,
    only: ['gateway'],
    trustedProxies: ['127.0.0.1'],
    config: {
      records: [
        mappingRecord('app', '/', app.origin, { sticky }),
        mappingRecord('canary', '/', canary.origin, { sticky, weight: 50 }),
      ],
    },
  });
  const { gateway } = await desk.listen();
  const get = (headers: Readonly<Record<string, string>> = {}) => fetch(`${gateway.url}/a`, { headers });
  return { desk, get, reached: () => [...app.reached, ...canary.reached] };
}

const partOf = ({ headers }: Response) => headers.get('x-part');

describe('a sticky canary', () => {
  it('sets a cookie once, beside those of the service, and keeps the client on its part', async () => {
    const { get, reached } = await setUp({ cookie: 'part' });
    const first = await get();
    const [own, set = ''] = first.headers.getSetCookie();
    assert.equal(own, 'own=1');
    assert.match(set, /^part=[\da-f]{32}; Path=\/; HttpOnly; SameSite=Lax$/);
    const [cookie = ''] = set.split(';');
    for (let step = 0; step < 20; step += 1) {
      const next = await get({ Cookie: cookie });
      assert.deepEqual([partOf(next), next.headers.getSetCookie()], [partOf(first), ['own=1']]);
    }
    assert.equal(reached().at(-1)?.headers['cookie'], cookie);
  });

  it('marks the cookie as secure when the client uses https, and lets it expire after its ttl', async () => {
    const { get } = await setUp({ cookie: 'part', ttl: '1h' });
    const { headers } = await get({ 'X-Forwarded-Proto': 'https' });
    assert.match(headers.getSetCookie().at(-1) ?? '', /; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure$/);
  });

  it('keeps the clients of a header on their parts without a cookie, and explains which part it is', async () => {
    const { get, desk } = await setUp({ header: 'X-Tenant' });
    const parts = new Set<string | null>();
    for (const tenant of ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight']) {
      const responses = [await get({ 'X-Tenant': tenant }), await get({ 'X-Tenant': tenant })];
      const [first, second] = responses.map(partOf);
      const { mapping } = await desk.explain({ method: 'GET', url: '/a', headers: [['X-Tenant', tenant]] });
      assert.deepEqual([second, mapping?.name], [first, first]);
      assert.match(mapping?.reason ?? '', /weight 50 of 100, sticky by header x-tenant/);
      assert.deepEqual(responses[0]?.headers.getSetCookie(), ['own=1']);
      parts.add(first ?? null);
    }
    assert.deepEqual(parts, new Set(['app', 'canary']));
  });
});

describe('the field sticky', () => {
  const errorsOf = (...all: readonly unknown[]) => {
    const records = all.map((sticky, index) => ({
      ...mappingRecord(`m${index}`, '/', 'http://10.0.0.1', index === 0 ? {} : { weight: 10 }),
      sticky,
    }));
    return configurationFrom({ records: records as MappingInput[] }).errors.map(
      ({ message, remedy }) => `${message}. ${remedy}`,
    );
  };

  for (const [what, values, expected] of [
    ['a cookie and a header', [{ cookie: 'a', header: 'b' }], /cannot be combined with cookie/],
    ['neither', [{}], /cookie is missing/],
    ['a ttl with a header', [{ header: 'a', ttl: '1h' }], /ttl has no effect without cookie/],
    ['a name that no cookie can have', [{ cookie: 'a b' }], /"a b" is not the name of a cookie/],
    ['an unknown field', [{ cookies: 'a' }], /unknown key "cookies" in sticky, did you mean "cookie"/],
    ['a ttl without a unit', [{ cookie: 'a', ttl: 60 }], /has no unit/],
    ['another value in the group', [{ cookie: 'a' }, { cookie: 'b' }], /does not have the same sticky as Mapping m0/],
    ['no value in the group', [{ cookie: 'a' }, undefined], /does not have the same sticky as Mapping m0/],
  ] as const)
    it(`is an error with ${what}`, () => {
      const errors = errorsOf(...values);
      assert.match(errors.join('\n'), expected);
      assert.equal(errors.length, 1);
    });
});
