/** The YAML in the documentation and in the demo: every document, and those in annotations of manifests. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Example {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly users?: readonly object[];
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
}

/** Collects the records, limits and users in the YAML of the documentation and of the demo. */
export function exampleConfiguration() {
  const values = documentedYaml();
  return {
    records: values.filter(({ apiVersion }) => apiVersion === 'gateway/v1'),
    limits: values.filter((value) => 'domain' in value && 'descriptors' in value),
    users: values.flatMap(({ users }) => users ?? []),
    demo: parse(readFileSync(join(root, 'config/demo.yaml'), 'utf8')),
  };
}

export function documentedYaml(): readonly Example[] {
  const pages = ['README.md', 'config/README.md', 'config/gateway-api.md', 'config/recipes/README.md'];
  const files = globSync('config/**/*.yaml', { cwd: root });
  const texts = [...pages.flatMap(yamlBlocksOf), ...files.map((file) => readFileSync(join(root, file), 'utf8'))];
  return texts.flatMap(documentsIn);
}

/** Returns the texts of the YAML examples of a page. */
export function yamlBlocksOf(page: string): readonly string[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms);
  return Array.from(blocks, ([, text = '']) => text);
}

/** Returns the documents in a YAML text, and those in annotations of its manifests. */
function documentsIn(text: string): readonly Example[] {
  return parseAllDocuments(text).flatMap((one) => {
    const value: Example = one.toJS();
    const annotation = value.metadata?.annotations?.['gateway.local/config'];
    return [value, ...(annotation === undefined ? [] : documentsIn(annotation))];
  });
}
