/** The Django admin behind the gateway: a browser logs in, adds a group and logs out, on a host and below a path. */
import assert from 'node:assert/strict';
import { describeInBrowser } from '../browser/browser.ts';
import { python, recipeRecord, startFront, startPython } from './front.ts';

const places = [
  { where: 'on a host', record: 'django', path: '', more: { host: 'django.localhost' } },
  { where: 'below a path', record: 'django-below', path: '/django', more: {} },
];

/** Browsers request a favicon at the root of the host, and Django has none. */
const noIcon = /status of 404/;

const styles = '[...document.querySelectorAll("link[rel=stylesheet]")].map(({ sheet }) => sheet !== null)';

describeInBrowser('the Django admin behind the gateway', function ({ servers, visit }) {
  if (python === undefined) {
    it('needs TEST_PYTHON with Django');
    return;
  }

  this.timeout(120_000);

  for (const { where, record, path, more } of places) {
    it(`supports login, forms and logout ${where}`, async () => {
      const app = await startPython(servers, 'django-site.py', path);
      const { port } = await startFront(servers, recipeRecord(record, app, more));
      const admin = `http://${more.host ?? '127.0.0.1'}:${port}${path}/admin/`;
      const { page } = await visit(admin, { expected: noIcon });
      assert.equal(page.url(), `${admin}login/?next=${path}/admin/`);
      assert.deepEqual(new Set((await page.evaluate(styles)) as boolean[]), new Set([true]));
      await page.fill('#id_username', 'ann');
      await page.fill('#id_password', 'secret');
      await page.click('[type=submit]');
      await page.click('text=Groups');
      await page.click('text=Add group');
      await page.fill('#id_name', 'readers');
      await page.click('[name=_save]');
      assert.match((await page.textContent('.messagelist')) ?? '', /“readers” was added successfully/);
      assert.equal(page.url(), `${admin}auth/group/`);
      await page.click('#logout-form button');
      assert.match((await page.textContent('h1')) ?? '', /Logged out/);
    });
  }
});
