/** add_… and remove_… headers: on the request to the service, and on every response. */
import assert from 'node:assert/strict';
import type { HeaderRules } from '#config';
import { isolate } from '#http';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

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
const answered = { 'Strict-Transport-Security': 'theirs', 'X-List': 'theirs', 'X-Inside': 'theirs' };

describe('the header rules of a mapping', () => {
  const servers = testServers();
  const mappings = [mappingOf({ requestHeaders, responseHeaders })];

  type Ways = Readonly<Record<string, (seen: unknown[]) => Promise<EdgeOptions>>>;
  const ways: Ways = {
    'across HTTP': async (seen) => {
      const upstream = await startUpstream(servers, (res, { headers }) => {
        seen.push(headers['x-added'], headers['x-list'], headers['x-removed']);
        res.writeHead(200, answered).end();
      });
      return { targets: { hotel: remote(upstream) } };
    },
    'in this process': async (seen) => {
      const hotel = isolate(async (ctx) => {
        seen.push(ctx.get('x-added'), ctx.get('x-list'), ctx.req.headers['x-removed']);
        ctx.set(answered);
        ctx.status = 200;
      });
      return { services: { hotel } };
    },
  };

  for (const [where, prepare] of Object.entries(ways)) {
    it(`apply to the request and the response of a service ${where}, and back`, async () => {
      const seen: unknown[] = [];
      const edge = await startEdge(servers, { mappings, ...(await prepare(seen)) });
      const { status, headers } = await fetch(`${edge.origin}/v1/hotels`, { headers: sent });
      assert.equal(status, 200);
      assert.deepEqual(seen, ['ours', 'theirs, ours', undefined]);
      assert.equal(headers.get('strict-transport-security'), 'max-age=1');
      assert.equal(headers.get('x-list'), 'theirs, ours');
      assert.equal(headers.get('x-inside'), null);
    });
  }

  async function checkAdded(options: EdgeOptions, status: number) {
    const edge = await startEdge(servers, { mappings, ...options });
    const answer = await fetch(`${edge.origin}/v1/hotels`, { redirect: 'manual' });
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get('strict-transport-security'), 'max-age=1');
    assert.equal(answer.headers.get('x-list'), 'ours');
  }

  it('apply to refusals', async () => {
    const refusing = { authService: authRecordOf(), targets: { hotel: remote(await servers.refusing()) } };
    const body = Buffer.from('no');
    await checkAdded({ ...refusing, authPort: () => ({ outcome: 'deny', status: 401, headers: {} }) }, 401);
    await checkAdded({ ...refusing, authPort: () => ({ outcome: 'deny', status: 403, headers: {}, body }) }, 403);
  });

  it('apply when the service is down or fails', async () => {
    await checkAdded({ targets: { hotel: remote(await servers.refusing()) } }, 503);
    const broken = isolate(async () => {
      throw new Error('broken');
    });
    await checkAdded({ services: { hotel: broken } }, 500);
  });

  it('apply to a redirect', () =>
    checkAdded(
      { mappings: [mappingOf({ responseHeaders, redirect: { host: 'a.example', path: undefined, status: 302 } })] },
      302,
    ));
});
