/** The API documentation in a browser: its operations, requests sent from it, programs, and how it looks. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { accessibilityFaults, describeInBrowser } from './browser.ts';
import { type DemoDesk, expectText, openDemoDesk } from './demo-desk.ts';

describeInBrowser('the page of an API', function ({ servers, writeFiles, visit }) {
  this.timeout(120_000);
  let desk: DemoDesk;

  before(async () => {
    desk = await openDemoDesk(servers, await writeFiles());
  });

  const docs = (prefix: string) => new URL(`${prefix}/docs/`, desk.diagnosticsUrl).href;

  async function send(page: Page, operation: string): Promise<void> {
    const form = page.locator(`#${operation} .try`);
    if ((await form.getAttribute('open')) === null) await form.locator('> summary').click();
    await form.getByRole('button', { name: 'Send' }).click();
  }

  it('can try each operation, and sends the examples by default', async () => {
    const { page } = await visit(docs('/v1/hotels'));
    for (const [name, operation, status] of [
      ['List hotels', 'listHotels', /^200/],
      ['Read a hotel', 'getHotel', /^200/],
      ['List your hotel bookings', 'listHotelBookings', /^200/],
      ['Book a hotel', 'createHotelBooking', /^201/],
      ['Read a hotel booking', 'getHotelBooking', /^200/],
      ['Confirm or cancel a hotel booking', 'changeHotelBooking', /^200/],
    ] as const) {
      const links = page.getByRole('navigation', { name: 'Operations' });
      await links.getByRole('link', { name: new RegExp(`${name}$`) }).click();
      await send(page, operation);
      await expectText(page, `#${operation} .result .answer`, status);
      await expectText(page, `#${operation} .result > pre`, /"(?:city|hotel_id)"/);
    }
  });

  it('sends the arguments, the media type and the credentials that the user enters', async () => {
    const { page } = await visit(docs('/v1/hotels'), { expected: /status of 404/ });
    const list = page.locator('#listHotels');
    await list.locator('.try > summary').click();
    await list.getByText('16 optional arguments').click();
    await list.locator('.try').getByLabel('limit').fill('1');
    await list.locator('.try').getByLabel('Accept').selectOption('application/yaml');
    await send(page, 'listHotels');
    await expectText(page, '#listHotels .result > pre', /limit: 1\n/);
    await page.getByText('Try it as another user').click();
    await page.getByLabel('User', { exact: true }).fill('guest');
    await page.getByLabel('Password').fill('guest');
    await send(page, 'getHotelBooking');
    await expectText(page, '#getHotelBooking .result .answer', /^404/);
  });

  it('shows the programs of all operations in the language that the user chooses', async () => {
    const { page } = await visit(docs('/v1'));
    await page.locator('#listMessages').getByText('Python', { exact: true }).click();
    const open = await page.evaluate(
      `[...document.querySelectorAll('[data-language][open]')].map((part) => part.dataset.language)`,
    );
    assert.deepEqual(open, Array(6).fill('Python'));
  });

  it('opens at the operation that its URL names', async () => {
    const { page } = await visit(`${docs('/v1/hotels')}#changeHotelBooking`);
    const top = Number(
      await page.evaluate(`document.querySelector('#changeHotelBooking').getBoundingClientRect().top`),
    );
    assert.ok(top >= 0 && top < 100, `${top}`);
  });

  const openAll = `for (const part of document.querySelectorAll('details:not([data-language])')) part.open = true`;

  for (const [colorScheme, isDark, width] of [
    ['light', false, 1400],
    ['dark', true, 390],
  ] as const)
    it(`is ${colorScheme} if the user prefers that, and passes the checks of axe-core with all parts open`, async () => {
      const viewport = { width, height: 900 };
      const { page } = await visit(docs('/v1/hotels'), { colorScheme, viewport, bypassCSP: true });
      await send(page, 'getHotel');
      await page.locator('#getHotel .result .answer').waitFor();
      await page.evaluate(openAll);
      assert.deepEqual(await accessibilityFaults(page), []);
      const channel = Number(await page.evaluate(`getComputedStyle(document.body).color.match(/\\d+/)[0]`));
      assert.equal(channel > 127, isDark);
    });

  it('has no text that is squeezed, and does not scroll sideways, in any window', async () => {
    const { page } = await visit(docs('/v1/hotels'));
    await page.evaluate(openAll);
    for (const width of [1400, 768, 390, 320]) {
      await page.setViewportSize({ width, height: 900 });
      assert.ok(await page.evaluate('document.scrollingElement.scrollWidth <= innerWidth'), `${width}`);
      const narrowest = await page.evaluate(
        `Math.min(...[...document.querySelectorAll('.docs :is(p, dt, dd, pre)')].map((text) => text.clientWidth))`,
      );
      assert.ok(Number(narrowest) >= 150, `${narrowest} of ${width} pixels`);
    }
  });

  it('describes each operation in less than two heights of a window', async () => {
    const { page } = await visit(docs('/v1/hotels'), { viewport: { width: 1400, height: 900 } });
    const heights = (await page.evaluate(
      `[...document.querySelectorAll('.operation')].map((part) => part.clientHeight)`,
    )) as readonly number[];
    assert.ok(heights.length === 6 && heights.every((height) => height < 1_800), heights.join());
  });

  it('has the operations and programs, and no forms, when JavaScript is off', async () => {
    const { page } = await visit(docs('/v1'), { javaScriptEnabled: false });
    await page
      .getByRole('navigation', { name: 'Operations' })
      .getByRole('link', { name: /Read a message$/ })
      .click();
    assert.match(page.url(), /#getMessage$/);
    await expectText(page, '#getMessage [data-language="curl"] pre', /^curl -i /);
    assert.equal(await page.locator('form').first().isVisible(), false);
  });
});
