/** The API documentation in a browser: Swagger UI served by this server, its operations, and requests sent from it. */
import assert from 'node:assert/strict';
import { accessibilityFaults, describeInBrowser } from './browser.ts';
import { type DemoDesk, expectText, openDemoDesk } from './demo-desk.ts';

/** Swagger UI renders a `main` inside ours, and has no option for another element. */
const faultsOfSwaggerUi = ['landmark-main-is-top-level', 'landmark-no-duplicate-main', 'landmark-unique'];

describeInBrowser('the page of an API', function ({ servers, writeFiles, visit }) {
  this.timeout(120_000);
  let desk: DemoDesk;

  before(async () => {
    desk = await openDemoDesk(servers, await writeFiles());
  });

  const docs = (prefix: string) => new URL(`${prefix}/docs/`, desk.diagnosticsUrl).href;

  it('can try out each operation, and sends the examples by default', async () => {
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
      const id = `.opblock.is-open[id$="-${operation}"]`;
      await page.locator(id).getByRole('button', { name: 'Try it out' }).click();
      await page.locator(id).getByRole('button', { name: 'Execute' }).click();
      await expectText(page, `${id} .live-responses-table tbody .response-col_status`, status);
      await expectText(page, `${id} .live-responses-table`, /"(?:city|hotel_id)"/);
      // Collapsed again, so that it is not rendered together with the following ones.
      await page.locator(id).locator('.opblock-summary-control').click();
    }
  });

  for (const [colorScheme, isDark, width] of [
    ['light', false, 1400],
    ['dark', true, 390],
  ] as const)
    it(`is ${colorScheme} if the user prefers that, and passes the checks of axe-core`, async () => {
      const viewport = { width, height: 900 };
      const { page } = await visit(docs('/v1/hotels'), { colorScheme, viewport, bypassCSP: true });
      await page.locator('.opblock-summary-control').nth(1).click();
      await page.getByRole('button', { name: 'Try it out' }).click();
      await page.getByRole('button', { name: 'Execute' }).click();
      await page.locator('.live-responses-table').waitFor();
      const isOurs = (fault: string) => !faultsOfSwaggerUi.some((rule) => fault.startsWith(`${rule}: <main id=`));
      assert.deepEqual((await accessibilityFaults(page)).filter(isOurs), []);
      const channel = Number(
        await page.evaluate(`getComputedStyle(document.querySelector('.opblock-tag')).color.match(/\\d+/)[0]`),
      );
      assert.equal(channel > 127, isDark);
    });

  it('lists the operations with examples when JavaScript is off', async () => {
    const { page } = await visit(docs('/v1'), { javaScriptEnabled: false });
    await page
      .getByRole('navigation', { name: 'Operations' })
      .getByRole('link', { name: /Read a message$/ })
      .click();
    assert.match(page.url(), /#getMessage$/);
    await expectText(page, '#getMessage pre', /^curl -i /);
  });
});
