/**
 * Our pages in a browser: each obeys a policy without inline scripts, eval and frames, and fits windows and colours.
 */
import assert from 'node:assert/strict';
import { describeInBrowser } from './browser.ts';
import { type DemoDesk, openDemoDesk } from './demo-desk.ts';

const pages = [
  ...['diag/', 'explain', 'explain?method=GET&url=/v1/hotels', 'problems/', 'problems/not-found', 'check_ready'].map(
    (name) => `/gateway/v0/${name}`,
  ),
  '/',
  '/v1/',
  '/v1/messages/',
  '/v1/messages/1',
  '/v1/docs/',
  '/v2/docs/',
  '/v1/hotels',
  '/v1/hotels/docs/',
  '/v1/cars/docs/',
  '/v1/hotels/bookings/',
  '/nowhere',
  '/v1/messages/none',
  '/v1/messages/?limit=none&colour=red',
];

describeInBrowser('the policy of our pages', function ({ servers, writeFiles, visit }) {
  this.timeout(120_000);
  let desk: DemoDesk;

  before(async () => {
    desk = await openDemoDesk(servers, await writeFiles());
  });

  it('is obeyed by each page, which fits a wide window and a phone', async () => {
    const { page } = await visit(desk.diagnosticsUrl, {
      expected: /^error: Failed to load resource: .* 40[04]/,
      // A violation emits an event and logs an error to the console, which fails the visit.
      async prepare(opened) {
        await opened.addInitScript(
          'addEventListener("securitypolicyviolation", (event) => console.error(event.blockedURI))',
        );
      },
    });
    for (const path of pages) {
      const response = await page.goto(new URL(path, desk.diagnosticsUrl).href);
      assert.match(await page.evaluate('document.contentType'), /^text\/html$/, path);
      for (const width of [1400, 390]) {
        await page.setViewportSize({ width, height: 844 });
        const fits = await page.evaluate('document.scrollingElement.scrollWidth <= innerWidth');
        assert.ok(fits, `${path}: ${width} pixels`);
      }
      const policy = new Map(
        (response?.headers()['content-security-policy'] ?? '').split('; ').map((directive) => {
          const [name = '', ...values] = directive.split(' ');
          return [name, values];
        }),
      );
      const scripts = policy.get('script-src') ?? policy.get('default-src');
      assert.ok(scripts?.length === 1 && ["'none'", "'self'"].includes(scripts[0] ?? ''), `${path}: ${scripts}`);
      assert.deepEqual(policy.get('frame-ancestors'), ["'none'"], path);
      assert.ok(!policy.get('style-src')?.includes("'unsafe-inline'"), path);
    }
  });

  it('blocks an inline script, so that this test would detect one', async () => {
    const { page } = await visit(desk.diagnosticsUrl, { expected: /Content Security Policy/ });
    const violated = await page.evaluate(`new Promise((resolve) => {
      addEventListener('securitypolicyviolation', ({ effectiveDirective }) => resolve(effectiveDirective));
      document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }));
    })`);
    assert.deepEqual([violated, await page.evaluate('window.ran')], ['script-src-elem', undefined]);
  });
});
