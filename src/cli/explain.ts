/** The `explain` command: explains one request with a server that does not listen. */

import { type Explanation, formatExplanation, parseHeader } from '#explain';
import { Problem } from '#http';
import type { Frontdesk } from '#server';
import type { ModuleChoice, Settings } from '#server/product';
import { startDry } from './dry-start.ts';

/** The arguments and options of the command. */
export interface ExplainOptions extends ModuleChoice {
  readonly method: string;
  readonly url: string;
  /** Header lines: `Name: value`. */
  readonly header?: readonly string[];
  /** Name and password. */
  readonly u?: string;
  readonly user?: string;
  readonly from?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

export interface ExplainOutput {
  /** Ends with a line break. */
  readonly text: string;
  /** Why the request is rejected before routing. Undefined when it is not. */
  readonly rejection: string | undefined;
}

/** Connects to no other process. Rejects with a user-facing Error. */
export async function explainOnce(
  settings: Settings,
  { only, demo, json = false, ...request }: ExplainOptions,
): Promise<ExplainOutput> {
  const desk = await startDry(settings, { only, demo });
  try {
    return outputOf(await explain(desk, request), json);
  } finally {
    await desk.close();
  }
}

async function explain(
  desk: Frontdesk,
  { method, url, header = [], u: credentials, user, from, all }: ExplainOptions,
): Promise<Explanation> {
  try {
    const headers = [...header.map(parseHeader), ...(credentials === undefined ? [] : [basicHeader(credentials)])];
    return await desk.explain({ method: method.toUpperCase(), url, headers, user, all, remoteAddress: from });
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown;
    const faults = thrown.errors?.map(({ parameter, detail }) => `${parameter} ${detail}`);
    throw new Error(`this is not a valid request: ${faults?.join('; ')}`);
  }
}

/** Never repeats the text, which may be a password. */
function basicHeader(credentials: string): readonly [name: string, value: string] {
  if (!credentials.includes(':')) throw new Error('-u has no password: write it as NAME:PASSWORD');
  return ['authorization', `Basic ${Buffer.from(credentials).toString('base64')}`];
}

function outputOf(explanation: Explanation, json: boolean): ExplainOutput {
  const { outcome } = explanation;
  const isRejected = outcome.kind === 'refused' && outcome.stage === 'before_routing';
  return {
    text: json ? `${JSON.stringify(explanation, undefined, 2)}\n` : formatExplanation(explanation),
    rejection: isRejected ? `the request is rejected before routing: ${outcome.detail}` : undefined,
  };
}
