/** Configuration errors as people read them. */
import assert from 'node:assert/strict';
import { formatErrors } from '#config';

describe('formatErrors', () => {
  const error = {
    source: { file: '/srv/app/config/services/hotel.yaml', line: 14 },
    record: 'Mapping hotel',
    message: 'unknown key "prefx", did you mean "prefix"?',
    remedy: 'Write "prefix", or remove it.',
  };

  it('says file, line, record and fault, and the remedy on the line below', () => {
    assert.equal(
      formatErrors([error], '/srv/app'),
      'config/services/hotel.yaml:14  Mapping hotel: unknown key "prefx", did you mean "prefix"?\n    Write "prefix", or remove it.',
    );
  });

  it('leaves out the record when the file as a whole is at fault, and names a second place', () => {
    const other = { file: '/srv/app/config/a.yaml', line: 2 };
    assert.equal(
      formatErrors(
        [
          { source: { file: 'users.yaml', line: 1 }, record: undefined, message: 'it clashes', other, remedy: 'Move.' },
          error,
        ],
        '/srv/app',
      ).split('\n')[0],
      'users.yaml:1  it clashes (config/a.yaml:2)',
    );
  });

  it('is empty for no errors', () => {
    assert.equal(formatErrors([], '/'), '');
  });
});
