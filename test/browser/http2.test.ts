/** The pages of a gateway over TLS, which a browser loads over HTTP/2. */
import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import { desksOf } from '../support/desks.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { describeInBrowser } from './browser.ts';
import { expectText, untilLive } from './demo-desk.ts';

describeInBrowser('the pages over TLS', ({ servers, writeFiles, visit }) => {
  const openDesk = desksOf(servers);
  let origin: string;
  let protocols: Set<string>;

  before(async function () {
    const tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) return this.skip();
    const desk = await openDesk({ tlsCert: tls.file, tlsKey: tls.keyFile });
    origin = (await desk.listen()).gateway.url;
  });

  beforeEach(() => {
    protocols = new Set();
  });

  /** Notes the protocol of each response in the browser's network log. */
  async function prepare(page: Page, context: BrowserContext): Promise<void> {
    const session = await context.newCDPSession(page);
    session.on('Network.responseReceived', ({ response }) => void protocols.add(response.protocol ?? 'none'));
    await session.send('Network.enable');
  }

  async function load(path: string): Promise<Page> {
    return (await visit(`${origin}${path}`, { prepare, ignoreHTTPSErrors: true })).page;
  }

  it('are loaded over HTTP/2', async () => {
    for (const path of ['/', '/v1/docs/']) {
      const page = await load(path);
      await page.waitForLoadState('networkidle');
      assert.notEqual(await page.title(), '');
    }
    assert.deepEqual([...protocols], ['h2']);
  });

  it('get the events of the diagnostics over HTTP/2, and those of other requests meanwhile', async () => {
    const page = await load('/gateway/v0/diag/');
    await untilLive(page);
    const total = `.routes tr:has(:text-is("/v1/cars")) [data-figure="total"]`;
    await page.locator('tr:has(:text-is("/v1/cars")) summary').click();
    await expectText(page, total, /^0$/);
    const send = 'fetch("/v1/cars/").then(({ status }) => status)';
    const statuses = await page.evaluate(`Promise.all(Array.from({ length: 30 }, () => ${send}))`);
    assert.deepEqual(statuses, Array(30).fill(200));
    // The browser sends the password after a challenge.
    await expectText(page, total, /^[3-6]\d$/);
    assert.deepEqual([...protocols], ['h2']);
  });
});
