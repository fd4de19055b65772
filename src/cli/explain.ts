/** The `explain` command: explains one request with a server that does not listen. */
import { resolve } from 'node:path';
import { formatErrors, type ModuleChoice, type Settings } from '#config';
import { type Explanation, formatExplanation, parseHeader } from '#explain';
import { Problem } from '#http';
import { type Frontdesk, openFrontdesk, resolveOptions } from '#server';

/** The arguments and options of the command. */
export interface ExplainOptions extends ModuleChoice {
  readonly method: string;
  readonly url: string;
  /** Header lines: `Name: value`. */
  readonly header?: readonly string[];
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

/** Opens no port, and connects to neither the database nor Redis. Rejects with a user-facing Error. */
export async function explainOnce(
  { configDir, ...settings }: Settings,
  { only, demo, json = false, ...request }: ExplainOptions,
): Promise<ExplainOutput> {
  const scratch = { databaseUrl: 'sqlite::memory:', redisUrl: undefined, ratelimitHttpPort: undefined };
  const options = { ...settings, ...scratch, config: configDir, dormant: true, only, demo };
  const setup = await resolveOptions(options);
  const { errors } = setup.loaded;
  if (errors.length > 0) throw new Error(`the configuration has errors:\n${formatErrors(errors, resolve('.'))}`);
  const desk = await openFrontdesk(setup);
  try {
    return outputOf(explain(desk, request), json);
  } finally {
    await desk.close();
  }
}

function explain(desk: Frontdesk, { method, url, header = [], user, from, all }: ExplainOptions): Explanation {
  try {
    const headers = header.map(parseHeader);
    return desk.explain({ method: method.toUpperCase(), url, headers, user, all, remoteAddress: from });
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown;
    const faults = thrown.errors?.map(({ parameter, detail }) => `${parameter} ${detail}`);
    throw new Error(`this is not a valid request: ${faults?.join('; ')}`);
  }
}

function outputOf(explanation: Explanation, json: boolean): ExplainOutput {
  const { outcome } = explanation;
  const isRejected = outcome.kind === 'refused' && outcome.stage === 'before_routing';
  return {
    text: json ? `${JSON.stringify(explanation, undefined, 2)}\n` : formatExplanation(explanation),
    rejection: isRejected ? `the request is rejected before routing: ${outcome.detail}` : undefined,
  };
}
