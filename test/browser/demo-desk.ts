/** Starts a server with the demo configuration and a mapping to a service that refuses connections. */
import assert from 'node:assert/strict';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { createFrontdesk, type Frontdesk } from '../../src/index.ts';
import { copyConfigTo } from '../support/desks.ts';
import type { TestServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

export interface DemoDesk {
  readonly configDir: string;
  readonly middleware: Frontdesk['middleware'];
  readonly diagnosticsUrl: string;
  /** Sends requests one after the other, as the demo user unless `headers` say otherwise. */
  readonly send: (path: string, count?: number, headers?: Record<string, string>) => Promise<void>;
}

/** The credentials of the demo user. */
export const demo = Object.freeze({ authorization: `Basic ${btoa('demo:demo')}` });

/** `records` are additional records in YAML. */
export async function openDemoDesk(servers: TestServers, configDir: string, records = ''): Promise<DemoDesk> {
  const { origin: unreachable } = await servers.refusing();
  await copyConfigTo(configDir);
  // The landing page names the users of the demo by their hashes.
  await cp('config/users.yaml', join(configDir, 'users.yaml'));
  await writeFile(
    join(configDir, 'services/more.yaml'),
    `${mappingText('unreachable', '/unreachable', unreachable)}bypass_auth: true\n${records}`,
  );
  const ports = { port: 0, authPort: 0, ratelimitPort: 0 };
  const desk = await createFrontdesk({ config: configDir, databaseUrl: 'sqlite::memory:', demo: true, ...ports });
  servers.later(desk.close);
  const { gateway } = await desk.listen();
  assert.ok(gateway);
  return {
    configDir,
    middleware: desk.middleware,
    diagnosticsUrl: `${gateway.url}/gateway/v0/diag/`,
    async send(path, count = 1, headers = demo) {
      for (let sent = 0; sent < count; sent += 1) await (await fetch(gateway.url + path, { headers })).arrayBuffer();
    },
  };
}

export function mappingText(name: string, prefix: string, service: string): string {
  return `apiVersion: gateway/v1\nkind: Mapping\nname: ${name}\nprefix: ${prefix}\nservice: ${service}\n`;
}

export function rowOf(page: Page, path: string): Locator {
  return page.locator('.routes tbody tr').filter({ has: page.getByText(path, { exact: true }) });
}

export async function figureOf(row: Locator, name: string): Promise<string> {
  return (await row.locator(`[data-figure="${name}"]`).first().textContent()) ?? '';
}

const pauseMs = 50;

/** Waits until the text of the selected element matches. */
export async function expectText(page: Page, selector: string, expected: RegExp): Promise<void> {
  const check = async () => assert.match((await page.locator(selector).textContent()) ?? '', expected);
  await eventually(check, pauseMs);
}

export async function untilLive(page: Page): Promise<void> {
  await expectText(page, '#connection', /^Live$/);
}
