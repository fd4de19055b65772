/** Makes dist: compiles the sources, and copies what they serve as it is, the pages' styles and scripts and Swagger UI; editors get what the table of settings says. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';

const swaggerUi = ['swagger-ui.css', 'swagger-ui-bundle.js', 'LICENSE', 'NOTICE'];

const began = new Date();
rmSync('dist', { recursive: true, force: true });
// Errors of types are for `npm run check`. Several threads would each infer the types of the libraries again.
execFileSync('tsc', ['-p', 'src', '--noCheck', '--singleThreaded'], { stdio: 'inherit' });
cpSync('src', 'dist', { recursive: true, filter: (file) => !/\.(?:ts|json|md)$/.test(file) });
for (const name of swaggerUi) cpSync(`node_modules/swagger-ui-dist/${name}`, `dist/rest/openapi/swagger-ui/${name}`);
await documentSettings('dist/config/settings/table');
// npm makes it executable for an install of its own alone, not when the build runs again below a link to this checkout.
// Tests build again when main.js is older than a source, or cannot be executed.
utimesSync('dist/main.js', began, began);
chmodSync('dist/main.js', 0o755);

/** Puts a comment before each setting in the declaration of the table, which has kept the types alone. */
async function documentSettings(table) {
  const { settingTable } = await import(`./${table}.js`);
  const declared = readFileSync(`${table}.d.ts`, 'utf8');
  const documented = declared.replace(/^( *)readonly (\w+): import\(/gm, (line, indent, name) => {
    const { description, expectsValue, default: value } = settingTable[name];
    const defaultTag = value === undefined ? '' : ` @default ${JSON.stringify(value)}`;
    return `${indent}/** ${description} Takes ${expectsValue}.${defaultTag} */\n${line}`;
  });
  writeFileSync(`${table}.d.ts`, documented);
}
