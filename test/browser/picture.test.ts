/**
 * Takes screenshots of the pages, and checks that they fit windows of every width in both colour schemes.
 * `UPDATE_PICTURE=1` replaces those in test/examples, after five minutes of traffic; `UPDATE_PICTURE=all` also takes the
 * other combinations of width and colours.
 */
import assert from 'node:assert/strict';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { accessibilityFaults, describeInBrowser } from './browser.ts';
import { type DemoDesk, demo, mappingText, openDemoDesk, untilLive } from './demo-desk.ts';

const { UPDATE_PICTURE: update } = process.env;
const isUpdate = update === '1' || update === 'all';
const trafficMs = isUpdate ? 310_000 : 0;

const pages = [
  ['landing', '/'],
  ['signed-in', '/?sign-in'],
  ['collection', '/v1/hotels/'],
  ['item', '/v1/hotels/bdd640fb-0667-4ad1-9c80-317fa3b1799d'],
  ['bookings', '/v1/hotels/bookings/'],
  ['booking', '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01'],
  ['messages', '/v2/messages/'],
  ['error', '/v1/messages/?limit=none'],
  ['problems', '/gateway/v0/problems/'],
  ['problem', '/gateway/v0/problems/sold-out'],
  ['explain', '/gateway/v0/explain?url=/v1/hotels&user=demo'],
  ['diagnostics', '/gateway/v0/diag/'],
  ['docs', '/v1/hotels/docs/'],
] as const;

interface Window {
  readonly width: number;
  readonly colorScheme: 'light' | 'dark';
  /** Whether the picture is kept in test/examples. The others differ from these only in their colours. */
  readonly isKept: boolean;
}

const windows = [1400, 768, 390, 320].flatMap((width, index): Window[] => [
  { width, colorScheme: 'light', isKept: index % 2 === 0 },
  { width, colorScheme: 'dark', isKept: index % 2 === 1 },
]);

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

  /** Opens the page of a name, which must not scroll sideways. */
  async function openPage(page: Page, [name, path]: (typeof pages)[number]): Promise<void> {
    await page.goto(new URL(path, desk.diagnosticsUrl).href);
    assert.deepEqual(await accessibilityFaults(page), [], name);
    assert.ok(await page.evaluate('document.scrollingElement.scrollWidth <= innerWidth'), name);
  }

  for (const { width, colorScheme } of windows.filter(({ isKept }) => isKept || update === 'all'))
    it(`show each page in ${colorScheme} colours at ${width} pixels, without scrolling sideways, passing axe-core`, async () => {
      const appearance = { viewport: { width, height: 900 }, colorScheme, bypassCSP: true };
      const expected = /status of 400/;
      const { page } = await visit(new URL('/', desk.diagnosticsUrl).href, { ...appearance, expected });
      const directory = isUpdate ? 'test/examples/pages' : await writeFiles();
      await mkdir(directory, { recursive: true });
      for (const one of pages) {
        await openPage(page, one);
        await takePicture(page, join(directory, `${one[0]}-${width}-${colorScheme}.webp`));
      }
    });
});

/** WebP takes a third of the space of PNG. Playwright itself cannot write it. */
async function takePicture(page: Page, path: string): Promise<void> {
  const client = await page.context().newCDPSession(page);
  const { data } = await client.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
  await client.detach();
  const picture = Buffer.from(data, 'base64');
  assert.ok(picture.length > 2_000 && picture.length < 100_000, `${path}: ${picture.length} bytes`);
  await writeFile(path, picture);
}

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
