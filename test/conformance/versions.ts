/** The versioned API: messages and accounts in two versions, each a separate application. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import { call, callAsDemo, mountPath, type OpenDesk } from './desk.ts';

const versions = ['v1', 'v2'];

export function versionCases(desk: OpenDesk): void {
  const read = async (path: string) => (await call(desk, path).expect(200)).body;

  for (const version of versions) {
    describe(`the versioned API: ${version}`, () => {
      const base = () => `${desk().gatewayUrl}/${version}`;

      it('returns messages with their absolute URL, which includes the version and the mount path', async () => {
        const message = await read(`/${version}/messages/2`);
        assert.deepEqual([message.id, typeof message.content], ['2', 'string']);
        assert.equal(message.url, `${base()}/messages/2`);
        assert.deepEqual(await read(message.url.slice(desk().gatewayUrl.length)), message);
        const { items } = await read(`/${version}/messages/`);
        assert.ok(items.length > 1);
        for (const { id, url } of items) assert.equal(url, `${base()}/messages/${id}`);
      });

      it('lists the absolute URLs of its collections', async () => {
        const { messages, accounts } = await read(`/${version}/`);
        assert.deepEqual([messages, accounts], [`${base()}/messages/`, `${base()}/accounts/`]);
      });

      it('returns accounts, each at its own path', async () => {
        const { items } = await read(`/${version}/accounts/`);
        assert.deepEqual(
          items.map(({ id }: { id: string }) => id),
          ['demo', 'guest'],
        );
        for (const account of items) assert.deepEqual(await read(`/${version}/accounts/${account.id}`), account);
      });

      it('returns the messages of one account', async () => {
        const { items } = await read(`/${version}/accounts/guest/messages/`);
        assert.deepEqual([...new Set(items.map(({ account_id }: { account_id: string }) => account_id))], ['guest']);
      });

      it('responds 404 for accounts and messages that do not exist', async () => {
        const ids = ['0', '01', '999', '1.0', '-1', 'one', '4294967297'];
        for (const path of ['accounts/nobody', 'accounts/nobody/messages/', ...ids.map((id) => `messages/${id}`)])
          await call(desk, `/${version}/${path}`).expect(bareProblem('not-found'));
      });
    });
  }

  describe('the versioned API', () => {
    it('returns different content for the same message in v1 and v2', async () => {
      const [first, second] = await Promise.all(versions.map((version) => read(`/${version}/messages/1`)));
      assert.equal(first.id, second.id);
      assert.notEqual(first.content, second.content);
    });

    it('responds 404 for a prefix that is not a version', async () => {
      for (const path of ['/v0/messages/1', '/v3/messages/1', '/v10/messages/1', '/v1messages/1', '/messages/1'])
        await call(desk, path).expect(bareProblem('not-found')).expect('Content-Type', 'application/json');
    });

    it('ignores X-Forwarded headers of clients that are not trusted proxies', async () => {
      const forwarded = {
        'X-Forwarded-Host': 'evil.example',
        'X-Forwarded-Proto': 'ftp',
        'X-Forwarded-Prefix': '/evil',
      };
      const { body } = await call(desk, '/v1/messages/1').set(forwarded).expect(200);
      assert.equal(body.url, `${desk().gatewayUrl}/v1/messages/1`);
      const { headers } = await call(desk, '/v1/messages').set(forwarded).expect(308);
      assert.equal(headers['location'], `${mountPath(desk)}/v1/messages/`);
      const page = await callAsDemo(desk, '/v1/hotels').set(forwarded).expect(200);
      assert.equal(page.body.links.self, `${mountPath(desk)}/v1/hotels/?offset=0&limit=20`);
    });

    it('needs no credentials and ignores wrong ones', async () => {
      await call(desk, '/v1/messages/1').auth('demo', 'wrong').expect(200);
      await callAsDemo(desk, '/v1/messages/1').expect(200);
    });
  });
}
