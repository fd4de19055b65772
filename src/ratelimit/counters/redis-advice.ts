/** What an operator can do about an error of Redis. */

/** Returns what to change, or undefined if the message of the error suffices. */
export function adviseOnRedis(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const text = `${'code' in error ? error.code : ''} ${error.message}`;
  return advice.find(([pattern]) => pattern.test(text))?.[1];
}

/** Redis' own errors begin with a word in capitals; those of TLS have a code. */
const advice: readonly (readonly [RegExp, string])[] = [
  [/ (MOVED|ASK|CROSSSLOT|CLUSTERDOWN) /, 'Redis Cluster is not supported: name a single Redis in REDIS_URL'],
  [/ unknown command '?EVAL/i, 'name a Redis server that runs scripts in REDIS_URL, not a Sentinel'],
  [/ (READONLY|MASTERDOWN) /, 'REDIS_URL leads to a read-only replica: name the primary'],
  [/ (WRONGPASS|NOAUTH) /, 'check the user and the password in REDIS_URL'],
  [
    / NOPERM |user executing the script can't/,
    'the user in REDIS_URL needs ~frontdesk:* +eval +evalsha +time +get +set +ping, and +select for a database other than 0',
  ],
  [/ (MISCONF|NOREPLICAS) /, 'Redis rejects writes until its disk or its replicas recover: see its log'],
  [/ OOM /, 'raise the maxmemory of Redis, or set its maxmemory-policy to volatile-lru'],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE) /,
    'set NODE_EXTRA_CA_CERTS to the certificate of the authority that signed the certificate of Redis',
  ],
];
