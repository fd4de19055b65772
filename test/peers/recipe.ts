/** Reads the configuration of a proxy from a recipe and replaces its ports. */
import { readRecipe } from '../recipes/page.ts';

export interface RecipePorts {
  readonly proxy: number;
  readonly auth: number;
  readonly upstream: number;
}

/** The ports in the recipe. */
const shownPorts: RecipePorts = { proxy: 8000, auth: 8082, upstream: 9000 };

/** @param language the language of the code block */
export function readProxyRecipe(language: string, ports: RecipePorts): string {
  const blocks = readRecipe('Use authentication from nginx or Caddy').blocks(language);
  const [text, ...others] = blocks;
  if (text === undefined || others.length > 0) throw new Error(`the recipe has ${blocks.length} blocks of ${language}`);
  const roles = Object.keys(shownPorts) as (keyof RecipePorts)[];
  const missing = roles.filter((role) => !text.includes(`:${shownPorts[role]}`));
  if (missing.length > 0) throw new Error(`the recipe for ${language} has another port for ${missing.join(', ')}`);
  return text.replace(/(?<=:)\d+\b/g, (shown) => {
    const role = roles.find((name) => shownPorts[name] === Number(shown));
    return role === undefined ? shown : String(ports[role]);
  });
}
