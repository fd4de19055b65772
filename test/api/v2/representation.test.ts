/** Version 2 shows a message by its full text, and says when it was written. */
import assert from 'node:assert/strict';
import { v2 } from '#api/v2';
import { createView, toPublicItem } from '#query';
import type { MessageRow } from '#storage';

const row: MessageRow = {
  id: 1,
  account_id: 'ann',
  subject: 'Hello',
  body: 'Text',
  created_at: '2030-01-01T00:00:00.000Z',
};

describe('v2', () => {
  const view = createView<MessageRow>({ key: 'id', fields: v2.message });

  it('shows the text as content, and the time', () => {
    assert.deepEqual(toPublicItem(view, row, undefined, ''), { content: 'Text', created_at: row.created_at });
  });

  it('takes the time as a filter, in the form in which it is shown', () => {
    const created = view.fields.get('created_at');
    assert.equal(created?.read(row.created_at, '').ok, true);
    assert.equal(created?.read('yesterday', '').ok, false);
  });
});
