/** One question about the configuration as it is served, put to a desk that does nothing else. */
import { resolve } from 'node:path';
import { formatErrors, loadConfiguration, type ModuleName, type Settings } from '#config';
import { type Explanation, formatExplanation, parseHeader } from '#explain';
import { Problem } from '#http';
import { createFrontdesk, type Frontdesk } from '#server';

/** As the command line takes it. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  /** `Name: value` */
  readonly header: readonly string[];
  readonly user?: string;
  readonly from?: string;
  readonly all?: boolean;
  readonly json?: boolean;
  readonly only?: readonly ModuleName[];
}

export interface Told {
  /** Ends with a line break. */
  readonly text: string;
  /** Why no mapping was looked for; undefined: one was. */
  readonly refusal: string | undefined;
}

/** Listens nowhere and opens neither database nor Redis. Rejects with an Error fit for a terminal. */
export async function explainOnce({ configDir, ...settings }: Settings, asked: Asked): Promise<Told> {
  const { errors } = await loadConfiguration(configDir, settings);
  if (errors.length > 0) throw new Error(`the configuration is broken:\n${formatErrors(errors, resolve('.'))}`);
  const scratch = { databaseUrl: 'sqlite::memory:', redisUrl: undefined, ratelimitHttpPort: undefined };
  const { only } = asked;
  const desk = await createFrontdesk({
    ...settings,
    ...scratch,
    config: configDir,
    dormant: true,
    ...(only && { only }),
  });
  try {
    return toldOf(explain(desk, asked), asked.json ?? false);
  } finally {
    await desk.close();
  }
}

function explain(desk: Frontdesk, { method, url, header, user, from, all }: Asked): Explanation {
  try {
    const headers = header.map(parseHeader);
    return desk.explain({ method: method.toUpperCase(), url, headers, user, all, remoteAddress: from });
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown;
    const faults = thrown.errors?.map(({ pointer, detail }) => `${pointer.replace('#/query/', '')} ${detail}`);
    throw new Error(`no client could send this request: ${faults?.join('; ')}`);
  }
}

function toldOf(explanation: Explanation, json: boolean): Told {
  const { outcome } = explanation;
  const isRefused = outcome.kind === 'refused' && outcome.stage === 'before_routing';
  return {
    text: json ? `${JSON.stringify(explanation, undefined, 2)}\n` : formatExplanation(explanation),
    refusal: isRefused ? `the request is refused before a mapping is looked for: ${outcome.detail}` : undefined,
  };
}
