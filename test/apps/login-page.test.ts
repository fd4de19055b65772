/** The recipe "Log in on a page", with an auth service that has a login page like that of oauth2-proxy. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import supertest, { type Test } from 'supertest';
import { parseAllDocuments } from 'yaml';
import { readRecipe } from '../recipes/page.ts';
import { onPorts } from '../support/programs/shell-story.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { startFront } from './front.ts';

const recipe = readRecipe('Log in on a page').files['config/services/login.yaml'] ?? '';

/**
 * The auth service. It accepts the session `ann` and redirects all other requests to its login page, which leads back
 * to the original page. Like oauth2-proxy, it responds 200 to /robots.txt, which must not count as permission.
 */
function serveLogin({ method, url = '/', headers }: IncomingMessage, res: ServerResponse): void {
  const { 'x-forwarded-proto': scheme, 'x-forwarded-uri': uri = '/', host } = headers;
  const { pathname, searchParams } = new URL(url, 'http://login.test');
  if (pathname === '/robots.txt') res.end('User-agent: *\nDisallow: /\n');
  else if (pathname === '/oauth2/start' && method === 'GET') res.end(`Log in to see ${searchParams.get('rd')}`);
  else if (pathname === '/oauth2/start') {
    const session = { 'Set-Cookie': 'session=ann; Path=/; HttpOnly', Location: searchParams.get('rd') ?? '/' };
    res.writeHead(303, session).end();
  } else if (/\bsession=ann\b/.test(headers.cookie ?? '')) res.writeHead(200, { 'X-Auth-Request-User': 'ann' }).end();
  else {
    const start = `${scheme}://${host}/oauth2/start?rd=${encodeURIComponent(String(uri))}`;
    res.writeHead(302, { 'Set-Cookie': 'attempt=1; Path=/oauth2', Location: start }).end('<a>Log in</a>');
  }
}

describe('the recipe: log in on a page', () => {
  const servers = testServers(after);
  let app: Upstream;
  let front: Served;

  before(async () => {
    app = await startUpstream(servers);
    const login = await servers.http(serveLogin);
    const records = parseAllDocuments(onPorts(recipe, { 3000: app.port, 4180: login.port }));
    front = await startFront(servers, ...records.map((record) => record.toJS()));
  });

  /** Sends a request to the public host. */
  const ask = (method: 'get' | 'post', path: string, cookie = ''): Test =>
    supertest(front.origin)[method](path).redirects(0).set({ Host: 'app.example', Cookie: cookie });

  it('redirects a browser to the login page and back, and passes the user to the application', async () => {
    const denied = await ask('get', '/reports?year=2026').expect(302);
    assert.deepEqual(denied.get('Set-Cookie'), ['attempt=1; Path=/oauth2']);
    const start = new URL(String(denied.headers['location']));
    assert.equal(start.origin, 'http://app.example');

    const page = await ask('get', start.pathname + start.search, 'attempt=1').expect(200);
    assert.equal(page.text, 'Log in to see /reports?year=2026');
    const loggedIn = await ask('post', start.pathname + start.search, 'attempt=1').expect(303);
    assert.equal(loggedIn.headers['location'], '/reports?year=2026');

    const [session = ''] = loggedIn.get('Set-Cookie') ?? [];
    const { url, headers } = await seenByApp(ask('get', '/reports?year=2026', session));
    assert.deepEqual([url, headers['x-auth-request-user']], ['/reports?year=2026', 'ann']);
  });

  it("forwards `Authorization` unchanged, for the application's own tokens", async () => {
    const { headers } = await seenByApp(ask('get', '/api', 'session=ann').set('Authorization', 'token of-the-app'));
    assert.deepEqual([headers.authorization, headers['x-auth-request-user']], ['token of-the-app', 'ann']);
  });

  it('forwards no request without a valid session, even if the client claims to be a user', async () => {
    const before = app.reached.length;
    await ask('post', '/reports', 'session=eve').set('X-Auth-Request-User', 'ann').send('text').expect(302);
    const start = 'http://app.example/oauth2/start?rd=%2Frobots.txt';
    await ask('get', '/robots.txt').expect(302).expect('Location', start);
    assert.equal(app.reached.length, before);
  });

  /** Returns the request that reached the application. */
  async function seenByApp(sent: Test) {
    await sent.expect(200);
    return app.reached.at(-1) ?? assert.fail('nothing reached the application');
  }
});
