/** A page whose script and style sheet are served as text/plain: they work through the gateway as they do directly. */
import assert from 'node:assert/strict';
import { describeInBrowser } from '../browser/browser.ts';
import { startUpstream } from '../support/upstream.ts';
import { recipeRecord, startFront } from './front.ts';

/** The page has no doctype. In standards mode, browsers ignore style sheets that are not text/css. */
const assets: Readonly<Record<string, readonly [type: string, text: string]>> = {
  '/page': [
    'text/html',
    '<link rel=icon href=data:,><link rel=stylesheet href=style><p>old</p><script src=script></script>',
  ],
  '/style': ['text/plain', 'p { color: rgb(1, 2, 3) }'],
  '/script': ['text/plain', 'document.querySelector("p").textContent = "new"'],
};

describeInBrowser('a page with assets as text/plain', ({ servers, visit }) => {
  it('runs its script and applies its style behind the gateway, as without it', async () => {
    const app = await startUpstream(servers, (res, { url }) => {
      const [type, text] = assets[url] ?? ['text/plain', ''];
      res.writeHead(200, { 'Content-Type': type }).end(text);
    });
    const front = await startFront(servers, recipeRecord('django-below', app));
    for (const root of [app.origin, `${front.origin}/django`]) {
      const { page } = await visit(`${root}/page`);
      assert.equal(await page.textContent('p'), 'new', root);
      assert.equal(await page.evaluate('getComputedStyle(document.querySelector("p")).color'), 'rgb(1, 2, 3)', root);
    }
  });
});
