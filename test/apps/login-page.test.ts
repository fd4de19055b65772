/** The recipe "Log in on a page", with oauth2-proxy and an identity provider, in a browser. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import supertest, { type Test } from 'supertest';
import { parseAllDocuments } from 'yaml';
import { describeInBrowser } from '../browser/browser.ts';
import { readRecipe } from '../recipes/page.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { startProxy } from '../support/programs/proxy-process.ts';
import { onPorts } from '../support/programs/shell-story.ts';
import type { Served } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { startFront } from './front.ts';

const { files } = readRecipe('Log in on a page');

const oauth2Proxy = {
  command: 'oauth2-proxy',
  configure: (recipe: string) => recipe,
  args: (configFile: string) => ['--config', configFile],
};

describeWith('oauth2-proxy', 'the recipe: log in on a page', () => {
  describeInBrowser('with oauth2-proxy', ({ servers, visit }) => {
    let app: Upstream;
    let front: Served;
    let provider: IdentityProvider;

    before(async () => {
      app = await startUpstream(servers);
      const port = await freePort();
      const records = parseAllDocuments(
        onPorts(files['config/services/login.yaml'] ?? '', { 3000: app.port, 4180: port }),
      );
      front = await startFront(servers, ...records.map((record) => record.toJS()));
      const secret = 'the secret of the client';
      const client = { id: 'frontdesk', secret, redirectUri: `${front.origin}/oauth2/callback` };
      provider = await startIdentityProvider(servers, client);
      const recipe = onPorts(files['oauth2-proxy.cfg'] ?? '', { 4180: port })
        .replace('https://accounts.example.com', provider.issuer)
        .replace('accounts.example.com', new URL(provider.issuer).host)
        .replace('what `openssl rand -hex 16` prints', '0123456789abcdef'.repeat(2));
      servers.later((await startProxy(oauth2Proxy, recipe, port)).remove);
    });

    /** A browser that knows nothing yet. It may also visit the pages of the provider. */
    const open = (path: string) =>
      visit(front.origin + path, { isAnonymous: true, expected: /^requested http:\/\/127\.0\.0\.1:/ });

    async function logIn(page: Page): Promise<void> {
      await page.getByLabel('Name').fill('ann');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByText('ok', { exact: true }).waitFor();
    }

    const isAtLogin = (page: Page) => page.url().startsWith(`${provider.issuer}/login/`);

    it('leads a browser to the provider and back, and passes the user to the application', async () => {
      const { page } = await open('/reports?year=2026');
      assert.ok(isAtLogin(page), page.url());
      assert.deepEqual(app.reached, []);
      await logIn(page);
      assert.equal(page.url(), `${front.origin}/reports?year=2026`);
      const { url, headers } = app.only();
      assert.deepEqual([url, headers['x-auth-request-user']], ['/reports?year=2026', 'ann']);
    });

    it('ends the session on logout, which also leads to the logout of the provider', async () => {
      const { page } = await open('/');
      await logIn(page);
      await page.goto(`${front.origin}/oauth2/sign_out?rd=${provider.issuer}/session/end`);
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByRole('heading', { name: 'Logged out' }).waitFor();
      await page.goto(`${front.origin}/reports`);
      assert.ok(isAtLogin(page), page.url());
    });

    it('logs in again without a form after a logout that the provider knows nothing about', async () => {
      const { page } = await open('/');
      await logIn(page);
      await page.goto(`${front.origin}/oauth2/sign_out`);
      assert.equal(page.url(), `${front.origin}/`);
      assert.equal(await page.textContent('body'), 'ok');
    });

    /** Sends a request as a program does. */
    const ask = (method: 'get' | 'post', path: string, cookie = ''): Test =>
      supertest(front.origin)[method](path).redirects(0).set('Cookie', cookie);

    it("forwards `Authorization` unchanged, for the application's own tokens", async () => {
      const { page, context } = await open('/');
      await logIn(page);
      const cookies = await context.cookies(front.origin);
      const sent = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
      const [reached] = await app.reachedBy(() =>
        ask('get', '/api', sent).set('Authorization', 'token of-the-app').expect(200),
      );
      const { authorization, 'x-auth-request-user': user } = reached?.headers ?? {};
      assert.deepEqual([authorization, user], ['token of-the-app', 'ann']);
    });

    it('forwards no request without a valid session, even if the client claims to be a user', async () => {
      const reached = await app.reachedBy(async () => {
        await ask('post', '/reports', '_oauth2_proxy=eve').set('X-Auth-Request-User', 'ann').send('text').expect(302);
        for (const path of ['/robots.txt', '/ping', '/ready'])
          await ask('get', path)
            .expect(302)
            .expect('Location', new RegExp(`^${provider.issuer}/auth\\?`));
      });
      assert.deepEqual(reached, []);
    });
  });
});
