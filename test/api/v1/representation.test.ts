/** Version 1 shows a message by its subject line. */
import assert from 'node:assert/strict';
import { v1 } from '#api/v1';
import { createView, toPublicItem } from '#query';
import type { MessageRow } from '#storage';

const row: MessageRow = {
  id: 1,
  account_id: 'ann',
  subject: 'Hello',
  body: 'Text',
  created_at: '2030-01-01T00:00:00.000Z',
};

describe('v1', () => {
  const view = createView<MessageRow>({ key: 'id', fields: v1.message });

  it('shows the subject as content, and nothing else of its own', () => {
    assert.deepEqual(toPublicItem(view, row, undefined, ''), { content: 'Hello' });
  });
});
