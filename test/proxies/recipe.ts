/** The configurations that the README shows for other proxies, put on the ports of a test. */
import { readFileSync } from 'node:fs';

export interface RecipePorts {
  readonly proxy: number;
  readonly auth: number;
  readonly upstream: number;
}

/** The ports that the README uses. */
const shownPorts: RecipePorts = { proxy: 8000, auth: 8082, upstream: 9000 };

/** @param language of the code block. */
export function readRecipe(language: string, ports: RecipePorts): string {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const blocks = [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))];
  const [text, ...others] = blocks.map(([, block = '']) => block);
  if (text === undefined || others.length > 0) throw new Error(`the README has ${blocks.length} blocks of ${language}`);
  const roles = Object.keys(shownPorts) as (keyof RecipePorts)[];
  const missing = roles.filter((role) => !text.includes(`:${shownPorts[role]}`));
  if (missing.length > 0) throw new Error(`the recipe for ${language} has another port for ${missing.join(', ')}`);
  return text.replace(/(?<=:)\d+\b/g, (shown) => {
    const role = roles.find((name) => shownPorts[name] === Number(shown));
    return role === undefined ? shown : String(ports[role]);
  });
}
