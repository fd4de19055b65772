/** Defines the kinds of the Gateway API in the API server of a test: the standard channel, which `.ci/run` downloads. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { findProgram } from '../programs/installed.ts';
import { eventually } from '../waiting.ts';
import { describeWithKubernetes } from './api-server.ts';
import type { KubernetesClient, KubernetesObject } from './client.ts';

/** A `describe` that is pending if the API server or what `conformance/build.sh` makes is not installed. */
export function describeWithGatewayApi(title: string, body: (this: Mocha.Suite) => void): void {
  describeWithKubernetes(title, function describeInstalled() {
    // The last file that it writes.
    if (existsSync(builtFile('sources'))) body.call(this);
    else it(`needs the Gateway API in ${builtFile('')}`);
  });
}

/** Resolves when objects of these kinds can be written. */
export async function defineGatewayApi(kubernetes: KubernetesClient): Promise<void> {
  const definitions = await readDefinitions();
  await kubernetes.apply(...definitions);
  for (const definition of definitions) {
    const { group, names, versions } = definition['spec'] as DefinitionSpec;
    const served = versions.filter((version) => version.served);
    for (const { name } of served) await eventually(() => kubernetes.list(`${group}/${name}`, names.kind));
  }
}

interface DefinitionSpec {
  readonly group: string;
  readonly names: { readonly kind: string };
  readonly versions: readonly { readonly name: string; readonly served: boolean }[];
}

/** What `conformance/build.sh` makes. `.ci/run` puts it beside the programs that it builds. */
export function builtFile(name: string): string {
  return join(findProgram('kube-apiserver') ?? '', '../../gateway-api', name);
}

async function readDefinitions(): Promise<readonly KubernetesObject[]> {
  const folder = builtFile('definitions');
  const names = await readdir(folder);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  const objects = texts.flatMap((text) => parseAllDocuments(text).map((one) => one.toJS() as KubernetesObject));
  return objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
}
