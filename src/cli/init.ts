/** Writes a first configuration with a new password, and says what to type next. */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { hashPassword, type Random } from '#auth';
import type { Settings } from '#config';
import { writeStarter } from './starter.ts';

export interface InitOptions {
  /** @default the setting CONFIG_DIR */
  readonly directory: string | undefined;
  /** A service reference. */
  readonly service: string;
}

const user = 'me';

/** 120 bits. */
const passwordBytes = 15;

/** Gives the text to print, with a line break at its end. Rejects with an Error fit for a terminal; then nothing is written. */
export async function initialise(
  { configDir, port }: Settings,
  { directory = configDir, service }: InitOptions,
  random: Random = randomBytes,
): Promise<string> {
  const password = Buffer.from(random(passwordBytes)).toString('base64url');
  const files = await writeStarter(directory, { service, user, passwordHash: await hashPassword(password, random) });
  const setting = resolve(directory) === resolve(configDir) ? '' : `CONFIG_DIR=${quoted(directory)} `;
  return `${[
    'Wrote',
    ...files.map((file) => `  ${file}`),
    '',
    ...programLines(service),
    `The user ${user} has the password ${password}`,
    'It is written nowhere: the file has its hash. Start the gateway, and call it from another terminal:',
    `  ${setting}npx frontdesk serve`,
    `  curl -i -u ${user}:${password} http://127.0.0.1:${port}/`,
  ].join('\n')}\n`;
}

/** A bare name may be a host of this network, or a service in the process of a program, which `serve` cannot have. */
function programLines(service: string): readonly string[] {
  if (!/^[\w-]+$/.test(service)) return [];
  return [
    `${service} means http://${service}, unless a program hands in its own service of this name:`,
    `  createFrontdesk({ services: { '${service}': app } })`,
    '',
  ];
}

/** For a shell. */
function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
