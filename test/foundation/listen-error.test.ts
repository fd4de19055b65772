/** Why a server cannot listen. */
import assert from 'node:assert/strict';
import { listenError } from '#foundation';

describe('listenError', () => {
  const settings = { hostSetting: 'AUTH_HOST', portSetting: 'AUTH_PORT' };
  for (const [code, names, expected] of [
    [
      'EADDRINUSE',
      settings,
      'another process uses the port: stop it, or choose another port with AUTH_PORT (0 picks a free one)',
    ],
    ['EADDRINUSE', {}, 'another process uses the port: stop it, or choose another port (0 picks a free one)'],
    ['EADDRNOTAVAIL', settings, 'this machine has no such address: choose one of its addresses with AUTH_HOST'],
    ['EACCES', settings, 'this user may not listen on that port: choose a port from 1024 up with AUTH_PORT'],
    ['EMFILE', settings, 'this process has reached its limit of open files: raise it (ulimit -n)'],
    ['EOTHER', settings, 'choose another address with AUTH_HOST or another port with AUTH_PORT'],
    ['EOTHER', {}, 'choose another address or another port'],
  ] as const)
    it(`names the remedy of ${code} ${'portSetting' in names ? 'and the setting' : 'without settings'}`, () => {
      const cause = Object.assign(new Error(`listen ${code}`), { code });
      const error = listenError(cause, { host: '127.0.0.1', port: 80, ...names });
      assert.equal(error.message, `cannot listen on 127.0.0.1:80 (${code}): ${expected}`);
      assert.equal(error.cause, cause);
      assert.equal(Reflect.get(error, 'code'), code);
    });

  it('shows the message of an error without a code', () => {
    const { message } = listenError(new Error('no'), { host: '::', port: 80 });
    assert.equal(message, 'cannot listen on :::80 (no): choose another address or another port');
  });
});
