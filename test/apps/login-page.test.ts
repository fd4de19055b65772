/** The recipe "Log in on a page": an auth service with a login page, in the manner of oauth2-proxy, as the records have it. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import supertest, { type Test } from 'supertest';
import { parseAllDocuments } from 'yaml';
import { readRecipe } from '../recipes/page.ts';
import { onPorts } from '../support/programs/shell-story.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { startFront } from './front.ts';

const shown = readRecipe('Log in on a page').files['config/services/login.yaml'] ?? '';

/** A user with the session `ann` is known; anybody else is sent to the login page, and from there back again. One page is its own. */
function standIn({ method, url = '/', headers }: IncomingMessage, res: ServerResponse): void {
  const { 'x-forwarded-proto': scheme, 'x-forwarded-uri': uri = '/', host } = headers;
  const { pathname, searchParams } = new URL(url, 'http://login.test');
  if (pathname === '/robots.txt') res.end('User-agent: *\nDisallow: /\n');
  else if (pathname === '/oauth2/start' && method === 'GET')
    res.end(`Who are you, visitor of ${searchParams.get('rd')}?`);
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
    const login = await servers.http(standIn);
    const records = parseAllDocuments(onPorts(shown, { 3000: app.port, 4180: login.port }));
    front = await startFront(servers, ...records.map((record) => record.toJS()));
  });

  /** On the host that the browser knows. */
  const ask = (method: 'get' | 'post', path: string, cookie = ''): Test =>
    supertest(front.origin)[method](path).redirects(0).set({ Host: 'app.example', Cookie: cookie });

  it('leads a browser to the login page and back, where the application knows the user', async () => {
    const refused = await ask('get', '/reports?year=2026').expect(302);
    assert.deepEqual(refused.get('Set-Cookie'), ['attempt=1; Path=/oauth2']);
    const start = new URL(String(refused.headers['location']));
    assert.equal(start.origin, 'http://app.example');

    const page = await ask('get', start.pathname + start.search, 'attempt=1').expect(200);
    assert.equal(page.text, 'Who are you, visitor of /reports?year=2026?');
    const taken = await ask('post', start.pathname + start.search, 'attempt=1').expect(303);
    assert.equal(taken.headers['location'], '/reports?year=2026');

    const [session = ''] = taken.get('Set-Cookie') ?? [];
    const { url, headers } = await seenBy(ask('get', '/reports?year=2026', session));
    assert.deepEqual([url, headers['x-auth-request-user']], ['/reports?year=2026', 'ann']);
  });

  it("leaves `Authorization` to the application's own tokens", async () => {
    const { headers } = await seenBy(ask('get', '/api', 'session=ann').set('Authorization', 'token of-the-app'));
    assert.deepEqual([headers.authorization, headers['x-auth-request-user']], ['token of-the-app', 'ann']);
  });

  it('lets nothing of a request without a session through, and no user that a client makes up', async () => {
    const before = app.reached.length;
    await ask('post', '/reports', 'session=eve').set('X-Auth-Request-User', 'ann').send('text').expect(302);
    const start = 'http://app.example/oauth2/start?rd=%2Frobots.txt';
    await ask('get', '/robots.txt').expect(302).expect('Location', start);
    assert.equal(app.reached.length, before);
  });

  async function seenBy(asked: Test) {
    await asked.expect(200);
    return app.reached.at(-1) ?? assert.fail('nothing reached the application');
  }
});
