/** The versions side by side: the same data, and each its own face of it. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { createApi } from '#api';
import { createRepresentations } from '#http';
import { openDemoDatabase } from '../support/databases.ts';
import { testServers } from '../support/serve.ts';
import { apiRows } from './api-rows.ts';

describe('createApi', () => {
  const servers = testServers();

  async function open() {
    const database = await openDemoDatabase(servers, apiRows);
    return createApi({ database, representations: createRepresentations() });
  }

  it('gives an app for each version, by the name that stands in its path', async () => {
    assert.deepEqual(Object.keys(await open()), ['v1', 'v2']);
  });

  it('gives apps that stand alone: no version holds another up', async () => {
    for (const app of Object.values(await open())) await request(app.callback()).get('/messages/1').expect(200);
  });

  it('shows the same message differently', async () => {
    const contents = await Promise.all(
      Object.values(await open()).map(async (app) => (await request(app.callback()).get('/messages/1')).body.content),
    );
    assert.deepEqual(contents, ['Hello', 'Hello, Ann. It rains.']);
  });

  it('renames and removes nothing from one version to the next but what the next declares', async () => {
    const names = await Promise.all(
      Object.values(await open()).map(async (app) =>
        Object.keys((await request(app.callback()).get('/messages/1')).body),
      ),
    );
    assert.deepEqual(names, [
      ['id', 'account_id', 'content', 'url'],
      ['id', 'account_id', 'content', 'created_at', 'url'],
    ]);
  });
});
