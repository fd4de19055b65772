/** Issuers of tokens for tests: key pairs, tokens that are signed with them, and a server for their key sets. */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { JwtProviderInput } from '../../src/index.ts';
import type { TestServers } from './serve.ts';

export type Algorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA';

export interface SigningKey {
  readonly alg: Algorithm;
  readonly kid: string | undefined;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public key, as an issuer publishes it. */
  readonly jwk: Readonly<Record<string, unknown>>;
}

export function createKey(alg: Algorithm, kid?: string): SigningKey {
  const { privateKey, publicKey } = pairOf(alg);
  const jwk = { ...publicKey.export({ format: 'jwk' }), use: 'sig', ...(kid !== undefined && { kid }) };
  return { alg, kid, privateKey, publicKey, jwk };
}

function pairOf(alg: Algorithm) {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return alg === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: 2048 });
}

type Claims = Readonly<Record<string, unknown>>;

/** Signs claims. `header` adds to the header, or replaces parts of it. */
export function signToken({ alg, kid, privateKey }: SigningKey, claims: Claims, header: Claims = {}): string {
  const signed = `${encode({ alg, ...(kid !== undefined && { kid }), ...header })}.${encode(claims)}`;
  const padding = alg === 'PS256' ? { padding: 6, saltLength: 32 } : {};
  const digest = alg === 'EdDSA' ? null : 'sha256';
  const signature = sign(digest, Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363', ...padding });
  return `${signed}.${signature.toString('base64url')}`;
}

/** Signs with a shared secret, as someone does who takes a public key for one. */
export function signWithSecret(secret: string, claims: Claims, header: Claims = {}): string {
  const signed = `${encode({ alg: 'HS256', ...header })}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

export function unsigned(claims: Claims, header: Claims = {}): string {
  return `${encode({ alg: 'none', ...header })}.${encode(claims)}.`;
}

export function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export const issuer = 'https://accounts.example.com';
export const audience = 'https://api.example.com';

/** Claims of a token that is valid for an hour. `nowMs`: milliseconds since the epoch. */
export function claimsOf(more: Claims = {}, nowMs = Date.now()): Claims {
  return { iss: issuer, aud: audience, sub: 'ann', exp: Math.floor(nowMs / 1000) + 3600, ...more };
}

/** A JwtProvider as a plain object, with the keys in the record. */
export function providerRecord(keys: readonly SigningKey[], more: Partial<JwtProviderInput> = {}): JwtProviderInput {
  const jwks = { keys: keys.map(({ jwk }) => ({ ...jwk })) };
  return {
    apiVersion: 'gateway/v1',
    kind: 'JwtProvider',
    name: 'accounts',
    issuer,
    audiences: [audience],
    ...(more.jwks_uri === undefined && { jwks }),
    ...more,
  };
}

export interface KeyServer {
  readonly uri: string;
  /** The number of requests so far. */
  readonly requests: () => number;
  /** What it responds with from now on. */
  readonly serve: (keys: readonly SigningKey[]) => void;
  readonly respond: (body: string, status?: number, headers?: Readonly<Record<string, string>>) => void;
  /** Breaks each connection from now on. */
  readonly breakOff: () => void;
}

export async function startKeyServer(servers: TestServers, keys: readonly SigningKey[] = []): Promise<KeyServer> {
  let count = 0;
  let response: readonly [string, number, Readonly<Record<string, string>>] | undefined;
  const serve = (served: readonly SigningKey[]) => {
    response = [JSON.stringify({ keys: served.map(({ jwk }) => jwk) }), 200, {}];
  };
  serve(keys);
  const { port } = await servers.http((_req, res) => {
    count += 1;
    if (response === undefined) return void res.destroy();
    const [body, status, headers] = response;
    res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body);
  });
  return {
    uri: `http://127.0.0.1:${port}/keys?p=secret-parameter`,
    requests: () => count,
    serve,
    respond(body, status = 200, headers = {}) {
      response = [body, status, headers];
    },
    breakOff() {
      response = undefined;
    },
  };
}
