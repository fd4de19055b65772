/** Errors of the database drivers: those of an unavailable database are distinguished from bugs. */
import assert from 'node:assert/strict';
import {
  driverMessage,
  isSqliteBusy,
  StorageUnavailable,
  translateDriverError,
} from '../../../src/travel/storage/database.ts';

const withCode = (code: string) => Object.assign(new Error(code), { code });
const sqliteError = (errcode: number) => Object.assign(withCode('ERR_SQLITE_ERROR'), { errcode });

/** SQLite's result codes, including extended ones (sqlite.org/rescode.html). */
const [genericError, busy, readOnly, full, cannotOpen] = [1, 5, 8, 13, 14];
const [busySnapshot, ioErrorRead, constraintForeignKey] = [517, 266, 787];

describe('translateDriverError', () => {
  const check = (error: unknown, isUnavailable: boolean) => {
    const translated = translateDriverError(error);
    assert.equal(translated instanceof StorageUnavailable, isUnavailable, driverMessage(error));
    assert.equal(translated instanceof StorageUnavailable ? translated.cause : translated, error);
  };

  it('returns StorageUnavailable for a SQLite file that is locked, missing, full or damaged', () => {
    for (const code of [busy, busySnapshot, readOnly, ioErrorRead, full, cannotOpen]) check(sqliteError(code), true);
  });

  it('returns StorageUnavailable for a PostgreSQL server that is down, stopping, full, slow or denies access', () => {
    for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN']) check(withCode(code), true);
    for (const code of ['ENOENT', 'EACCES', 'EMFILE']) check(withCode(code), true);
    for (const code of ['57P01', '08006', '40P01', '53300', '57014', '55P03']) check(withCode(code), true);
    for (const code of ['28P01', '28000', '3D000', '42P01', '42501']) check(withCode(code), true);
    check(new Error('timeout exceeded when trying to connect'), true);
    check(new Error('Connection terminated unexpectedly'), true);
    check(new AggregateError([withCode('ECONNREFUSED'), withCode('ECONNREFUSED')]), true);
  });

  it('returns StorageUnavailable for a PostgreSQL server with an untrusted certificate or without TLS', () => {
    for (const code of ['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'EPROTO'])
      check(withCode(code), true);
    check(new Error('The server does not support SSL connections'), true);
  });

  it('returns all other errors unchanged', () => {
    for (const code of [constraintForeignKey, genericError]) check(sqliteError(code), false);
    for (const code of ['23505', '42601', '5', '']) check(withCode(code), false);
    for (const error of [new TypeError('x is not a function'), undefined, 'ECONNREFUSED']) check(error, false);
  });
});

it('isSqliteBusy returns true only if another connection has the lock', () => {
  assert.ok(isSqliteBusy(sqliteError(busy)) && isSqliteBusy(sqliteError(busySnapshot)));
  assert.ok(!isSqliteBusy(sqliteError(genericError)) && !isSqliteBusy(null));
});

it('driverMessage returns the message of the driver, also from wrapped errors', () => {
  for (const [error, expected] of [
    [new Error('a'), 'a'],
    ['a', 'a'],
    [new StorageUnavailable(new Error('a')), 'a'],
    [new AggregateError([new Error('a'), new Error('b')], ''), 'a, b'],
  ] as const) {
    assert.equal(driverMessage(error), expected);
  }
});
