/** Sections 4 and 9: messages and accounts in two versions, each an application of its own. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import { call, callAsDemo, mountPath, type OpenDesk } from './desk.ts';

const versions = ['v1', 'v2'];

export function versionCases(desk: OpenDesk): void {
  for (const version of versions) {
    describe(`the versioned API: ${version}`, () => {
      it('answers 200 and a message, without credentials', async () => {
        const { body } = await call(desk, `/${version}/messages/1`)
          .expect(200)
          .expect('Content-Type', 'application/json');
        assert.equal(body.id, '1');
        assert.equal(typeof body.content, 'string');
      });

      it('gives a message its absolute URL, version and mount path included, and the URL answers', async () => {
        const { body } = await call(desk, `/${version}/messages/2`).expect(200);
        assert.equal(body.url, `${desk().gatewayUrl}/${version}/messages/2`);
        const again = await fetch(body.url);
        assert.deepEqual(await again.json(), body);
      });

      it('lists messages, each under its own URL', async () => {
        const { body } = await call(desk, `/${version}/messages/`).expect(200);
        assert.ok(body.items.length > 1);
        for (const { id, url } of body.items) assert.equal(url, `${desk().gatewayUrl}/${version}/messages/${id}`);
      });

      it('lists accounts and answers each of them', async () => {
        const { body } = await call(desk, `/${version}/accounts/`).expect(200);
        assert.deepEqual(
          body.items.map(({ id }: { id: string }) => id),
          ['demo', 'guest'],
        );
        for (const account of body.items) await call(desk, `/${version}/accounts/${account.id}`).expect(200, account);
      });

      it('lists the messages of one account', async () => {
        const { body } = await call(desk, `/${version}/accounts/guest/messages/`).expect(200);
        assert.ok(body.items.length > 0);
        for (const { account_id } of body.items) assert.equal(account_id, 'guest');
      });

      it('answers 404 to messages of an account that is not there', async () => {
        await call(desk, `/${version}/accounts/nobody/messages/`).expect(bareProblem('not-found'));
        await call(desk, `/${version}/accounts/nobody`).expect(bareProblem('not-found'));
      });

      it('names its collections at its root', async () => {
        await call(desk, `/${version}/`).expect(200, {
          messages: `${desk().gatewayUrl}/${version}/messages/`,
          accounts: `${desk().gatewayUrl}/${version}/accounts/`,
        });
      });

      for (const id of ['0', '01', '999', '1.0', '-1', 'one', '4294967297']) {
        it(`answers 404 to a message that is not there: ${id}`, async () => {
          await call(desk, `/${version}/messages/${id}`).expect(bareProblem('not-found'));
        });
      }
    });
  }

  describe('the versioned API', () => {
    it('gives the same message different content in v1 and v2', async () => {
      const [first, second] = await Promise.all(versions.map((version) => call(desk, `/${version}/messages/1`)));
      assert.notEqual(first?.body.content, second?.body.content);
      assert.equal(first?.body.id, second?.body.id);
    });

    for (const path of ['/', '/v0/messages/1', '/v3/messages/1', '/v10/messages/1', '/v1messages/1', '/messages/1']) {
      it(`answers 404 and the error body to a prefix of no version: ${path}`, async () => {
        await call(desk, path).expect(bareProblem('not-found')).expect('Content-Type', 'application/json');
      });
    }

    it('believes no stranger about where it is', async () => {
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

    it('asks for no credentials, and minds none', async () => {
      await call(desk, '/v1/messages/1').auth('demo', 'wrong').expect(200);
      await callAsDemo(desk, '/v1/messages/1').expect(200);
    });
  });
}
