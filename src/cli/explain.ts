/** Explains one request with a server that does not listen, and prints the explanation. */
import { resolve } from 'node:path';
import { formatErrors, type ModuleChoice, type Settings } from '#config';
import { type Explanation, formatExplanation, parseHeader } from '#explain';
import { Problem } from '#http';
import { type Frontdesk, openFrontdesk, resolveOptions } from '#server';

/** As the command line takes it. */
export interface ExplainOptions extends ModuleChoice {
  readonly method: string;
  readonly url: string;
  /** `Name: value` */
  readonly header: readonly string[];
  readonly user?: string;
  readonly from?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

export interface ExplainOutput {
  /** Ends with a line break. */
  readonly text: string;
  /** Why the request is refused before a mapping is looked for; undefined: it is not. */
  readonly refusal: string | undefined;
}

/** Listens nowhere and opens neither database nor Redis. Rejects with an Error fit for a terminal. */
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

function explain(desk: Frontdesk, { method, url, header, user, from, all }: ExplainOptions): Explanation {
  try {
    const headers = header.map(parseHeader);
    return desk.explain({ method: method.toUpperCase(), url, headers, user, all, remoteAddress: from });
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown;
    const faults = thrown.errors?.map(({ parameter, detail }) => `${parameter} ${detail}`);
    throw new Error(`no client could send this request: ${faults?.join('; ')}`);
  }
}

function outputOf(explanation: Explanation, json: boolean): ExplainOutput {
  const { outcome } = explanation;
  const isRefused = outcome.kind === 'refused' && outcome.stage === 'before_routing';
  return {
    text: json ? `${JSON.stringify(explanation, undefined, 2)}\n` : formatExplanation(explanation),
    refusal: isRefused ? `the request is refused before a mapping is looked for: ${outcome.detail}` : undefined,
  };
}
