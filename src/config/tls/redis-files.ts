/** Reads the PEM files for connections to Redis with TLS. */
import type { Settings } from '../settings/settings.ts';
import { type PemBlock, readPem } from './pem.ts';

/** In PEM format. */
export interface RedisFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Throws an Error for the operator if a file cannot be used. */
export function readRedisFiles(settings: Pick<Settings, 'redisTlsCa' | 'redisTlsCert' | 'redisTlsKey'>): RedisFiles {
  const { redisTlsCa, redisTlsCert, redisTlsKey } = settings;
  return {
    ...read('ca', redisTlsCa, 'CERTIFICATE', 'REDIS_TLS_CA'),
    ...read('cert', redisTlsCert, 'CERTIFICATE', 'REDIS_TLS_CERT'),
    ...read('key', redisTlsKey, 'PRIVATE KEY', 'REDIS_TLS_KEY'),
  };
}

function read(field: keyof RedisFiles, file: string | undefined, block: PemBlock, subject: string): RedisFiles {
  return file === undefined ? {} : { [field]: readPem(file, block, subject) };
}
