/** Signing in and out in a browser, which keeps the password by itself. */
import assert from 'node:assert/strict';
import { describeInBrowser } from './browser.ts';
import { openDemoDesk } from './demo-desk.ts';

describeInBrowser('the landing page in a browser', ({ servers, writeFiles, visit }) => {
  it('signs out: the browser forgets the password, and the next page needs one', async () => {
    const { diagnosticsUrl } = await openDemoDesk(servers, await writeFiles());
    const home = new URL('/', diagnosticsUrl);
    const signIn = new URL('/?sign-in', home);
    Object.assign(signIn, { username: 'demo', password: 'demo' });
    const { page } = await visit(home.href, { isAnonymous: true, expected: /status of 401/ });
    const session = () => page.locator('.session').textContent();
    assert.match((await session()) ?? '', /^Sign in /);
    await page.goto(signIn.href);
    assert.match((await session()) ?? '', /^Signed in as demo\./);
    // The browser sends the password by itself.
    await page.goto(home.href);
    assert.match((await session()) ?? '', /^Signed in as demo\./);
    await page.getByRole('link', { name: 'Sign out' }).click();
    assert.equal(await page.locator('h1').textContent(), 'Signed out');
    await page.getByRole('link', { name: 'the home page' }).click();
    assert.match((await session()) ?? '', /^Sign in /);
    assert.equal((await page.goto(diagnosticsUrl))?.status(), 401);
  });
});
