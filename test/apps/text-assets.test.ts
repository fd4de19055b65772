/** A page whose script and style its service calls text/plain: a browser takes them through the gateway as it does directly. */
import assert from 'node:assert/strict';
import { describeInBrowser } from '../browser/browser.ts';
import { startUpstream } from '../support/upstream.ts';
import { shownRecord, startFront } from './front.ts';

/** Without a doctype: other pages want a type of their style sheets. */
const assets: Readonly<Record<string, readonly [type: string, text: string]>> = {
  '/page': [
    'text/html',
    '<link rel=icon href=data:,><link rel=stylesheet href=style><p>old</p><script src=script></script>',
  ],
  '/style': ['text/plain', 'p { color: rgb(1, 2, 3) }'],
  '/script': ['text/plain', 'document.querySelector("p").textContent = "new"'],
};

describeInBrowser('a page with assets as text/plain', ({ servers, visit }) => {
  it('runs and is styled behind the gateway as it is without it', async () => {
    const app = await startUpstream(servers, (res, { url }) => {
      const [type, text] = assets[url] ?? ['text/plain', ''];
      res.writeHead(200, { 'Content-Type': type }).end(text);
    });
    const front = await startFront(servers, shownRecord('django-below', app));
    for (const root of [app.origin, `${front.origin}/django`]) {
      const { page } = await visit(`${root}/page`);
      assert.equal(await page.textContent('p'), 'new', root);
      assert.equal(await page.evaluate('getComputedStyle(document.querySelector("p")).color'), 'rgb(1, 2, 3)', root);
    }
  });
});
