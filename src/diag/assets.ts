/** What the diagnostics page asks for beside itself, by file name: its style, and its script as it was written. */
import { readFileSync } from 'node:fs';

export interface Asset {
  readonly contentType: string;
  readonly body: string;
}

const contentTypes = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

const names = [
  ...['colours.css', 'base.css', 'health.css', 'rows.css', 'cards.css', 'explain.css'],
  ...['diagnostics.js', 'connection.js', 'display.js', 'fill.js', 'failures.js', 'parts.js', 'filter.js'],
  ...['structure.js', 'shown.js', 'figures.js', 'traffic-figures.js', 'verdict.js', 'words.js', 'sparkline.js'],
] as const;

/** Read once, at the start: they lie beside this file, in the sources as in what is built of them. */
export function readAssets(): ReadonlyMap<string, Asset> {
  return new Map(names.map((name) => [name, { contentType: contentTypes[extensionOf(name)], body: read(name) }]));
}

function extensionOf(name: (typeof names)[number]): keyof typeof contentTypes {
  return name.endsWith('.css') ? 'css' : 'js';
}

function read(name: string): string {
  return readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
}
