/** Runs tests in Debian's Chromium: one process for each describe, and a new context for each visit. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Suite } from 'mocha';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { findProgram } from '../support/programs/installed.ts';
import { type TestServers, testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

/** The headless shell needs a quarter of the time of the full Chromium. */
const programs = ['chromium-headless-shell', 'chromium'];
const executablePath = programs.map(findProgram).find((program) => program !== undefined);
const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-quic',
  '--no-first-run',
  '--disable-component-update',
  '--disable-sync',
];

export interface InBrowser {
  /** Servers that are closed after the describe. */
  readonly servers: TestServers;
  readonly writeFiles: ReturnType<typeof temporaryFiles>;
  readonly visit: VisitPage;
}

/** A `describe` with a time-out of half a minute for each test. Its tests are pending if there is no Chromium. */
export function describeInBrowser(title: string, define: (this: Suite, parts: InBrowser) => void): void {
  describe(title, function () {
    if (executablePath === undefined) {
      it(`is tested where ${programs.join(' or ')} is on the PATH`);
      return;
    }
    define.call(this, {
      servers: testServers(after),
      writeFiles: temporaryFiles(),
      visit: browserVisits(executablePath),
    });
  });
}

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
}

export interface VisitOptions extends BrowserContextOptions {
  /** Runs before the page is loaded. */
  readonly prepare?: (page: Page, context: BrowserContext) => Promise<void>;
  /** Matches the faults that this visit is expected to cause. */
  readonly expected?: RegExp;
  /** Leaves it to the browser what to do when a page asks for a password. @default false */
  readonly isAnonymous?: boolean;
}

/** Visits a page as the demo user, unless the options say otherwise. */
export type VisitPage = (url: string, options?: VisitOptions) => Promise<Visit>;

/**
 * Each visit ends with its test, which fails if the page or the console reported an error, or if the page sent a
 * request to another host.
 */
function browserVisits(executablePath: string): VisitPage {
  let browser: Browser;
  let visits: { readonly context: BrowserContext; readonly faults: readonly string[] }[] = [];

  before(async () => {
    // Imported late: loading takes half a second, which a run without a browser should not need.
    const { chromium } = await import('playwright-core');
    browser = await chromium.launch({ executablePath, args });
  });

  after(() => browser.close());

  afterEach(async () => {
    const ended = visits;
    visits = [];
    for (const { context } of ended) await context.close();
    assert.deepEqual(
      ended.flatMap(({ faults }) => faults),
      [],
    );
  });

  return async function visit(url, { prepare, expected, isAnonymous = false, ...options } = {}) {
    const credentials = isAnonymous ? {} : { httpCredentials: { username: 'demo', password: 'demo' } };
    const context = await browser.newContext({ ...credentials, reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    const faults: string[] = [];
    const note = (fault: string) => void (expected?.test(fault) || faults.push(fault));
    page.on('console', (message) => note(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => note(String(error)));
    context.on('request', (request) => {
      if (new URL(request.url()).origin !== new URL(url).origin) note(`requested ${request.url()}`);
    });
    visits.push({ context, faults });
    await prepare?.(page, context);
    await page.goto(url);
    return { page, context };
  };
}

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Returns the violations that axe-core finds, one line for each element. The context must bypass the page's policy. */
export async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  // The full result is large, so it is reduced in the page.
  const options = JSON.stringify({ runOnly: rules, resultTypes: ['violations'] });
  const violations = (await page.evaluate(`axe.run(document, ${options}).then(({ violations }) => violations)`)) as {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}
