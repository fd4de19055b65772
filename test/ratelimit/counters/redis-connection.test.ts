/** What an operator reads about an error of Redis. */
import assert from 'node:assert/strict';
import { adviseOnRedis } from '../../../src/ratelimit/counters/redis-connection.ts';
import { readRecipe } from '../../recipes/page.ts';

const tls = (code: string) => Object.assign(new Error('the text of OpenSSL'), { code });

describe('adviseOnRedis', () => {
  for (const [error, expected] of [
    [new Error("CROSSSLOT Keys in request don't hash to the same slot"), /Cluster is not supported/],
    [new Error('MOVED 12279 127.0.0.1:7103'), /Cluster is not supported/],
    [new Error('ASK 12279 127.0.0.1:7103'), /Cluster is not supported/],
    [new Error('CLUSTERDOWN Hash slot not served'), /Cluster is not supported/],
    [new Error("ERR unknown command 'EVALSHA', with args beginning with: '69cc' '2'"), /redis\+sentinel:/],
    [new Error("READONLY You can't write against a read only replica."), /name the primary/],
    [new Error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), /name the primary/],
    [new Error('WRONGPASS invalid username-password pair or user is disabled.'), /the password in REDIS_URL/],
    [new Error('NOAUTH Authentication required.'), /the password in REDIS_URL/],
    [new Error("NOPERM this user has no permissions to run the 'evalsha' command"), /\+eval /],
    [new Error("ERR The user executing the script can't run this command or subcommand"), /\+eval /],
    [new Error('MISCONF Redis is configured to save RDB snapshots'), /rejects writes/],
    [new Error('NOREPLICAS Not enough good replicas to write.'), /rejects writes/],
    [new Error("OOM command not allowed when used memory > 'maxmemory'."), /volatile-lru/],
    [tls('DEPTH_ZERO_SELF_SIGNED_CERT'), /REDIS_TLS_CA/],
    [tls('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), /REDIS_TLS_CA/],
    [tls('ERR_TLS_CERT_ALTNAME_INVALID'), /as its certificate does/],
    [tls('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), /REDIS_TLS_CERT and REDIS_TLS_KEY/],
  ] as const)
    it(`says what to do about ${'code' in error ? error.code : error.message}`, () => {
      assert.match(adviseOnRedis(error) ?? '', expected);
    });

  it('says what to do about the failure because of which a command was not tried', () => {
    const cause = new Error('WRONGPASS invalid username-password pair or user is disabled.');
    assert.match(
      adviseOnRedis(new Error('there is no connection to Redis', { cause })) ?? '',
      /the password in REDIS_URL/,
    );
  });

  it('adds nothing to errors that pass without help', () => {
    const passing = [new Error('LOADING Redis is loading the dataset in memory'), tls('ECONNREFUSED'), 'no error'];
    assert.deepEqual(passing.map(adviseOnRedis), [undefined, undefined, undefined]);
  });

  it('lists the permissions of the recipe', () => {
    const { text } = readRecipe('Two replicas on PostgreSQL and Redis');
    const [, rules = 'none'] = /A user of Redis needs `([^`]+)`/.exec(text) ?? [];
    assert.ok(adviseOnRedis(new Error('NOPERM this user has no permissions'))?.includes(rules));
  });
});
