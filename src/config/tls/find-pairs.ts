/** Finds the certificates and keys in TLS_DIR: pairs of files, and folders with a pair. */
import { readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf } from '#foundation';
import { type ConfigurationError, fileError } from '../errors.ts';

/** A certificate and its key. */
export interface PairOfFiles {
  /** The certificate below TLS_DIR: `shop.crt`, `shop/tls.crt`. */
  readonly name: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface FoundPairs {
  /** By name. */
  readonly pairs: readonly PairOfFiles[];
  readonly errors: readonly ConfigurationError[];
  /** Names whose files are incomplete, so that what they last contained remains in use. */
  readonly incomplete: readonly string[];
  /** The folders with pairs, or in which one may appear. */
  readonly folders: readonly string[];
}

/** Certificate and key in a folder, as Kubernetes and as certbot name them. */
const namesInFolder = [
  ['tls.crt', 'tls.key'],
  ['fullchain.pem', 'privkey.pem'],
] as const;

/** Enough for a certificate of each of many thousand customers. */
const certificatesMax = 10_000;

export async function findPairs(directory: string): Promise<FoundPairs> {
  const found: Draft = { pairs: [], errors: [], incomplete: [], folders: [directory] };
  const top = await listNames(directory, found);
  for (const base of basesIn(top)) addPair(found, { directory, names: top, cert: `${base}.crt`, key: `${base}.key` });
  for (const name of await foldersAmong(directory, top)) {
    const folder = join(directory, name);
    found.folders.push(folder);
    const names = await listNames(folder, found);
    for (const [cert, key] of namesInFolder)
      if (names.includes(cert) || names.includes(key)) addPair(found, { directory, folder: name, names, cert, key });
  }
  if (found.pairs.length > certificatesMax) {
    const message = `there are ${found.pairs.length} certificates, and at most ${certificatesMax} are served`;
    found.errors.push(fileError(directory, message, 'Distribute them to several frontdesks.'));
  }
  const pairs = found.pairs.toSorted((a, b) => (a.name < b.name ? -1 : 1)).slice(0, certificatesMax);
  return { ...found, pairs };
}

/** What has been found so far. */
type Draft = { readonly [P in keyof FoundPairs]: FoundPairs[P] extends readonly (infer Item)[] ? Item[] : never };

interface PlaceOfPair {
  readonly directory: string;
  readonly folder?: string;
  /** The names of the files there. */
  readonly names: readonly string[];
  readonly cert: string;
  readonly key: string;
}

function addPair(
  { pairs, errors, incomplete }: Draft,
  { directory, folder = '', names, cert, key }: PlaceOfPair,
): void {
  const name = folder === '' ? cert : `${folder}/${cert}`;
  const inside = join(directory, folder);
  const isThere = (file: string) => names.includes(file);
  if (isThere(cert) && isThere(key)) {
    pairs.push({ name, certFile: join(inside, cert), keyFile: join(inside, key) });
    return;
  }
  const [there, missing] = isThere(cert) ? [cert, key] : [key, cert];
  errors.push(fileError(join(inside, there), `there is no ${missing} beside it`, `Write it, or remove ${there}.`));
  incomplete.push(name);
}

/**
 * Returns the names of pairs without their extensions. The certificates of an authority, which Kubernetes and lego put
 * beside the others, have no key.
 */
function basesIn(names: readonly string[]): readonly string[] {
  const ofPairs = names.filter((name) => /^[^.].*\.(?:crt|key)$/.test(name) && !/^ca\.crt$|\.issuer\.crt$/.test(name));
  return [...new Set(ofPairs.map((name) => name.slice(0, -'.crt'.length)))];
}

async function foldersAmong(directory: string, names: readonly string[]): Promise<readonly string[]> {
  const visible = names.filter((name) => !name.startsWith('.') && !/\.(?:crt|key|pem|json)$/.test(name));
  const areFolders = await Promise.all(
    visible.map((name) =>
      stat(join(directory, name)).then(
        (stats) => stats.isDirectory(),
        () => false,
      ),
    ),
  );
  return visible.filter((_, index) => areFolders[index]);
}

async function listNames(directory: string, { errors }: Draft): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (cause) {
    const message = `the directory cannot be read (${codeOf(cause) || messageOf(cause)})`;
    errors.push(fileError(directory, message, 'Create it, correct TLS_DIR, or let this user read it.'));
    return [];
  }
}

/** Each is looked at every two seconds, and usually its folder sees when it is replaced. */
const linksMax = 1000;

/**
 * Lists the files of pairs that are links to another folder, where changes emit no event for this one, and the folders
 * that are links.
 */
export async function linksIn({ folders, pairs }: FoundPairs) {
  const files = pairs.flatMap(({ certFile, keyFile }) => [certFile, keyFile]);
  const targetOf = (path: string) => readlink(path).catch(() => '');
  const [ofFiles, ofFolders] = await Promise.all([files, folders].map((paths) => Promise.all(paths.map(targetOf))));
  return {
    files: files.filter((_, index) => /^(?:\/|\.\.\/)/.test(ofFiles?.[index] ?? '')).slice(0, linksMax),
    folders: folders.filter((_, index) => ofFolders?.[index] !== '').slice(0, linksMax),
  };
}
