/** Opens desks for a test, each on free ports and with its own database, and closes them afterwards. */
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import request, { type Test } from 'supertest';
import {
  type AuthServiceInput,
  createFrontdesk,
  type Frontdesk,
  type FrontdeskOptions,
  type Listeners,
  type MappingInput,
  type RateLimitServiceInput,
  type UserInput,
} from '../../src/index.ts';
import type { TestServers } from './serve.ts';
import { temporaryFiles, type WriteFiles } from './temporary-files.ts';

/** A test uses only the listeners that its options open, so the type has all of them. */
export type OpenListeners = { readonly [Name in keyof Listeners]: NonNullable<Listeners[Name]> };

export interface TestDesk extends Frontdesk {
  readonly listen: () => Promise<OpenListeners>;
}

export type OpenDesk = (options?: FrontdeskOptions) => Promise<TestDesk>;

/** Uses a copy of ./config with its demo data by default. Call it in a `describe`. */
export function desksOf(servers: TestServers): OpenDesk {
  const writeFiles = temporaryFiles();
  let copied: Promise<string> | undefined;
  const copyOnce = () => {
    copied ??= copyConfig(writeFiles);
    return copied;
  };
  return async function openDesk(options = {}) {
    const scratch = { databaseUrl: 'sqlite::memory:', demo: true, port: 0, authPort: 0, ratelimitPort: 0 };
    const desk = await createFrontdesk({ ...scratch, ...options, config: options.config ?? (await copyOnce()) });
    servers.later(desk.close);
    return desk as TestDesk;
  };
}

/** A GET without credentials. */
export function call({ app }: Frontdesk, path: string): Test {
  return request(app.callback()).get(path);
}

export function callAsDemo(desk: Frontdesk, path: string): Test {
  return call(desk, path).auth('demo', 'demo');
}

/** A Mapping as a plain object, with the fields of a YAML record. */
export function mappingRecord(
  name: string,
  prefix: string,
  service: string,
  more: Partial<MappingInput> = {},
): MappingInput {
  return { apiVersion: 'gateway/v1', kind: 'Mapping', name, prefix, service, ...more };
}

export const authRecord: AuthServiceInput = Object.freeze({
  apiVersion: 'gateway/v1',
  kind: 'AuthService',
  name: 'auth',
  auth_service: 'auth',
  proto: 'http',
  allowed_authorization_headers: ['X-Travel-User'],
});

export const limitRecord: RateLimitServiceInput = Object.freeze({
  apiVersion: 'gateway/v1',
  kind: 'RateLimitService',
  name: 'limits',
  service: 'ratelimit',
});

/** The passwords of these users are cheap to check, because a test logs in at every desk that it opens. */
export const annRecord: UserInput = Object.freeze({
  name: 'ann',
  password_hash: '$scrypt$ln=1,r=1,p=1$AQEBAQEBAQEBAQEBAQEBAQ$5zTsCev1qjkwpfbFD0PmL8qfdSoT1LvwYVtfzR8ZrdQ',
});

export const demoRecord: UserInput = Object.freeze<UserInput>({
  name: 'demo',
  roles: ['admin'],
  password_hash: '$scrypt$ln=1,r=1,p=1$AQEBAQEBAQEBAQEBAQEBAQ$1DbD5n6l2tvRy0vUzb0qA+KVLbJbR35li2AWO6CmaeA',
});

const guestRecord: UserInput = Object.freeze({
  name: 'guest',
  password_hash: '$scrypt$ln=1,r=1,p=1$AQEBAQEBAQEBAQEBAQEBAQ$zjy21ZqfjiRDLvXL1XraRPd9rDpaKQ0Npg9rEHO/MUE',
});

/** Copies ./config, with hashes of the same passwords that are cheap to check. Returns the directory. */
export async function copyConfig(writeFiles: WriteFiles): Promise<string> {
  const directory = join(await writeFiles(), 'config');
  await copyConfigTo(directory);
  return directory;
}

export async function copyConfigTo(directory: string): Promise<void> {
  await cp('config', directory, { recursive: true });
  await writeFile(join(directory, 'users.yaml'), JSON.stringify({ users: [demoRecord, guestRecord] }));
}
