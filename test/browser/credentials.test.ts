/** A page that a browser loads with a password and whose scripts send tokens and API keys, below the same mapping. */
import assert from 'node:assert/strict';
import type { Middleware } from 'koa';
import type { Page } from 'playwright-core';
import { createApiKey } from '#auth';
import { annRecord, authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { claimsOf, createKey, providerRecord, signToken } from '../support/tokens.ts';
import { describeInBrowser } from './browser.ts';

const key = createKey('ES256', 'first');
const apiKey = createApiKey();

/** The names of the caller, as the service gets them. */
const whoami: Middleware = (ctx) => {
  ctx.type = 'html';
  ctx.body = `<!DOCTYPE html><html lang=en><title>app</title><p>${ctx.get('X-Travel-User')}`;
};

describeInBrowser('a mapping for browsers and programs', ({ servers, visit }) => {
  const openDesk = desksOf(servers);
  let origin = '';

  before(async () => {
    const auth = { ...authRecord, providers: ['accounts'] };
    const records = [
      mappingRecord('app', '/', 'app'),
      mappingRecord('open', '/open', 'app', { bypass_auth: true }),
      auth,
      providerRecord([key]),
    ];
    const users = [annRecord, { name: 'bot', api_keys: [{ name: 'ci', sha256: apiKey.sha256 }] }];
    const desk = await openDesk({ config: { records, users }, services: { app: whoami }, demo: false });
    origin = (await desk.listen()).gateway.url;
  });

  /** Sends a request from a script of the page. */
  function send(page: Page, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
    return page.evaluate(
      `fetch(location.origin + '/orders', { headers: ${JSON.stringify(headers)} })
        .then(async (answer) => [answer.status, (await answer.text()).split('<p>')[1]])`,
    );
  }

  const bearer = (sub: string, more = {}) => ({
    Authorization: `Bearer ${signToken(key, claimsOf({ sub, ...more }))}`,
  });

  it('asks a browser for a password, which it also sends with the requests of the page', async () => {
    const httpCredentials = { username: 'ann', password: 'secret' };
    const { page } = await visit(`${origin}/`, { httpCredentials });
    assert.equal(await page.textContent('p'), 'ann');
    assert.deepEqual(await send(page), [200, 'ann']);
  });

  it('takes a token from a script of the page, which may name another user', async () => {
    const { page } = await visit(origin.replace('//', '//ann:secret@'), { isAnonymous: true });
    assert.equal(await page.textContent('p'), 'ann');
    assert.deepEqual(await send(page, bearer('bob')), [200, 'bob']);
    assert.deepEqual(await send(page), [200, 'ann']);
  });

  it('takes an API key from a script of the page, although the browser knows a password', async () => {
    const { page } = await visit(origin.replace('//', '//ann:secret@'), { isAnonymous: true });
    assert.deepEqual(await send(page, { 'X-Api-Key': apiKey.key }), [200, 'bot']);
    assert.deepEqual(await send(page), [200, 'ann']);
  });

  it('rejects a wrong token or key from a script, although the browser knows a password', async () => {
    const { page } = await visit(origin.replace('//', '//ann:secret@'), { isAnonymous: true, expected: /401/ });
    for (const wrong of [bearer('bob', { exp: 1 }), { Authorization: 'Bearer wrong' }, { 'X-Api-Key': 'wrong' }])
      assert.deepEqual(await send(page, wrong), [401, undefined]);
  });

  it('needs no password for a token or a key from an open page', async () => {
    const { page } = await visit(`${origin}/open`, { isAnonymous: true, expected: /401/ });
    assert.deepEqual(await send(page), [401, undefined]);
    assert.deepEqual(await send(page, bearer('bob')), [200, 'bob']);
    assert.deepEqual(await send(page, { 'X-Api-Key': apiKey.key }), [200, 'bot']);
    assert.deepEqual(await send(page), [401, undefined]);
  });
});
