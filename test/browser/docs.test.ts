/** The page of an API in a browser: Swagger UI from this server alone, its operations, and a request that is tried. */
import assert from 'node:assert/strict';
import { describeInBrowser } from './browser.ts';
import { openWatchedDesk, reads, type WatchedDesk } from './watched-desk.ts';

describeInBrowser('the page of an API', function ({ servers, writeFiles, visit }) {
  this.timeout(60_000);
  let desk: WatchedDesk;

  before(async () => {
    desk = await openWatchedDesk(servers, await writeFiles());
  });

  const docs = (prefix: string) => new URL(`${prefix}/docs/`, desk.diagnostics).href;

  it('leads to an operation and its schemas, and sends a request', async () => {
    const { page } = await visit(docs('/v1/hotels'));
    await page
      .getByRole('navigation', { name: 'Operations' })
      .getByRole('link', { name: /List hotels$/ })
      .click();
    const block = page.locator('.opblock.is-open');
    await reads(page, '.opblock.is-open .opblock-summary-path', /^\s*\/\s*$/);
    await block.getByRole('button', { name: 'Try it out' }).click();
    await block.getByRole('button', { name: 'Execute' }).click();
    await reads(page, '.opblock.is-open .live-responses-table tbody .response-col_status', /^200/);
    await reads(page, '.opblock.is-open .live-responses-table', /"city"/);
  });

  for (const [colorScheme, isDark] of [
    ['light', false],
    ['dark', true],
  ] as const)
    it(`is ${colorScheme} for who prefers that`, async () => {
      const { page } = await visit(docs('/v1'), { colorScheme });
      await page.locator('.opblock').first().waitFor();
      const channel = Number(
        await page.evaluate(`getComputedStyle(document.querySelector('.opblock-tag')).color.match(/\\d+/)[0]`),
      );
      assert.equal(channel > 127, isDark);
    });

  it('lists the operations with an example each where there is no script', async () => {
    const { page } = await visit(docs('/v1'), { javaScriptEnabled: false });
    await page
      .getByRole('navigation', { name: 'Operations' })
      .getByRole('link', { name: /Read a message$/ })
      .click();
    assert.match(page.url(), /#getMessage$/);
    await reads(page, '#getMessage pre', /^curl -i /);
  });
});
