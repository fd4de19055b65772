/** The accessibility of the diagnostics page in a browser: keyboard, small windows, dark colours, and axe-core. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { accessibilityFaults, describeInBrowser } from './browser.ts';
import { type DemoDesk, demo, expectText, mappingText, openDemoDesk, untilLive } from './demo-desk.ts';

describeInBrowser('accessibility of the diagnostics page', ({ servers, writeFiles, visit }) => {
  let desk: DemoDesk;

  /** Makes the page show everything: an error, a notice, a failure, conditions, a long path. */
  before(async () => {
    const long = `/${'a-long-way/'.repeat(12)}end`;
    const records = `---\n${mappingText('long', long, 'http://a-host-with-a-long-name.example.com:8080')}method: POST\nhost: api.example.com\n`;
    desk = await openDemoDesk(servers, await writeFiles(), records);
    await writeFile(
      join(desk.configDir, 'services/broken.yaml'),
      'apiVersion: gateway/v1\nkind: Mapping\nname: broken\nservice: hotel\n',
    );
    await desk.send('/v1/hotels/', 3, { ...demo, 'x-gateway-test-allow': 'me' });
    await desk.send('/unreachable', 2);
    await desk.send('/nowhere', 1);
  });

  const explanation = () => new URL('../explain?method=GET&url=/v1/hotels&user=ann', desk.diagnosticsUrl).href;
  const focused = (page: Page) =>
    page.evaluate(`(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      const name = document.activeElement.id || document.activeElement.textContent || document.activeElement.name;
      return [name.trim(), outlineStyle === 'none' || outlineWidth === '0px' ? 'invisible' : 'visible'];
    })()`) as Promise<[string, string]>;

  it('works by keyboard, with a link to the content and a visible focus', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await page.keyboard.press('Tab');
    assert.deepEqual(await focused(page), ['Skip to the content', 'visible']);
    const names: string[] = [];
    while (names.at(-1) !== 'failures' && names.length < 100) {
      await page.keyboard.press('Tab');
      const [name, outline] = await focused(page);
      assert.equal(outline, 'visible', name);
      names.push(name === 'upstream-unavailable' ? 'failures' : name);
    }
    const order = ['Explain', 'Routes', 'pause', 'method', 'url', 'Explain', 'filter', 'Filter', 'failures'];
    assert.deepEqual(
      names.filter((name) => order.includes(name)),
      order,
    );
    await page.locator('#pause').focus();
    await page.keyboard.press('Space');
    await expectText(page, '#connection', /^Paused$/);
    await page.locator('.skip').focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
  });

  it('does not scroll sideways in windows of at least 320 pixels', async () => {
    const { page } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    await page.evaluate('for (const details of document.querySelectorAll("details")) details.open = true');
    // The rows with a cell that reaches into the padding of its card.
    const wideRows = `[...document.querySelectorAll('.routes td')].flatMap((cell) => {
      const card = cell.closest('tr');
      const right = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
      return cell.getBoundingClientRect().right > right + 1 ? card.dataset.key : [];
    })`;
    const check = async () => {
      for (const width of [1130, 800, 390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        assert.ok(await page.evaluate('document.scrollingElement.scrollWidth <= innerWidth'), `${width} pixels`);
        assert.deepEqual(await page.evaluate(wideRows), [], `${width} pixels`);
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
      const { page } = await visit(desk.diagnosticsUrl, { colorScheme, bypassCSP: true, ...window });
      await untilLive(page);
      await expectText(page, '#verdict', /^1 configuration error; 1 route failing: unreachable$/);
      await page.locator('.routes summary').first().click();
      assert.deepEqual(await accessibilityFaults(page), []);
      await page.goto(explanation());
      assert.deepEqual(await accessibilityFaults(page), []);
    });
  }

  it('closes its event stream while the page is hidden', async () => {
    const { page, context } = await visit(desk.diagnosticsUrl);
    await untilLive(page);
    const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
    await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
    await closed;
    const reopened = context.waitForEvent('request', (request) => request.url().endsWith('/events'));
    await page.evaluate(`delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))`);
    await reopened;
  });
});
