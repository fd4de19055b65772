/** Messages, accounts and the messages of an account, in each API version. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import request from 'supertest';
import { silentLogger } from '#foundation';
import { createRepresentations, problem } from '#http';
import { createApi } from '../../../src/travel/messages/messages.ts';
import { StorageUnavailable } from '../../../src/travel/storage/database.ts';
import { openDemoDatabase } from '../../support/databases.ts';
import { testServers } from '../../support/serve.ts';

const rows = {
  accounts: [
    { id: 'ann', name: 'Ann' },
    { id: 'bob', name: 'Bob' },
  ],
  messages: [
    { id: 1, account_id: 'ann', subject: 'Hello', body: 'Hello, Ann. It rains.' },
    { id: 2, account_id: 'ann', subject: 'Again', body: 'It still rains.' },
    { id: 3, account_id: 'bob', subject: 'Hello', body: 'Hello, Bob.' },
  ],
};

const base = 'http://api.example';
const common = { id: '1', account_id: 'ann', url: `${base}/messages/1` };

const versions = {
  // `found` lists the messages that match a search for a word that occurs only in their text, not in the subject.
  v1: { message: { ...common, content: 'Hello' }, found: [] },
  v2: {
    message: { ...common, content: 'Hello, Ann. It rains.', created_at: '2030-01-01T00:00:00.000Z' },
    found: ['2'],
  },
};

for (const version of ['v1', 'v2'] as const) {
  const { message, found } = versions[version];
  describe(`the ${version} app`, () => {
    const servers = testServers();

    async function openWithDatabase() {
      const database = await openDemoDatabase(servers, rows);
      const toProblem = (thrown: unknown) =>
        thrown instanceof StorageUnavailable ? problem('storage-unavailable') : undefined;
      const options = { database, representations: createRepresentations(), logger: silentLogger, toProblem };
      const apps = createApi(options);
      assert.deepEqual(Object.keys(apps), ['v1', 'v2']);
      return { app: apps[version]?.callback() ?? assert.fail(), database };
    }

    const open = async () => (await openWithDatabase()).app;

    const get = (app: RequestListener, path: string) => request(app).get(path).set('Host', 'api.example');

    const idsOf = async (app: RequestListener, path: string) =>
      (await get(app, path).expect(200)).body.items.map(({ id }: { id: string }) => id);

    it('shows the fields of its version, and filters by them', async () => {
      const app = await open();
      await get(app, '/messages/1').expect(200, message);
      const { content, ...hidden } = { ...versions.v2.message, ...message };
      assert.deepEqual(await idsOf(app, `/messages/?content=${encodeURIComponent(content)}&account_id=ann`), ['1']);
      const isTimeShown = 'created_at' in message;
      await get(app, `/messages/?created_at=${hidden.created_at}`).expect(isTimeShown ? 200 : 400);
      await get(app, '/messages/?created_at=yesterday').expect(400);
      if (!isTimeShown) return;
      const elsewhere = hidden.created_at.replace('T00:00:00.000Z', 'T02:00:00%2B02:00');
      assert.deepEqual(await idsOf(app, `/messages/?created_at=${elsewhere}`), ['1', '2', '3']);
    });

    it('lists the messages of an account, filtered and paged', async () => {
      const app = await open();
      assert.deepEqual(await idsOf(app, '/accounts/ann/messages/'), ['1', '2']);
      assert.deepEqual(await idsOf(app, '/accounts/ann/messages/?limit=1&offset=1'), ['2']);
      assert.deepEqual(await idsOf(app, '/accounts/ann/messages/?id=3'), []);
      assert.deepEqual(await idsOf(app, '/accounts/ann/messages/?account_id=bob'), []);
    });

    it('responds 404 for the messages of an unknown account, and with an empty list for an account without messages', async () => {
      const { app, database } = await openWithDatabase();
      await get(app, '/accounts/carl/messages/').expect(404, {
        code: 404,
        message: '404: Not Found',
        info_url: `${base}/docs/problems/not-found`,
      });
      await database.kysely.insertInto('accounts').values({ id: 'carl', name: 'Carl' }).execute();
      assert.deepEqual(await idsOf(app, '/accounts/carl/messages/'), []);
    });

    it('shows the URL of an account, which works even when its id needs encoding', async () => {
      const { app, database } = await openWithDatabase();
      await database.kysely.insertInto('accounts').values({ id: 'a b/c?', name: 'Odd' }).execute();
      const { body } = await get(app, '/accounts/?name=Odd').expect(200);
      const account = { id: 'a b/c?', name: 'Odd', url: `${base}/accounts/a%20b%2Fc%3F` };
      assert.deepEqual(body.items, [account]);
      await get(app, account.url.slice(base.length)).expect(200, account);
    });

    it('searches only the content that it shows', async () => {
      const app = await open();
      assert.deepEqual(await idsOf(app, '/messages/?q=HELLO'), ['1', '3']);
      assert.deepEqual(await idsOf(app, '/messages/?q=still'), found);
    });

    it('rejects a filter by an id that no message can have, and explains why', async () => {
      const app = await open();
      for (const id of ['x', '01', '2147483648']) {
        const { body } = await get(app, `/messages/?id=${id}`).expect(400);
        assert.match(body.errors[0].detail, /^(?:must be a whole number above 0|is not a value that an item)/, id);
      }
    });

    it('responds 503 while the database is unavailable', async () => {
      const { app, database } = await openWithDatabase();
      await database.close();
      for (const path of ['/messages/', '/messages/1', '/accounts/ann', '/accounts/ann/messages/']) {
        await get(app, path).expect(503);
      }
      await get(app, '/').expect(200);
    });
  });
}
