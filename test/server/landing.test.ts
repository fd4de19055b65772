/** The page at `/`: shown if no mapping matches, with the routes that the user may see, and how to start with the demo. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { parse } from 'yaml';
import { annRecord, authRecord, desksOf, mappingRecord } from '../support/desks.ts';
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

  /** The links of the page, as paths. */
  const linksOf = (text: string, base = '/') =>
    Array.from(text.matchAll(/<a href="([^"]*)"/g), ([, href = '']) => {
      const { pathname, search } = new URL(href.replaceAll('&#38;', '&'), `http://desk.test${base}`);
      return pathname + search;
    });

  it('offers to sign in, and marks the routes of the demo that need credentials', async () => {
    const { text } = await get().expect(200, /<h1>API gateway<\/h1>/);
    assert.deepEqual(pathsOf(text).toSorted(), ['/v1', '/v1/cars', '/v1/hotels', '/v2']);
    for (const prefix of ['/v1/hotels', '/v1/cars'])
      assert.match(text, new RegExp(`<a href="\\.${prefix}"><code>.*<span class="chip">sign in</span></td></tr>`));
    for (const link of ['/v1/docs/', '/v2/docs/', '/v1/hotels/docs/', '/gateway/v0/diag/', '/?sign-in'])
      assert.ok(linksOf(text).includes(link), link);
  });

  it('lists only open routes of other configurations without credentials', async () => {
    const records = [
      authRecord,
      mappingRecord('guarded', '/guarded', 'http://127.0.0.1:9'),
      mappingRecord('open', '/open', 'http://127.0.0.1:9', { bypass_auth: true }),
    ];
    const desk = await openDesk({ config: { records, users: [annRecord] }, demo: false });
    const at = (await desk.listen()).gateway.url;
    for (const accept of [browser, 'application/json']) {
      const { text } = await get(accept, '/', at).expect(200);
      assert.ok(text.includes('/open') && !text.includes('/guarded'));
    }
    const { text } = await get(browser, '/', at).auth('ann', 'secret').expect(200);
    assert.deepEqual(pathsOf(text).toSorted(), ['/guarded', '/open']);
  });

  it('greets a signed-in user, and rejects wrong credentials', async () => {
    const { text, headers } = await get()
      .auth('demo', 'demo')
      .expect(200, /Signed in as <b>demo<\/b>/);
    assert.deepEqual(pathsOf(text).toSorted(), ['/v1', '/v1/cars', '/v1/hotels', '/v2']);
    const links = linksOf(text);
    assert.ok(links.includes('/v1/hotels/docs/') && links.includes('/?sign-out') && !links.includes('/?sign-in'));
    assert.match(String(headers['cache-control']), /no-store/);
    assert.match(String(headers['vary']), /Authorization/);
    await get().auth('demo', 'wrong').expect(401);
    await get(browser, '/?sign-in')
      .expect(401)
      .expect('WWW-Authenticate', /^Basic /);
  });

  it('signs out with the challenge on which a browser forgets the password', async () => {
    const { headers } = await get(browser, '/?sign-in').expect(401);
    await get(browser, '/?sign-out')
      .auth('demo', 'demo')
      .expect(401, /<h1>Signed out<\/h1>.*press Cancel.*close all windows/s)
      .expect('WWW-Authenticate', String(headers['www-authenticate']));
    const { headers: without } = await get(browser, '/?sign-out').expect(200, /<h1>Signed out<\/h1>/);
    assert.equal(without['www-authenticate'], undefined);
  });

  it('names the users of the demo and three first steps, and no users of other configurations', async () => {
    const demo = await openDesk({ config: 'config' });
    const { text } = await get(browser, '/', (await demo.listen()).gateway.url).expect(200);
    assert.match(text, /<code>demo<\/code> \/ <code>demo<\/code> \(an administrator\), <code>guest<\/code>/);
    const steps = /<ol class="steps">(.*?)<\/ol>/s.exec(text)?.[1] ?? '';
    assert.deepEqual(linksOf(steps), ['/v2/messages/', '/v1/hotels/bookings/', '/v1/hotels/docs/']);
    assert.match(
      steps,
      /<pre><code>curl -u demo:demo http:\/\/127\.0\.0\.1:\d+\/v1\/hotels\/bookings\/<\/code><\/pre>/,
    );
    const others = [openDesk(), openDesk({ config: 'config', demo: false, only: ['gateway', 'auth', 'ratelimit'] })];
    for (const desk of await Promise.all(others)) {
      const page = await get(browser, '/', (await desk.listen()).gateway.url).expect(200);
      assert.doesNotMatch(page.text, /Try the demo|passwords/);
    }
  });

  it('shows a command that books a room of the demo', async () => {
    const at = (await (await openDesk({ config: 'config' })).listen()).gateway.url;
    const { body } = await get('application/json', '/', at).expect(200);
    const command: string = body.first_steps[2].command;
    const [, sent = '', url = ''] =
      /^curl -u demo:demo -H 'Content-Type: application\/json' -d '(.*)' (http\S+)$/.exec(command) ??
      assert.fail(command);
    await request(url).post('').auth('demo', 'demo').set('Content-Type', 'application/json').send(sent).expect(201);
  });

  it('has the same links as JSON and YAML, which are for clients other than browsers', async () => {
    const at = (await (await openDesk({ config: 'config' })).listen()).gateway.url;
    const urlsIn = (value: unknown): readonly string[] => {
      if (typeof value === 'string') return value.startsWith('http') ? [value] : [];
      return Object.values(Object(value)).flatMap(urlsIn);
    };
    for (const path of ['/', '/?sign-in']) {
      const ask = (accept: string) =>
        path === '/' ? get(accept, path, at) : get(accept, path, at).auth('demo', 'demo');
      const { body } = await ask('*/*').expect(200).expect('Content-Type', 'application/json');
      const { text } = await ask(browser);
      const expected = new Set(linksOf(text).filter((link) => link !== '/?sign-out'));
      const urls = urlsIn(body).map((url) => url.slice(at.length));
      assert.deepEqual(new Set(urls.filter((path) => path !== '/')), expected);
      const yaml = await ask('application/yaml').buffer(true);
      assert.deepEqual(parse(yaml.text), body);
    }
    await get('image/png', '/', at).expect(406);
  });

  it('is a 404 for other methods and paths', async () => {
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

  it('is a 404 for programs if a mapping has / for another host', async () => {
    const records = [mappingRecord('app', '/', 'http://127.0.0.1:9', { host: 'app.example' })];
    const desk = await openDesk({ config: { records }, demo: false });
    const at = (await desk.listen()).gateway.url;
    await get('*/*', '/', at).expect(404);
    await get(browser, '/', at).expect(200);
  });

  it('is not shown in another app, unless the app asks for it', async () => {
    const desk = await openDesk();
    await request(desk.app.callback()).get('/').set('Accept', browser).expect(404);
    const shown = await openDesk({ landingPage: true });
    const host = new Koa().use(mount('/travel', shown.middleware)).use((ctx) => {
      ctx.body = 'the host';
    });
    const ask = (path: string, accept = browser) => request(host.callback()).get(path).set('Accept', accept);
    await ask('/').expect(200, 'the host');
    await ask('/travel?sign-in').expect(308).expect('Location', '/travel/?sign-in');
    const { text } = await ask('/travel/').expect(200);
    assert.ok(linksOf(text, '/travel/').every((link) => link.startsWith('/travel/')));
    const { body } = await ask('/travel/', 'application/json').set('Host', 'desk.test').expect(200);
    assert.equal(body.routes[0].docs, `http://desk.test/travel${body.routes[0].path}/docs/`);
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
