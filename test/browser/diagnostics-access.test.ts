/** The accessibility of the diagnostics page in a browser: keyboard, small windows, dark colours, and axe-core. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { accessFaults, describeInBrowser } from './browser.ts';
import { demo, isLive, mappingText, openWatchedDesk, reads, type WatchedDesk } from './watched-desk.ts';

describeInBrowser('accessibility of the diagnostics page', ({ servers, writeFiles, visit }) => {
  let desk: WatchedDesk;

  /** Makes the page show everything: an error, a notice, a failure, conditions, a long path. */
  before(async () => {
    const long = `/${'a-long-way/'.repeat(12)}end`;
    const records = `---\n${mappingText('long', long, 'http://a-host-with-a-long-name.example.com:8080')}method: POST\nhost: api.example.com\n`;
    desk = await openWatchedDesk(servers, await writeFiles(), records);
    await writeFile(
      join(desk.config, 'services/broken.yaml'),
      'apiVersion: gateway/v1\nkind: Mapping\nname: broken\nservice: hotel\n',
    );
    await desk.send('/v1/hotels/', 3, { ...demo, 'x-gateway-test-allow': 'me' });
    await desk.send('/away', 2);
    await desk.send('/nowhere', 1);
  });

  const explanation = () => new URL('../explain?method=GET&url=/v1/hotels&user=ann', desk.diagnostics).href;
  const focused = (page: Page) =>
    page.evaluate(`(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      const name = document.activeElement.id || document.activeElement.textContent || document.activeElement.name;
      return [name.trim(), outlineStyle === 'none' || outlineWidth === '0px' ? 'unseen' : 'seen'];
    })()`) as Promise<[string, string]>;

  it('works by keyboard, with a link to the content and a visible focus', async () => {
    const { page } = await visit(desk.diagnostics);
    await isLive(page);
    await page.keyboard.press('Tab');
    assert.deepEqual(await focused(page), ['Skip to the content', 'seen']);
    const met: string[] = [];
    while (met.at(-1) !== 'failures' && met.length < 100) {
      await page.keyboard.press('Tab');
      const [name, isSeen] = await focused(page);
      assert.equal(isSeen, 'seen', name);
      met.push(name === 'upstream-unavailable' ? 'failures' : name);
    }
    const order = ['Explain', 'Routes', 'pause', 'method', 'url', 'Explain', 'filter', 'Filter', 'failures'];
    assert.deepEqual(
      met.filter((name) => order.includes(name)),
      order,
    );
    await page.locator('#pause').focus();
    await page.keyboard.press('Space');
    await reads(page, '#connection', /^Paused$/);
    await page.locator('.skip').focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
  });

  it('does not scroll sideways in windows of at least 320 pixels', async () => {
    const { page } = await visit(desk.diagnostics);
    await isLive(page);
    await page.evaluate('for (const details of document.querySelectorAll("details")) details.open = true');
    const check = async () => {
      for (const width of [1130, 800, 390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        assert.ok(await page.evaluate('document.scrollingElement.scrollWidth <= innerWidth'), `${width} pixels`);
      }
    };
    await check();
    await page.goto(explanation());
    await check();
  });

  // Two combinations are enough: colours do not depend on the width, nor the layout on the colours.
  for (const [colorScheme, window] of [
    ['light', {}],
    ['dark', { viewport: { width: 390, height: 844 } }],
  ] as const) {
    it(`passes the checks of axe-core, ${colorScheme} on a ${colorScheme === 'dark' ? 'phone' : 'desktop'}`, async () => {
      const { page } = await visit(desk.diagnostics, { colorScheme, bypassCSP: true, ...window });
      await isLive(page);
      await reads(page, '#verdict', /^1 configuration error; 1 route failing: away$/);
      await page.locator('.routes summary').first().click();
      assert.deepEqual(await accessFaults(page), []);
      await page.goto(explanation());
      assert.deepEqual(await accessFaults(page), []);
    });
  }

  it('closes its event stream while the page is hidden', async () => {
    const { page, context } = await visit(desk.diagnostics);
    await isLive(page);
    const left = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
    await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
    await left;
    const again = context.waitForEvent('request', (request) => request.url().endsWith('/events'));
    await page.evaluate(`delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))`);
    await again;
  });
});
