/** Reads the current context of kubeconfig files: which API server it means, and how it authenticates. */
import { readFile } from 'node:fs/promises';
import { delimiter, dirname, resolve } from 'node:path';
import { formatErrors, readYaml } from '#config';
import { codeOf, type Fields, isMap, messageOf } from '#foundation';
import type { Connection, Credentials } from './connection.ts';

/**
 * Merges the files as kubectl does: of several entries with the same name, the first one counts. Rejects with a message
 * for the user.
 */
export async function kubeconfigConnection(files: readonly string[]): Promise<Connection> {
  const read = (await Promise.all(files.map(readKubeconfig))).filter((one) => one !== undefined);
  if (read.length === 0) throw new Error(noFileMessage(files));
  const current = read.find(({ content }) => textAt(content, 'current-context') !== undefined);
  const name = textAt(current?.content, 'current-context');
  if (name === undefined || current === undefined)
    throw new Error(`${files.join(delimiter)} has no current-context: choose one with kubectl config use-context.`);
  const context = partNamed(read, 'context', name, `the current-context of ${current.file}`);
  const origin = `the context ${name} of ${context.file}`;
  const cluster = partNamed(read, 'cluster', textAt(context.part, 'cluster') ?? '', origin);
  const userName = textAt(context.part, 'user');
  const user = userName === undefined ? undefined : partNamed(read, 'user', userName, origin);
  const credentials = credentialsReader(cluster, user);
  await credentials();
  const namespace = textAt(context.part, 'namespace') ?? 'default';
  return { url: serverUrl(cluster), namespace, origin, credentials };
}

function noFileMessage(files: readonly string[]): string {
  return (
    `no cluster was found: ${files.join(' and ')} ${files.length > 1 ? 'do' : 'does'} not exist. ` +
    'Set KUBECONFIG to a kubeconfig file, or run frontdesk in a pod.'
  );
}

interface KubeconfigFile {
  readonly file: string;
  readonly content: Fields;
}

/** Undefined for a file that does not exist. */
async function readKubeconfig(file: string): Promise<KubeconfigFile | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read: ${messageOf(cause)}`, { cause });
  }
  const { results, errors } = readYaml(text, { file, lineOf: (line) => line }, ({ value }) => value);
  if (errors.length > 0) throw new Error(formatErrors(errors, dirname(file)));
  const [content = {}] = results;
  if (!isMap(content))
    throw new Error(`${file} is not a kubeconfig file: it must be a map with contexts and clusters.`);
  return { file, content };
}

/** A cluster, a user or a context, and the file that it is from. */
interface Part {
  readonly file: string;
  readonly name: string;
  readonly part: Fields;
}

/** `by` says what refers to the part, for messages. */
function partNamed(
  read: readonly KubeconfigFile[],
  kind: 'cluster' | 'context' | 'user',
  name: string,
  by: string,
): Part {
  const all = read.flatMap(({ file, content }) => entriesOf(content[`${kind}s`]).map((entry) => ({ file, entry })));
  const found = all.find(({ entry }) => entry['name'] === name);
  const part = found?.entry[kind];
  if (found !== undefined && isMap(part)) return { file: found.file, name, part };
  const known = all.map(({ entry }) => entry['name']).join(', ') || 'none';
  throw new Error(`${by} needs the ${kind} ${JSON.stringify(name)}, which does not exist: there is ${known}.`);
}

function entriesOf(list: unknown): readonly Fields[] {
  return Array.isArray(list) ? list.filter(isMap) : [];
}

function serverUrl({ file, name, part }: Part): string {
  const server = textAt(part, 'server') ?? '';
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== 'https:')
    throw new Error(`${file}: the server of the cluster ${name} must be an https URL, not ${JSON.stringify(server)}.`);
  return url.href.replace(/\/+$/, '');
}

const kubectlToken = 'Use a service account: kubectl create token <name> makes a token for users[].user.token.';

/** Fields that would be needed to reach the server or to log in, and that nothing here applies. */
const unsupported: Readonly<Record<'cluster' | 'user', Readonly<Record<string, string>>>> = {
  cluster: { 'proxy-url': 'frontdesk calls the API server directly. Remove it, and give the server a route.' },
  user: {
    exec: `frontdesk runs no program for credentials. ${kubectlToken}`,
    'auth-provider': `frontdesk has no such provider. ${kubectlToken}`,
    username: `API servers accept no passwords any more. ${kubectlToken}`,
    as: `frontdesk does not act as another user. ${kubectlToken}`,
  },
};

function refuseUnsupported(kind: 'cluster' | 'user', { file, name, part }: Part): void {
  for (const [field, remedy] of Object.entries(unsupported[kind]))
    if (part[field] !== undefined) throw new Error(`${file}: the ${kind} ${name} has ${field}, but ${remedy}`);
}

/** Fails at once for what is missing, and returns a function that reads the files again. */
function credentialsReader(cluster: Part, user: Part | undefined): () => Promise<Credentials> {
  refuseUnsupported('cluster', cluster);
  if (user !== undefined) refuseUnsupported('user', user);
  const isInsecure = cluster.part['insecure-skip-tls-verify'] === true;
  return async () => ({
    ca: await pemOf(cluster, 'certificate-authority'),
    servername: textAt(cluster.part, 'tls-server-name'),
    rejectUnauthorized: !isInsecure,
    token: user && (await tokenOf(user)),
    cert: user && (await pemOf(user, 'client-certificate')),
    key: user && (await pemOf(user, 'client-key')),
  });
}

/** Base64 in the field with `-data`, or a file. */
async function pemOf(part: Part, field: string): Promise<string | undefined> {
  const data = textAt(part.part, `${field}-data`);
  return data === undefined ? readNamedFile(part, field) : Buffer.from(data, 'base64').toString();
}

async function tokenOf(user: Part): Promise<string | undefined> {
  return (await readNamedFile(user, 'tokenFile'))?.trim() ?? textAt(user.part, 'token');
}

/** The name is relative to the folder of the kubeconfig file. */
async function readNamedFile({ file, part }: Part, field: string): Promise<string | undefined> {
  const name = textAt(part, field);
  if (name === undefined) return undefined;
  const path = resolve(dirname(file), name);
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new Error(`${file}: ${field} ${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/** Undefined for an empty text too, as kubectl reads it. */
function textAt(map: Fields | undefined, field: string): string | undefined {
  const value = map?.[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
