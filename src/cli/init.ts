/** Writes a first configuration, of one service, one user with a new password and one limit, and says what to type next. */
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { hashPassword, type Random } from '#auth';
import { parseServiceReference, quote, type Settings, settingsFile } from '#config';
import { listNames, type NewFile, writeNewFiles } from './new-files.ts';

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

export interface StarterOptions {
  /** Where requests are sent: a service reference. */
  readonly service: string;
  readonly user: string;
  /** As `hash-password` prints it. */
  readonly passwordHash: string;
}

/**
 * Gives the names of the files that it has written. Rejects with an Error fit for a terminal, and then has written
 * nothing: where any part of a configuration exists already, where there is a link, where writing fails, and
 * where the directory has no name.
 */
export async function writeStarter(directory: string, options: StarterOptions): Promise<readonly string[]> {
  requireService(options.service);
  // A variable of a shell that is not set. An empty CONFIG_DIR is the default, and would not lead there.
  if (directory === '') throw new Error('"" is no directory to write to: write . for the one that you are in');
  const there = (await listNames(directory, ['services', 'ratelimit'])).filter((name) => isRead.test(name));
  if (there.length > 0) {
    const files = there.map((name) => join(directory, name)).join(', ');
    throw new Error(
      `there is a configuration already, and nothing was written: ${files}. Name another directory: frontdesk init ./other`,
    );
  }
  const files = starterFiles(options);
  await writeNewFiles(directory, files);
  return files.map(({ name }) => join(directory, name));
}

/** The names that a configuration directory is read for. */
const isRead = /^(?:(?:services|ratelimit)[\\/].*\.ya?ml|(?:users|demo)\.yaml|settings\.env)$/;

function requireService(service: string): void {
  const reference = parseServiceReference(service);
  if (reference !== undefined && reference.scheme !== 'grpc' && reference.path === undefined) return;
  throw new Error(`${quote(service)} is no service to send requests to: write it as http://127.0.0.1:3000`);
}

function starterFiles({ service, user, passwordHash }: StarterOptions): readonly NewFile[] {
  return [
    { name: 'services/app.yaml', text: servicesYaml(service), isSecret: false },
    { name: 'ratelimit/gateway.yaml', text: limitsYaml, isSecret: false },
    { name: 'users.yaml', text: usersYaml(user, passwordHash), isSecret: true },
    { name: settingsFile, text: settingsText, isSecret: false },
  ];
}

function servicesYaml(service: string): string {
  return `# What is sent where, who is asked who is calling, and who counts. Each record is a document of this file; more of
# them may stand here or in other files of this directory. \`frontdesk check\` lists the routes, or what is wrong.

apiVersion: gateway/v1
kind: Mapping
name: app
# Requests for this path and everything below it go to the service. Of several mappings the longest prefix wins, so
# that a second one with the prefix /api can lead elsewhere.
prefix: /
service: ${JSON.stringify(service)}
# It has 60 s to begin its answer (timeout_ms), and a body of any size may pause for 60 s (idle_timeout_ms).
# By what requests are counted: here by the user. The limit itself is in ../ratelimit/gateway.yaml.
labels:
  gateway:
    - by_user:
        - user:
            header: X-Travel-User
            omit_if_not_present: true
---
apiVersion: gateway/v1
kind: AuthService
name: auth
# "auth" is the one of this process: it asks for a name and a password of ../users.yaml. Without them the answer is 401.
auth_service: auth
proto: http
# The service gets the user's name in this header; what a client sends under it is taken away.
allowed_authorization_headers: [X-Travel-User]
# The service does not get the password.
remove_authorization: true
---
apiVersion: gateway/v1
kind: RateLimitService
name: ratelimit
# "ratelimit" is the one of this process, too.
service: ratelimit
`;
}

const limitsYaml = `# How often: limits for the labels of the domain "gateway", in the format of envoyproxy/ratelimit.
domain: gateway
descriptors:
  # No value: every user has a counter of his own.
  - key: user
    rate_limit:
      unit: minute
      requests_per_unit: 60
`;

const settingsText = `# Settings for this directory, read at the start; variables of the process go before them. \`frontdesk --help\` lists all.

# Refuses (400) a path that a service may read as one with other authentication, such as /ADMIN or /admin;x where a
# mapping guards /admin.
STRICT_PATHS=true
`;

function usersYaml(user: string, passwordHash: string): string {
  return `# Who may call. \`frontdesk users add NAME\` adds a user.
users:
  - name: ${user}
    # Sees the diagnostics (/gateway/v0/diag/), explanations and metrics; leave the line out for other users.
    roles: [admin]
    password_hash: "${passwordHash}"
`;
}
