/** The versioned API: one isolated app for each version. */
import type Koa from 'koa';
import { v1 } from '#api/v1';
import { v2 } from '#api/v2';
import { createVersionApp, type VersionAppOptions } from './version-app.ts';

const versions = { v1, v2 };

/** `v1`, `v2`: the prefix of each is its name. */
export const apiVersions: readonly string[] = Object.keys(versions);

/** The apps by version, for `createVersions`. */
export function createApi(options: VersionAppOptions): Readonly<Record<string, Koa>> {
  return Object.fromEntries(Object.entries(versions).map(([name, views]) => [name, createVersionApp(views, options)]));
}
