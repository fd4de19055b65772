/** The diagnostics page in a browser: live figures and errors, polling, lost access, and what it says without a script. */
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import Koa from 'koa';
import mount from 'koa-mount';
import type { Page } from 'playwright-core';
import type { Diagnostics } from '#diag';
import { replaceFile } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { describeInBrowser } from './browser.ts';
import { type DemoDesk, demo, expectText, figureOf, mappingText, openDemoDesk, rowOf, untilLive } from './demo-desk.ts';

describeInBrowser('the diagnostics page in a browser', ({ servers, writeFiles, visit }) => {
  let desk: DemoDesk;

  before(async () => {
    desk = await openDemoDesk(servers, await writeFiles());
  });

  const connection = (page: Page) => page.locator('#connection').textContent();

  /** Sets a mark that a reload of the page would remove. */
  const markPage = (page: Page) => page.evaluate('globalThis.isTheSamePage = true');
  const isSamePage = (page: Page) => page.evaluate('globalThis.isTheSamePage === true');

  it('needs credentials', async () => {
    assert.equal((await fetch(desk.diagnosticsUrl)).status, 401);
    const { page } = await visit(desk.diagnosticsUrl);
    assert.match(await page.title(), /frontdesk diagnostics$/);
    await untilLive(page);
  });

  it('updates the figures of a route, including rejected requests', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await markPage(page);
    const row = rowOf(page, '/v1/cars');
    await row.locator('summary').click();
    await row.locator('dl').waitFor();
    const [total, rejected] = [Number(await figureOf(row, 'total')), Number(await figureOf(row, 'total_auth'))];
    await desk.send('/v1/cars/', 7);
    await desk.send('/v1/cars/', 2, {});
    await expectText(page, '.routes tr:has(:text-is("/v1/cars")) [data-figure="total"]', new RegExp(`^${total + 9}$`));
    assert.equal(await figureOf(row, 'total_auth'), String(rejected + 2));
    assert.ok(Number((await figureOf(row, 'rate')).replace('<', '')) > 0);
    assert.equal(await figureOf(row, 'health'), 'ok');
    assert.match((await row.locator('svg').getAttribute('aria-label')) ?? '', /^\d+ requests in five minutes/);
    assert.ok(await isSamePage(page));
  });

  it('shows the error of a record as soon as it is broken, and removes it when it is fixed', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await markPage(page);
    const file = join(desk.configDir, 'services/car.yaml');
    const text = await readFile(file, 'utf8');
    await page.getByLabel('Filter routes').fill('v1');
    await replaceFile(file, text.replace('prefix: /v1/cars', 'prefx: /v1/cars'));
    await expectText(page, '[data-part="errors"]', /car\.yaml:\d+ .*Mapping car.*unknown key "prefx".*Write "prefix"/s);
    await expectText(page, '#verdict', /^1 configuration error/);
    assert.match(await page.title(), /^1 configuration error/);
    assert.equal(await page.evaluate('document.activeElement.id + document.activeElement.value'), 'filterv1');
    await replaceFile(file, text);
    await expectText(page, '[data-part="errors"]', /^\s*$/);
    assert.ok(await isSamePage(page));
    await untilLive(page);
  });

  it('shows a failed request with the reason, and that its route is failing', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await markPage(page);
    await desk.send('/unreachable/from/here');
    await expectText(
      page,
      '[data-part="failures"] tbody',
      /503.*GET.*\/unreachable\/from\/here.*unreachable.*upstream-unavailable.*ECONNREFUSED/s,
    );
    await expectText(page, '#verdict', /1 route failing: unreachable/);
    assert.equal(await figureOf(rowOf(page, '/unreachable'), 'errors'), '100 %');
    assert.ok(await isSamePage(page));
  });

  it('shows requests without a route, and links to their explanation', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await markPage(page);
    await desk.send('/hotel/7?secret=1');
    await expectText(page, '[data-part="unmatched"] tbody', /GET \/hotel\/7\s*1$/);
    await desk.send('/hotel/7');
    await expectText(page, '[data-part="unmatched"] tbody', /GET \/hotel\/7\s*2$/);
    assert.ok(await isSamePage(page));
    await page.getByRole('link', { name: '/hotel/7' }).click();
    await expectText(page, '.verdict', /404/);
  });

  it('explains a request', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await page.getByLabel('Path or URL').fill('/v1/hotels/bookings/1');
    await page.getByLabel('User').fill('ann');
    await page.getByRole('button', { name: 'Explain' }).click();
    await expectText(page, '.verdict', /hotel sends it to hotel \(in this process\) as GET \/bookings\/1/);
    assert.equal(await page.getByLabel('User').inputValue(), 'ann');
    await page.getByRole('link', { name: 'Diagnostics' }).click();
    await untilLive(page);
  });

  it('filters while the user types, and can be paused', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await page.getByLabel('Filter routes').fill('CARS');
    assert.deepEqual(await page.locator('.routes tbody tr:visible .path').allTextContents(), ['/v1/cars']);
    const pause = page.getByRole('button', { name: 'Pause' });
    await pause.click();
    assert.deepEqual([await connection(page), await pause.getAttribute('aria-pressed')], ['Paused', 'true']);
    await pause.click();
    await untilLive(page);
  });

  it('polls when there is no stream, shows when the connection is lost, and recovers', async () => {
    const { page, context } = await visit(desk.diagnosticsUrl, {
      async prepare(page, context) {
        await page.clock.install();
        await context.route('**/diag/events', (route) => route.abort());
      },
      expected: /ERR_FAILED/,
    });
    await expectText(page, '#connection', /^Live \(polling\)/);
    await context.route('**/diag/diagnostics.json', (route) => route.abort());
    /** Moves the clock beyond the next timer. */
    const advance = async (expected: RegExp) => {
      await page.clock.fastForward(31_000);
      await expectText(page, '#connection', expected);
    };
    await advance(/^Connection lost, retrying$/);
    assert.match(await page.title(), /^Connection lost/);
    await context.unroute('**/diag/diagnostics.json');
    await advance(/^Live \(polling\)/);
    await context.unroute('**/diag/events');
    await advance(/^Live$/);
    await eventually(async () => assert.doesNotMatch(await page.title(), /^Connection lost/));
  });

  it('shows the data even if a proxy holds back the events', async () => {
    const { page } = await visit(desk.diagnosticsUrl, {
      async prepare(page, context) {
        await page.clock.install();
        await context.route('**/diag/events', () => {});
      },
    });
    await page.clock.runFor(3_000);
    await expectText(page, '#connection', /^Live \(polling\)/);
    await expectText(page, '#verdict', /./);
  });

  it('says when the user is no longer allowed to see the data, and recovers', async () => {
    const { page, context } = await visit(desk.diagnosticsUrl, {
      async prepare(page) {
        await page.clock.install();
      },
      expected: /status of 403/,
    });
    await untilLive(page);
    await context.route(/diag\/(?:events|diagnostics\.json)$/, (route) => route.fulfill({ status: 403 }));
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Pause' }).click();
    await expectText(page, '#connection', /^Access denied, retrying$/);
    assert.match(await page.title(), /^Access denied/);
    assert.ok(await rowOf(page, '/v1/cars').isVisible());
    await context.unroute(/diag\/(?:events|diagnostics\.json)$/);
    await page.clock.runFor(4_000);
    await expectText(page, '#connection', /^Live/);
  });

  it('keeps what the user has opened, focused and selected when the rows around it change', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await rowOf(page, '/v1/cars').locator('summary').click();
    await desk.send('/unreachable/first');
    await expectText(page, '[data-part="failures"] tbody', /\/unreachable\/first/);
    const failure = page.locator('[data-part="failures"] tr').filter({ hasText: '/unreachable/first' });
    await failure.getByRole('link').focus();
    await failure.locator('td').last().selectText();
    const file = join(desk.configDir, 'services/added.yaml');
    await replaceFile(file, mappingText('added', '/v1/an-earlier-route', 'hotel'));
    await expectText(page, '[data-part="routes"]', /an-earlier-route/);
    await desk.send('/unreachable/second');
    await expectText(page, '[data-part="failures"] tbody', /unreachable\/second.*unreachable\/first/s);
    assert.equal(await rowOf(page, '/v1/cars').locator('details[open]').count(), 1);
    assert.equal(await rowOf(page, '/v1/an-earlier-route').locator('details[open]').count(), 0);
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'upstream-unavailable');
    const selected = await page.evaluate('getSelection().toString()');
    assert.equal(selected, await failure.locator('td').last().textContent());
    await rm(file);
  });

  it('shows what is closed when the user opens it, and keeps it up to date until it is closed', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    const row = rowOf(page, '/v1/cars');
    assert.equal(await row.locator('[data-figure="total"]').count(), 0);
    assert.equal(await page.locator('#built-in table').count(), 0);
    await page.getByText('built-in routes').click();
    await rowOf(page, '/gateway/v0/check_alive').waitFor();
    await row.locator('summary').click();
    const total = '.routes tr:has(:text-is("/v1/cars")) [data-figure="total"]';
    for (let turn = 0; turn < 2; turn += 1) {
      await desk.send('/v1/cars/');
      const response = await fetch(`${desk.diagnosticsUrl}diagnostics.json?filter=/v1/cars`, { headers: demo });
      const { routes } = (await response.json()) as Diagnostics;
      await expectText(page, total, new RegExp(`^${routes[0]?.traffic.requests}$`));
    }
    await row.locator('summary').click();
    await eventually(async () => assert.equal(await page.locator(total).count(), 0));
  });

  it('updates without reading the document, and changes nothing if nothing has changed', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await page.getByRole('button', { name: 'Pause' }).click();
    const [reads, mutations] = (await page.evaluate(`(async () => {
      const [{ update }, { partsOf }] = await Promise.all(['./update.js', './parts.js'].map((name) => import(new URL(name, location.href))));
      const diagnostics = await (await fetch('diagnostics.json')).json();
      const [parent] = document.querySelectorAll('[data-part="routes"]');
      const [route] = diagnostics.routes;
      const routes = Array.from({ length: 200 }, (_, index) => ({ ...route, internal: false, name: 'route-' + index }));
      const show = () => update(parent, partsOf({ ...diagnostics, routes }, '').routes);
      show();
      let reads = 0;
      for (const name of ['getAttribute', 'getAttributeNames']) {
        const read = Element.prototype[name];
        Element.prototype[name] = function (...args) { reads += 1; return read.apply(this, args); };
      }
      const observer = new MutationObserver(() => {});
      observer.observe(parent, { subtree: true, childList: true, attributes: true, characterData: true });
      show();
      return [reads, observer.takeRecords().length];
    })()`)) as [number, number];
    assert.deepEqual([reads, mutations], [0, 0]);
  });

  it('leads to the landing page', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await page.getByRole('link', { name: 'Home' }).click();
    assert.equal(new URL(page.url()).pathname, '/');
    await page.getByRole('link', { name: 'API docs' }).first().waitFor();
  });

  it('opens at the part that the address names', async () => {
    const { page } = await visit(`${desk.diagnosticsUrl}#failures`, { viewport: { width: 800, height: 300 } });
    await untilLive(page);
    await eventually(async () =>
      assert.ok(Number(await page.evaluate('document.getElementById("failures").getBoundingClientRect().top')) < 300),
    );
  });

  it('can poll when its URL contains a name and a password', async () => {
    const opened = new URL(desk.diagnosticsUrl);
    Object.assign(opened, { username: 'demo', password: 'demo' });
    const { page } = await visit(opened.href, {
      async prepare(_, context) {
        await context.route('**/diag/events', (route) => route.abort());
      },
      expected: /ERR_FAILED/,
    });
    await expectText(page, '#connection', /^Live \(polling\)/);
  });

  it('asks the user to reload when the server sends data in an unknown format', async () => {
    const { page, context } = await visit(desk.diagnosticsUrl, { expected: /TypeError/ });
    await untilLive(page);
    const strange = { status: 200, contentType: 'text/event-stream', body: 'event: diagnostics\ndata: {}\n\n' };
    await context.route('**/diag/events', (route) => route.fulfill(strange));
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Pause' }).click();
    await expectText(page, '#connection', /^The server has changed: reload this page$/);
    assert.match(await page.title(), /^The server has changed/);
    await context.unroute('**/diag/events');
    await untilLive(page);
  });

  it('works below the path of another app', async () => {
    const host = new Koa().use(mount('/travel', desk.middleware));
    const { origin } = await servers.http(host.callback());
    const { page } = await visit(`${origin}/travel/gateway/v0/diag`);
    await untilLive(page);
    await page.getByText('built-in routes').click();
    await rowOf(page, '/gateway/v0/check_alive').locator('summary').click();
    await rowOf(page, '/gateway/v0/check_alive').getByRole('link', { name: 'GET' }).click();
    await expectText(page, '.verdict', /check_alive/);
    await page.getByRole('link', { name: 'Diagnostics' }).click();
    await untilLive(page);
  });

  it('says without JavaScript that it needs it, links to the JSON, and still explains a request', async () => {
    const { page } = await visit(desk.diagnosticsUrl, { javaScriptEnabled: false });
    assert.equal(await connection(page), 'Not live');
    assert.deepEqual(await page.locator('.verdict:visible').allTextContents(), [
      'This page needs JavaScript, but its data is also available as JSON.',
    ]);
    for (const shown of ['#pause', '#routes', '#failures']) assert.ok(await page.locator(shown).isHidden(), shown);
    await page.getByRole('link', { name: 'as JSON' }).click();
    assert.match((await page.textContent('body')) ?? '', /"prefix":"\/v1\/cars"/);
    await page.goBack();
    await page.getByLabel('Path or URL').fill('/nowhere');
    await page.getByRole('button', { name: 'Explain' }).click();
    await expectText(page, '.verdict', /rejected with 404/);
  });
});
