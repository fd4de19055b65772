/** Takes screenshots of the pages. `UPDATE_PICTURE=1` replaces those in test/examples, after five minutes of traffic. */
import assert from 'node:assert/strict';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { accessibilityFaults, describeInBrowser } from './browser.ts';
import { type DemoDesk, demo, mappingText, openDemoDesk, untilLive } from './demo-desk.ts';

const isUpdate = process.env.UPDATE_PICTURE === '1';
const trafficMs = isUpdate ? 310_000 : 0;

/** The pages, each in a wide window and on a phone. */
const pages = [
  ['landing', '/'],
  ['collection', '/v1/hotels/'],
  ['item', '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01'],
  ['problem', '/v1/messages/?limit=none'],
  ['docs', '/v1/hotels/docs/'],
  ['diagnostics', '/gateway/v0/diag/'],
  ['explain', '/gateway/v0/explain?url=/v1/hotels&user=demo'],
] as const;
const windows = [
  [1400, 'light'],
  [390, 'dark'],
] as const;

describeInBrowser('the pictures of the pages', function ({ servers, writeFiles, visit }) {
  this.timeout(trafficMs + 120_000);
  let desk: DemoDesk;

  before(async () => {
    desk = await openDemoDesk(servers, await writeFiles());
    await desk.send('/v1/hotels/', 3);
  });

  it('show a busy server, in a file that is small enough for a README', async () => {
    const directory = isUpdate ? await shortDirectory() : await writeFiles();
    servers.later(() => rm(directory, { recursive: true, force: true }));
    const flights = await servers.http((_, res) => setTimeout(() => res.end('{}'), 20 + Math.random() * 60));
    const canary = await servers.http((_, res) => {
      res.statusCode = Math.random() < 0.2 ? 503 : 200;
      res.end('{}');
    });
    const records = [
      `---\n${mappingText('flights', '/v1/flights', flights.origin)}`,
      `---\n${mappingText('flights-canary', '/v1/flights', canary.origin)}weight: 20\n`,
    ];
    const busyDesk = await openDemoDesk(servers, directory, records.join(''));
    await keepBusy(busyDesk);
    const { page } = await visit(busyDesk.diagnosticsUrl, { viewport: { width: 1280, height: 1000 } });
    await untilLive(page);
    const path = isUpdate ? 'test/examples/diagnostics.png' : join(directory, 'diagnostics.png');
    await page.screenshot({ path });
    const { size } = await stat(path);
    assert.ok(size > 20_000 && size < 200_000, `${size} bytes`);
  });

  for (const [width, colorScheme] of windows)
    it(`show each page in ${colorScheme} colours at ${width} pixels, without scrolling sideways, passing axe-core`, async () => {
      const appearance = { viewport: { width, height: 900 }, colorScheme, bypassCSP: true };
      const { page } = await visit(new URL('/', desk.diagnosticsUrl).href, {
        ...appearance,
        expected: /status of 400/,
      });
      const directory = isUpdate ? 'test/examples/pages' : await writeFiles();
      for (const [name, path] of pages) {
        await page.goto(new URL(path, desk.diagnosticsUrl).href);
        if (name === 'docs') await page.locator('.opblock').first().waitFor();
        else assert.deepEqual(await accessibilityFaults(page), [], name);
        assert.ok(await page.evaluate('document.scrollingElement.scrollWidth <= innerWidth'), name);
        const picture = join(directory, `${name}-${width}.png`);
        await page.screenshot({ path: picture });
        const { size } = await stat(picture);
        assert.ok(size > 5_000 && size < 150_000, `${name}: ${size} bytes`);
      }
    });
});

/** A directory in the checkout, which the page shows as a short path. */
async function shortDirectory(): Promise<string> {
  await mkdir('data/config', { recursive: true });
  return 'data/config';
}

const paths = [
  '/v1/hotels/',
  '/v1/hotels/',
  '/v1/hotels/?city=Berlin',
  '/v1/cars/',
  '/v1/flights/lh1',
  '/v1/flights/lh2',
  '/v1/messages/1',
  '/v2/messages/1',
  '/v2/accounts/demo',
  '/v1/trains',
];

/** Sends traffic that rises and falls, with an occasional failed login. */
async function keepBusy({ send }: DemoDesk): Promise<void> {
  const untilMs = performance.now() + trafficMs;
  for (let turn = 0; turn === 0 || performance.now() < untilMs; turn += 1) {
    const tenths = 3 + Math.round(3 * Math.sin(turn / 80) + 2 * Math.sin(turn / 13) + Math.random());
    const chosen = paths.filter(() => Math.random() < tenths / 10);
    const limited = turn % 12 === 0 ? { 'x-gateway-test-allow': 'me' } : {};
    await Promise.all(chosen.map((path) => send(path, 1, turn % 15 === 0 ? {} : { ...demo, ...limited })));
    await sleep(100);
  }
}
