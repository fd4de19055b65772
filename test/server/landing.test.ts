/** The page at `/`: shown only to browsers and if no mapping matches, with the routes that the user may see. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

describe('the page at /', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  const browser = 'text/html,application/xhtml+xml,*/*;q=0.8';
  let url: string;

  before(async () => {
    url = (await (await openDesk()).listen()).gateway.url;
  });

  const get = (accept = browser, path = '/', at = url) => request(at).get(path).set('Accept', accept);
  const pathsOf = (text: string) =>
    Array.from(text.matchAll(/<th scope="row">.*?<code>(.*?)<\/code>/g), ([, path]) => path);

  it('lists only open routes without credentials, and offers to sign in', async () => {
    const { text } = await get().expect(200, /<h1>API gateway<\/h1>/);
    assert.deepEqual(pathsOf(text), ['/v1', '/v2']);
    assert.ok(!text.includes('/v1/hotels'));
    for (const link of ['./v1/docs/', 'gateway/v0/diag/', 'gateway/v0/problems/', '?sign-in'])
      assert.ok(text.includes(`href="${link}"`), link);
  });

  it('also lists routes behind the auth service to signed-in users, and rejects wrong credentials', async () => {
    const { text, headers } = await get().auth('demo', 'demo').expect(200);
    assert.deepEqual(pathsOf(text).toSorted(), ['/v1', '/v1/cars', '/v1/hotels', '/v2']);
    assert.ok(text.includes('href="./v1/hotels/docs/"') && !text.includes('?sign-in'));
    assert.match(String(headers['cache-control']), /no-store/);
    assert.match(String(headers['vary']), /Authorization/);
    await get().auth('demo', 'wrong').expect(401);
    await get(browser, '/?sign-in')
      .expect(401)
      .expect('WWW-Authenticate', /^Basic /);
  });

  it('is a 404 for clients other than browsers', async () => {
    for (const accept of ['*/*', 'application/json', 'application/yaml']) await get(accept).expect(404);
    await request(url).post('/').set('Accept', browser).expect(404);
    await get(browser, '/nowhere').expect(404);
  });

  it('is not listed in the diagnostics as a request that got 404', async () => {
    const at = (await (await openDesk()).listen()).gateway.url;
    await get(browser, '/', at).expect(200);
    await get(browser, '/nowhere', at).expect(404);
    const rows: readonly { readonly path: string }[] = await eventually(async () => {
      const { body } = await get('application/json', '/gateway/v0/diag/', at).auth('demo', 'demo').expect(200);
      assert.equal(body.unmatched.requests, 2);
      return body.unmatched_requests;
    });
    assert.deepEqual(
      rows.map(({ path }) => path),
      ['/nowhere'],
    );
  });

  it('is not shown if a mapping matches', async () => {
    const { origin } = await servers.http((_, res) => res.end('the service'));
    const records = [mappingRecord('app', '/', origin)];
    const desk = await openDesk({ config: { records }, demo: false });
    const { gateway } = await desk.listen();
    await get(browser, '/', gateway.url).expect(200, 'the service');
  });

  it('is not shown in another app', async () => {
    const desk = await openDesk();
    await request(desk.app.callback()).get('/').set('Accept', browser).expect(404);
  });

  it('does not list closed routes if the auth service does not respond, even with failure_mode_allow', async () => {
    const { origin } = await servers.refusing();
    const auth = { ...authRecord, auth_service: origin, failure_mode_allow: true };
    const records = [mappingRecord('guarded', '/guarded', 'http://127.0.0.1:9'), auth];
    const desk = await openDesk({ config: { records }, demo: false });
    const at = (await desk.listen()).gateway.url;
    for (const path of ['/', '/?sign-in']) {
      const { text } = await get(browser, path, at).auth('ann', 'any').expect(200);
      assert.deepEqual(pathsOf(text), []);
    }
  });

  it('is not shown instead of a denial with a body of the auth service', async () => {
    const { origin } = await servers.http((_, res) => res.writeHead(403).end('go away'));
    const records = [
      mappingRecord('guarded', '/guarded', 'http://127.0.0.1:9'),
      { ...authRecord, auth_service: origin },
    ];
    const desk = await openDesk({ config: { records }, demo: false });
    await get(browser, '/?sign-in', (await desk.listen()).gateway.url).expect(403, 'go away');
  });

  it('does not offer to sign in if no route needs credentials', async () => {
    const records = [mappingRecord('open', '/a&b', 'http://127.0.0.1:9', { bypass_auth: true }), authRecord];
    const desk = await openDesk({ config: { records }, demo: false });
    const { text } = await get(browser, '/', (await desk.listen()).gateway.url).expect(200);
    assert.deepEqual(pathsOf(text), ['/a&#38;b']);
    assert.ok(!text.includes('?sign-in'));
  });
});
