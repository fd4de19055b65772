/** What a driver throws is told apart: the database is away, or we have a bug. */
import assert from 'node:assert/strict';
import { isSqliteBusy, messageOf, StorageUnavailable, translateDriverError } from '../../src/storage/errors.ts';

const withCode = (code: string) => Object.assign(new Error(code), { code });
const sqliteError = (errcode: number) => Object.assign(withCode('ERR_SQLITE_ERROR'), { errcode });

/** SQLite's result codes, extended ones among them (sqlite.org/rescode.html). */
const [genericError, busy, full, cannotOpen] = [1, 5, 13, 14];
const [busySnapshot, ioErrorRead, constraintForeignKey] = [517, 266, 787];

describe('translateDriverError', () => {
  const check = (error: unknown, unavailable: boolean) => {
    const translated = translateDriverError(error);
    assert.equal(translated instanceof StorageUnavailable, unavailable, messageOf(error));
    assert.equal(translated instanceof StorageUnavailable ? translated.cause : translated, error);
  };

  it('takes a file that is locked, gone, full or broken for unavailable', () => {
    for (const errcode of [busy, busySnapshot, ioErrorRead, full, cannotOpen]) check(sqliteError(errcode), true);
  });

  it('takes a server that is down, stopping, full or slow for unavailable', () => {
    for (const code of [
      'ECONNREFUSED',
      'ECONNRESET',
      'EPIPE',
      'ENOTFOUND',
      '57P01',
      '08006',
      '40P01',
      '53300',
      '57014',
      '55P03',
    ]) {
      check(withCode(code), true);
    }
    check(new Error('timeout exceeded when trying to connect'), true);
    check(new Error('Connection terminated unexpectedly'), true);
    check(new AggregateError([withCode('ECONNREFUSED'), withCode('ECONNREFUSED')]), true);
  });

  it('leaves everything else as it is', () => {
    for (const errcode of [constraintForeignKey, genericError]) check(sqliteError(errcode), false);
    for (const code of ['23505', '42P01', '5', '']) check(withCode(code), false);
    check(new TypeError('x is not a function'), false);
    check(undefined, false);
    check('ECONNREFUSED', false);
  });
});

describe('isSqliteBusy', () => {
  it('knows the codes of a held lock', () => {
    assert.ok(isSqliteBusy(sqliteError(busy)) && isSqliteBusy(sqliteError(busySnapshot)));
    assert.ok(!isSqliteBusy(sqliteError(genericError)) && !isSqliteBusy(null));
  });
});

describe('messageOf', () => {
  const check = (error: unknown, expected: string) => assert.equal(messageOf(error), expected);

  it('says what the driver said, also inside of other errors', () => {
    check(new Error('a'), 'a');
    check('a', 'a');
    check(new StorageUnavailable(new Error('a')), 'a');
    check(new AggregateError([new Error('a'), new Error('b')], ''), 'a, b');
  });
});
