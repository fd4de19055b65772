/** Builds dist: compiles the sources, copies the static files of the pages, and adds doc comments for the settings. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';

const swaggerUi = ['swagger-ui.css', 'swagger-ui-bundle.js', 'LICENSE', 'NOTICE'];

const began = new Date();
rmSync('dist', { recursive: true, force: true });
// `npm run check` reports type errors. With several threads, each would infer the types of the libraries again.
execFileSync('tsc', ['-p', 'src', '--noCheck', '--singleThreaded'], { stdio: 'inherit' });
cpSync('src', 'dist', { recursive: true, filter: (file) => !/\.(?:ts|json|md)$/.test(file) });
for (const name of swaggerUi) cpSync(`node_modules/swagger-ui-dist/${name}`, `dist/rest/openapi/swagger-ui/${name}`);
await documentSettings('dist/config/settings/table', 'gatewaySettings');
await documentSettings('dist/travel/settings', 'travelSettings');
// npm makes main.js executable when it installs the package, but not when the build runs again in a linked checkout.
// Tests rebuild when main.js is older than a source file or is not executable.
utimesSync('dist/main.js', began, began);
chmodSync('dist/main.js', 0o755);

/**
 * Adds a doc comment to each setting in the generated declaration file, which contains only the types. Settings in the
 * comments have the names of options.
 */
async function documentSettings(table, name) {
  const { variables } = await import('../dist/config/settings/table.js');
  const { [name]: settings } = await import(`../${table}.js`);
  const options = new Map(variables(settings));
  const withOptions = (text) =>
    text.replace(/[A-Z_]+/g, (word) => (options.has(word) ? `\`${options.get(word)}\`` : word));
  const declared = readFileSync(`${table}.d.ts`, 'utf8');
  const documented = declared.replace(/^( *)readonly (\w+): import\(/gm, (line, indent, option) => {
    const { description, expectsValue, default: value } = settings[option];
    const defaultTag = value === undefined ? '' : ` @default ${JSON.stringify(value)}`;
    return `${indent}/** ${withOptions(description)} Takes ${expectsValue}.${defaultTag} */\n${line}`;
  });
  writeFileSync(`${table}.d.ts`, documented);
}
