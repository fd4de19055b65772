/** The `init` command: writes a starter configuration with a service, a user and a limit, and prints the next steps. */
import { randomBytes } from 'node:crypto';
import { lstat, open, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { hashPassword, type Random } from '#auth';
import {
  findSchemas,
  hostForClients,
  parseServiceReference,
  quote,
  type Settings,
  settingsFile,
  writeError,
} from '#config';
import { codeOf, inheritOwner, makeFolders, shellWord } from '#foundation';

export interface InitOptions {
  /** @default the setting CONFIG_DIR */
  readonly directory: string | undefined;
  /** A service reference. */
  readonly service: string;
}

const user = 'me';

/** 120 bits. */
const passwordBytes = 15;

/**
 * Resolves to the text to print, which ends with a line break. Writes nothing when it rejects, with a user-facing Error.
 */
export async function initialise(
  settings: Settings,
  { directory = settings.configDir, service }: InitOptions,
  random: Random = randomBytes,
): Promise<string> {
  const password = Buffer.from(random(passwordBytes)).toString('base64url');
  const editor = await editorSettings(directory, process.cwd());
  const passwordHash = await hashPassword(password, random);
  const files = await writeStarter(directory, { service, user, passwordHash, more: editor.files });
  const setting = resolve(directory) === resolve(settings.configDir) ? '' : `CONFIG_DIR=${quoted(directory)} `;
  const portHint = settings.port === 0 ? ', with the port that it prints' : '';
  return `${[
    'Wrote',
    ...files.map((file) => `  ${file}`),
    '',
    ...editor.hint,
    ...programLines(service),
    `The user ${user} has the password ${password}`,
    `Note it down: users.yaml contains only its hash. ${startLine(service)}, then call it from another terminal${portHint}:`,
    `  ${setting}npx frontdesk serve`,
    `  curl -i -u ${user}:${password} ${gatewayUrl(settings)}/`,
  ].join('\n')}\n`;
}

function gatewayUrl({ host, port, tlsCert }: Settings): string {
  return `${tlsCert === undefined ? 'http' : 'https'}://${hostForClients(host)}:${port || 'PORT'}`;
}

/** A network host, or a service that an embedding program provides. `serve` has no such services. */
function isBareName(service: string): boolean {
  return /^[\w-]+$/.test(service);
}

function programLines(service: string): readonly string[] {
  if (!isBareName(service)) return [];
  return [
    `The service ${service} is http://${service}, unless a program provides a service with this name:`,
    `  createFrontdesk({ services: { '${service}': app } })`,
    'For a service of this machine, write its address into services/app.yaml instead, such as:',
    '  service: http://127.0.0.1:3000',
    '',
  ];
}

function startLine(service: string): string {
  return isBareName(service) ? `Run your program, or if ${service} is a host, start the gateway` : 'Start the gateway';
}

/** Quotes the text for a shell where necessary. */
function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : shellWord(text);
}

export interface StarterOptions {
  /** The service that requests are sent to, as a service reference. */
  readonly service: string;
  readonly user: string;
  /** In the format that `hash-password` prints. */
  readonly passwordHash: string;
  /** Files to write besides the configuration. @default [] */
  readonly more?: readonly NewFile[];
}

/**
 * Resolves to the names of the written files. Rejects with a user-facing Error, having written nothing, if part of a
 * configuration already exists, if there is a symbolic link, or if writing fails.
 */
export async function writeStarter(directory: string, options: StarterOptions): Promise<readonly string[]> {
  requireService(options.service);
  const existing = (await listNames(directory, ['services', 'ratelimit'])).filter((name) => isRead.test(name));
  if (existing.length > 0) {
    const files = existing.map((name) => join(directory, name)).join(', ');
    throw new Error(
      `a configuration already exists, so nothing was written: ${files}. Choose another directory: frontdesk init ./other`,
    );
  }
  const files = [...starterFiles(directory, options), ...(options.more ?? [])];
  await writeNewFiles(directory, files);
  return files.map(({ name }) => join(directory, name));
}

/** Matches the names of the files that are read from a configuration directory. */
const isRead = /^(?:(?:services|ratelimit)[\\/].*\.ya?ml|(?:users|demo)\.yaml|settings\.env)$/;

function requireService(service: string): void {
  const reference = parseServiceReference(service);
  const isPort = /^\d+$/.test(service);
  if (!isPort && reference !== undefined && reference.scheme !== 'grpc' && reference.path === undefined) return;
  const port = isPort ? service : 3000;
  throw new Error(`${quote(service)} is not the address of an HTTP service: write it as http://127.0.0.1:${port}`);
}

interface NewFile {
  /** Relative to the directory, and at most one folder deep in it. */
  readonly name: string;
  readonly text: string;
  /** Makes the file readable for its owner only. */
  readonly isSecret: boolean;
}

/** Creates missing directories as well. Undoes everything before it rejects with a user-facing Error. */
export async function writeNewFiles(directory: string, files: readonly NewFile[]): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  for (const { name, text, isSecret } of files) {
    const file = join(directory, name);
    try {
      await makeFolders(dirname(file), { onCreated: (folder) => undo.push(() => rmdir(folder)) });
      // `wx` does not follow links, and fails if another process has created the file in the meantime.
      await using created = await open(file, 'wx', isSecret ? 0o600 : 0o666);
      // Registered before writing, because on a full disk the file exists but its content cannot be written.
      undo.push(() => rm(file));
      await created.writeFile(text);
      await inheritOwner(dirname(file), created);
    } catch (cause) {
      // Removing a folder fails, as it should, if another program has put something into it.
      for (const step of undo.reverse()) await step().catch(() => {});
      throw writeError(file, cause, remedy);
    }
  }
}

const remedy = 'choose a directory that you can write to';

/** Lists the contents of the directory and these folders in it, links included. Names are relative to the directory. */
async function listNames(directory: string, folders: readonly string[]): Promise<readonly string[]> {
  const names: string[] = [];
  for (const folder of ['', ...folders]) {
    const place = join(directory, folder);
    await refuseLink(place);
    names.push(...(await namesIn(place)).map((name) => join(folder, name)));
  }
  return names;
}

/** A link may point to another user's directory. `resolve` drops a final slash, with which `lstat` would follow it. */
async function refuseLink(path: string): Promise<void> {
  const found = await lstat(resolve(path)).catch(() => undefined);
  if (found?.isSymbolicLink()) throw new Error(`${path} is a symbolic link: use the directory it points to`);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw writeError(folder, cause, remedy);
  }
}

interface EditorSettings {
  readonly files: readonly NewFile[];
  /** What to print. */
  readonly hint: readonly string[];
}

const codeSettings = '.vscode/settings.json';

/**
 * The settings with which VS Code knows the schema of each file. VS Code reads them in the folder that it opens: they are
 * in the working directory if that contains the configuration, and otherwise left out.
 */
async function editorSettings(directory: string, project: string): Promise<EditorSettings> {
  const below = relative(project, resolve(directory));
  if (below.startsWith('..') || isAbsolute(below)) return { files: [], hint: [] };
  const schemaUrl = findSchemas(directory);
  const globs = { records: 'services/*.yaml', limits: 'ratelimit/*.yaml', users: 'users.yaml', demo: 'demo.yaml' };
  const schemas = Object.entries(globs).map(([name, glob]) => [
    schemaUrl(name, project),
    join(below, glob).replaceAll('\\', '/'),
  ]);
  const text = JSON.stringify({ 'yaml.schemas': Object.fromEntries(schemas) }, undefined, 2);
  if (await exists(join(project, codeSettings)))
    return { files: [], hint: [`${codeSettings} exists. For YAML with completion, add:`, text.slice(2, -2), ''] };
  const name = join(relative(resolve(directory), project), codeSettings);
  return { files: [{ name, text: `${text}\n`, isSecret: false }], hint: [] };
}

/** Whether there is anything of this name, or a link in place of its folder. */
async function exists(file: string): Promise<boolean> {
  const [folder, found] = await Promise.all([dirname(file), file].map((path) => lstat(path).catch(() => undefined)));
  return found !== undefined || folder?.isSymbolicLink() === true;
}

function starterFiles(directory: string, { service, user, passwordHash }: StarterOptions): readonly NewFile[] {
  const schemaUrl = findSchemas(directory);
  const modeline = (schema: string, folder: string) =>
    `# yaml-language-server: $schema=${schemaUrl(schema, resolve(directory, folder))}\n`;
  const ofRecords = modeline('records', 'services');
  const services = servicesYaml(service).replaceAll('---\n', `---\n${ofRecords}`);
  return [
    { name: 'services/app.yaml', text: ofRecords + services, isSecret: false },
    { name: 'ratelimit/gateway.yaml', text: modeline('limits', 'ratelimit') + limitsYaml, isSecret: false },
    { name: 'users.yaml', text: modeline('users', '') + usersYaml(user, passwordHash), isSecret: true },
    { name: settingsFile, text: settingsText, isSecret: true },
  ];
}

function servicesYaml(service: string): string {
  return `# Routing, authentication and rate limiting. Each record is one YAML document, and can be in this file or in any other
# file of this directory. \`frontdesk check\` lists the routes or reports the errors.

apiVersion: gateway/v1
kind: Mapping
name: app
# Requests for this path and everything below it go to the service. The mapping with the longest matching prefix wins,
# so a second mapping with the prefix /api can send those requests to another service. That service gets the path without
# the prefix unless the mapping has rewrite: "", and its requests are not limited unless you copy the labels.
prefix: /
service: ${JSON.stringify(service)}
# The service has 60 s to start its response (timeout_ms). A body may have any size, and may pause for up to 60 s
# (idle_timeout_ms).
# To let clients open WebSockets, remove the first # of the next line:
# allow_upgrade: [websocket]
# The labels by which requests are counted, here the user. The limit itself is in ../ratelimit/gateway.yaml.
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
# "auth" is the auth service of this process. It checks names and passwords against ../users.yaml, and responds with 401
# when they are missing or wrong.
auth_service: auth
proto: http
# The service receives the user's name in this header. The header is removed from what clients send.
allowed_authorization_headers: [X-Travel-User]
# The password is not forwarded to the service.
remove_authorization: true
---
apiVersion: gateway/v1
kind: RateLimitService
name: ratelimit
# "ratelimit" is the rate limiter of this process.
service: ratelimit
`;
}

const limitsYaml = `# Limits for the labels of the domain "gateway", in the format of envoyproxy/ratelimit.
domain: gateway
descriptors:
  # Without a value, each user is counted separately. Every request counts, including those for the images and scripts of
  # a page. A token bucket lets a user send that many at once, and then as many again, evenly over each minute. For at
  # most that many in each minute, remove the line with algorithm.
  - key: user
    rate_limit:
      unit: minute
      requests_per_unit: 600
      algorithm: token_bucket
`;

const settingsText = `# Settings, read at startup. Environment variables take precedence. \`frontdesk --help\` lists all settings.
`;

function usersYaml(user: string, passwordHash: string): string {
  return `# The users who may call the gateway. \`frontdesk users add NAME\` adds a user.
users:
  - name: ${user}
    # Grants access to diagnostics (/gateway/v0/diag/), explanations and metrics. Leave this line out for other users.
    roles: [admin]
    password_hash: "${passwordHash}"
`;
}
